"""Indexes behind URLs: what travels, what is checked, and what is said when something is wrong."""

from __future__ import annotations

import copy
import errno
import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from bm25rag import BM25Index
from bm25rag.errors import (
    CorruptIndexError,
    FormatVersionError,
    MissingDependencyError,
    NotAnIndexError,
    ReadOnlyError,
    RemoteError,
)
from bm25rag.storage import remote
from bm25rag.storage.remote_mirror import find_cache
from support.folders import body_of, no_leftovers, replaced, write_manifest

URL = "memory://store/index"
TEXTS = ["red boat", "blue sea", "a red sea", "green boats at sea"]
SECRET = "jK8-very-secret"


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MemoryFileSystem]:
    monkeypatch.setenv("BM25RAG_CACHE", str(tmp_path / "cache"))
    files = MemoryFileSystem()
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    yield files
    files.store.clear()


def names(store: MemoryFileSystem) -> set[str]:
    return {path.rpartition("/")[2] for path in store.store}


def segment_of(store: MemoryFileSystem) -> str:
    (path,) = (path for path in store.store if "segment-" in path)
    return str(path)


def put(store: MemoryFileSystem, folder: Path) -> None:
    for path in folder.iterdir():
        store.pipe_file(f"/store/index/{path.name}", path.read_bytes())


@pytest.fixture
def travelled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the names of files copied from or to the store, as they are."""
    log: list[str] = []
    for method, place in (("get_file", 0), ("put_file", 1)):
        real = getattr(MemoryFileSystem, method)

        def noted(self: Any, *paths: str, real: Any = real, place: int = place, **rest: Any) -> Any:
            log.append(paths[place].rpartition("/")[2])
            return real(self, *paths, **rest)

        monkeypatch.setattr(MemoryFileSystem, method, noted)
    return log


def fail(monkeypatch: pytest.MonkeyPatch, method: str, error: Exception) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(MemoryFileSystem, method, failing)


# --- what travels ------------------------------------------------------------------------


def test_an_index_saved_to_a_url_opens_with_the_same_answers() -> None:
    index = BM25Index.from_texts(TEXTS, variant="bm25+", k1=0.9)
    index.save(URL, extra={"mine": [1]})
    opened = BM25Index.open(URL + "/")
    for query in ("red sea", "boat", "nothing"):
        assert opened.search(query) == index.search(query)
    assert opened.extra == {"mine": [1]}
    BM25Index.verify(URL)
    BM25Index.open(URL, verify=True, mmap=False)
    BM25Index.open(URL, untrusted=True)


def test_what_the_cache_has_is_not_fetched_again(travelled: list[str]) -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    BM25Index.open(URL)
    assert len(travelled) == 2  # the segment, there and back
    BM25Index.open(URL)
    assert len(travelled) == 2


def test_after_an_update_only_what_is_new_travels(
    store: MemoryFileSystem, travelled: list[str]
) -> None:
    BM25Index.from_texts(TEXTS * 50).save(URL)
    reader, writer = BM25Index.open(URL), copy.copy(BM25Index.open(URL))
    before = names(store)
    writer.delete(["1"])
    writer.save(URL)
    travelled.clear()
    writer.add(["a yellow submarine"])
    writer.save(URL)
    assert reader.refresh()
    assert before < names(store)
    assert [hit.id for hit in reader.search("submarine")] == ["200"]
    assert "1" not in reader
    added, *fetched = travelled
    assert added not in before
    assert sorted(fetched) == sorted(names(store) - before)


def test_refresh_goes_to_a_newer_commit_and_leaves_what_was_opened_before() -> None:
    index = BM25Index.from_texts(TEXTS)
    index.save(URL)
    reader = BM25Index.open(URL)
    assert not reader.refresh()
    before = reader.snapshot()
    index.add(["one more boat"])
    index.compact()
    index.save(URL)
    assert reader.refresh()
    assert not reader.refresh()
    assert len(reader.search("boat")) == len(before.search("boat")) + 1
    assert before.get(["3"])[0].text == TEXTS[3]


def test_the_cache_holds_the_last_commit_and_nothing_else() -> None:
    for text in TEXTS:
        BM25Index.from_texts([text]).save(URL)
        BM25Index.open(URL)
    folder = Path(find_cache(URL, None, None)[1])
    assert no_leftovers(folder)
    assert folder.stat().st_mode & 0o077 == 0 or sys.platform == "win32"


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BM25RAG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert find_cache(URL, None, None)[1].startswith(str(tmp_path / "xdg" / "bm25rag" / "index-"))
    assert find_cache(URL, tmp_path, None)[1].startswith(str(tmp_path / "index-"))
    options = {"endpoint_url": "http://localhost:1"}
    assert find_cache(URL, None, options)[1] != find_cache(URL, None, None)[1]


@pytest.mark.slow
def test_several_processes_open_a_url_at_once(tmp_path: Path) -> None:
    (tmp_path / "store" / "index").mkdir(parents=True)
    options = {"path": str(tmp_path / "store"), "target_protocol": "file"}
    BM25Index.from_texts(TEXTS * 100).save("dir://index", storage_options=options)
    code = (
        "import json, sys; from bm25rag import BM25Index;"
        " index = BM25Index.open('dir://index', storage_options=json.loads(sys.argv[1]));"
        " print(len(index.search('boat')))"
    )
    command = [sys.executable, "-c", code, json.dumps(options)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=60)[0].strip() for process in running] == ["10"] * 3
    assert no_leftovers(Path(find_cache("dir://index", None, options)[1]))


def test_without_the_store_only_offline_opens() -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    with pytest.raises(NotAnIndexError, match="without offline=True"):
        BM25Index.open(URL, offline=True)
    BM25Index.open(URL)
    MemoryFileSystem().store.clear()
    with pytest.raises(NotAnIndexError, match=URL):
        BM25Index.open(URL)
    index = BM25Index.open(URL, offline=True)
    assert [hit.id for hit in index.search("green")] == ["3"]
    assert not index.refresh()


# --- damage ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: b"",
        lambda data: b"x" + data[1:],
        lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: bytes(len(data)),
    ],
    ids=["short", "long", "empty", "magic", "block", "sums", "zeros"],
)
def test_a_file_with_other_contents_is_refused_and_never_cached(
    store: MemoryFileSystem, change: Callable[[bytes], bytes]
) -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    path = segment_of(store)
    good = store.cat_file(path)
    store.pipe_file(path, change(good))
    with pytest.raises(CorruptIndexError, match=f"{URL}/segment-"):
        BM25Index.open(URL)
    folder = Path(find_cache(URL, None, None)[1])
    assert {path.name for path in folder.iterdir()} == {"lock"}
    store.pipe_file(path, good)
    assert BM25Index.open(URL).search("red")


def test_an_object_replaced_under_a_reader_does_not_change_it(store: MemoryFileSystem) -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    reader = BM25Index.open(URL)
    store.pipe_file(segment_of(store), b"something else")
    assert not reader.refresh()
    assert [hit.id for hit in reader.search("green")] == ["3"]
    reader.verify(URL)  # of the cache, which has the file that the manifest names


def test_a_missing_file_is_named(store: MemoryFileSystem) -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    store.rm_file(segment_of(store))
    with pytest.raises(CorruptIndexError, match=f"{URL}: a file is missing: .*segment-"):
        BM25Index.open(URL)


@pytest.mark.parametrize("half", [0, 100, 5000])
def test_an_interrupted_download_leaves_nothing_that_is_taken_for_a_file(
    half: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.from_texts(TEXTS).save(URL)

    def interrupted(self: Any, path: str, local: str, **_: object) -> None:
        Path(local).write_bytes(self.cat_file(path)[:half])
        raise ConnectionResetError("the network is gone")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "get_file", interrupted)
        with pytest.raises(RemoteError, match="the network is gone") as caught:
            BM25Index.open(URL)
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    folder = Path(find_cache(URL, None, None)[1])
    assert {path.name for path in folder.iterdir()} == {"lock"}
    assert BM25Index.open(URL).search("red")


def test_a_download_that_was_killed_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "store" / "index").mkdir(parents=True)
    options = {"path": str(tmp_path / "store"), "target_protocol": "file"}
    BM25Index.from_texts(TEXTS).save("dir://index", storage_options=options)
    code = (
        "import json, os, shutil, sys; from fsspec.implementations.dirfs import DirFileSystem;"
        " from bm25rag import BM25Index;"
        " DirFileSystem.get_file = lambda self, remote, local, **_:"
        " (open(local, 'wb').write(b'bm25rag'), os._exit(9));"
        " BM25Index.open('dir://index', storage_options=json.loads(sys.argv[1]))"
    )
    killed = subprocess.run([sys.executable, "-c", code, json.dumps(options)], check=False)
    assert killed.returncode == 9
    folder = Path(find_cache("dir://index", None, options)[1])
    assert any(path.suffix == ".tmp" for path in folder.iterdir())
    assert BM25Index.open("dir://index", storage_options=options).search("red")
    assert no_leftovers(folder)


def test_a_damaged_file_of_the_cache_is_fetched_again() -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    BM25Index.open(URL)
    (path,) = Path(find_cache(URL, None, None)[1]).glob("segment-*")
    path.write_bytes(path.read_bytes()[:-2])
    assert BM25Index.open(URL).search("red")


FORGED: dict[str, Any] = {
    "a path out of the folder": (("segments", 0, "file"), "../../segment-0123456789abcdef.bin"),
    "an absolute path": (("segments", 0, "file"), "/etc/passwd"),
    "a huge size": (("segments", 0, "size"), (1 << 62) - 1),
    "a size beyond": (("segments", 0, "size"), 1 << 70),
    "a small size": (("segments", 0, "size"), 3),
    "another checksum": (("segments", 0, "checksum"), 7),
    "no segments": (("segments",), 7),
    "other settings": (("settings", "parameters"), {"variant": "x"}),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_forged_manifest_is_refused(
    store: MemoryFileSystem, tmp_path: Path, forged: tuple[Any, Any]
) -> None:
    folder = tmp_path / "folder"
    BM25Index.from_texts(TEXTS).save(folder)
    write_manifest(folder, replaced(body_of(folder), *forged))
    put(store, folder)
    with pytest.raises(CorruptIndexError):
        BM25Index.open(URL)
    assert not list((tmp_path / "cache").rglob("segment-*")) or forged[0][0] == "settings"
    assert not list(tmp_path.glob("*.bin"))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", CorruptIndexError),
        (b"{}", NotAnIndexError),
        (b"\xff" * 100, CorruptIndexError),
        (b'{"format": "bm25rag", "version": 99}', FormatVersionError),
    ],
)
def test_what_is_no_manifest_is_refused(
    store: MemoryFileSystem, data: bytes, error: type[Exception]
) -> None:
    store.pipe_file("/store/index/manifest.json", data)
    with pytest.raises(error):
        BM25Index.open(URL)
    with pytest.raises(error):
        BM25Index.from_texts(TEXTS).save(URL)
    assert store.cat_file("/store/index/manifest.json") == data


# --- somebody else saves meanwhile ---------------------------------------------------------


def before_next(monkeypatch: pytest.MonkeyPatch, method: str, act: Callable[[], object]) -> None:
    real = getattr(MemoryFileSystem, method)

    def acting(self: Any, *arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(MemoryFileSystem, method, real)
        act()
        return real(self, *arguments, **options)

    monkeypatch.setattr(MemoryFileSystem, method, acting)


def test_a_commit_between_manifest_and_files_is_noticed(
    store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    old = segment_of(store)

    def save_again() -> None:
        BM25Index.from_texts(["a new boat"]).save(URL)
        store.rm_file(old)

    before_next(monkeypatch, "get_file", save_again)
    assert [hit.text for hit in BM25Index.open(URL).search("boat")] == ["a new boat"]


def test_a_store_that_never_stands_still_is_given_up(
    store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def always(*_: object, **__: object) -> None:
        BM25Index.from_texts(TEXTS).save(URL)
        raise FileNotFoundError("segment")

    BM25Index.from_texts(TEXTS).save(URL)
    monkeypatch.setattr(MemoryFileSystem, "get_file", always)
    monkeypatch.setattr("bm25rag.storage.remote_mirror._PAUSE", 0.0)
    with pytest.raises(RemoteError, match="changed 5 times"):
        BM25Index.open(URL)


def test_of_two_savers_the_last_wins_and_all_its_files_are_there(store: MemoryFileSystem) -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    first, second = (copy.copy(BM25Index.open(URL)) for _ in range(2))
    first.add(["from the first"])
    second.add(["from the second"])
    second.save(URL)
    first.save(URL)
    assert BM25Index.open(URL).search("second") == []
    assert len(BM25Index.open(URL).search("first")) == 1
    BM25Index.verify(URL)


def test_a_save_during_another_makes_that_upload_all_it_names(
    store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    old = segment_of(store)
    mine = copy.copy(BM25Index.open(URL))
    mine.add(["mine"])

    def rival() -> None:
        BM25Index.from_texts(["not mine"]).save(URL)
        store.rm_file(old)  # as a third saver might

    before_next(monkeypatch, "put_file", rival)
    mine.save(URL)
    opened = BM25Index.open(URL, verify=True)
    assert opened.search("mine")[0].text == "mine"
    assert len(opened) == len(TEXTS) + 1


def test_leftovers_stay_for_a_day_and_files_of_the_commit_before_longer(
    store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.from_texts(["one"]).save(URL)
    store.pipe_file("/store/index/segment-0123456789abcdef.bin", b"another saver's upload")
    store.pipe_file("/store/index/notes.txt", b"not ours")
    BM25Index.from_texts(["two"]).save(URL)
    assert len(names(store)) == 5
    replaced_one = body_names(store)
    monkeypatch.setattr(remote, "LEFTOVER_AGE", timedelta(0))
    BM25Index.from_texts(["three"]).save(URL)
    assert names(store) == {"manifest.json", "notes.txt", *replaced_one, *body_names(store)}


def body_names(store: MemoryFileSystem) -> set[str]:
    body = json.loads(store.cat_file("/store/index/manifest.json"))["body"]
    return {segment["file"] for segment in body["segments"]}


# --- saving ------------------------------------------------------------------------------


def test_saving_without_overwrite_keeps_what_is_there(
    store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = BM25Index.from_texts(TEXTS)
    index.save(URL, overwrite=False)
    with pytest.raises(FileExistsError, match=f"{URL} holds an index"):
        BM25Index.from_texts(["other"]).save(URL, overwrite=False)
    store.store.clear()
    before_next(monkeypatch, "put_file", lambda: index.save(URL))
    with pytest.raises(FileExistsError, match=f"{URL} holds an index"):
        BM25Index.from_texts(["other"]).save(URL, overwrite=False)
    assert len(BM25Index.open(URL)) == len(TEXTS)


def test_saving_over_something_else_is_refused(store: MemoryFileSystem) -> None:
    store.pipe_file("/store/index/notes.txt", b"mine")
    with pytest.raises(NotAnIndexError, match="choose another URL"):
        BM25Index.from_texts(TEXTS).save(URL)
    assert names(store) == {"notes.txt"}


@pytest.mark.parametrize("method", ["put_file", "pipe_file", "ls", "cat_file"])
def test_a_save_that_fails_keeps_what_was_there(
    store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    before = dict(store.store)
    with monkeypatch.context() as patch:
        fail(patch, method, TimeoutError("too slow"))
        with pytest.raises(RemoteError, match="too slow"):
            BM25Index.from_texts(["other"]).save(URL)
    assert store.store.items() >= before.items()
    assert len(BM25Index.open(URL)) == len(TEXTS)


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_save_whose_answer_is_lost_is_a_save(
    monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    real = MemoryFileSystem.pipe_file

    def lost(self: Any, *arguments: Any, **options: Any) -> None:
        real(self, *arguments, **options)
        raise TimeoutError

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "pipe_file", lost)
        BM25Index.from_texts(TEXTS).save(URL, overwrite=overwrite)
    assert len(BM25Index.open(URL)) == len(TEXTS)


def test_a_saver_that_is_killed_leaves_the_commit_before(tmp_path: Path) -> None:
    (tmp_path / "store" / "index").mkdir(parents=True)
    options = {"path": str(tmp_path / "store"), "target_protocol": "file"}
    BM25Index.from_texts(TEXTS).save("dir://index", storage_options=options)
    code = (
        "import json, os, sys; from fsspec.implementations.dirfs import DirFileSystem;"
        " from bm25rag import BM25Index;"
        " DirFileSystem.pipe_file = lambda *_, **__: os._exit(9);"
        " index = BM25Index.from_texts(['another']);"
        " index.save('dir://index', storage_options=json.loads(sys.argv[1]))"
    )
    killed = subprocess.run([sys.executable, "-c", code, json.dumps(options)], check=False)
    assert killed.returncode == 9
    assert len(list((tmp_path / "store" / "index").iterdir())) == 3
    assert len(BM25Index.open("dir://index", storage_options=options)) == len(TEXTS)
    BM25Index.from_texts(["one more"]).save("dir://index", storage_options=options)
    assert len(BM25Index.open("dir://index", storage_options=options)) == 1


def test_what_was_uploaded_for_a_save_that_fails_is_removed(
    store: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    before = names(store)
    other = BM25Index.from_texts(["other"])
    real = MemoryFileSystem.put_file

    def uploaded_and_failed(self: Any, *paths: Any, **options: Any) -> None:
        real(self, *paths, **options)
        raise ConnectionError("reset")

    monkeypatch.setattr(MemoryFileSystem, "put_file", uploaded_and_failed)
    with pytest.raises(RemoteError):
        other.save(URL)
    assert names(store) == before


# --- arguments and errors ------------------------------------------------------------------


def test_a_url_cannot_be_opened_for_writing() -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    with pytest.raises(ReadOnlyError, match=r"copy\.copy"):
        BM25Index.open(URL, mode="w")
    with pytest.raises(ReadOnlyError):
        BM25Index.open(URL).add(["x"])


@pytest.mark.parametrize("given", [{"cache": "x"}, {"storage_options": {}}, {"offline": True}])
def test_arguments_for_urls_are_refused_for_folders(tmp_path: Path, given: Any) -> None:
    BM25Index.from_texts(TEXTS).save(tmp_path / "index")
    with pytest.raises(ValueError, match=f"{next(iter(given))} is for URLs"):
        BM25Index.open(tmp_path / "index", **given)


def test_file_urls_name_folders_of_this_machine(tmp_path: Path) -> None:
    folder = tmp_path / "a folder, 100 %"
    BM25Index.from_texts(TEXTS).save(folder.as_uri())
    with BM25Index.open(folder.as_uri(), mode="w") as writer:
        writer.add(["more"])
    assert len(BM25Index.open(folder)) == len(TEXTS) + 1
    BM25Index.verify(folder.as_uri())
    assert len(BM25Index.open(f"local://{tmp_path}/a%20folder, 100 %25")) == len(TEXTS) + 1
    with pytest.raises(ValueError, match="another machine"):
        BM25Index.open("file://server/folder")


def test_a_url_in_a_path_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for act in (BM25Index.from_texts(TEXTS).save, BM25Index.open, BM25Index.verify):
        with pytest.raises(ValueError, match="pass the URL as a str"):
            act(Path("s3://bucket/index"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("url", "package"), [("s3://b/x", "s3fs"), ("gs://b/x", "gcsfs"), ("abfs://b/x", "adlfs")]
)
def test_the_package_for_a_protocol_is_named(
    url: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(_registry, url.partition(":")[0], raising=False)
    for act in (BM25Index.open, BM25Index.from_texts(TEXTS).save):
        with pytest.raises(MissingDependencyError, match=f"{url} needs {package}: pip install"):
            act(url)


def test_a_missing_fsspec_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bm25rag\[remote\]'"):
        BM25Index.open(URL)


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(RemoteError, match="Protocol not known: nowhere"):
        BM25Index.open("nowhere://x/y")


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    for url in (
        f"memory://user:{SECRET}@store/index",
        f"memory://store/index?key={SECRET}",
        f"memory://user:with/slash/{SECRET}@store/index",
        f"simplecache::memory://user:{SECRET}@store/index",
        f"zip://index::memory://user:{SECRET}@store/index.zip",
    ):
        with pytest.raises(ValueError, match="storage_options") as caught:
            BM25Index.open(url)
        assert SECRET not in str(caught.value)
    with pytest.raises(ValueError, match="looks like a URL") as caught:
        BM25Index.open(Path(f"memory://user:{SECRET}@store/index"))
    assert SECRET not in str(caught.value)


def test_an_at_sign_in_a_path_is_no_password() -> None:
    for url in ("memory://store:9000/a@b", "memory://user@store:9000/a", "memory://store/a:b@c"):
        BM25Index.from_texts(TEXTS).save(url)
        assert len(BM25Index.open(url)) == len(TEXTS)


@pytest.mark.parametrize("slashes", ["//", "///"])
def test_the_root_of_a_store_is_no_folder_of_this_machine(
    slashes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    BM25Index.from_texts(TEXTS).save(f"memory:{slashes}")
    assert not list(tmp_path.iterdir())
    assert len(BM25Index.open("memory://")) == len(TEXTS)


def test_storage_options_are_neither_stored_nor_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"secret": SECRET, "client_kwargs": {"token": SECRET}}
    index = BM25Index.from_texts(TEXTS)
    index.save(URL, storage_options=options)
    opened = BM25Index.open(URL, storage_options=options)
    shown = repr(opened) + repr(opened._live.attachment) + repr(vars(opened))
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    kept += [bytes(file.getbuffer()) for file in MemoryFileSystem.store.values()]
    assert SECRET not in shown
    assert not any(SECRET.encode() in data for data in kept)
    fail(monkeypatch, "cat_file", PermissionError(f"the key {SECRET} is not known"))
    with pytest.raises(RemoteError) as caught:
        BM25Index.open(URL, storage_options=options)
    assert SECRET not in str(caught.value)
    assert "PermissionError" in str(caught.value)
    with pytest.raises(TypeError) as wrong:
        BM25Index.open(URL, storage_options=SECRET)  # type: ignore[arg-type]
    assert SECRET not in "".join(traceback.format_exception(wrong.value)).replace(
        traceback.format_tb(wrong.tb)[0], ""
    )


@pytest.mark.parametrize(
    "options",
    [
        {"auth": ("user", SECRET)},
        {"connection_string": f"Endpoint=sb://host/;Key={SECRET}"},
        {"key": SECRET[:6], "secret": SECRET},
    ],
)
def test_secrets_are_masked_wherever_options_hold_them(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = " ".join(str(value) for value in options.values())
    fail(monkeypatch, "cat_file", PermissionError(f"{said} is not known"))
    with pytest.raises(RemoteError) as caught:
        BM25Index.open(URL, storage_options=options)
    assert SECRET[-6:] not in str(caught.value)
    assert "PermissionError" in str(caught.value)


@pytest.mark.parametrize("message", ["The specified bucket does not exist"])
def test_a_missing_bucket_is_not_taken_for_an_empty_one(
    message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(monkeypatch, "cat_file", FileNotFoundError(message))
    fail(monkeypatch, "ls", FileNotFoundError(message))
    with pytest.raises(RemoteError, match="bucket"):
        BM25Index.open(URL)
    with pytest.raises(RemoteError, match="bucket"):
        BM25Index.from_texts(TEXTS).save(URL)


def test_a_full_disk_here_is_not_blamed_on_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    BM25Index.from_texts(TEXTS).save(URL)
    fail(monkeypatch, "get_file", OSError(errno.ENOSPC, "no space left on device"))
    with pytest.raises(OSError, match="no space left") as caught:
        BM25Index.open(URL)
    assert not isinstance(caught.value, RemoteError)
    assert str(caught.value.filename).endswith(".tmp")  # which a system does not say

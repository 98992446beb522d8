"""What a commit does to its folder, and what a folder that is not as it should be does to us."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import (
    CorruptIndexError,
    FormatVersionError,
    LockedError,
    NotAnIndexError,
    StorageError,
)
from bm25rag.storage.manifest import MANIFEST
from support.folders import body_of, replaced, write_manifest

PATIENCE = 20  # seconds after which a call counts as stuck


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Save three documents, then delete one and change the metadata of another."""
    BM25Index.from_texts(["red boat", "green tea", "blue sea"]).save(tmp_path / "index")
    with BM25Index.open(tmp_path / "index", mode="w") as writer:
        writer.delete(["2"])
        writer.update_metadata(["1"], [{"n": 1}])
    return tmp_path / "index"


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def found(folder: Path) -> list[str]:
    """Return the ids that a new reader sees, after every byte was verified."""
    BM25Index.verify(folder)
    return BM25Index.open(folder).ids()


OPENINGS: dict[str, Callable[[Path], object]] = {
    "read": BM25Index.open,
    "write": lambda folder: BM25Index.open(folder, mode="w"),
    "verify": BM25Index.verify,
    "save": lambda folder: BM25Index.from_texts(["something else"]).save(folder),
}
openings = pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)


@openings
@pytest.mark.parametrize(
    ("path", "error"),
    [
        (None, TypeError),
        (7, TypeError),
        (b"index", TypeError),
        ("", ValueError),
        ("in\0dex", ValueError),
        ("\ud800", ValueError),
    ],
)
def test_a_path_that_is_none_is_named_and_writes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opening: Callable[[object], object],
    path: object,
    error: type[Exception],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=r"^the path of an index must .*, got ") as raised:
        opening(path)
    assert str(raised.value).endswith(repr(path))
    assert not list(tmp_path.iterdir())


# -- folders that are not ours -----------------------------------------------------------------


@openings
@pytest.mark.parametrize(
    "content", ['{"name": "My app", "icons": [{"src": "a.png"}]}', "{}", "[]", "null", '"x"', "7"]
)
def test_a_manifest_of_something_else_is_left_alone(
    tmp_path: Path, opening: Callable[[Path], object], content: str
) -> None:
    (tmp_path / MANIFEST).write_text(content)
    (tmp_path / "index.html").write_text("<html>")
    before = contents(tmp_path)
    with pytest.raises(NotAnIndexError, match=MANIFEST):
        opening(tmp_path)
    assert contents(tmp_path) == before


@openings
def test_a_newer_format_is_known_by_its_version_alone(
    folder: Path, opening: Callable[[Path], object]
) -> None:
    (folder / MANIFEST).write_text('{"format": "bm25rag", "version": 4, "elsewhere": []}')
    before = contents(folder)
    with pytest.raises(FormatVersionError, match="version 4"):
        opening(folder)
    assert contents(folder) == before


@openings
@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "binary"])
def test_a_damaged_manifest_is_no_reason_to_delete_the_segments(
    folder: Path, opening: Callable[[Path], object], damage: str
) -> None:
    path = folder / MANIFEST
    good = path.read_bytes()
    bad = {
        "cut": good[: len(good) // 2],
        "bit": good.replace(b'"commit": ', b'"commit": 1'),
        "empty": b"",
        "binary": b"\xff" * 100,
    }
    path.write_bytes(bad[damage])
    before = contents(folder)
    with pytest.raises(CorruptIndexError, match=MANIFEST):
        opening(folder)
    assert contents(folder) == before
    path.write_bytes(good)
    assert found(folder) == ["0", "1"]


def in_time(work: Callable[[], object]) -> BaseException | None:
    caught: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it hangs"
    return caught[0] if caught else None


def make_pipe(path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this platform has no named pipes")
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("this platform has no /dev/zero")
    path.symlink_to("/dev/zero")


@openings
@pytest.mark.parametrize("make", [make_pipe, make_endless, Path.mkdir])
def test_a_manifest_that_is_no_file_is_refused_at_once(
    folder: Path, opening: Callable[[Path], object], make: Callable[[Path], None]
) -> None:
    (folder / MANIFEST).unlink()
    make(folder / MANIFEST)
    before = sorted(path.name for path in folder.iterdir())
    error = in_time(lambda: opening(folder))
    assert isinstance(error, StorageError)
    assert MANIFEST in str(error)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("kind", ["segment", "changes"])
@pytest.mark.parametrize("make", [make_pipe, make_endless, Path.mkdir])
@pytest.mark.parametrize("mmap", [True, False])
def test_a_data_file_that_is_no_file_is_refused_at_once(
    folder: Path, kind: str, make: Callable[[Path], None], mmap: bool
) -> None:
    (path,) = folder.glob(f"{kind}-*")
    path.unlink()
    make(path)
    error = in_time(lambda: BM25Index.open(folder, mmap=mmap))
    assert isinstance(error, CorruptIndexError)
    assert path.name in str(error)


# -- commits -----------------------------------------------------------------------------------


def test_a_writer_knows_its_folder_wherever_the_process_goes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    writer = BM25Index.open("index", mode="w")
    writer.add(["red"])
    monkeypatch.chdir(tmp_path / "other")
    writer.commit()
    writer.add(["red"])
    writer.save(folder)
    writer.close()
    assert found(folder) == ["0", "1", "3", "4"]
    assert list((tmp_path / "other").iterdir()) == []


def interrupt_after_replacing(monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def interrupted(path: str, target: str) -> None:
        replace(path, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)


@pytest.mark.parametrize("way", ["commit", "save", "first save"])
def test_an_interrupt_right_after_a_commit_became_visible_leaves_it_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    index = BM25Index.open(folder, mode="w")
    index.add(["new"])
    index.delete(["0"])
    if way != "commit":
        copied = index.reanalyze()
        index.rollback()
        index.close()
        index = copied
    target = folder.with_name("fresh") if way == "first save" else folder
    with monkeypatch.context() as patch:
        interrupt_after_replacing(patch)
        with pytest.raises(KeyboardInterrupt):
            index.commit() if way == "commit" else index.save(target)
    assert found(target) == ["1", "3"]
    index.close()
    with BM25Index.open(target, mode="w") as again:
        again.add(["newer"])
    assert found(target) == ["1", "3", "4"]


def test_after_an_interrupt_a_writer_goes_back_to_what_the_folder_holds(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = BM25Index.open(folder, mode="w")
    writer.add(["new"])
    with monkeypatch.context() as patch:
        interrupt_after_replacing(patch)
        with pytest.raises(KeyboardInterrupt):
            writer.commit()
    writer.rollback()
    assert writer.ids() == found(folder) == ["0", "1", "3"]
    writer.add(["newer"])
    writer.commit()
    writer.close()
    assert found(folder) == ["0", "1", "3", "4"]


def test_a_flush_that_fails_after_the_commit_became_visible_is_raised_and_the_commit_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.name == "nt":
        pytest.skip("a folder is not flushed on Windows")
    replaced_at: list[str] = []
    replace, flush = os.replace, os.fsync

    def noted(path: str, target: str) -> None:
        replace(path, target)
        replaced_at.append(target)

    def failing(handle: int) -> None:
        if replaced_at:
            message = "input/output error"
            raise OSError(5, message)
        flush(handle)

    writer = BM25Index.open(folder, mode="w")
    writer.add(["new"])
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", noted)
        patch.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="input/output error"):
            writer.commit()
    assert replaced_at
    writer.rollback()
    assert writer.ids() == found(folder) == ["0", "1", "3"]
    writer.delete(["0"])
    writer.commit()
    writer.close()
    assert found(folder) == ["1", "3"]


@pytest.mark.parametrize("method", ["iterdir", "unlink"])
def test_leftovers_that_cannot_be_removed_do_not_fail_a_commit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        message = "in use"
        raise PermissionError(13, message)

    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["new"])
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, refuse)
            writer.commit()
        assert found(folder) == ["0", "1", "3"]
        after_one = len(contents(folder))
        writer.add(["newer"])
    assert found(folder) == ["0", "1", "3", "4"]
    assert len(contents(folder)) < after_one + 2


def test_the_manifest_does_not_grow_with_the_commits_nor_hold_words_of_documents(
    tmp_path: Path,
) -> None:
    BM25Index.from_texts(["start"]).save(tmp_path / "index")
    manifest = tmp_path / "index" / MANIFEST
    early = manifest.stat().st_size
    with BM25Index.open(tmp_path / "index", mode="w") as writer:
        for number in range(300):
            writer.add([f"secretword{number} confidential"])
            if number % 10 == 0:
                writer.commit()
                assert manifest.stat().st_size < early + 4000
    assert manifest.stat().st_size < early + 4000
    assert b"confiden" not in manifest.read_bytes()
    assert b"secretword" not in manifest.read_bytes()


def test_a_writer_whose_folder_is_gone_can_be_saved_over_another(
    folder: Path, tmp_path: Path
) -> None:
    if os.name == "nt":
        pytest.skip("a folder in use cannot be deleted on Windows")
    BM25Index.from_texts(["other"]).save(tmp_path / "other")
    writer = BM25Index.open(folder, mode="w", mmap=False)
    writer.add(["new"])
    shutil.rmtree(folder)
    writer.save(tmp_path / "other")
    writer.save(tmp_path / "third")
    writer.close()
    assert found(tmp_path / "other") == found(tmp_path / "third") == ["0", "1", "3"]


def test_verify_needs_no_tokenizer(tmp_path: Path) -> None:
    index = BM25Index.from_texts(["a-b c"], analyzer=Analyzer(tokenizer=str.split))
    index.save(tmp_path / "index")
    BM25Index.verify(tmp_path / "index")
    opened = BM25Index.open(tmp_path / "index", tokenizer=str.split, verify=True)
    assert opened.search("a-b")[0].id == "0"
    (segment,) = (tmp_path / "index").glob("segment-*")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    with pytest.raises(CorruptIndexError, match=segment.name):
        BM25Index.verify(tmp_path / "index")


def test_a_save_beside_a_writer_is_refused_and_disturbs_nothing(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")
    before = contents(folder)
    with pytest.raises(LockedError):
        BM25Index.from_texts(["other"]).save(folder)
    assert contents(folder) == before
    writer.close()


# -- hostile contents --------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, 3, 5, 2**40])
def test_verify_refuses_a_wrong_total_length(folder: Path, wrong: int) -> None:
    body = body_of(folder)
    assert body["segments"][0]["tokens"] == [6]
    write_manifest(folder, replaced(body, ("segments", 0, "tokens"), [wrong]))
    with pytest.raises(CorruptIndexError, match="lengths"):
        BM25Index.verify(folder)


@openings
def test_a_file_that_is_named_twice_is_refused(
    folder: Path, opening: Callable[[Path], object]
) -> None:
    body = body_of(folder)
    write_manifest(folder, body | {"segments": body["segments"] * 2})
    with pytest.raises(CorruptIndexError, match="twice"):
        opening(folder)


@pytest.mark.parametrize("wrong", [-1, 2**64, 10**30, 1.5, "3", True, None, [], {}])
@pytest.mark.parametrize("opening", ["read", "write", "verify"])
def test_a_next_id_that_cannot_be_is_refused(folder: Path, opening: str, wrong: object) -> None:
    write_manifest(folder, replaced(body_of(folder), ("settings", "next_id"), wrong))
    with pytest.raises(CorruptIndexError, match=MANIFEST):
        OPENINGS[opening](folder)

"""A build takes any iterable, refuses what is wrong, and leaves nothing but the index."""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import Analyzer, BM25Index, Document
from bm25rag.building.memory import LEAST, check_memory
from bm25rag.errors import (
    CorruptIndexError,
    DuplicateIdError,
    LockedError,
    MetadataError,
    NotAnIndexError,
)
from bm25rag.segments.segment import Segment
from bm25rag.storage import segment_files
from bm25rag.storage.checked_columns import CheckedColumn
from support.building import contents, documents, segment_in_memory, segment_of
from support.cases import first
from support.folders import no_leftovers
from support.killing import Killed, killed_at

pytestmark = pytest.mark.usefixtures("small_parts")
# A plain index, and one in shards.
both = pytest.mark.parametrize("shards", [None, 3])


def test_the_folder_holds_the_index_alone(tmp_path: Path) -> None:
    index = BM25Index.build(documents(), tmp_path / "it", k1=0.9, extra={"of": "mine"})
    assert (type(index), index.read_only, index.k1, index.extra) == (
        BM25Index, True, 0.9, {"of": "mine"},
    )  # fmt: skip
    assert len(index.get(index.ids())) == 40
    names = sorted(path.name for path in (tmp_path / "it").iterdir())
    assert names[:2] == ["lock", "manifest.json"]
    assert len(names) == 3
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        writer.add(["more"])
    assert index.refresh()
    assert index.search("more")[0].id == "0"


@both
def test_documents_are_read_one_part_ahead_at_most(tmp_path: Path, shards: int | None) -> None:
    """So a corpus larger than memory can be indexed."""
    read, most = 0, 0

    def watching() -> Iterator[Document]:
        nonlocal read, most
        for read, document in enumerate(documents(), 1):
            folder = tmp_path / "it" / "building"
            if read > 1:  # the first document says whether there are ids
                most = max(most, read - BM25Index.open(folder).extra["read"])
            yield document

    BM25Index.build(watching(), tmp_path / "it", shards=shards)
    assert read == 40
    assert most <= 10


@pytest.mark.parametrize(("least", "written"), [(0, 2), (1 << 30, 1)])
def test_what_leaves_room_in_memory_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, written: int
) -> None:
    monkeypatch.setattr("bm25rag.building.gathering.part_room", lambda *_: 1 << 30)
    monkeypatch.setattr("bm25rag.building.gathering.merge_room", lambda _: least)
    paths = []
    write = segment_files.write_arrays

    def writing(path: str, *given: Any) -> Any:
        paths.append(path)
        return write(path, *given)

    monkeypatch.setattr(segment_files, "write_arrays", writing)
    BM25Index.build(documents(), tmp_path / "it")
    assert len(paths) == written


def test_a_part_that_is_committed_leaves_memory(tmp_path: Path) -> None:
    def watching() -> Iterator[Document]:
        for document in documents():
            segments = [one for one in gc.get_objects() if isinstance(one, Segment)]
            held.append(sum(not isinstance(one.texts, CheckedColumn) for one in segments))
            yield document

    held: list[int] = []
    before = sum(isinstance(one, Segment) for one in gc.get_objects())
    BM25Index.build(watching(), tmp_path / "it")
    assert max(held) <= before


@pytest.mark.untraced
@pytest.mark.parametrize(
    "metadata",
    first(2, [{"t": "x" * 50}, {"a": {"b": [["x" * 20] * 2]}}, {"v": np.zeros(9)}, None]),
)
def test_documents_with_much_beside_their_text_are_read_few_at_a_time(
    tmp_path: Path, metadata: Any
) -> None:
    id, payload = ("d", None) if metadata else ("x" * 25, b"x" * 25)
    read: list[int] = []

    def watching() -> Iterator[Document]:
        for number in range(30):
            folder = tmp_path / "it" / "building"
            if number > 1:
                read.append(number - BM25Index.open(folder).extra["read"])
            yield Document(f"{id}{number}", "a", metadata, payload)

    BM25Index.build(watching(), tmp_path / "it")
    assert max(read) <= 2


def test_metadata_that_hold_themselves_are_refused(tmp_path: Path) -> None:
    metadata: dict[str, Any] = {}
    metadata["a"] = [metadata, metadata]
    for given in ([Document("x", "t", metadata)], iter([Document("x", "t", metadata)])):
        with pytest.raises(MetadataError, match="nested more than 100 levels deep"):
            BM25Index.build(given, tmp_path / "it")


@pytest.mark.further
def test_long_values_of_a_field_are_merged_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if they begin alike."""
    from bm25rag.metadata import field_merge

    merged: list[int] = []
    unite = field_merge.unite

    def counting(runs: list[list[bytes]]) -> Any:
        united = unite(runs)
        merged.append(sum(map(len, united[0])))
        return united

    monkeypatch.setattr(field_merge, "unite", counting)
    monkeypatch.setattr(field_merge, "VALUES", 64)
    monkeypatch.setattr(field_merge, "_FAR", 1)
    monkeypatch.setattr(field_merge, "_BYTES", 10)
    given = [Document(f"d{n}", "a", {"body": "x" * 310 + f"{n:02}"}) for n in range(60)]
    BM25Index.build(given, tmp_path / "it")
    assert sum(merged) == 60 * 312
    assert max(merged) <= 64 * 10 * 2 + 312
    assert segment_of(tmp_path / "it") == segment_in_memory(tmp_path / "memory", given, {}, {})


@pytest.mark.parametrize("on_duplicate", first(1, ["skip", "replace"]))
@both
def test_ids_that_occur_again_are_treated_as_in_memory(
    tmp_path: Path, shards: int | None, on_duplicate: Any
) -> None:
    twice = [*documents(), Document("d3", "another"), *documents(9), Document("d3", "last")]
    memory = BM25Index()
    memory.add_documents(twice, on_duplicate=on_duplicate)
    index = BM25Index.build(iter(twice), tmp_path / "it", shards=shards, on_duplicate=on_duplicate)
    assert index.get(index.ids()) == memory.get(memory.ids())


def test_a_tokenizer_is_kept(tmp_path: Path) -> None:
    index = BM25Index.build(["a b", "b c"], tmp_path / "it", analyzer=Analyzer(tokenizer=str.split))
    assert [hit.id for hit in index.search("c")] == ["1"]


def test_progress_is_shown_for_both_steps(tmp_path: Path, capsys: Any) -> None:
    BM25Index.build(list(documents()), tmp_path / "it", progress=True)
    shown = capsys.readouterr().err
    assert "indexing: 100%" in shown
    assert "40/40" in shown
    assert "merging: 100%" in shown


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512MiB", 512 << 20), ("2GiB", 2 << 30), ("1.5GB", 1_500_000_000), ("0.5 tib", 1 << 39),
        ("700m", 700_000_000), (str(1 << 30), 1 << 30), (1 << 30, 1 << 30), ("1e9", None),
        ("GiB", None), ("-2GiB", None), ("", None), ("2 GiBs", None),
    ],
)  # fmt: skip
def test_sizes_are_read_as_people_write_them(text: str | int, size: int | None) -> None:
    if size is not None:
        assert check_memory("memory", text) == size
        return
    with pytest.raises(ValueError, match="memory must be a size like '512MiB' or '2GB'"):
        check_memory("memory", text)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"memory": LEAST - 1}, ValueError, "memory must be 256MiB or more, got 268435455"),
        ({"memory": "10MB"}, ValueError, "memory must be 256MiB or more, got '10MB'"),
        ({"memory": 1e9}, TypeError, "memory must be a size like"),
        ({"memory": True}, TypeError, "memory must be a size like"),
        ({"shards": 0}, ValueError, "shards must be an integer >= 1, got 0"),
        ({"shards": -3}, ValueError, "shards must be an integer >= 1, got -3"),
        ({"shards": 2.0}, TypeError, "shards must be an integer >= 1, got 2.0"),
        ({"shards": True}, TypeError, "shards must be an integer >= 1, got True"),
        ({"documents": "text"}, TypeError, "documents must be an iterable"),
        ({"documents": 3}, TypeError, "documents must be an iterable"),
        ({"on_duplicate": "drop"}, ValueError, "on_duplicate must be one of"),
        ({"threads": 0}, ValueError, "threads must be an integer >= 1"),
        ({"store_text": 1}, TypeError, "store_text must be True or False"),
        ({"progress": 1}, TypeError, "progress must be True or False"),
        ({"extra": {1: object()}}, ValueError, "extra must be a dict of JSON values"),
        ({"variant": "bm26"}, ValueError, "variant must be one of"),
        ({"k2": 1}, TypeError, "k2"),
    ],
)
@both
def test_wrong_arguments_are_refused_before_anything_is_written(
    tmp_path: Path, shards: int | None, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    given = {"documents": documents(), "folder": tmp_path / "it", "shards": shards} | change
    with pytest.raises(error, match=message):
        BM25Index.build(**given)
    assert not (tmp_path / "it").exists()


def test_an_index_that_another_process_makes_while_a_build_looks_is_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_late(path: str) -> list[str]:
        monkeypatch.undo()
        BM25Index.open(path, mode="a").close()
        return [one.name for one in Path(path).iterdir()]

    monkeypatch.setattr(os, "listdir", list_late)
    with pytest.raises(FileExistsError, match="holds an index: add to it with"):
        BM25Index.build(["red"], tmp_path)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    first(
        2,
        [
            ("text", TypeError, r"documents\[40\] must be a bm25rag.Document, got 'text'"),
            (Document("x", None), ValueError, r"documents\[40\] \('x'\) has no text"),
            (Document("d3", "again"), DuplicateIdError, "the id 'd3' occurs twice in ids"),
            (Document("x", "t", {"a": object()}), MetadataError, r"documents\[40\]: metadata of"),
        ],
    ),
)
@both
def test_a_wrong_document_is_named_by_its_row(
    tmp_path: Path, shards: int | None, wrong: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        BM25Index.build([*documents(), wrong], tmp_path / "it", shards=shards)
    with pytest.raises(NotAnIndexError, match="has not ended: call build again"):
        BM25Index.open(tmp_path / "it")
    index = BM25Index.build([*documents(), Document("x", "right")], tmp_path / "it", shards=shards)
    assert index.search("right")[0].id == "x"


@both
def test_a_folder_that_holds_something_is_refused(tmp_path: Path, shards: int | None) -> None:
    BM25Index.build(documents(), tmp_path / "sharded", shards=2)
    BM25Index.from_texts(["a"]).save(tmp_path / "index")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    (tmp_path / "mine" / "building").mkdir(parents=True)
    (tmp_path / "mine" / "building" / "thesis.tex").touch()
    BM25Index.from_texts(["a"]).save(tmp_path / "index" / "building")  # the user's own
    for name, error, message in (
        ("sharded", FileExistsError, "holds an index: add to it with"),
        ("index", FileExistsError, "holds an index: add to it with"),
        ("other", NotAnIndexError, "is not empty and holds no index"),
        ("other/file", NotAnIndexError, "is no folder"),
        ("mine", NotAnIndexError, "is not empty and holds no index"),
    ):
        before = sorted((tmp_path / name).rglob("*"))
        with pytest.raises(error, match=message):
            BM25Index.build(documents(), tmp_path / name, shards=shards)
        assert sorted((tmp_path / name).rglob("*")) == before


@both
def test_two_builds_in_one_folder_are_refused(tmp_path: Path, shards: int | None) -> None:
    def building() -> Iterator[Document]:
        for number, document in enumerate(documents()):
            if number == 20:
                with pytest.raises(LockedError, match="another writer"):
                    BM25Index.build(documents(), tmp_path / "it", shards=shards)
            yield document

    assert len(BM25Index.build(building(), tmp_path / "it", shards=shards)) == 40


# -- interrupted builds ----------------------------------------------------------------------------


@pytest.mark.slow
@both
def test_a_build_that_was_killed_at_any_step_goes_on_to_the_same_bits(
    tmp_path: Path, shards: int | None
) -> None:
    def build(folder: Path) -> None:
        BM25Index.build(documents(), folder, shards=shards)

    build(tmp_path / "whole")
    expected = contents(tmp_path / "whole")
    if shards is None:
        memory = segment_in_memory(tmp_path / "memory", documents(), {}, {})
        assert expected == [memory]
    number, alive = 0, True
    while alive:
        folder = tmp_path / str(number)
        alive = killed_at(number, lambda folder=folder: build(folder))
        try:
            BM25Index.open(folder)
        except NotAnIndexError:
            build(folder)
        else:
            with pytest.raises(FileExistsError):
                build(folder)
        assert contents(folder) == expected
        assert not (folder / "building").exists()
        BM25Index.verify(folder)
        shutil.rmtree(folder)
        number += 1 + number // 4  # all the first ones, and some of the others
    assert number > 50


@both
@pytest.mark.usefixtures("one_part")
@pytest.mark.parametrize("then", ["build", "write"])
def test_what_a_kill_after_the_commit_has_left_goes(
    tmp_path: Path, shards: int | None, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of documents that were all in memory, of which no part was committed."""

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(Killed):
            BM25Index.build(documents(), tmp_path / "it", shards=shards)
    assert (tmp_path / "it" / "building").exists()
    if then == "build":
        with pytest.raises(FileExistsError):
            BM25Index.build(documents(), tmp_path / "it", shards=shards)
    else:  # or it would hold the files of the first commit for good
        BM25Index.open(tmp_path / "it", mode="w").close()
    assert no_leftovers(tmp_path / "it")


def _build(folder: Path, shards: int | None) -> None:
    BM25Index.build(documents(60), folder, shards=shards)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL on Windows")
@both
def test_a_build_whose_process_is_killed_goes_on_to_the_same_bits(
    tmp_path: Path, shards: int | None
) -> None:
    context, kills = multiprocessing.get_context("fork"), 0
    _build(tmp_path / "whole", shards)
    for delay in np.linspace(0.02, 0.3, 3):
        folder = tmp_path / f"{delay}"
        while not (folder / "manifest.json").exists():
            child = context.Process(target=_build, args=(folder, shards))
            child.start()
            time.sleep(delay)
            if child.is_alive():
                os.kill(child.pid or 0, signal.SIGKILL)
                kills += 1
            child.join(60)
            delay *= 1.5
        with pytest.raises(FileExistsError):  # and what a kill right after the commit has left goes
            _build(folder, shards)
        BM25Index.verify(folder)
        assert contents(folder) == contents(tmp_path / "whole")
    assert kills


@pytest.mark.parametrize("merged", first(1, range(0, 6, 2)))
def test_a_merge_that_was_interrupted_begins_anew(
    tmp_path: Path, merged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its file was there already; what it left is removed."""
    from bm25rag.merging import merged_postings

    place, left = merged_postings.place_postings, merged

    def failing(*args: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return place(*args)

    with monkeypatch.context() as patch:
        patch.setattr(merged_postings, "place_postings", failing)
        with pytest.raises(Killed):
            BM25Index.build(documents(), tmp_path / "it", threads=1)
    (tmp_path / "it" / "segment-0123456789abcdef.bin").write_bytes(b"half")
    with pytest.raises(NotAnIndexError, match="has not ended"):
        BM25Index.open(tmp_path / "it")
    BM25Index.build(documents(), tmp_path / "it", memory="1GB", threads=2)
    assert segment_of(tmp_path / "it") == segment_in_memory(
        tmp_path / "memory", documents(), {}, {}
    )


def _build_with_little_disk(folder: Path, most: int) -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    with pytest.raises(OSError, match="File too large"):
        BM25Index.build(_long_documents(), folder)


def _long_documents() -> Iterator[Document]:
    for number in range(300):
        yield Document(f"d{number}", f"boat {'sea ' * 20} word{number} ")


@pytest.mark.skipif(os.name == "nt", reason="there are no limits of files on Windows")
@pytest.mark.parametrize("most", first(1, [100, 9_000, 45_000]))
def test_a_full_disk_is_an_error_after_which_the_build_goes_on(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be full when a part is written, when the merge waits for its end, and after it."""
    monkeypatch.setattr("bm25rag.additions.CHUNK", 2000)
    folder, context = tmp_path / "it", multiprocessing.get_context("fork")
    child = context.Process(target=_build_with_little_disk, args=(folder, most))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    with pytest.raises(NotAnIndexError):
        BM25Index.open(folder)
    assert not list(folder.glob("segment-*.bin"))
    expected = segment_in_memory(tmp_path / "memory", _long_documents(), {}, {})
    BM25Index.build(_long_documents(), folder)
    assert segment_of(folder) == expected


@pytest.mark.parametrize("forged", [{"read": "1"}, {"read": None}, {"digest": None}, {}])
def test_a_receipt_that_no_build_wrote_is_refused(tmp_path: Path, forged: dict[str, Any]) -> None:
    def failing() -> Iterator[Document]:
        yield from documents(30)
        raise Killed

    with pytest.raises(Killed):
        BM25Index.build(failing(), tmp_path / "it")
    with BM25Index.open(tmp_path / "it" / "building", mode="w") as parts:
        receipt = {"shards": None, "store_text": True, "on_duplicate": "error"} | forged
        parts.save(tmp_path / "it" / "building", extra=receipt)
    with pytest.raises(ValueError, match="to begin anew"):
        BM25Index.build(documents(), tmp_path / "it")


def test_parts_that_cannot_be_listed_for_a_moment_are_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing() -> Iterator[Document]:
        yield from documents(30)
        monkeypatch.setattr("os.scandir", once)
        raise Killed

    def once(path: Any) -> Any:
        if path == str(tmp_path / "it" / "building"):
            monkeypatch.setattr("os.scandir", scan)
            raise OSError(errno.EMFILE, "too many open files", path)
        return scan(path)

    scan = os.scandir
    with pytest.raises(Killed):
        BM25Index.build(failing(), tmp_path / "it")
    assert os.scandir is scan
    assert BM25Index.open(tmp_path / "it" / "building").extra["read"] > 0


@pytest.mark.parametrize("share", first(3, [0, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95]))
def test_a_part_that_was_damaged_meanwhile_is_refused(tmp_path: Path, share: float) -> None:
    def failing() -> Iterator[Document]:
        yield from documents(35)
        raise Killed

    with pytest.raises(Killed):
        BM25Index.build(failing(), tmp_path / "it")
    path = max((tmp_path / "it" / "building").glob("segment-*.bin"), key=os.path.getmtime)
    data = bytearray(path.read_bytes())
    start = 16 + int.from_bytes(data[8:16], "little")
    data[start + int(share * (len(data) - start))] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptIndexError, match=path.name):
        BM25Index.build(documents(), tmp_path / "it")

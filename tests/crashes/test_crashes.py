"""After a crash at any moment, or on a failing disk, the last commit is there or the new one."""

from __future__ import annotations

import ast
import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings

import bm25rag
from bm25rag import BM25Index
from bm25rag.errors import LockedError, NotAnIndexError
from bm25rag.storage import checksummed_file
from bm25rag.storage.manifest import LOCK, MANIFEST
from support.folders import no_leftovers
from support.recording import Crash, Disk, Operation, abandon, broken, crash, full, leftover

if os.name == "nt":
    pytest.skip("folders are not flushed on Windows", allow_module_level=True)

Contents = list[tuple[str, str | None, dict[str, Any]]]


def state(index: BM25Index) -> tuple[Contents, list[float]]:
    """Return all documents, and scores that depend on each of them."""
    documents = [(one.id, one.text, one.metadata) for one in index.get(index.ids())]
    vectors = index.vectors.scores({"a": 1.0, "b": -2.0}).tolist()
    return documents, index.scores("red boat sea").tolist() + vectors


def opened(folder: Path) -> tuple[Contents, list[float]]:
    """Return the state of a folder, after verifying every byte."""
    BM25Index.verify(folder)
    return state(BM25Index.open(folder))


def history(folder: Path) -> Iterator[BM25Index]:
    """Make an index and commit to it in every way, step by step, so that each can fail."""
    texts = ["red boat", "green tea", "blue sea", "red red sea", "old boat", "new boat"]
    first = BM25Index.from_texts(texts, metadata=[{"n": number} for number in range(6)])
    yield first
    first.save(folder)
    changes: list[Callable[[BM25Index], object]] = [
        lambda index: index.add(["red sky", "blue boat"], vectors=[{"a": 0.1}, {"b": 2.0}]),
        lambda index: index.delete(["1", "6"]),
        lambda index: index.update_metadata(["0", "3"], [{"new": "value"}, {}]),
        lambda index: index.add(["green boat"], ids=["4"], on_duplicate="replace"),
        lambda index: index.delete(["7"]),
        lambda index: index.compact(),
        lambda index: (index.add(["red"]), index.delete(["2"]), index.maintain()),
        lambda index: index.update_metadata(["5"], [{"n": 1}]),
    ]
    with BM25Index.open(folder, mode="w") as writer:
        for change in changes:
            change(writer)
            yield writer
            writer.commit()
    other = BM25Index.from_texts(["another red index"], ids=["x"])
    yield other
    other.save(folder)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small files have several checksums and bounds, and small segments stay apart."""
    monkeypatch.setattr(checksummed_file, "BLOCK", 256)
    monkeypatch.setattr("bm25rag.segments.strip_rows.STRIPS_FROM", 0)
    monkeypatch.setattr("bm25rag.segments.strip_rows.LEAST_IN_STRIP", 0.0)
    monkeypatch.setattr("bm25rag.merging.policy.LEAST", 0)


# -- power cuts --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.untraced
def test_after_a_crash_between_any_two_operations_there_is_the_last_commit_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    with monkeypatch.context() as patch:
        disk = Disk(folder, patch)
        folder.mkdir()
        disk.watch()
        states: list[Any] = [None]
        ends = [0]
        for index in history(folder):
            ends.append(len(disk.operations))
            states.append(state(index))
        ends.append(len(disk.operations))
        assert states[-1] == opened(folder)
    del ends[1]  # the first step of `history` is not a commit
    random, rounds = Random(0), max(1, settings().max_examples // 12)
    seen = set()
    for (start, end), old, new in zip(pairwise(ends), states, states[1:], strict=False):
        for place in range(start, end + 1):
            if is_write(disk.operations, place) and random.random() > rounds / 4:
                continue  # a sample of the many writes to a file will do
            for _ in range(rounds):
                files = leftover({}, disk.operations[:place], random)
                found = after(files, tmp_path / "left")
                assert found == new or (found == old and place < end), (place, sorted(files))
                if old != new and place < end:
                    seen.add(found == new)
    assert seen == {True, False}


def is_write(operations: list[Operation], place: int) -> bool:
    """Whether the operation before this place is one of many writes to a file."""
    return place > 0 and operations[place - 1].kind == "write"


def after(files: dict[str, bytes], folder: Path) -> Any:
    """Open what a crash left, write to it, and return what it held; ``None`` if no index."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    if MANIFEST not in files:
        with pytest.raises(NotAnIndexError):
            BM25Index.open(folder)
        BM25Index.from_texts(["anew"]).save(folder)
        assert no_leftovers(folder)
        return None
    found = opened(folder)
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["later"], ids=["later"])
    assert BM25Index.open(folder).ids() == [*[id for id, *_ in found[0]], "later"]
    assert no_leftovers(folder)
    return found


def test_a_crash_during_a_commit_does_not_keep_the_next_writer_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.from_texts(["red"]).save(tmp_path / "index")
    place = 0
    while True:
        with monkeypatch.context() as patch:
            disk = Disk(tmp_path / "index", patch)
            disk.watch()
            writer = BM25Index.open(tmp_path / "index", mode="w")
            before = writer.ids()
            writer.add(["red"])
            disk.fail_at(place, crash)
            try:
                writer.commit()
            except Crash:
                abandon(writer)
            else:
                break
        assert opened(tmp_path / "index")[0][: len(before)] == state(writer)[0][: len(before)]
        assert len(BM25Index.open(tmp_path / "index")) in (len(before), len(before) + 1)
        place += 1
    assert place > 10
    writer.close()
    assert no_leftovers(tmp_path / "index")


# -- disks that refuse -------------------------------------------------------------------------

REFUSALS = {"full once": (full, False), "full for long": (full, True), "broken": (broken, False)}


@pytest.mark.slow
@pytest.mark.untraced
@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("way", ["commit", "save", "first save"])
def test_a_disk_that_refuses_any_operation_fails_the_commit_and_the_next_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, refusal: str
) -> None:
    error, lasting = REFUSALS[refusal]
    # The modes that repeat the tests try every third.
    for place in range(0, 10_000, 1 if settings().max_examples > 12 else 3):
        folder = tmp_path / f"index{place}"
        if way != "first save":
            BM25Index.from_texts(["red boat", "green tea"]).save(folder)
        index = BM25Index.open(folder, mode="w") if way == "commit" else BM25Index()
        before = opened(folder) if way != "first save" else None
        index.add(["blue sea", "red sky"])
        index.delete(["1"])
        write = index.commit if way == "commit" else partial(index.save, folder)
        with monkeypatch.context() as patch:
            disk = Disk(folder, patch)
            disk.watch()
            failed = refuse(disk, place, error, lasting)
            try:
                write()
            except OSError:
                visible = (folder / MANIFEST).exists()
                assert (opened(folder) if visible else None) in (before, state(index))
            else:
                assert not [name for name in failed if name.kind != "remove"]
            disk.fail = lambda _: None
            write()
            assert opened(folder) == state(index)
            assert no_leftovers(folder)
            flushed = [op.name for op in disk.operations if op.kind == "flush"]
            assert not {op.name for op in failed if op.kind == "flush"} & set(flushed)
        index.close()
        if not failed:
            break
    assert place > 20


def refuse(
    disk: Disk, place: int, error: Callable[[Operation], BaseException], lasting: bool
) -> list[Operation]:
    """Let one operation fail, or all later ones that need space; return those that failed."""
    failed: list[Operation] = []
    left = place

    def fail(operation: Operation) -> BaseException | None:
        nonlocal left
        left -= 1
        due = left == -1 or (lasting and left < 0 and operation.kind in ("create", "write"))
        if due:
            failed.append(operation)
        return error(operation) if due else None

    disk.fail = fail
    return failed


def test_a_failed_flush_is_never_followed_by_another_of_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.from_texts(["red"]).save(tmp_path / "index")
    writer = BM25Index.open(tmp_path / "index", mode="w")
    writer.add(["blue"])
    with monkeypatch.context() as patch:
        disk = Disk(tmp_path / "index", patch)
        disk.watch()
        disk.fail = lambda operation: broken(operation) if operation.kind == "flush" else None
        tried: set[str] = set()
        for _ in range(3):
            with pytest.raises(OSError, match="Input/output error"):
                writer.commit()
            names = {op.name for op in disk.operations if op.kind == "create"}
            assert len(names) > len(tried)
            tried = names
    assert opened(tmp_path / "index")[0] == [("0", "red", {})]
    assert writer.ids() == ["0", "1"]
    writer.commit()
    writer.close()
    assert opened(tmp_path / "index") == state(writer)
    assert not {path.name for path in (tmp_path / "index").iterdir()} & tried


def test_a_new_folder_is_flushed_into_the_one_it_lies_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    monkeypatch.setattr("bm25rag.storage.fs.flush_folder", flushed.append)
    BM25Index.from_texts(["red"]).save(tmp_path / "some" / "where")
    assert set(map(Path, flushed)) == {tmp_path, tmp_path / "some"}


# -- other places and times --------------------------------------------------------------------


def test_a_reader_changes_nothing_so_a_read_only_folder_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.from_texts(["red boat", "sea"], metadata=[{"n": 1}, {}]).save(tmp_path / "index")
    disk = Disk(tmp_path / "index", monkeypatch)
    disk.watch()
    disk.fail = broken
    reader = BM25Index.open(tmp_path / "index", verify=True)
    assert not reader.refresh()
    assert [hit.id for hit in reader.search("red", filter={"n": 1})] == ["0"]
    BM25Index.verify(tmp_path / "index")
    assert disk.operations == []


def test_a_writer_is_told_that_a_folder_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.from_texts(["red"]).save(tmp_path / "index")
    (tmp_path / "index" / LOCK).unlink(missing_ok=True)
    really = os.open

    def refuse_writing(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(30, "Read-only file system", os.fspath(path))
        return really(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse_writing)
    with pytest.raises(OSError, match="Read-only file system"):
        BM25Index.open(tmp_path / "index", mode="w")
    with pytest.raises(OSError, match="Read-only file system"):
        BM25Index.from_texts(["blue"]).save(tmp_path / "index")
    assert BM25Index.open(tmp_path / "index").ids() == ["0"]


def test_a_writer_whose_folder_has_gone_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    BM25Index.from_texts(["red"]).save(tmp_path / "index")
    writer = BM25Index.open(tmp_path / "index", mode="w")
    writer.add(["red boat"])
    shutil.rmtree(tmp_path / "index")
    with pytest.raises(NotAnIndexError, match="index is not there any more"):
        writer.commit()
    assert [hit.id for hit in writer.search("red")] == ["0", "1"]
    writer.save(tmp_path / "elsewhere")
    writer.close()
    assert BM25Index.open(tmp_path / "elsewhere").ids() == ["0", "1"]


def test_a_second_writer_is_refused_in_every_way_and_disturbs_nothing(tmp_path: Path) -> None:
    BM25Index.from_texts(["red"]).save(tmp_path / "index")
    with BM25Index.open(tmp_path / "index", mode="w") as writer:
        writer.add(["blue"])
        for _ in range(3):
            with pytest.raises(LockedError):
                BM25Index.open(tmp_path / "index", mode="w")
            with pytest.raises(LockedError):
                BM25Index.from_texts(["green"]).save(tmp_path / "index")
        writer.commit()
    assert BM25Index.open(tmp_path / "index").ids() == ["0", "1"]


def test_clocks_and_times_of_files_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, random = tmp_path / "index", Random(1)
    for name in ("time", "monotonic"):
        monkeypatch.setattr(time, name, lambda: random.uniform(-1e9, 1e10))
    BM25Index.from_texts(["red"]).save(folder)
    reader = BM25Index.open(folder)
    with BM25Index.open(folder, mode="w") as writer:
        for number in range(1, 6):
            writer.add(["red"])
            writer.delete([str(number - 1)])
            writer.commit()
            for path in folder.iterdir():
                os.utime(path, (random.uniform(0, 1e10), random.uniform(0, 1e10)))
            assert reader.refresh()
            assert not reader.refresh()
            assert reader.ids() == [str(number)]
    assert no_leftovers(folder)


def test_nothing_that_saves_looks_at_a_clock() -> None:
    """Except to say when a commit was made, which ``common/clock.py`` does for them."""
    package = Path(bm25rag.__file__).parent
    # What saves behind a URL waits between attempts, and lets leftovers of others be for a day.
    remote = {*(package / "storage").glob("remote*.py")}
    local = {*(package / "storage").glob("*.py")} - remote
    paths = sorted(local - {package / "storage" / "file_identity.py"})
    assert len(paths) > 5
    for path in [*paths, package / "segments" / "changes.py", package / "index.py"]:
        source = path.read_text("utf-8")
        tree = ast.parse(source)
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not (imported | modules) & {"time", "datetime"}
        assert "st_mtime" not in source

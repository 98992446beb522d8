"""Frozen snapshots, and readers that follow the commits of a writer."""

from __future__ import annotations

import copy
import gc
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import CorruptIndexError, NotAnIndexError, StorageError
from bm25rag.storage import segment_files
from support.threads import together


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    BM25Index.from_texts(["red boat", "green tea", "blue sea"]).save(tmp_path / "index")
    return tmp_path / "index"


def change(folder: Path, write: Callable[[BM25Index], object]) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        write(writer)


# -- snapshots ---------------------------------------------------------------------------------


def test_a_snapshot_keeps_the_documents_of_its_moment() -> None:
    index = BM25Index.from_texts(["red boat", "red sea"], metadata=[{"n": 1}, {"n": 2}])
    frozen = index.snapshot()
    before, documents = frozen.search("red"), frozen.get(frozen.ids())
    index.delete(["0"])
    index.update_metadata(["1"], [{"n": 3}])
    index.add(["red red"])
    index.compact()
    assert frozen.search("red") == before
    assert frozen.get(frozen.ids()) == documents
    assert frozen.count({"n": 2}) == 1
    assert index.ids() == ["1", "2"]


def test_a_snapshot_of_a_reader_stays_where_the_reader_moves_on(folder: Path) -> None:
    reader = BM25Index.open(folder)
    frozen = reader.snapshot()
    change(folder, lambda index: index.delete(["0"]))
    assert reader.refresh()
    assert frozen.ids() == ["0", "1", "2"]
    assert reader.ids() == ["1", "2"]


# -- refreshing --------------------------------------------------------------------------------


@pytest.mark.parametrize("mmap", [True, False])
def test_a_reader_goes_to_the_last_commit_when_told(folder: Path, mmap: bool) -> None:
    reader = BM25Index.open(folder, mmap=mmap)
    assert not reader.refresh()
    change(folder, lambda index: index.add(["red sky"], metadata=[{"n": 1}]))
    change(folder, lambda index: index.delete(["0"]))
    change(folder, lambda index: index.update_metadata(["1"], [{"n": 2}]))
    assert [hit.id for hit in reader.search("red")] == ["0"]
    assert reader.refresh()
    assert [hit.id for hit in reader.search("red")] == ["3"]
    assert [document.metadata for document in reader.get(["1", "3"])] == [{"n": 2}, {"n": 1}]
    assert reader.scores("red").tolist() == BM25Index.open(folder).scores("red").tolist()
    assert not reader.refresh()
    assert reader.read_only


def test_a_refresh_reads_only_the_files_that_are_new(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = BM25Index.open(folder)
    opened: list[str] = []
    load = segment_files.ArraysFile

    def noted(path: str, *rest: Any, **named: Any) -> Any:
        opened.append(Path(path).name.partition("-")[0])
        return load(path, *rest, **named)

    monkeypatch.setattr(segment_files, "ArraysFile", noted)
    change(folder, lambda index: index.delete(["0"]))
    opened.clear()
    assert reader.refresh()
    assert opened == ["changes"]
    monkeypatch.setattr("bm25rag.merging.policy.LEAST", 0)
    change(folder, lambda index: index.add(["red"]))
    opened.clear()
    assert reader.refresh()
    assert opened == ["segment"]
    assert reader.ids() == ["1", "2", "3"]


def test_a_refresh_reads_nothing_where_nothing_was_committed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = BM25Index.open(folder)
    change(folder, lambda index: index.add(["red"]))
    assert reader.refresh()

    def read(folder: Path) -> None:
        raise AssertionError(f"{folder} was read")

    monkeypatch.setattr("bm25rag.storage.folder_reader.read_manifest", read)
    assert not reader.refresh()


def test_no_commit_is_missed_however_fast_they_follow(folder: Path) -> None:
    """A file system may reuse the inode of a deleted file within the same clock tick."""
    reader = BM25Index.open(folder)
    writer = BM25Index.open(folder, mode="w")
    for commits in (1, 2, 3, 4) * 10:
        for _ in range(commits):
            writer.commit()
        assert reader.refresh()
        assert not reader.refresh()
    writer.close()


def test_a_manifest_that_was_copied_back_is_no_commit(folder: Path) -> None:
    reader = BM25Index.open(folder)
    manifest = folder / "manifest.json"
    shutil.copy(manifest, folder.parent / "copy")
    (folder.parent / "copy").replace(manifest)
    assert not reader.refresh()
    change(folder, lambda index: index.add(["red"]))
    assert reader.refresh()


def open_files(folder: Path) -> list[str]:
    """Return what is open of one folder: readers of other tests may not have been collected."""
    files = map(os.path.realpath, Path("/proc/self/fd").iterdir())
    start = f"{folder.resolve()}/"
    return sorted(file.removeprefix(start)[:8] for file in files if file.startswith(start))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs a list of open files")
@pytest.mark.parametrize(
    ("mmap", "held"), [(True, ["manifest", "segment-"]), (False, ["manifest"])]
)
def test_a_reader_holds_two_files_open_and_none_when_it_is_gone(
    folder: Path, mmap: bool, held: list[str]
) -> None:
    """So many indexes fit into a process's limit of open files as "Operating a service" says."""
    reader = BM25Index.open(folder, mmap=mmap)
    for _ in range(3):
        change(folder, lambda index: index.add(["red"]))
        reader.refresh()
    change(folder, lambda index: index.compact())
    reader.refresh()
    reader.search("red")
    assert open_files(folder) == held
    del reader
    gc.collect()
    assert open_files(folder) == []


def test_uncommitted_changes_are_not_seen(folder: Path) -> None:
    reader, writer = BM25Index.open(folder), BM25Index.open(folder, mode="w")
    writer.add(["red"])
    assert not reader.refresh()
    writer.rollback()
    writer.close()
    assert not reader.refresh()


def test_a_reader_follows_an_index_that_was_saved_over_its_own(folder: Path) -> None:
    """Settings and analyzer are those of the new index too."""
    reader = BM25Index.open(folder)
    other = BM25Index(Analyzer(language=None), variant="bm25+", k1=0.7)
    other.add(["boats and boat"], ids=["x"])
    other.save(folder, extra={"made": "anew"})
    assert reader.refresh()
    assert (reader.variant, reader.k1, reader.extra) == ("bm25+", 0.7, {"made": "anew"})
    assert reader.analyzer == Analyzer(language=None)
    assert [hit.id for hit in reader.search("boats")] == ["x"]


def test_a_folder_made_anew_is_another_index_even_at_the_same_commit(folder: Path) -> None:
    reader = BM25Index.open(folder)
    shutil.rmtree(folder)
    BM25Index.from_texts(["red"], ids=["x"]).save(folder)
    assert reader.refresh()
    assert reader.ids() == ["x"]


def test_a_reader_whose_folder_is_gone_says_so_and_answers_on(folder: Path) -> None:
    reader = BM25Index.open(folder)
    before = reader.search("red")
    shutil.rmtree(folder)
    with pytest.raises(NotAnIndexError, match="no bm25rag index"):
        reader.refresh()
    assert reader.search("red") == before


def test_a_reader_stays_where_it_is_when_the_new_commit_is_damaged(folder: Path) -> None:
    reader = BM25Index.open(folder)
    change(folder, lambda index: index.delete(["0"]))
    (path,) = folder.glob("changes-*")
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    with pytest.raises(CorruptIndexError, match=path.name):
        reader.refresh()
    assert reader.ids() == ["0", "1", "2"]
    path.write_bytes(good)
    assert reader.refresh()
    assert reader.ids() == ["1", "2"]


@pytest.mark.parametrize("shards", [2, None])
def test_a_reader_goes_to_an_index_of_the_other_kind_that_took_the_place_of_its_own(
    tmp_path: Path, shards: int | None
) -> None:
    path = tmp_path / "index"
    BM25Index.build(["red boat"], path, shards=None if shards else 2)
    reader = BM25Index.open(path)
    shutil.rmtree(path)
    built = BM25Index.build(["red sea", "blue sea"], path, shards=shards)
    assert reader.refresh()
    assert reader.stats()["shards"] == (shards or 0)
    assert reader.search("red sea") == built.search("red sea")


def test_only_a_reader_of_a_folder_can_be_refreshed(folder: Path) -> None:
    reader = BM25Index.open(folder)
    writer = BM25Index.open(folder, mode="w")
    others = [BM25Index(), writer, reader.tune(k1=1), copy.copy(reader)]
    for other in [*others, reader.snapshot()]:
        with pytest.raises(StorageError, match="mode='r'"):
            other.refresh()
    writer.close()


def test_searches_during_refreshes_see_whole_commits(folder: Path) -> None:
    """Every commit adds two documents, and all documents are alike."""
    BM25Index.from_texts([["red"]] * 2).save(folder)
    reader = BM25Index.open(folder)
    done: list[bool] = []

    def write() -> None:
        try:
            with BM25Index.open(folder, mode="w") as writer:
                for _ in range(25):
                    writer.add([["red"]] * 2)
                    writer.commit()
        finally:
            done.append(True)

    def refresh() -> None:
        while not done:
            reader.refresh()
        reader.refresh()

    def read() -> None:
        while not done:
            frozen = reader.snapshot()
            hits = frozen.search(["red"], k=100)
            assert len(hits) == len(frozen)
            assert len(hits) % 2 == 0
            assert len({hit.score for hit in hits}) == 1
            assert len({hit.score for hit in reader.search(["red"], k=100)}) == 1

    together([write, refresh, refresh, read])
    assert len(reader) == 52

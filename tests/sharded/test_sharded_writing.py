"""Writes to a sharded index: where documents go, what readers see, and what a crash leaves."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.errors import LockedError, NotAnIndexError, ReadOnlyError, StorageError
from bm25rag.open_shard import open_shard
from bm25rag.segments.statistics import Statistics
from bm25rag.storage.shard_statistics import LocalStatistics
from support.building import documents_of_shards
from support.folders import no_leftovers
from support.holding import bits
from support.killing import killed_at
from support.recording import abandon
from support.waiting import wait_until

TEXTS = [f"boat {number % 3} sea word{number}" for number in range(12)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    BM25Index.build(TEXTS, tmp_path / "it", shards=3)
    return tmp_path / "it"


def shown(index: BM25Index) -> Any:
    return index.get(index.ids()), bits(index.search("boat 1 sea", 99))


def test_new_documents_go_to_the_last_shard(folder: Path) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        assert writer.add(["new boat", "more sea"]) == ["12", "13"]
    assert documents_of_shards(folder) == [4, 4, 6]


def test_behind_a_full_shard_a_new_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bm25rag.building.shards.SMALLEST_CAPACITY", 1)
    BM25Index.build(TEXTS, tmp_path / "it", shards=3)  # 4 documents each, so 8 are the capacity
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        for number in range(7):
            writer.add([f"boat {number}", "sea"])
            writer.commit()
    assert documents_of_shards(tmp_path / "it") == [4, 4, 8, 8, 2]
    plain = BM25Index.from_texts(TEXTS)
    for number in range(7):
        plain.add([f"boat {number}", "sea"])
    assert shown(BM25Index.open(tmp_path / "it")) == shown(plain)


def test_a_replaced_document_moves_to_the_end_and_a_deleted_one_leaves_its_shard(
    folder: Path,
) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["again"], ids=["1"], on_duplicate="replace")
        assert writer.delete(["5", "6", "unknown"]) == ["5", "6"]
        assert writer.update_metadata(["0", "11"], [{"a": 1}, {"a": 2}]) == ["0", "11"]
    assert documents_of_shards(folder) == [3, 2, 5]
    index = BM25Index.open(folder)
    assert index.ids() == ["0", "2", "3", "4", "7", "8", "9", "10", "11", "1"]
    assert index.ids({"a": 2}) == ["11"]


def test_a_shard_may_lose_all_its_documents(folder: Path) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        writer.delete(["4", "5", "6", "7"])
        writer.commit()
        writer.delete(["8", "9", "10", "11"])
        writer.compact()
    assert documents_of_shards(folder) == [4, 0, 0]
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["boat"])
    assert documents_of_shards(folder) == [4, 0, 1]


def test_merging_stays_within_shards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.merging.policy.LEAST", 0)
    with BM25Index.open(folder, mode="w") as writer:
        for number in range(6):
            writer.add([f"boat {number}"])
        writer.delete(["1"])
        before = shown(writer)
        writer.maintain()
        assert shown(writer) == before
        writer.commit()
        writer.compact()
        assert shown(writer) == before
        assert writer.stats()["segments"] == 3
    assert documents_of_shards(folder) == [3, 4, 10]
    assert shown(BM25Index.open(folder, verify=True)) == before


def test_files_that_stay_are_not_written_again(folder: Path) -> None:
    before = {path.name for path in folder.glob("segment-*.bin")}
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["one more boat"])
        writer.commit()
        after = {path.name for path in folder.glob("segment-*.bin")}
        assert before < after
        assert len(after) == 4


def test_a_rollback_goes_back_to_the_last_commit(folder: Path) -> None:
    before = shown(BM25Index.open(folder))
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["lost"])
        writer.delete(["0"])
        writer.rollback()
        assert shown(writer) == before
        writer.add(["kept"])
    assert len(BM25Index.open(folder)) == 13


def test_save_in_the_own_folder_commits_and_keeps_what_the_caller_gives(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")
    writer.add(["one more"])
    writer.save(folder, extra={"mine": 1})
    writer.close()
    index = BM25Index.open(folder)
    assert (len(index), index.extra) == (13, {"mine": 1})


def test_there_is_one_writer(folder: Path) -> None:
    with BM25Index.open(folder, mode="w"), pytest.raises(LockedError, match="another writer"):
        BM25Index.open(folder, mode="w")


# -- readers ---------------------------------------------------------------------------------------


def test_a_reader_keeps_its_commit_until_it_refreshes(folder: Path) -> None:
    reader, shard = BM25Index.open(folder), open_shard(folder, 2)
    before = shown(reader)
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["boat 1", "sea"])
        writer.delete(["0"])
        writer.compact()
        after = shown(writer)
    assert shown(reader) == before
    assert shard.searcher.ids() == ["8", "9", "10", "11"]
    snapshot, view = reader.snapshot(), reader.tune(k1=0.5)
    assert reader.refresh()
    assert not reader.refresh()
    assert shown(reader) == after
    assert shown(snapshot) == before
    assert len(view) == 12
    assert (shard.commit, open_shard(folder, 2).commit) == (snapshot.commit_id, reader.commit_id)


def test_readers_that_open_during_commits_see_one_of_them(folder: Path) -> None:
    """Never shards of two commits, or statistics of another one."""
    expected = {len(TEXTS): shown(BM25Index.open(folder))}
    plain = BM25Index.from_texts(TEXTS)
    for number in range(15):
        plain.add([f"boat {number} 1"])
        expected[len(plain)] = shown(plain)
    found: list[int] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            kept = BM25Index.open(folder)
            while not done.is_set():
                kept.refresh()
                for index in (kept, BM25Index.open(folder)):
                    assert shown(index) == expected[len(index)]
                    found.append(len(index))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        with BM25Index.open(folder, mode="w") as writer:
            for number in range(15):
                writer.add([f"boat {number} 1"])
                writer.commit()
                if number in (0, 7):  # now the reader may be late, and now it is waited for
                    wait_until(lambda: failed or len(writer) in found)
    finally:
        done.set()
        thread.join()
    assert not failed
    assert len(set(found)) > 1


@pytest.mark.parametrize(
    "check",
    [
        BM25Index.verify,
        lambda folder: BM25Index.open(folder, verify=True),
        lambda folder: BM25Index.open(folder, untrusted=True),
    ],
    ids=["verify", "open verified", "open untrusted"],
)
def test_a_commit_that_is_checked_may_be_replaced_meanwhile(
    folder: Path, monkeypatch: pytest.MonkeyPatch, check: Callable[[Path], object]
) -> None:
    def commit_first(local: LocalStatistics) -> Statistics:
        monkeypatch.undo()
        with BM25Index.open(folder, mode="w") as writer:  # removes the files of the one before
            writer.add(["new boat"])
        return local.merged()

    monkeypatch.setattr(LocalStatistics, "merged", commit_first)
    check(folder)
    assert documents_of_shards(folder) == [4, 4, 5]


@pytest.mark.slow
def test_a_crash_at_any_step_of_a_commit_leaves_the_old_state_or_the_new(tmp_path: Path) -> None:
    number, alive, seen = 0, True, set()
    while alive:
        folder = tmp_path / str(number)
        BM25Index.build(TEXTS, folder, shards=3)
        before = shown(BM25Index.open(folder))
        writer = BM25Index.open(folder, mode="w")
        writer.delete(["1", "6"])
        writer.add(["boat 1", "sea"])
        after = shown(writer)
        alive = killed_at(number, writer.commit)
        if alive:
            abandon(writer)
        else:
            writer.close()
        BM25Index.verify(folder)
        found = shown(BM25Index.open(folder))
        assert found in (before, after)
        seen.add(found == after)
        with BM25Index.open(folder, mode="w") as another:
            another.add(["one more"])
        assert no_leftovers(folder)
        BM25Index.verify(folder)
        number += 1
    assert seen == {False, True}
    assert number > 8


def test_a_writer_may_commit_again_after_a_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["boat"])
        assert killed_at(5, writer.commit)
        writer.add(["sea"])
        writer.commit()
    assert len(BM25Index.open(folder, verify=True)) == 14


# -- what a sharded index is not -----------------------------------------------------------------


def test_a_shard_refuses_writes_and_a_snapshot_to_be_refreshed(folder: Path) -> None:
    with pytest.raises(ReadOnlyError):
        open_shard(folder, 0).searcher.add(["a"])
    with pytest.raises(StorageError, match="refresh needs an index opened with mode='r'"):
        BM25Index.open(folder).snapshot().refresh()


def test_copies_and_saved_indexes_are_plain(folder: Path, tmp_path: Path) -> None:
    index = BM25Index.open(folder)
    expected = shown(index)
    index.save(tmp_path / "plain")
    for other in (
        copy.copy(index),
        copy.deepcopy(index.snapshot()),
        pickle.loads(pickle.dumps(index.snapshot())),
        copy.copy(BM25Index.open(tmp_path / "plain", verify=True)),
    ):
        assert type(other) is BM25Index
        assert shown(other) == expected
        other.add(["boat"])
        assert len(other) == 13
    with pytest.raises(NotAnIndexError, match="holds a sharded index, which a plain one"):
        index.save(folder)


def test_deep_copies_and_pickles_of_a_reader_are_readers_of_the_folder(folder: Path) -> None:
    index = BM25Index.open(folder)
    copies = [copy.deepcopy(index), pickle.loads(pickle.dumps(index))]
    assert len(pickle.dumps(index)) < 1000
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["boat"])
    for other in copies:
        assert other.stats()["shards"] == 3
        assert other.read_only
        assert shown(other) == shown(index)
        assert other.refresh()
        assert len(other) == len(index) + 1


def test_a_pickled_shard_keeps_the_statistics_of_the_whole(folder: Path) -> None:
    searcher = open_shard(folder, 1).searcher
    assert shown(pickle.loads(pickle.dumps(searcher))) == shown(searcher)
    assert shown(copy.deepcopy(searcher)) == shown(searcher)


def test_reanalysing_says_what_to_do(folder: Path) -> None:
    with pytest.raises(ReadOnlyError, match=r"pass its documents .* to BM25Index\.build"):
        BM25Index.open(folder).reanalyze()


def test_bm25index_opens_either_kind(folder: Path) -> None:
    for mode in ("r", "w"):
        index = BM25Index.open(folder, mode=mode)
        assert index.stats()["shards"] == 3
        index.close()
    BM25Index.verify(folder)

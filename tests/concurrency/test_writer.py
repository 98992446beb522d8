"""Readers, the one writer, and what they see of each other."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index, Document
from bm25rag.errors import (
    DuplicateIdError,
    FilterError,
    LockedError,
    NotAnIndexError,
    ReadOnlyError,
    TokenizerRequiredError,
)
from bm25rag.storage.fs import free_bytes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    BM25Index.from_texts(["red boat", "green tea"]).save(tmp_path / "index")
    return tmp_path / "index"


def found(folder: Path, query: str = "red green blue") -> list[str]:
    return sorted(hit.id for hit in BM25Index.open(folder).search(query))


def test_commit_and_rollback_need_a_folder() -> None:
    for write in (BM25Index.commit, BM25Index.rollback):
        with pytest.raises(ReadOnlyError):
            write(BM25Index())


def test_readers_see_commits_and_nothing_before_them(folder: Path) -> None:
    early = BM25Index.open(folder)
    writer = BM25Index.open(folder, mode="w")
    assert not writer.read_only
    writer.add(["blue"])
    writer.delete(["0"])
    assert found(folder) == ["0", "1"]
    writer.commit()
    assert found(folder) == ["1", "2"]
    assert [hit.id for hit in early.search("red green blue")] == ["0", "1"]
    writer.close()


def test_rolling_back_returns_to_the_last_commit(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")
    writer.add(["blue"], ids=["b"])
    writer.commit()
    writer.delete(["b", "0"])
    writer.update_metadata(["1"], [{"x": 1}])
    writer.rollback()
    assert writer.ids() == ["0", "1", "b"]
    assert writer.get(["1"])[0].metadata == {}
    assert writer.search("blue")[0].id == "b"
    writer.close()
    assert found(folder) == ["0", "1", "b"]


def test_leaving_the_block_commits_and_an_exception_rolls_back(folder: Path) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["blue"])
    assert found(folder) == ["0", "1", "2"]

    def interrupted() -> None:
        with BM25Index.open(folder, mode="w") as writer:
            writer.delete(["0"])
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        interrupted()
    assert found(folder) == ["0", "1", "2"]
    with BM25Index.open(folder, mode="w") as writer:
        assert writer.ids() == ["0", "1", "2"]


def test_a_writer_can_wait_for_another(folder: Path) -> None:
    first = BM25Index.open(folder, mode="w")
    with pytest.raises(LockedError, match=r"0\.2 seconds"):
        BM25Index.open(folder, mode="w", timeout=0.2)
    closing = threading.Timer(0.2, first.close)
    closing.start()
    with BM25Index.open(folder, mode="w", timeout=60) as second:
        second.add(["blue"])
    closing.join()
    assert found(folder) == ["0", "1", "2"]


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1", None, True])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(folder: Path, timeout: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="timeout"):
        BM25Index.open(folder, mode="w", timeout=timeout)
    BM25Index.open(folder, mode="w").close()


def test_deleting_says_which_went_and_who_deleted_them(folder: Path) -> None:
    index = BM25Index.from_texts(["red"] * 50)
    gone = index.delete(["3", "unknown", "1", "3"])
    assert gone == ["3", "1"]
    assert index.delete(["1"]) == []

    told: list[list[str]] = []
    wanted = [str(number) for number in range(50)]
    threads = [threading.Thread(target=lambda: told.append(index.delete(wanted))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(id for ids in told for id in ids) == sorted({*wanted} - {"1", "3"})


def test_deleting_under_a_filter_spares_what_was_replaced_in_between() -> None:
    index = BM25Index.from_texts(
        ["red"] * 3, metadata=[{"team": "a"}, {"team": "a"}, {"team": "b"}]
    )
    wanted = index.ids({"team": "a"})
    index.add(["red"], ids=["1"], metadata=[{"team": "b"}], on_duplicate="replace")
    assert index.delete(wanted, filter={"team": "a"}) == ["0"]
    assert index.ids() == ["2", "1"]
    assert index.delete(["2", "1"], {"2"}) == ["2"]
    with pytest.raises(FilterError):
        index.delete(["1"], filter={"$team": 1})
    assert index.delete(["1"], lambda metadata: metadata["team"] == "b") == ["1"]


def test_documents_are_added_as_the_records_they_are(tmp_path: Path) -> None:
    given = [
        Document("a", "Red cats.", {"n": 1}, b"\x00"),
        Document("b", "Blue dogs."),
        Document("c", ""),
    ]
    index = BM25Index()
    assert index.add_documents(iter(given)) == ["a", "b", "c"]
    assert index.get(["a", "b", "c"]) == given
    columns = BM25Index.from_texts(
        ["Red cats.", "Blue dogs.", ""],
        ["a", "b", "c"],
        [{"n": 1}, None, None],
        payloads=[b"\x00", None, None],
    )
    assert index.scores("red dogs").tobytes() == columns.scores("red dogs").tobytes()
    assert index.add_documents(given[:1], on_duplicate="skip") == []
    with pytest.raises(DuplicateIdError):
        index.add_documents(given[:1])
    again = BM25Index()
    again.add_documents(index.get(index.ids()), store_text=False)
    assert [found.text for found in again.get(["a", "b", "c"])] == [None] * 3


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ("a text", TypeError, r"documents\[1\] must be a bm25rag.Document, got 'a text'"),
        (Document("b", None), ValueError, r"documents\[1\] \('b'\) has no text"),
        (Document("b", 3), TypeError, r"documents\[1\]\.text must be a str"),  # type: ignore
        (Document(3.0, "b"), TypeError, r"documents\[1\]\.id must be a str or an int"),  # type: ignore
        (Document("b", "b", {}, "p"), TypeError, r"documents\[1\]\.payload"),  # type: ignore
        (Document("b", "b", "m"), TypeError, r"documents\[1\].*must be a dict"),  # type: ignore
        (Document("a", "b"), DuplicateIdError, "occurs twice"),
    ],
)
def test_a_record_that_is_wrong_is_named_by_its_row_and_nothing_is_added(
    bad: Any, error: type[Exception], words: str
) -> None:
    index = BM25Index()
    with pytest.raises(error, match=words):
        index.add_documents([Document("a", "fine"), bad])
    assert len(index) == 0


def test_a_writer_that_could_not_be_opened_leaves_no_lock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor while the exception is held, as notebooks do."""

    def failing(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("bm25rag.live.index.State.of", failing)
        with pytest.raises(MemoryError) as held:
            BM25Index.open(folder, mode="w")
    BM25Index.open(folder, mode="w").close()
    assert held.tb is not None


def test_there_is_one_writer_at_a_time(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")
    with pytest.raises(LockedError, match=folder.name):
        BM25Index.open(folder, mode="w")
    with pytest.raises(LockedError, match=folder.name):
        BM25Index.from_texts(["blue"]).save(folder)
    assert found(folder) == ["0", "1"]
    writer.close()
    BM25Index.open(folder, mode="w").close()


@pytest.mark.skipif(os.name == "nt", reason="Windows moves no folder with open files")
@pytest.mark.parametrize("shards", [None, 2])
def test_a_writer_commits_to_no_folder_but_the_one_it_opened(
    tmp_path: Path, shards: int | None
) -> None:
    BM25Index.build(["red boat", "green tea"], tmp_path / "it", shards=shards)
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        writer.add(["blue"])
        (tmp_path / "it").rename(tmp_path / "away")
        with pytest.raises(NotAnIndexError, match="it is not there any more: that was moved"):
            writer.commit()
        BM25Index.build(["red sea"], tmp_path / "it", shards=shards)
        with pytest.raises(NotAnIndexError, match="moved or removed"):
            writer.commit()
        BM25Index.verify(tmp_path / "it")
        assert found(tmp_path / "it") == ["0"]
        (tmp_path / "it").rename(tmp_path / "other")
        (tmp_path / "away").rename(tmp_path / "it")
    assert found(tmp_path / "it") == ["0", "1", "2"]


@pytest.mark.parametrize("shards", [0, 2])
def test_a_delete_merges_only_what_the_disk_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    texts = [f"boat word{number}" for number in range(40)]
    BM25Index.build(texts, tmp_path / "it", **({"shards": shards} if shards else {}))
    files = {path.name for path in (tmp_path / "it").rglob("segment-*")}
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        monkeypatch.setattr("bm25rag.storage.folder_writer.free_bytes", lambda folder: 100)
        writer.delete([str(number) for number in range(40) if number % 4])
    assert {path.name for path in (tmp_path / "it").rglob("segment-*")} == files
    assert BM25Index.open(tmp_path / "it").stats()["deleted"] == 30
    monkeypatch.undo()
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        writer.delete(["0"])
        assert writer.stats()["deleted"] == 0
    assert BM25Index.open(tmp_path / "it").ids() == [str(number) for number in range(4, 40, 4)]


@pytest.mark.parametrize("shards", [0, 2])
def test_a_writer_holds_nothing_that_its_last_commit_has_replaced(
    tmp_path: Path, shards: int
) -> None:
    BM25Index.build(["red", "green"], tmp_path / "it", **({"shards": shards} if shards else {}))
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        replaced = [weakref.ref(view.segment) for view in writer._live.state.snapshot.views]
        writer.delete(["0", "1"])
        writer.add(["blue"])
        writer.commit()
        gc.collect()
        assert [one() for one in replaced] == [None] * max(1, shards)


def test_a_disk_that_says_it_has_no_blocks_does_not_tell_its_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = SimpleNamespace(f_blocks=0, f_bavail=0, f_frsize=4096)
    monkeypatch.setattr("os.statvfs", lambda folder: told, raising=False)
    assert free_bytes(str(folder)) == inf
    told.f_blocks = 1
    assert free_bytes(str(folder)) == 0


@pytest.mark.parametrize("shards", [0, 2])
def test_what_a_delete_merges_leaves_room_for_the_rest_of_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    texts = [f"boat word{number}" for number in range(40)]
    BM25Index.build(texts, tmp_path / "it", **({"shards": shards} if shards else {}))
    living = 0
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        for times, deleted in ((0, 30), (1.2, 30), (10, 0)):
            free = times * living
            patched = "bm25rag.storage.folder_writer.free_bytes"
            monkeypatch.setattr(patched, lambda folder, free=free: free)
            writer.rollback()
            writer.delete([str(number) for number in range(40) if number % 4])
            assert writer.stats()["deleted"] == deleted
            living = sum(view.size for view in writer._live.state.snapshot.views)


def test_saving_a_writer_where_it_was_opened_is_a_commit(folder: Path, tmp_path: Path) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["blue"])
        writer.save(folder)
        assert found(folder) == ["0", "1", "2"]
        writer.add(["blue"])
        writer.save(tmp_path / "elsewhere")
        assert found(folder) == ["0", "1", "2"]
        assert found(tmp_path / "elsewhere") == ["0", "1", "2", "3"]


def test_saving_over_an_index_replaces_it_and_an_open_reader_keeps_the_old(folder: Path) -> None:
    reader = BM25Index.open(folder)
    BM25Index.from_texts(["blue", "blue red"], ids=["x", "y"]).save(folder)
    assert found(folder) == ["x", "y"]
    assert [hit.id for hit in reader.search("red")] == ["0"]
    assert reader.get(["1"])[0].text == "green tea"


def test_saving_twice_leaves_nothing_behind(folder: Path) -> None:
    index = BM25Index.open(folder)
    before = sum(path.stat().st_size for path in folder.rglob("*"))
    for _ in range(3):
        index.save(folder)
    assert sum(path.stat().st_size for path in folder.rglob("*")) <= 1.1 * before


def test_path_may_be_a_string_and_parents_need_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where"
    BM25Index.from_texts(["red"]).save(str(path))
    assert BM25Index.open(str(path)).search("red")[0].id == "0"
    BM25Index.verify(str(path))


def test_a_callable_tokenizer_must_be_brought_again(tmp_path: Path) -> None:
    index = BM25Index(analyzer=Analyzer(tokenizer=str.split))
    index.add(["The red-boat"])
    index.save(tmp_path / "index")
    for mode in ("r", "w"):
        with pytest.raises(TokenizerRequiredError, match="split"):
            BM25Index.open(tmp_path / "index", mode=mode)
    opened = BM25Index.open(tmp_path / "index", tokenizer=str.split)
    assert opened.search("red-boat")[0].id == "0"
    assert opened.search("red") == []

"""Readers, the one writer, and what each of them sees of the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import LockedError, ReadOnlyError, TokenizerRequiredError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Save two documents."""
    BM25Index.from_texts(["red boat", "green tea"]).save(tmp_path / "index")
    return tmp_path / "index"


def found(folder: Path, query: str = "red green blue") -> list[str]:
    """Ids that a new reader finds."""
    return sorted(hit.id for hit in BM25Index.open(folder).search(query))


WRITES: list[Any] = [
    lambda index: index.add(["blue"]),
    lambda index: index.add([]),
    lambda index: index.delete(["0"]),
    lambda index: index.update_metadata(["0"], [{}]),
    lambda index: index.commit(),
    lambda index: index.rollback(),
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("mmap", [True, False])
def test_a_reader_refuses_every_write(folder: Path, write: Any, mmap: bool) -> None:
    reader = BM25Index.open(folder, mmap=mmap)
    assert reader.read_only
    with pytest.raises(ReadOnlyError):
        write(reader)
    assert reader.ids() == ["0", "1"]


def test_commit_and_rollback_need_a_folder() -> None:
    for write in WRITES[-2:]:
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


def test_closing_without_a_commit_forgets(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")
    writer.add(["blue"])
    writer.close()
    writer.close()
    assert found(folder) == ["0", "1"]
    with pytest.raises(ReadOnlyError):
        writer.add(["blue"])


def test_there_is_one_writer_at_a_time(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")
    with pytest.raises(LockedError, match=folder.name):
        BM25Index.open(folder, mode="w")
    with pytest.raises(LockedError, match=folder.name):
        BM25Index.from_texts(["blue"]).save(folder)
    assert found(folder) == ["0", "1"]
    writer.close()
    BM25Index.open(folder, mode="w").close()


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

"""``open(mode="a")`` opens or makes an index; settings that are given must be the index's."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index, Document
from bm25rag.errors import LockedError, NotAnIndexError, ReadOnlyError, TokenizerRequiredError


def split(text: str) -> list[str]:
    return text.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "index"


def test_a_missing_folder_is_made_and_the_next_open_finds_it(folder: Path) -> None:
    with BM25Index.open(folder, mode="a") as writer:
        assert BM25Index.open(folder).ids() == []
        writer.add(["red boat"])
    with BM25Index.open(folder, mode="a") as writer:
        writer.add(["green tea"])
    assert BM25Index.open(folder).ids() == ["0", "1"]
    BM25Index.verify(folder)


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    with BM25Index.open(tmp_path, mode="a") as writer:
        writer.add(["red boat"])
    assert BM25Index.open(tmp_path).ids() == ["0"]


def test_a_new_index_has_the_settings(folder: Path) -> None:
    settings: dict[str, Any] = {"variant": "bm25+", "k1": 0.9, "b": 0.4, "delta": 0.5}
    settings |= {"analyzer": Analyzer("german"), "delta_on": "matched"}
    with BM25Index.open(folder, mode="a", **settings) as writer:
        assert {name: getattr(writer, name) for name in settings} == settings
    for mode in ("r", "w", "a"):
        with BM25Index.open(folder, mode=mode, **settings) as again:  # type: ignore[arg-type]
            assert {name: getattr(again, name) for name in settings} == settings


@pytest.mark.parametrize("given", [{"tokenizer": split}, {"analyzer": Analyzer(tokenizer=split)}])
def test_a_callable_comes_as_tokenizer_or_within_the_analyzer(
    folder: Path, given: dict[str, Any]
) -> None:
    for _ in range(2):
        with BM25Index.open(folder, mode="a", **given) as writer:
            assert writer.analyzer == Analyzer(tokenizer=split)
    with pytest.raises(TokenizerRequiredError):
        BM25Index.open(folder, mode="a")
    with pytest.raises(ValueError, match="give one of the two"):
        BM25Index.open(folder, mode="a", tokenizer=str.split, analyzer=Analyzer(tokenizer=split))
    with pytest.raises(ValueError, match="give one of the two"):
        BM25Index.open(folder, mode="a", tokenizer=split, analyzer=Analyzer("english"))


OTHERS: list[tuple[str, Any, str]] = [
    ("variant", "bm25l", "'bm25\\+'"),
    ("k1", 1.2, "0.9"),
    ("b", 0.3, "0.75"),
    ("delta", 0.5, "1.0"),
    ("delta_on", "matched", "'all'"),
    ("analyzer", Analyzer("german"), "language='english'"),
    ("tokenizer", split, "language='english'"),
]


@pytest.mark.parametrize("mode", ["r", "w", "a"])
@pytest.mark.parametrize(("name", "value", "existing"), OTHERS)
def test_other_settings_than_the_indexs_are_an_error_that_says_what_to_do(
    folder: Path, mode: Any, name: str, value: Any, existing: str
) -> None:
    BM25Index(variant="bm25+", k1=0.9).save(folder)
    with pytest.raises(ValueError, match=f"{name} is .*{existing}.*leave {name} out") as caught:
        BM25Index.open(folder, mode=mode, **{name: value})
    assert getattr(value, "__name__", repr(value)) in str(caught.value)
    BM25Index.open(folder, mode="w").close()  # the lock has been released


def test_settings_that_are_equal_or_not_given_agree(folder: Path) -> None:
    BM25Index(variant="bm25+", k1=1).save(folder)
    BM25Index.open(folder, mode="a", k1=1.0, delta=1).close()
    BM25Index.open(folder, mode="a", delta=None).close()


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"k1": -1}, ValueError),
        ({"b": "0.3"}, TypeError),
        ({"variant": "bm26"}, ValueError),
        ({"delta": 1.0}, ValueError),
        ({"analyzer": "german"}, TypeError),
    ],
)
def test_wrong_settings_make_no_folder(
    folder: Path, settings: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=next(iter(settings))):
        BM25Index.open(folder, mode="a", **settings)
    assert not folder.parent.exists()


def test_a_folder_that_holds_something_else_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NotAnIndexError, match="holds no bm25rag index"):
        BM25Index.open(tmp_path, mode="a")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(NotAnIndexError, match="is a file"):
        BM25Index.open(tmp_path / "notes.txt", mode="a")


def test_an_unfinished_build_is_refused(tmp_path: Path) -> None:
    (tmp_path / "building").mkdir()
    with pytest.raises(NotAnIndexError, match="has not ended: call build again"):
        BM25Index.open(tmp_path, mode="a")


def test_a_url_is_refused() -> None:
    with pytest.raises(ReadOnlyError, match="mode='a' needs a folder of this machine"):
        BM25Index.open("memory://index", mode="a")


def test_another_writer_is_waited_for_as_long_as_asked(folder: Path) -> None:
    first = BM25Index.open(folder, mode="a")
    with pytest.raises(LockedError):
        BM25Index.open(folder, mode="a")
    with pytest.raises(LockedError, match=r"after 0.05 seconds"):
        BM25Index.open(folder, mode="a", timeout=0.05)
    threading.Timer(0.2, first.close).start()
    BM25Index.open(folder, mode="a", timeout=60).close()


def _add_one(folder: Path, start: Any, number: int) -> None:
    start.wait()
    with BM25Index.open(folder, mode="a", k1=0.9, timeout=60) as writer:
        writer.add(["red boat"], ids=[str(number)])


def test_processes_that_make_the_same_index_at_once_lose_nothing(folder: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(3)
    processes = [spawn.Process(target=_add_one, args=(folder, start, n)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert sorted(BM25Index.open(folder, k1=0.9).ids()) == ["0", "1", "2"]


def test_a_sharded_index_is_opened_and_never_made(folder: Path) -> None:
    BM25Index.build([Document(str(n), "red boat") for n in range(4)], folder, shards=2)
    with BM25Index.open(folder, mode="a") as writer:
        assert writer.stats()["shards"] == 2
        writer.add(["red"])
    assert len(BM25Index.open(folder)) == 5
    with pytest.raises(ValueError, match="k1 is 2"):
        BM25Index.open(folder, mode="a", k1=2.0)

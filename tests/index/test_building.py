"""Building on threads: any number of them gives the same index, and errors leave nothing."""

from __future__ import annotations

import _thread
import gc
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.analysis.splitter import WordSplitter
from bm25rag.columns.column import ColumnBuilder
from bm25rag.common.strings import utf8_each
from bm25rag.kernels import backend as backends
from bm25rag.segments.builder import SegmentBuilder
from bm25rag.segments.postings import Postings
from bm25rag.segments.postings_builder import build_postings
from bm25rag.segments.term_counter import TermCounter
from bm25rag.segments.vectors_builder import VectorsBuilder
from support.threads import let_helpers_begin
from support.waiting import wait_until

WORDS = ["red", "boat", "tea", "blue", "sea", "漢字", "вода", "Wasser", "straße", "naïve", "the"]
TEXTS = [
    " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 2 + number % 9))
    for number in range(60)
]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.additions.CHUNK", 100)
    monkeypatch.setattr("bm25rag.common.threads._WORTH_A_THREAD", 0)
    monkeypatch.setattr("bm25rag.segments.term_counter._COUNTED", 0)


@pytest.mark.parametrize("threads", [2, 3, 8, None])
def test_an_index_is_the_same_on_any_number_of_threads(backend: str, threads: int | None) -> None:
    texts: list[Any] = [*TEXTS, ["a list", "of terms"], *TEXTS[::-1], ""]
    settings: dict[str, Any] = {
        "payloads": [b"%d" % number for number in range(len(texts))],
        "metadata": [{"n": number} if number % 3 else None for number in range(len(texts))],
    }
    one = BM25Index.from_texts(texts, threads=1, **settings)
    more = BM25Index.from_texts(texts, threads=threads, **settings)
    assert pickle.dumps(more) == pickle.dumps(one)
    one.add(texts, threads=1)
    more.add(texts, threads=threads)
    assert pickle.dumps(more) == pickle.dumps(one)


@pytest.mark.parametrize(("threads", "error"), [(0, ValueError), (1.0, TypeError)])
def test_a_wrong_number_of_threads_is_refused(threads: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="threads must be an integer >= 1"):
        BM25Index.from_texts(["red"], threads=threads)


def test_where_texts_break_off_nothing_is_added_and_no_thread_stays(backend: str) -> None:
    def broken() -> Iterator[str]:
        yield from TEXTS
        raise OSError("the disk is gone")

    index = BM25Index.from_texts(["red"])
    before = _thread._count()  # also those that are no `Thread`
    with pytest.raises(OSError, match="the disk is gone"):
        index.add(broken(), threads=4)
    assert index.ids() == ["0"]
    wait_until(lambda: _thread._count() <= before)


def test_helpers_use_the_backend_of_their_caller(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: set[tuple[bool, str]] = set()

    def build(*given: Any, **named: Any) -> Postings:
        used.add((threading.current_thread() is threading.main_thread(), backends.current().name))
        return build_postings(*given, **named)

    monkeypatch.setattr("bm25rag.segments.builder.build_postings", build)
    let_helpers_begin(monkeypatch)
    BM25Index.from_texts(TEXTS, threads=2)
    assert used == {(False, backend)}


def test_what_fails_in_a_thread_is_raised(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend != "compiled":
        pytest.skip("without the compiled scanner texts are analysed by the calling thread")

    def fold(self: WordSplitter, text: str) -> str:
        raise MemoryError("no room to fold")

    index = BM25Index()
    monkeypatch.setattr(WordSplitter, "fold", fold)
    with pytest.raises(MemoryError, match="no room to fold"):
        index.add(["e\u0301"] * 200, threads=3)
    assert len(index) == 0


def test_iterators_may_share_a_source_and_yield_one_dict_again_and_again() -> None:
    """Like a loop over documents that keeps the current one in a variable."""
    current = {"n": 0, "deep": {"er": [0]}}

    def texts() -> Iterator[str]:
        for number in range(50):
            current["n"] = number
            current["deep"]["er"][0] = number
            yield f"w{number}"

    def beside(name: str) -> Iterator[Any]:
        while current["n"] < 49:
            yield current if name == "metadata" else f"{name}{current['n']}"
        yield current if name == "metadata" else f"{name}49"

    index = BM25Index()
    assert index.add(texts(), beside("id"), beside("metadata"))[-1] == "id49"
    for number, document in enumerate(index.get(index.ids())):
        assert document.text == f"w{number}"
        assert document.metadata == {"n": number, "deep": {"er": [number]}}


def test_new_ids_are_looked_up_only_where_there_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = list[int]()

    def encode(ids: list[str]) -> list[bytes]:
        looked_up.append(len(ids))
        return utf8_each(ids)

    monkeypatch.setattr("bm25rag.search.snapshot.utf8_each", encode)
    index = BM25Index.from_texts(["red"] * 1000)
    assert looked_up == []
    assert index.add(["blue"] * 1000) == [str(number) for number in range(1000, 2000)]
    assert sum(looked_up) == 1000


def test_progress_is_shown_out_of_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    """A list says how many there are; an iterator does not."""
    index = BM25Index()
    index.add(["a cat", "a dog", "an owl"], progress=True)
    assert "3/3" in capsys.readouterr().err
    index.add(iter(["a cow"]), progress=True)
    assert "1 docs" in capsys.readouterr().err


def test_what_a_build_takes_goes_with_the_index_without_a_collection() -> None:
    def broken() -> Iterator[str]:
        yield from ["red boat"] * 9
        raise RuntimeError

    gc.collect()
    gc.disable()
    try:
        index = BM25Index.from_texts(["red boat"] * 9, vectors=[{"a": 1.0}] * 9)
        for wrong in (broken(), ["red", 3]):
            with pytest.raises((RuntimeError, TypeError)):
                index.add(wrong)
        del index, wrong
        builders = (SegmentBuilder, ColumnBuilder, VectorsBuilder, TermCounter)
        assert [one for one in gc.get_objects() if isinstance(one, builders)] == []
    finally:
        gc.enable()

"""Terms that were never asked for get the same numbers' data from the kernels as from Python."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.kernels import backend as backends
from bm25rag.search.snapshot import Snapshot
from bm25rag.search.term_numbers import TermCache
from bm25rag.segments.statistics import Statistics

# The first two have the same CRC-32.
WORDS = ("plumless", "buckeroo", "a", "b", "\u00e9", "\U0001f600", "\udc80", "", "x" * 300)
EVERY = (*WORDS, "absent", "\u20ac", "y" * 200)

HISTORY = st.lists(
    st.one_of(
        st.lists(st.lists(st.sampled_from(WORDS), max_size=5), min_size=1, max_size=9),
        st.integers(0, 20),  # the row of a document that is deleted
    ),
    min_size=1,
    max_size=6,
)


def made_of(history: list[Any]) -> BM25Index:
    """Return an index of several segments and blocks, some with deleted documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 3)
        patch.setattr("bm25rag.merging.policy.LEAST", 0)
        index = BM25Index()
        for step in history:
            if isinstance(step, list):
                index.add(step)
            elif step < len(index):
                index.delete([index.ids()[step]])
        return index


def data_of(snapshot: Snapshot, terms: Sequence[str]) -> list[Any]:
    """Return what a cache knows of each term, whatever its number, asked all at once."""
    cache, numbers = snapshot.term_numbers(terms)
    again, (pointers, batched) = snapshot.query_numbers([terms, terms])
    assert again is cache
    assert batched.tolist() == numbers * 2
    assert pointers.tolist() == [0, len(terms), 2 * len(terms)]
    return [
        None
        if number < 0
        else (
            int(cache.frequencies[number]),
            cache.idf[number].tobytes(),
            [table[number].tolist() for table in cache.starts],
        )
        for number in numbers
    ]


def fresh(index: BM25Index, statistics: Statistics | None = None) -> Snapshot:
    known = index._snapshot
    return Snapshot(known.views, known.parameters, known.analyzer, statistics)


@given(HISTORY, st.permutations(EVERY), st.integers(1, 40))
def test_they_are_found_after_any_history(
    backend: str, history: list[Any], terms: list[str], capacity: int
) -> None:
    index, whole = made_of(history), made_of([[[*WORDS[2:], "absent"]] * 5])
    postings = whole._snapshot.views[0].segment.postings
    collection = Statistics(9, (70,), postings.terms, postings.frequencies())
    for statistics in (None, collection):
        with backends.use("numpy"):
            expected = data_of(fresh(index, statistics), terms)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bm25rag.search.snapshot._FEWEST_TERMS", capacity)
            snapshot = fresh(index, statistics)
            for term, own in zip(terms, expected, strict=True):
                assert data_of(snapshot, [term]) == [own]
            assert data_of(snapshot, terms) == expected
            assert data_of(fresh(index, statistics), terms) == expected


@pytest.mark.parametrize("deleted", [1, 30, 20_000])
def test_only_living_documents_are_counted(backend: str, deleted: int) -> None:
    """In the kernels, or if a term has many and many are deleted, in Python."""
    texts = [["all", *["third"] * (row % 3 == 0), f"own{row}"] for row in range(40_000)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 1_000)
        index = BM25Index()
        ids = index.add(texts, metadata=[{"row": row} for row in range(40_000)])
    gone = range(0, 2 * deleted, 2)
    index.delete([ids[row] for row in gone])
    living = [row for row in range(40_000) if row not in gone]
    few = {row for row in living if 4 <= row < 40}
    part = index.restricted({"row": {"$gte": 4, "$lt": 40}}, statistics="part")
    for snapshot, rows in ((fresh(index), living), (part._snapshot, few)):
        cache, numbers = snapshot.term_numbers(["own1", "third", "all", "own0", "own5"])
        found = [int(cache.frequencies[number]) if number >= 0 else 0 for number in numbers]
        third = sum(row % 3 == 0 for row in rows)
        assert found == [1 in rows, third, len(rows), 0, 5 in rows]


@given(HISTORY, st.permutations(EVERY))
def test_they_are_found_in_a_file_of_which_nothing_is_checked_yet(
    backend: str, tmp_path_factory: pytest.TempPathFactory, history: list[Any], terms: list[str]
) -> None:
    folder: Path = tmp_path_factory.mktemp("saved") / "index"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 3)
        patch.setattr("bm25rag.storage.checksummed_file.BLOCK", 64)
        made_of(history).save(folder)
        with backends.use("numpy"):
            expected = data_of(fresh(BM25Index.open(folder)), terms)
        opened = BM25Index.open(folder)
        assert data_of(fresh(opened), terms) == expected
        assert data_of(fresh(opened), terms) == expected  # now that it has been checked


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("name", ["count", "idf_of", "remember_unknown", "setdefault", "free"])
def test_an_error_while_they_are_looked_up_leaves_the_cache_right(
    backend: str, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], name: str
) -> None:
    """As when memory is short, or of Ctrl-C."""
    monkeypatch.setattr("bm25rag.search.term_numbers._TABLED", 2)
    index = made_of([[["a", "b"], ["a"], ["b", "a"]], [["plumless", "a"]], 1])
    terms = ["a", "absent", "b", "plumless", "gone"]
    statistics = None
    if name == "count":  # which only statistics, and documents beyond number, need
        postings = index._snapshot.views[0].segment.postings
        statistics = Statistics(9, (70,), postings.terms, postings.frequencies())
    expected = data_of(fresh(index, statistics), terms)
    reached = 0
    for number in range(6):
        snapshot = fresh(index, statistics)
        cache = snapshot.term_numbers([])[0].larger(16, 0)
        snapshot._term_cache = cache
        left = number

        def fail(*args: Any, of: Any = None) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise error
            return of(*args)

        with pytest.MonkeyPatch.context() as patch:
            if name == "free":
                cache._free = Failing(cache._free, fail)
            else:
                own = getattr(dict if name == "setdefault" else TermCache, name)
                patch.setattr(
                    TermCache, name, lambda *args, own=own: fail(*args, of=own), raising=False
                )
            try:
                snapshot.term_numbers(terms)
            except error:
                reached += 1
        left = 1000
        for term, held in list(cache.items()):
            place = terms.index(term)
            assert data_of(snapshot, [term]) == [expected[place]]
            assert (held < 0) == (expected[place] is None)
        assert data_of(snapshot, terms) == expected
    assert reached or name == "setdefault"  # compiled code stores a number without that call


class Failing:
    """Numbers, the taking of which may fail."""

    def __init__(self, free: Any, fail: Any) -> None:
        self._free, self._fail = free, fail

    def __iter__(self) -> Failing:
        return self

    def __next__(self) -> int:
        number: int = self._fail(of=self._free.__next__)
        return number


def test_a_cache_is_gone_with_its_last_reference() -> None:
    """Without waiting for the garbage collector: it may be large, and hold a mapped file."""

    class Referable(TermCache):
        pass

    known = made_of([[["a", "b"]]])._snapshot
    gc.disable()
    try:
        cache = Referable(known.views, known.parameters, 1, 16, None)
        assert backends.current().number_query(["a", "absent", "b"], cache) == [0, -1, 1]
        is_left = weakref.ref(cache)
        del cache
        assert is_left() is None
    finally:
        gc.enable()


def test_threads_that_ask_for_the_same_new_terms_get_the_same_numbers(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bm25rag.search.term_numbers.MOST_UNKNOWN", 5)
    texts = [[f"w{(7 * row + word) % 90}" for word in range(9)] for row in range(60)]
    index = made_of([texts[:30], texts[30:], 3])
    questions = [[f"w{(row + word) % 99}" for word in range(12)] for row in range(40)]
    expected = [data_of(fresh(index), question) for question in questions]
    for _ in range(10):
        snapshot, ready = fresh(index), Barrier(4)

        def ask(snapshot: Snapshot = snapshot, ready: Barrier = ready) -> list[Any]:
            ready.wait()
            found = []
            for question in questions:
                cache, numbers = snapshot.term_numbers(question)
                found.append(
                    [
                        None if n < 0 else (int(cache.frequencies[n]), cache.idf[n].tobytes())
                        for n in numbers
                    ]
                )
            return found

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(ask) for _ in range(4)]:
                assert done.result() == [
                    [None if own is None else own[:2] for own in each] for each in expected
                ]
        numbers = [number for number in snapshot._term_cache.values() if number >= 0]
        assert len(set(numbers)) == len(numbers)

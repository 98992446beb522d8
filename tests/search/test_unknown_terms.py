"""Query terms that no document contains change nothing and never reach a kernel.

bm25s 0.3 with its Numba backend crashes with a segmentation fault on an unknown id.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.kernels.boundary import Backend
from bm25rag.kernels.records import Queries, Rows, SegmentArrays, TermArrays
from support.environment import INTERPRETED

KNOWN = ["red", "boat", "tea"]
# Never added; added and deleted; longer than what a term cache remembers; empty; not a character.
UNKNOWN = ["unknown", "gone", "x" * 101, "", "\udc80", "red ", "7"]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> BM25Index:
    """Several segments of several document blocks, some with deleted documents."""
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 3)
    monkeypatch.setattr("bm25rag.merging.policy.LEAST", 0)
    made = BM25Index()
    for start in range(0, 40, 8):
        texts = [[KNOWN[(start + row) % 3], "sea", *KNOWN[: row % 3]] for row in range(8)]
        made.add([*texts, ["gone", "red"]])
    made.delete(made.ids()[8::9])
    assert len(made._snapshot.views) > 1
    return made


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Check what the search passes to its kernel, and collect the term numbers."""
    seen: list[int] = []

    def search(
        self: Backend,
        segments: Sequence[SegmentArrays],
        all_terms: Sequence[TermArrays],
        rows: Rows,
        queries: Queries,
        *others: Any,
    ) -> None:
        pointers = queries.pointers
        assert len(queries.weights) in (0, len(queries.terms))
        assert pointers[0] >= 0
        assert pointers[-1] <= len(queries.terms)
        assert np.all(np.diff(pointers) >= 0)
        numbers = queries.terms[pointers[0] : pointers[-1]]
        for segment, terms in zip(segments, all_terms, strict=True):
            documents, codes = segment.documents, segment.codes
            assert len(documents) == len(codes)
            assert not len(codes) or int(codes.max()) < len(segment.weights)
            assert np.all((numbers >= -1) & (numbers < min(len(terms.starts), len(terms.idf))))
            spans = terms.starts[numbers[numbers >= 0]]
            assert np.all(np.diff(spans, axis=1) >= 0)
            assert np.all((spans >= 0) & (spans <= len(documents)))
        seen.extend(numbers.tolist())
        checked_search(self, segments, all_terms, rows, queries, *others)

    checked_search = Backend.search
    monkeypatch.setattr(Backend, "search", search)
    yield seen
    assert min(seen) == -1


def found(index: BM25Index, queries: list[list[str]], k: int) -> list[list[tuple[str, float]]]:
    return [
        [(hit.id, hit.score) for hit in hits] for hits in index.search_batch(queries, k=k).hits()
    ]


@pytest.mark.parametrize("k", [1, 3, 100])
def test_unknown_terms_change_nothing_at_any_position(
    backend: str, index: BM25Index, checked: list[int], k: int
) -> None:
    expected = {}
    for size in range(4):
        expected[size] = found(index, [KNOWN[:size]], k)[0]
    queries, sizes = [], []
    for pattern in product((False, True), repeat=5):  # where the unknown terms stand
        if pattern.count(False) <= 3:
            known, unknown = iter(KNOWN), iter(UNKNOWN)
            queries.append([next(unknown if one else known) for one in pattern])
            sizes.append(pattern.count(False))
    assert found(index, queries, k) == [expected[size] for size in sizes]
    for query, size in zip(queries, sizes, strict=True):
        assert found(index, [query], k) == [expected[size]]


def test_batches_of_nothing_but_unknown_terms(
    backend: str, index: BM25Index, checked: list[int]
) -> None:
    assert found(index, [[term] for term in UNKNOWN], 10) == [[]] * len(UNKNOWN)
    assert found(index, [UNKNOWN * 50, [], UNKNOWN[::-1]], 10) == [[]] * 3
    assert index.search(UNKNOWN) == []
    assert index.search(UNKNOWN, filter={"a": 1}) == []


@given(
    queries=st.lists(
        st.lists(st.sampled_from(KNOWN + UNKNOWN), max_size=30), min_size=1, max_size=70
    ),
    most=st.integers(1, 8),
    threads=st.sampled_from([1, 3]),
)
def test_unknown_terms_of_any_batch_change_no_result(
    backend: str, queries: list[list[str]], most: int, threads: int
) -> None:
    """Also if a term cache is full again and again, and if threads share a batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.search.snapshot._FEWEST_TERMS", 1)
        patch.setattr("bm25rag.search.snapshot._MOST_TERMS", most)
        patch.setattr("bm25rag.search.ranking._QUERIES_PER_THREAD", 1)
        made = BM25Index.from_texts([["red", "boat"], ["tea", "red"], ["sea"], ["gone"]])
        made.delete(["3"])
        batch = made.search_batch(queries, k=3, threads=threads)
        plain = [[term for term in query if term in KNOWN] for query in queries]
        assert batch.ids() == made.search_batch(plain, k=3, threads=1).ids()
        for query, hits in zip(plain, batch.hits(), strict=True):
            assert hits == made.search(query, k=3)


def test_unknown_terms_change_nothing_in_views_and_opened_indexes(
    backend: str, index: BM25Index, checked: list[int], tmp_path: Any
) -> None:
    index.save(tmp_path / "saved")
    for other in (BM25Index.open(tmp_path / "saved"), index.tune(k1=0.9), index.snapshot()):
        best = found(other, [KNOWN], 5)
        assert found(other, [[*UNKNOWN, *KNOWN, *UNKNOWN]], 5) == best


def test_an_index_without_documents_passes_nothing_on(backend: str) -> None:
    assert BM25Index().search_batch([KNOWN, UNKNOWN]).ids() == [[], []]


@pytest.mark.further
@pytest.mark.skipif(INTERPRETED, reason="no kernel takes part in what is remembered")
def test_unknown_terms_from_clients_do_not_fill_the_memory(
    index: BM25Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bm25rag.search.term_numbers.MOST_UNKNOWN", 2048)
    before = index.search_batch([["red", "sea"], ["gone"]]).scores.tolist()
    tracemalloc.start()
    try:
        for start in range(0, 25_000, 500):
            words = [f"word{number}" for number in range(start, start + 500)]
            assert index.search([*words, "red"])
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_250_000  # all of them would take 3 MB
    cache = index._snapshot.term_numbers([])[0]
    assert len(cache) < 2 * 2048
    assert index.search_batch([["red", "sea"], ["gone"]]).scores.tolist() == before


@pytest.mark.further
def test_unknown_terms_are_remembered_and_forgotten_beside_searches(
    index: BM25Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bm25rag.search.term_numbers.MOST_UNKNOWN", 3)
    expected = index.search(["red", "boat"], k=50)

    def ask(first: int) -> None:
        for number in range(first, first + (60 if INTERPRETED else 300)):
            assert (
                index.search([f"word{number % 7}", "red", f"w{number}", "boat"], k=50) == expected
            )

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(ask, first) for first in (0, 1, 2, 3)]:
            done.result()
    assert len(index._snapshot.term_numbers([])[0]) < 30


def test_a_repeated_term_has_one_number_however_long_it_is() -> None:
    long = "x" * 5000
    index = BM25Index.from_texts([[long, "red"], ["red"]])
    cache, numbers = index._snapshot.term_numbers([long, "red", long, "red", "y" * 5000])
    assert numbers == [0, 1, 0, 1, -1]
    assert cache.__missing__(long) == 0  # as by another thread that missed it too
    assert index._snapshot.term_numbers([long, long])[1] == [0, 0]


@pytest.mark.further
def test_a_cache_that_grows_keeps_its_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same numbers and the same data; what is unknown is looked up again."""
    monkeypatch.setattr("bm25rag.search.snapshot._FEWEST_TERMS", 1 << 9)
    words = [f"w{number}" for number in range(1500)]
    index = BM25Index.from_texts([words[:number] for number in range(1, 1500, 29)])
    expected = [index.search([word]) for word in words]
    fresh = BM25Index.from_texts([words[:number] for number in range(1, 1500, 29)])
    first, numbers = fresh._snapshot.term_numbers([*words[:200], "gone"])
    assert numbers == [*range(200), -1]
    for start in range(0, 1500, 50):
        fresh.search(words[start : start + 50])
    cache, again = fresh._snapshot.term_numbers(words[:200])
    assert cache.capacity > first.capacity
    assert again == numbers[:200]
    assert (cache.frequencies[again] == first.frequencies[again]).all()
    assert [fresh.search([word]) for word in words] == expected

"""Pages: ``offset`` leaves out what earlier pages had, in every search and in ``ids``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BatchResult, BM25Index, Hit

pytestmark = pytest.mark.usefixtures("backend")

WORDS = ["red", "green", "blue", "boat", "tea"]
FILTERS: list[Any] = [
    None,
    {"n": {"$lt": 7}},
    {"0", "3", "4", "9", "unknown"},
    lambda metadata: metadata.get("n", 0) % 2 == 0,
    {"$or": [{"n": 1}, lambda metadata: metadata.get("n", 0) > 5]},
]


def scattered(texts: list[str]) -> BM25Index:
    """Index texts in several segments, some with deleted documents and new metadata."""
    index = BM25Index()
    for first in range(0, len(texts), 4):
        some = texts[first : first + 4]
        vectors = [dict.fromkeys(text.split(), 1.5) for text in some]
        index.add(some, metadata=[{"n": first + n} for n in range(len(some))], vectors=vectors)
    index.delete(["1", "6"])
    index.update_metadata(["2"], [{"n": 100}])
    return index


def bits(hits: list[Hit]) -> list[tuple[str, bytes, dict[str, Any]]]:
    return [(hit.id, np.float64(hit.score).tobytes(), hit.metadata) for hit in hits]


texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), max_size=14)
pages = {
    "texts": texts,
    "query": st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    "k": st.integers(0, 16),
    "offset": st.integers(0, 16),
    "filter": st.sampled_from(FILTERS),
}


@given(**pages, floor=st.sampled_from([None, 0.3]))
def test_a_page_is_a_slice_of_the_whole_ranking(
    texts: list[str], query: str, k: int, offset: int, filter: Any, floor: float | None
) -> None:
    index = scattered(texts)
    page = slice(offset, offset + k)
    whole = index.search(query, len(index), filter, min_score=floor)
    assert bits(index.search(query, k, filter, min_score=floor, offset=offset)) == bits(whole[page])
    batch = index.search_batch([query, "tea"], k, filter, min_score=floor, offset=offset)
    assert bits(batch.hits()[0]) == bits(whole[page])
    assert batch.rows.shape == batch.scores.shape == (2, min(k, max(0, len(index) - offset)))
    for row, scores, count in zip(batch.rows, batch.scores, batch.counts, strict=True):
        assert (row[:count] >= 0).all()
        assert (row[count:] == -1).all()
        assert np.isneginf(scores[count:]).all()


@given(**pages)
def test_a_page_of_vectors_and_of_both_is_a_slice_too(
    texts: list[str], query: str, k: int, offset: int, filter: Any
) -> None:
    index = scattered(texts)
    page, vector = slice(offset, offset + k), dict.fromkeys(query.split(), 2.0)
    whole = bits(index.vectors.search(vector, len(index), filter))
    assert bits(index.vectors.search(vector, k, filter, offset=offset)) == whole[page]
    batch = index.vectors.search_batch([vector], k, filter, offset=offset)
    assert bits(batch.hits()[0]) == whole[page]
    depth: dict[str, Any] = {"fetch_k": offset + k}
    both = index.search_hybrid(query, vector, offset + k, filter, **depth)
    found = index.search_hybrid(query, vector, k, filter, offset=offset, **depth)
    assert bits(found) == bits(both[page])


@given(
    texts=texts,
    k=st.none() | st.integers(0, 16),
    offset=st.integers(0, 16),
    filter=st.sampled_from(FILTERS),
)
def test_a_page_of_ids_is_a_slice_of_all(
    texts: list[str], k: int | None, offset: int, filter: Any
) -> None:
    index = scattered(texts)
    stop = None if k is None else offset + k
    assert index.ids(filter, k=k, offset=offset) == index.ids(filter)[offset:stop]


def test_a_page_of_ids_asks_a_callable_about_no_document_behind_it() -> None:
    asked = []

    def even(metadata: dict[str, Any]) -> bool:
        asked.append(metadata["n"])
        return metadata["n"] % 2 == 0

    index = BM25Index.from_texts(["red"] * 1000, metadata=[{"n": n} for n in range(1000)])
    assert index.ids(even, k=2, offset=1) == ["2", "4"]
    assert asked == [0, 1, 2, 3, 4]


CALLS: dict[str, Callable[[BM25Index, Any], object]] = {
    "search": lambda index, offset: index.search("red", offset=offset),
    "search_batch": lambda index, offset: index.search_batch(["red"], offset=offset),
    "vectors.search": lambda index, offset: index.vectors.search({"a": 1.0}, offset=offset),
    "vectors.search_batch": lambda index, offset: index.vectors.search_batch([], offset=offset),
    "search_hybrid": lambda index, offset: index.search_hybrid("red", {"a": 1.0}, offset=offset),
    "ids": lambda index, offset: index.ids(offset=offset),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("offset", "error"), [(-1, ValueError), (True, TypeError), (1.0, TypeError), ("1", TypeError)]
)
def test_an_offset_is_checked_as_k_is(
    call: Callable[[BM25Index, Any], object], offset: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="offset must be an integer >= 0, got"):
        call(BM25Index.from_texts(["red"]), offset)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("offset", [2**63, 10**30])
def test_nothing_is_behind_the_last_document(
    call: Callable[[BM25Index, Any], Any], offset: int
) -> None:
    found = call(BM25Index.from_texts(["red"], vectors=[{"a": 1.0}]), offset)
    assert not (found.counts.any() if isinstance(found, BatchResult) else found)


def test_any_offset_may_be_large_and_of_numpy() -> None:
    index = BM25Index.from_texts(["red", "red boat"])
    assert index.search("red", 10**20, offset=10**20) == []
    assert index.ids(k=10**20, offset=np.int64(1)) == ["1"]
    assert [hit.id for hit in index.search("red", offset=np.int8(1))] == ["1"]


@pytest.mark.parametrize("huge", [2**63, 10**30])
def test_all_that_a_callable_passes_are_asked_for_with_any_integer(huge: int) -> None:
    texts, metadata = ["red", "blue", "red boat"], [{"n": n} for n in range(3)]
    index = BM25Index.from_texts(texts, metadata=metadata, vectors=[{"a": 1.0}] * 3)

    def late(metadata: dict[str, Any]) -> bool:
        return bool(metadata["n"])

    assert index.ids(late, k=huge, offset=1) == ["2"]
    assert [hit.id for hit in index.search("red", huge, late)] == ["2"]
    assert index.search("red", 1, late, offset=huge) == []
    assert index.search_batch(["red"], huge, late).ids() == [["2"]]
    hits = index.search_hybrid("red", {"a": 1.0}, 2, late, fetch_k=huge)
    assert [hit.id for hit in hits] == ["2", "1"]

"""``delete`` by a filter."""

from __future__ import annotations

import os
import tracemalloc
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.errors import FilterError


@pytest.fixture
def index() -> BM25Index:
    index = BM25Index.from_texts(["red"] * 5, metadata=[{"n": n} for n in range(5)])
    index.add(["blue"] * 5, metadata=[{"n": n} for n in range(5, 10)])
    return index


@pytest.mark.parametrize(
    "filter",
    [{"n": {"$gte": 3, "$lt": 7}}, {"6", "3", "5", "4", "x"}, lambda one: 2 < one["n"] < 7],
    ids=["dict", "ids", "callable"],
)
def test_all_documents_that_the_filter_passes_go(index: BM25Index, filter: Any) -> None:
    deleted = index.delete(filter=filter)
    assert deleted == ["3", "4", "5", "6"]
    assert index.ids() == ["0", "1", "2", "7", "8", "9"]
    assert index.delete(filter=filter) == []


def test_with_ids_the_filter_only_protects(index: BM25Index) -> None:
    assert index.delete(["9", "1", "x"], {"n": {"$gt": 4}}) == ["9"]


@pytest.mark.parametrize(
    ("given", "error"),
    [({}, TypeError), ({"ids": None, "filter": None}, TypeError), ({"filter": {}}, ValueError)],
)
def test_nothing_that_could_mean_all_documents_deletes_them(
    index: BM25Index, given: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"delete\(index.ids\(\)\) deletes all documents"):
        index.delete(**given)
    assert len(index) == 10
    assert index.delete(index.ids()) == [str(n) for n in range(10)]


@pytest.mark.parametrize("filter", [{"n": {"$gte": None}}, lambda metadata: metadata["missing"]])
def test_an_error_of_the_filter_deletes_nothing(index: BM25Index, filter: Any) -> None:
    with pytest.raises((FilterError, KeyError)):
        index.delete(filter=filter)
    assert len(index) == 10


def test_no_ids_are_no_documents(index: BM25Index) -> None:
    assert index.delete([]) == index.delete([], {"n": 1}) == []


@pytest.mark.parametrize(
    "filter", [{"$strict": {}}, {"$and": [{}]}, {"$and": [{}, {"$strict": {}}]}]
)
def test_a_filter_without_any_condition_deletes_nothing(filter: dict[str, Any]) -> None:
    index = BM25Index.from_texts(["red", "sea"])
    with pytest.raises(ValueError, match=r"delete\(index\.ids\(\)\) deletes all"):
        index.delete(filter=filter)
    assert len(index) == 2


@pytest.mark.skipif(
    os.environ.get("BM25RAG_KERNELS", "") != "", reason="other kernels make arrays of all documents"
)
def test_what_is_read_afterwards_takes_no_copy_of_the_numbers_of_the_deleted() -> None:
    """One copy for each hit made a search a hundred times as long, after half had been deleted."""
    count = 100_000
    metadata = [{"n": n} if n % 2 else {} for n in range(count)]
    index = BM25Index.from_texts((f"word{n % 5000}" for n in range(count)), metadata=metadata)
    index.delete(map(str, range(1, 80_000, 2)))
    view = index.restricted({"n": {"$gte": 1}})
    part, words = index.restricted({"n": {"$gte": 1}}, statistics="part"), iter(["word5", "word7"])
    reads = [
        lambda: index.search("word3 word4"),
        lambda: index.search("word3", group="n"),
        lambda: index.get(["3", "4", "99999"]),
        lambda: "99998" in index,
        lambda: view.search("word3 word4"),
        lambda: "99999" in view,
        lambda: part.search(next(words)),
    ]
    for read in reads:
        read()  # some of what it needs is kept from now on
        tracemalloc.start()
        try:
            read()
            assert tracemalloc.get_traced_memory()[1] < 4 * 10_000  # 40,000 are deleted
        finally:
            tracemalloc.stop()

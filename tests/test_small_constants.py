"""With the constants that hide paths set small, small corpora reach every path, exactly."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from holding import apply, assert_same_scores, assert_same_statistics, bits
from hypothesis import given
from hypothesis import strategies as st
from reference import Reference
from strategies import Step, histories, parameters, queries, travelled_histories

from bm25rag import BM25Index

SMALL = {
    "bm25rag.segments.postings.NARROW": 3,  # codes widen almost at once
    "bm25rag.additions.CHUNK": 5,  # every second document begins a run
    "bm25rag.search.snapshot._FEWEST_TERMS": 1,
    "bm25rag.search.snapshot._MOST_TERMS": 2,  # the caches of terms and of masks overflow
    "bm25rag.metadata.mask_cache.MOST_BYTES": 1,
    "bm25rag.search.filtering.AT_ONCE": 2,
    "bm25rag.search.filtering.FEW": 1,  # changed metadata get fields of their own
    "bm25rag.metadata.field_builder.AT_ONCE": 2,  # fields are merged of chunks of two documents
    "bm25rag.metadata.field_builder.BLOCK": 2,  # sorted strings are united piece by piece
    "bm25rag.metadata.field_merge.BLOCK": 2,
    "bm25rag.metadata.field_merge._STEP": 1,
    "bm25rag.metadata.field.BLOCK": 2,
    "bm25rag.metadata.fields.BLOCK": 2,
    "bm25rag.metadata.fields.NARROW": 1,  # the codes of values widen almost at once
    "bm25rag.metadata.fields.MIDDLE": 2,
    "bm25rag.segments.doc_blocks.STRIPE": 7,  # most corpora have several stripes
    "bm25rag.segments.doc_blocks._AT_ONCE": 9,
    "bm25rag.search.ranking.WINDOW": 3,  # the compiled kernel walks three documents at a time
    "bm25rag.search.ranking._WINDOW_BY_K": 0,
    "bm25rag.search.ranking._HEAVY_BY_K": 0,
    "bm25rag.search.ranking.HEAVY": 0,  # terms are looked up wherever that may be cheaper
    "bm25rag.search.ranking.SPARSE": 1,  # often are postings few for the documents of a window
    "bm25rag.search.ranking._QUERIES_PER_THREAD": 1,  # two queries are enough for two threads
    "bm25rag.storage.array_file.BLOCK": 64,  # a checksum for every cache line
}


@pytest.fixture(scope="module", autouse=True)
def small(backend: str) -> Iterator[None]:
    """Set them for this module."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(name, value)
        yield


@given(chosen=parameters(), steps=travelled_histories, query=queries)
def test_histories_stay_exact(chosen: dict[str, Any], steps: list[Step], query: list[str]) -> None:
    index, reference = BM25Index(**chosen), Reference(**chosen)
    for step in steps:
        index = apply(index, reference, step)
        assert_same_scores(index, reference, query)
    assert_same_statistics(index, reference)


@given(
    chosen=parameters(),
    steps=histories,
    asked=st.lists(queries, min_size=2, max_size=9),
    k=st.integers(1, 9),
    threads=st.sampled_from([None, 1, 2, 4]),
)
def test_batches_on_threads_give_what_the_reference_gives(
    chosen: dict[str, Any],
    steps: list[Step],
    asked: list[list[str]],
    k: int,
    threads: int | None,
) -> None:
    index, reference = BM25Index(**chosen), Reference(**chosen)
    for step in steps:
        index = apply(index, reference, step)
    for label in (None, {"label": 1}, {"label": {"$ne": 1}}):
        hits = index.search_batch(asked, k, filter=label, threads=threads).hits()
        for query, found in zip(asked, hits, strict=True):
            matches = reference.search(query, k, accept=passes(label))
            assert bits(found) == bits(matches)


def passes(given_filter: dict[str, Any] | None) -> Any:
    """Predicate of one of the filters above."""
    if given_filter is None:
        return None
    equal = given_filter["label"] == 1
    return lambda _, metadata: (metadata.get("label") == 1) is equal


@given(chosen=parameters(), steps=histories, query=queries)
def test_a_mapped_index_is_exact_and_verifies(
    chosen: dict[str, Any], steps: list[Step], query: list[str]
) -> None:
    index, reference = BM25Index(**chosen), Reference(**chosen)
    for step in steps:
        index = apply(index, reference, step)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        index.save(path)
        BM25Index.verify(path)
        opened = BM25Index.open(path)
        assert_same_scores(opened, reference, query)
        assert_same_statistics(opened, reference)

"""With small values for the constants that hide code paths, small corpora reach every path."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from support.constants import SMALL
from support.holding import apply, assert_same_scores, assert_same_statistics, bits
from support.reference import Reference
from support.strategies import Step, histories, parameters, queries, travelled_histories


@pytest.fixture(scope="module", autouse=True)
def small(backend: str) -> Iterator[None]:
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
def test_batches_on_threads_agree_with_the_reference(
    chosen: dict[str, Any], steps: list[Step], asked: list[list[str]], k: int, threads: int | None
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

"""Queries that map terms to weights: the same score, generalised, bit for bit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from support.constants import SMALL
from support.holding import accepted, apply, assert_same_scores, bits, build
from support.reference import Query, Reference
from support.strategies import (
    Step,
    corpora,
    histories,
    mixed,
    parameters,
    positive,
    queries,
    weighted,
)


@pytest.fixture(scope="module", autouse=True, params=["usual", "small"])
def constants(request: pytest.FixtureRequest, backend: str) -> Iterator[None]:
    """Run all tests with the constants that hide code paths as they are, and small."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items() if request.param == "small" else ():
            patch.setattr(name, value)
        yield


@given(chosen=parameters(), texts=corpora, query=weighted | positive)
def test_scores_and_ranking_are_the_references(
    chosen: dict[str, Any], texts: list[list[str]], query: dict[str, float]
) -> None:
    index, reference = build(texts, **chosen)
    assert_same_scores(index, reference, query)


@given(chosen=parameters(), texts=corpora, query=queries)
def test_the_count_of_a_repeated_term_is_its_weight(
    chosen: dict[str, Any], texts: list[list[str]], query: list[str]
) -> None:
    index, _ = build(texts, **chosen)
    for counted in (Counter(query), MappingProxyType(Counter(query))):
        assert bits(index.search(counted, 100)) == bits(index.search(query, 100))
        assert index.scores(counted).tobytes() == index.scores(query).tobytes()


@given(chosen=parameters(), steps=histories, query=weighted)
def test_any_history_gives_the_references_scores(
    chosen: dict[str, Any], steps: list[Step], query: dict[str, float]
) -> None:
    index, reference = BM25Index(**chosen), Reference(**chosen)
    for step in steps:
        index = apply(index, reference, step)
        assert_same_scores(index, reference, query)


@given(
    chosen=parameters(),
    steps=histories,
    asked=st.lists(mixed, max_size=9),
    k=st.integers(0, 9),
    threads=st.sampled_from([None, 1, 2]),
    data=st.data(),
)
def test_a_mixed_batch_agrees_with_the_reference(
    chosen: dict[str, Any],
    steps: list[Step],
    asked: list[Query],
    k: int,
    threads: int | None,
    data: st.DataObject,
) -> None:
    index, reference = BM25Index(**chosen), Reference(**chosen)
    for step in steps:
        index = apply(index, reference, step)
    found = [hit.score for query in asked for hit in reference.matches(query)]
    least = data.draw(st.sampled_from([None, 0.0, *found]))
    for filter, accept in [(None, None), *accepted(1)]:
        batch = index.search_batch(asked, k, filter, min_score=least, threads=threads)
        for query, hits in zip(asked, batch.hits(), strict=True):
            expected = bits(reference.search(query, k, accept, least))
            assert bits(hits) == bits(index.search(query, k, filter, min_score=least)) == expected


@given(chosen=parameters(), texts=corpora, query=weighted)
def test_contributions_and_shift_sum_to_the_score(
    chosen: dict[str, Any], texts: list[list[str]], query: dict[str, float]
) -> None:
    index, reference = build(texts, **chosen)
    for name, score in zip(reference.ids, reference.scores(query), strict=True):
        why = index.explain(query, name)
        assert why.score.hex() == score.hex()
        assert why.shift.hex() == reference.shift(query).hex()
        words = reference.words(reference.documents[name])
        assert why.matched == (not words.isdisjoint(query))
        total = 0.0
        for part in why.terms:
            total += part.contribution
        assert (total + why.shift).hex() == score.hex()
        assert {part.term: part.count for part in why.terms} == query
        found = {part.term: part.contribution for part in why.terms if part.document_frequency}
        assert found == reference.explain(query, name)


def test_a_term_of_weight_0_matches_and_adds_nothing() -> None:
    index = BM25Index.from_texts([["a"], ["b"], ["a", "b"], ["c"]])
    assert [(hit.id, hit.score) for hit in index.search({"a": 0})] == [("0", 0.0), ("2", 0.0)]
    assert [hit.id for hit in index.search({"a": 0, "b": 1.5})] == ["1", "2", "0"]


def test_negative_weights_rank_documents_with_the_term_last() -> None:
    index = BM25Index.from_texts([["a", "b"], ["a"], ["b"]])
    hits = index.search({"a": 1.0, "b": -2.0})
    assert [hit.id for hit in hits] == ["1", "0", "2"]
    assert hits[-1].score < hits[1].score < 0 < hits[0].score
    assert [hit.id for hit in index.search({"a": 1.0, "b": -2.0}, min_score=0.0)] == ["1"]


def test_terms_of_a_mapping_are_taken_as_analysed() -> None:
    index = BM25Index.from_texts(["The running cats", "a cat"])
    assert len(index.search({"cat": 1.0})) == 2
    assert index.search({"cats": 1.0}) == index.search({"running": 1.0}) == []


@pytest.mark.parametrize("empty", [{}, {"unknown": 1.0}, Counter()])
def test_a_mapping_without_known_terms_finds_nothing(empty: dict[str, float]) -> None:
    index = BM25Index.from_texts(["a cat", "a dog"], variant="bm25+")
    assert index.search(empty) == []
    assert index.search_batch([empty, "cat", empty]).ids() == [[], ["0"], []]
    assert index.scores(empty).tolist() == [0.0, 0.0]
    assert index.explain(empty, "0").score == 0.0


NUMBER = "must be a number from -1e+30 to 1e+30, got"


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ({"cat": float("nan")}, ValueError, f"['cat'] {NUMBER} nan"),
        ({"dog": 1, "cat": float("inf")}, ValueError, f"['cat'] {NUMBER} inf"),
        ({"cat": -np.inf}, ValueError, f"['cat'] {NUMBER} -inf"),
        ({"cat": 1.1e30}, ValueError, f"['cat'] {NUMBER} 1.1e+30"),
        ({"cat": 10**400}, ValueError, f"['cat'] {NUMBER} 1000"),
        ({"cat": True}, TypeError, f"['cat'] {NUMBER} True"),
        ({"cat": np.True_}, TypeError, f"['cat'] {NUMBER}"),
        ({"cat": "2"}, TypeError, f"['cat'] {NUMBER} '2'"),
        ({"cat": None}, TypeError, f"['cat'] {NUMBER} None"),
        ({3: 1.0}, TypeError, " must map terms, which are str, to weights, got the key 3"),
        ({b"cat": 1.0}, TypeError, " must map terms, which are str, to weights, got the key b'"),
        ([("cat", 1.0)], TypeError, " must be a str, a list of terms, a dict of terms and"),
        ({"cat"}, TypeError, " must be a str, a list of terms, a dict of terms and"),
    ],
)
def test_an_invalid_query_with_weights_is_refused_by_name(
    query: Any, error: type[Exception], message: str
) -> None:
    index = BM25Index.from_texts(["a cat"])
    with pytest.raises(error, match=re.escape("queries[2]" + message)):
        index.search_batch(["cat", {"cat": 1}, query])
    for ask in (index.search, index.scores, lambda query: index.explain(query, "0")):
        with pytest.raises(error, match=re.escape("query" + message)):
            ask(query)


def test_weights_of_numpy_are_numbers() -> None:
    index = BM25Index.from_texts(["a cat", "a dog"])
    expected = index.scores({"cat": 2.0, "dog": 3.0})
    given = {"cat": np.float32(2), "dog": np.int8(3)}
    assert index.scores(given).tobytes() == expected.tobytes()


def test_a_mapping_is_refused_as_a_batch() -> None:
    with pytest.raises(TypeError, match="queries must be an iterable of queries, got dict"):
        BM25Index().search_batch({"cat": 1.0})  # type: ignore[arg-type]

"""Any retriever has a run: callables, hybrid and re-ranking ones, and those of frameworks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index
from bm25rag.evaluation import evaluate, run_of
from support.evaluation import QUERIES, RELEVANT, TEXTS

IDS = list(TEXTS)
QRELS = {query: {document: 1} for query, document in RELEVANT.items()}


@pytest.fixture(scope="module")
def index() -> BM25Index:
    return BM25Index.from_texts(TEXTS.values(), ids=IDS)


def vector(text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Count pairs of letters, which stands for what a model would make of a text."""
    counts = np.zeros(26 * 26)
    letters = [ord(c) - 97 for c in text.lower() if "a" <= c <= "z"]
    for first, second in pairwise(letters):
        counts[26 * first + second] += 1
    return counts / (np.linalg.norm(counts) or 1.0)


def dense(query: str, k: int) -> list[tuple[str, float]]:
    scores = np.array([vector(text) for text in TEXTS.values()]) @ vector(query)
    return [(IDS[row], float(scores[row])) for row in np.argsort(-scores)[:k]]


def hybrid(index: BM25Index) -> Callable[[str, int], list[str]]:
    def search(query: str, k: int) -> list[str]:
        fused: dict[str, float] = {}
        lists = [hit.id for hit in index.search(query, k=k)], [id for id, _ in dense(query, k)]
        for found in lists:
            for rank, id in enumerate(found, start=1):
                fused[id] = fused.get(id, 0.0) + 1 / (60 + rank)
        return sorted(fused, key=lambda id: -fused[id])

    return search


def reranking(index: BM25Index) -> Callable[[str, int], list[str]]:
    def search(query: str, k: int) -> list[str]:
        found = [hit.id for hit in index.search(query, k=100)]
        return sorted(found, key=lambda id: -float(vector(TEXTS[id]) @ vector(query)))[:k]

    return search


def expected(search: Callable[[str, int], list[Any]]) -> float:
    total = 0.0
    for query, text in QUERIES.items():
        ids = [one if isinstance(one, str) else one[0] for one in search(text, 4)]
        total += 1 / (ids.index(RELEVANT[query]) + 1) if RELEVANT[query] in ids else 0.0
    return total / len(QUERIES)


def test_dense_hybrid_and_reranking_retrievers_are_evaluated(index: BM25Index) -> None:
    pytest.importorskip("pytrec_eval")
    for search in (dense, hybrid(index), reranking(index)):
        run = run_of(search, QUERIES, k=4)
        assert evaluate(run, QRELS, "RR").mean["RR"] == pytest.approx(expected(search))
        assert all(len(found) <= 4 for found in run.values())


def test_an_index_as_a_callable_has_the_measures_of_the_index(index: BM25Index) -> None:
    pytest.importorskip("pytrec_eval")

    def search(query: str, k: int) -> list[tuple[str, float]]:
        return [(hit.id, hit.score) for hit in index.search(query, k=k)]

    measures = ["nDCG@10", "AP", "RR"]
    assert evaluate(run_of(search, QUERIES), QRELS, measures) == evaluate(
        run_of(index, QUERIES), QRELS, measures
    )


@pytest.mark.parametrize(
    ("found", "error", "message"),
    [
        (["apple", "apple"], ValueError, "a document occurs twice for query '1'"),
        ([("apple", 1.0), ("boat", 2.0)], ValueError, "query '1' are not in descending order"),
        ([("apple", float("nan"))], ValueError, "the score of 'apple' for query '1' is NaN"),
        ([("apple", float("inf"))], ValueError, "the score of 'apple' for query '1' is infinite"),
        ([None], TypeError, "it returned None"),
        ([7, 8], TypeError, r"must return ids \(str\), or pairs .* it returned 7"),
        (["apple", ("boat", 1.0)], TypeError, "it returned 'apple'"),
        ([{"id": "apple"}], TypeError, "it returned {'id': 'apple'}"),
    ],
)
def test_what_is_not_a_ranking_is_refused(
    found: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run_of(lambda query, k: found, QUERIES)


def test_what_is_not_a_retriever_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected a callable .* or Haystack, got list"):
        run_of([], QUERIES)

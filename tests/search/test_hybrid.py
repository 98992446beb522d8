"""A hybrid search: filter, k and ids hold for what the other retriever finds, too."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.errors import FilterError
from bm25rag.fusion import fuse
from bm25rag.hybrid import HybridSearch

WORDS = ["red", "green", "blue"]
documents = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), max_size=4), st.integers(0, 2)), max_size=12
)


def make(documents: list[tuple[list[str], int]]) -> BM25Index:
    return BM25Index.from_texts(
        [words for words, _ in documents],
        ids=[str(n) for n in range(len(documents))],
        metadata=[{"group": group} for _, group in documents],
    )


def finish(search: HybridSearch, ranking: list[tuple[str, float]]) -> list[int]:
    """Answer as a vector store without filters would; return what it was asked for."""
    asked = []
    while True:
        asked.append(search.wanted)
        if search.take(ranking[: search.wanted]):
            return asked


@given(documents=documents, k=st.integers(0, 5), fetch_k=st.integers(0, 5), data=st.data())
def test_the_hits_are_the_best_of_both_that_pass_the_filter(
    documents: list[tuple[list[str], int]], k: int, fetch_k: int, data: st.DataObject
) -> None:
    index = make(documents)
    order = data.draw(st.permutations(index.ids()))
    ranking = [(id, 1 - place / 100) for place, id in enumerate(order)]
    filter = data.draw(st.none() | st.builds(lambda group: {"group": group}, st.integers(0, 3)))
    search = HybridSearch(index, "red blue", k, filter, fetch_k=fetch_k)
    asked = finish(search, ranking)
    depth = max(k, fetch_k)
    words = [(hit.id, hit.score) for hit in index.search("red blue", depth, filter)]
    others = [(id, score) for id, score in ranking if id in index.ids(filter)][:depth]
    hits = search.hits()
    assert [(hit.id, hit.score) for hit in hits] == fuse([words, others], k=k)
    for hit in hits:
        (stored,) = index.get([hit.id], filter)
        assert (hit.text, hit.metadata, hit.payload) == (stored.text, stored.metadata, None)
    assert asked[-1] <= max(depth, len(index))
    assert filter is not None or asked == [depth]


def test_more_is_asked_for_until_enough_pass() -> None:
    index = make([(["red"], int(n >= 90)) for n in range(100)])
    ranking = [(str(n), -float(n)) for n in range(100)]
    search = HybridSearch(index, "red", 3, {"group": 1}, fetch_k=3, weights=[0, 1])
    assert finish(search, ranking) == [3, 12, 48, 100]
    assert [hit.id for hit in search.hits()] == ["90", "91", "92"]


def test_a_retriever_that_has_no_more_is_not_asked_again() -> None:
    index = make([(["red"], 0)] * 9)
    search = HybridSearch(index, "blue", 3, {"group": 1}, fetch_k=3)
    assert search.take([("0", 1.0), ("1", 0.5)])
    assert search.hits() == []


def test_a_document_found_by_several_of_its_vectors_is_one_result() -> None:
    index = make([(["red"], 0)] * 4)
    search = HybridSearch(index, "blue", 2, fetch_k=2)
    assert not search.take([("1", 0.9), ("1", 0.8)])
    assert search.take([("1", 0.9), ("1", 0.8), ("0", 0.7)])
    assert [hit.id for hit in search.hits()] == ["1", "0"]


def test_what_ranks_below_many_vectors_of_few_documents_is_found() -> None:
    index = make([(["red"], n % 2) for n in range(8)])
    ranking = [(str(n // 10), -float(n)) for n in range(80)]
    for filter in (None, {"group": 1}):
        search = HybridSearch(index, "blue", 4, filter, fetch_k=20)
        assert finish(search, ranking) == [20, 80]
        expected = ["0", "1", "2", "3"] if filter is None else ["1", "3", "5", "7"]
        assert [hit.id for hit in search.hits()] == expected


def test_what_ranks_below_many_unknown_ids_is_found() -> None:
    index = make([(["red"], 0)])
    ranking = [*((f"new {n}", -float(n)) for n in range(20)), ("0", -20.0)]
    search = HybridSearch(index, "blue", fetch_k=10, on_unknown="skip")
    assert finish(search, ranking) == [10, 40]
    assert [hit.id for hit in search.hits()] == ["0"]


def test_writes_meanwhile_are_no_errors() -> None:
    index = make([(["red"], 0), (["blue"], 0)])
    for searched, known in ((index, None), (index.snapshot(), index.__contains__)):
        search = HybridSearch(searched, "red", known=known)
        index.delete(["1"])
        index.add(["new"], ids=["2"])
        assert search.take([("2", 0.9), ("1", 0.8)])
        assert [hit.id for hit in search.hits()] == ["0", "1"]
        index.delete(["2"])
        index.add(["blue"], ids=["1"])


def test_an_id_that_the_index_does_not_hold_is_an_error() -> None:
    with pytest.raises(ValueError, match="found 'x', which is not in the BM25 index: both must"):
        HybridSearch(make([]), "red").take([("x", 1.0)])
    index = make([(["red"], 0)])
    search = HybridSearch(index, "blue", on_unknown="skip")
    assert search.take([("x", 1.0), ("0", 0.5)])
    assert [(hit.id, hit.score) for hit in search.hits()] == [("0", 1.0)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": -1}, ValueError, "k must be"),
        ({"fetch_k": 0.5}, TypeError, "fetch_k must be"),
        ({"method": "sum"}, ValueError, "method must be"),
        ({"weights": [1, 2, 3]}, ValueError, "weights must have one for each of 2 rankings"),
        ({"on_unknown": "raise"}, ValueError, "on_unknown must be"),
        ({"rank_constant": -1}, ValueError, "rank_constant must be"),
        ({"filter": {"group": {"$no": 1}}}, FilterError, "no"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        HybridSearch(make([]), "red", **arguments)


@pytest.mark.parametrize(
    ("score", "error"), [(math.nan, ValueError), (math.inf, ValueError), (None, TypeError)]
)
def test_scores_that_cannot_be_fused_are_named(score: Any, error: type[Exception]) -> None:
    search = HybridSearch(make([(["red"], 0)]), "red")
    search.take([("0", score)])
    with pytest.raises(error, match=r"scores of the other retriever.*'0' in rankings\[1\]"):
        search.hits()


@pytest.mark.parametrize("wrong", [["0"], ["ab"], [("0",)], [0.5], None, {"0": 0.5}])
def test_what_is_no_ranking_is_named(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^ranking(\[0\] must be a pair| must be an iterable of)"):
        HybridSearch(make([(["red"], 0)]), "red").take(wrong)


def test_hits_have_the_texts_of_all_fields() -> None:
    index = BM25Index(fields={"title": 1.0})
    index.add([{"title": "Cats", "text": "They purr."}])
    search = HybridSearch(index, "cats")
    search.take([("0", 1.0)])
    (hit,) = search.hits()
    assert hit.fields == {"title": "Cats", "text": "They purr."}
    assert [span.term for span in hit.of_field("title").spans] == ["cat"]

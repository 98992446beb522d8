"""Several wordings of a question in one call, fused by score (``also``) or by rank."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index, Query
from bm25rag.agents import search
from bm25rag.fusion import fuse
from support.holding import bits
from support.strategies import corpora, parameters

pytestmark = pytest.mark.usefixtures("backend")

wording = st.lists(st.sampled_from("abcdx"), min_size=1, max_size=4)
numbers = st.sampled_from([0.0, 0.25, 1.0, 3.0])


@given(
    chosen=parameters(),
    texts=corpora,
    wordings=st.dictionaries(wording.map(tuple), numbers | st.just(-1.5), max_size=4),
)
def test_the_score_is_the_weighted_sum_of_the_scores_of_all_wordings(
    chosen: dict[str, Any], texts: list[list[str]], wordings: dict[tuple[str, ...], float]
) -> None:
    """To rounding; to the bit it is that of the summed counts, as in ``test_parts``."""
    index = BM25Index.from_texts(texts, **chosen)
    query = Query(also=wordings)
    parts = [weight * index.scores([*words]) for words, weight in wordings.items()]
    assert np.allclose(index.scores(query), sum(parts, np.zeros(len(index))), 1e-6, 1e-6)
    union = {hit.id for words in wordings for hit in index.search([*words], len(texts))}
    assert {hit.id for hit in index.search(query, len(texts))} == union
    batch = index.search_batch([query, ["a"], query], 3)
    assert bits(batch.hits()[0]) == bits(batch.hits()[2]) == bits(index.search(query, 3))


@given(
    texts=corpora,
    asked=st.lists(st.tuples(wording, numbers), max_size=4),
    k=st.integers(0, 5),
    fetch_k=st.integers(0, 9),
    offset=st.integers(0, 2),
    limit=st.none() | st.just({"label": 0}),
)
def test_rankings_are_fused_by_rank(
    texts: list[list[str]],
    asked: list[tuple[list[str], float]],
    k: int,
    fetch_k: int,
    offset: int,
    limit: dict[str, int] | None,
) -> None:
    labels = [{"label": number % 2} for number in range(len(texts))]
    index = BM25Index.from_texts(texts, metadata=labels)
    queries, weights = [words for words, _ in asked], [weight for _, weight in asked]
    if asked and not any(weights):
        weights[0] = 1.0
    found = [index.search(words, max(k, fetch_k), limit) for words in queries]
    rankings = [[(hit.id, hit.score) for hit in hits] for hits in found]
    expected = fuse(rankings, "rrf", weights)[offset : offset + k]
    options: Any = {"fetch_k": fetch_k, "weights": weights, "offset": offset}
    for held in (index, index.restricted(limit)) if limit else (index,):
        hits = held.search_fused(queries, k, None if held is not index else limit, **options)
        assert [(hit.id, hit.score) for hit in hits] == expected
    grouped = index.search_fused(queries, 9, limit, group="label", **options)
    assert len(grouped) <= 2


def test_words_of_all_wordings_are_shown_corrected_and_expanded() -> None:
    index = BM25Index.from_texts(["A cat sleeps.", "Kittens nap at noon.", "Dogs bark."])
    query = Query("cat", also=["napping kittens"])
    assert [hit.id for hit in index.search(query)] == ["1", "0"]
    assert [span.term for span in index.search(query)[0].spans] == ["kitten", "nap"]
    assert [span.term for span in index.search_fused(["cat", "nap"])[1].spans] == ["nap"]
    assert index.search(Query("cat", also=["kitens"]), correct=True)[0].corrections
    required = Query("cat", also={"kitens": 0.5}, must=["noon"])
    assert index.search(required, correct=True)[0].corrections == {"kiten": "kitten"}
    assert index.expand(required).must == ("noon",)  # type: ignore[union-attr]
    assert index.explain(required, "1").score == index.search(required)[0].score
    for again in (pickle.loads(pickle.dumps(required)), copy.copy(required), required.replaced()):
        assert again == required
        assert hash(again) == hash(required)
    assert required != required.replaced(also=())
    assert required.as_text() == "cat kitens noon"


@pytest.mark.untraced
def test_ten_thousand_wordings_are_one_search() -> None:
    index = BM25Index.from_texts(["one word"] * 9 + ["another"])
    many = [f"word number {number}" for number in range(10_000)]
    (hit, *_) = index.search(Query("another", also=many), 1)
    assert hit.score == index.scores({"anoth": 1, "word": 10_000})[:9].max()
    assert len(index.search_fused(many, 100)) == 9
    assert search(index, "another", also=["word"] * 2000).content["total"] == 10


@pytest.mark.parametrize(
    ("also", "error", "said"),
    [
        ("a text", TypeError, "also must be a list of texts, got the str 'a text'"),
        (7, TypeError, "also must be an iterable"),
        ([7], TypeError, r"also\[0\] must be a str"),
        ([["a", 7]], TypeError, r"also\[0\] must be a str"),
        (["a", " "], ValueError, r"also\[1\] must not be empty"),
        ({"a": math.nan}, ValueError, "also.'a'. must be"),
        ({"a": math.inf}, ValueError, "also.'a'. must be"),
        ({"a": "1"}, TypeError, "also.'a'. must be"),
        ({"a": True}, TypeError, "also.'a'. must be"),
        ({7: 1.0}, TypeError, "a text of also must be a str"),
        ({"b": 1e30, "b b": 1e30}, ValueError, "query.'b'. must be a number from"),
    ],
)
def test_wrong_wordings_are_refused(also: Any, error: type[Exception], said: str) -> None:
    index = BM25Index.from_texts([["a"], ["b"]])
    with pytest.raises(error, match=said):
        index.search(Query("a", also=also))


@pytest.mark.parametrize(
    ("queries", "options", "error", "said"),
    [
        ("a text", {}, TypeError, "queries"),
        ([7], {}, TypeError, "query must be a str|queries"),
        (["a"], {"weights": [-1.0]}, ValueError, "weights.0. must be"),
        (["a"], {"weights": [math.nan]}, ValueError, "weights.0. must be"),
        (["a"], {"weights": [0.0]}, ValueError, "weights must not all be 0"),
        (["a"], {"weights": [1.0, 1.0]}, ValueError, "one for each of 1 rankings"),
        (["a"], {"rank_constant": -1}, ValueError, "rank_constant"),
        (["a"], {"fetch_k": -1}, ValueError, "fetch_k"),
    ],
)
def test_wrong_rankings_are_refused(
    queries: Any, options: Any, error: type[Exception], said: str
) -> None:
    index = BM25Index.from_texts([["a"], ["b"]])
    with pytest.raises(error, match=said):
        index.search_fused(queries, **options)
    assert index.search_fused([]) == []

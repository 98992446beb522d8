"""Several analyses in one index: scores, ids and order are the reference's, to the bit."""

from __future__ import annotations

import re
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index
from support.holding import apply, assert_same_scores, assert_same_statistics, bits
from support.reference import Reference
from support.strategies import Step, histories, parameters, travelled_histories

pytestmark = pytest.mark.usefixtures("backend")

# Words of the first analysis may begin like those of the others.
WORDS = {"a": "a", "b": "\x01b", "c": "\x02b", "d": "b", "e": "\x08", "f": "abc"}
weights = st.sampled_from([0.0, 1.0, 0.1, 3.0, 1e-30, 1e30]) | st.floats(0.05, 2)
both = st.tuples(weights, weights)
queries = st.lists(st.sampled_from([*WORDS.values(), "x"]), max_size=5).map(" ".join)


def backwards(text: str) -> list[str]:
    """Stand for a tokenizer that users bring: the first has no words of it."""
    return [word[::-1] for word in text.split(" ")[1:]]


def words(text: str) -> list[str]:
    return re.findall("[^ ]+", text)


def made(given: tuple[float, float], **chosen: Any) -> tuple[BM25Index, Reference]:
    """Make an index, and its reference."""
    runs = Analyzer(None, token_pattern=r"(?=((?<![^ ])[^ ]+ [^ ]+))", cjk=False)
    also = [(runs, given[0]), (Analyzer(tokenizer=backwards), given[1])]
    index = BM25Index(Analyzer(None, token_pattern="[^ ]+", also=also), **chosen)
    return index, Reference(analyses=analyses(given), **chosen)


def analyses(given: tuple[float, float]) -> list[Any]:
    def neighbours(text: str) -> list[str]:
        return [f"{one} {two}" for one, two in pairwise(words(text))]

    return [(words, 1.0), (neighbours, given[0]), (backwards, given[1])]


def spoken(step: Step) -> Step:
    """Return a step whose texts are texts."""
    texts: Any = getattr(step, "texts", None)
    if texts is None:
        return step
    object.__setattr__(step, "texts", [" ".join(WORDS[one] for one in text) for text in texts])
    return step


def taken(
    history: list[Step], given: tuple[float, float], **chosen: Any
) -> tuple[BM25Index, Reference]:
    index, reference = made(given, **chosen)
    for step in history:
        index = apply(index, reference, spoken(step))
    return index, reference


@given(travelled_histories, both, parameters(fields=False), queries)
def test_any_history_scores_as_the_reference(
    history: list[Step], given: tuple[float, float], chosen: dict[str, Any], query: str
) -> None:
    index, reference = taken(history, given, **chosen)
    assert_same_statistics(index, reference)
    assert_same_scores(index, reference, query)
    index.compact()
    assert_same_statistics(index, reference)
    assert_same_scores(index, reference, query)
    for hit in index.search(query):
        why = index.explain(query, hit.id)
        assert (why.matched, why.score.hex()) == (True, hit.score.hex())


@given(histories, both, both, parameters(fields=False), parameters(fields=False), queries)
def test_a_tuned_view_scores_as_an_index_made_so(
    history: list[Step],
    first: tuple[float, float],
    then: tuple[float, float],
    before: dict[str, Any],
    after: dict[str, Any],
    query: str,
) -> None:
    index, reference = taken(history, first, **before)
    view = index.tune(also=then, **after)
    assert_same_scores(view, reference.tune(analyses=analyses(then), **after), query)
    batch = view.search_batch([query, query], k=5).hits()
    assert [bits(hits) for hits in batch] == [bits(view.search(query, 5))] * 2
    alone = index.tune(also=(0.0, 0.0))
    plain = BM25Index(Analyzer(None, token_pattern="[^ ]+"), **before)
    plain.add_documents(index.get(index.ids()))
    assert bits(alone.search(query)) == bits(plain.search(query))
    assert_same_scores(index, reference, query)


@settings(max_examples=5)  # each is written to three folders
@given(histories, both, parameters(fields=False), queries, st.integers(1, 16))
def test_shards_and_builds_score_as_the_whole(
    history: list[Step], given: tuple[float, float], chosen: dict[str, Any], query: str, shards: int
) -> None:
    index, reference = taken(history, given, **chosen)
    documents = index.get(index.ids())
    made_so: Any = {"analyzer": index.analyzer, **chosen}
    with tempfile.TemporaryDirectory() as folder:
        whole = BM25Index.build(documents, Path(folder, "whole"), **made_so)
        divided = BM25Index.build(documents, Path(folder, "shards"), shards=shards, **made_so)
        for place in ("whole", "shards"):
            BM25Index.verify(Path(folder, place))
        index.save(Path(folder, "saved"))
        BM25Index.verify(Path(folder, "saved"))
        for one in (whole, divided):
            assert_same_scores(one, reference, query)
        ids = set(index.ids()[::2])
        expected = reference.search(query, accept=lambda name, _: name in ids)
        assert bits(index.search(query, filter=ids)) == bits(divided.search(query, filter=ids))
        assert bits(index.search(query, filter=ids)) == bits(expected)

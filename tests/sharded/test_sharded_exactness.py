"""Ids, order and score bits of a sharded index are those of a plain one and the reference's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.building import shards as building
from bm25rag.open_shard import Ranking, merge_hits, merge_rankings, open_shard
from bm25rag.storage.manifest import read_sharded
from support.holding import (
    accepted,
    apply,
    as_document,
    assert_same_scores,
    assert_same_statistics,
    bits,
    set_capacity,
)
from support.holding import tuned as both_tuned
from support.reference import Reference
from support.strategies import (
    LABELS,
    Step,
    corpora,
    histories,
    in_fields,
    mixed,
    parameters,
    queries,
)

pytestmark = pytest.mark.usefixtures("backend")

Corpus = tuple[list[list[str]], list[int]]


@st.composite
def labelled(draw: st.DrawFn) -> Corpus:
    texts = draw(corpora)
    size = len(texts)
    return texts, draw(st.lists(st.sampled_from(LABELS), min_size=size, max_size=size))


@st.composite
def uneven(draw: st.DrawFn) -> list[float]:
    """Draw where each of up to 16 shards begins, as shares of the documents."""
    return sorted(draw(st.lists(st.floats(0, 1), max_size=15)))


@contextmanager
def sharded(corpus: Corpus, cuts: list[float], **chosen: Any) -> Iterator[Path]:
    texts, labels = corpus
    texts = in_fields(texts, chosen.get("fields"))
    documents = [
        as_document(str(number), text, {"label": label})
        for number, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        edges = [0, *(round(cut * len(texts)) for cut in cuts), len(texts)]
        patch.setattr(building, "even_edges", lambda *_: edges)
        patch.setattr("bm25rag.storage.shard_statistics._TERMS", 20)  # several partitions
        BM25Index.build(iter(documents), Path(folder, "it"), shards=len(cuts) + 1, **chosen)
        yield Path(folder, "it")


def plain(corpus: Corpus, **chosen: Any) -> tuple[BM25Index, Reference]:
    texts, labels = corpus
    texts = in_fields(texts, chosen.get("fields"))
    index, reference = BM25Index(**chosen), Reference(**chosen)
    ids, metadata = [str(n) for n in range(len(texts))], [{"label": label} for label in labels]
    index.add(texts, ids, metadata)
    reference.add(texts, ids, metadata)
    return index, reference


HALF = settings(max_examples=settings().max_examples // 2)


@HALF
@given(corpus=labelled(), cuts=uneven(), chosen=parameters(), query=queries, tuned=parameters())
def test_scores_ranking_and_statistics_are_the_references(
    corpus: Corpus,
    cuts: list[float],
    chosen: dict[str, Any],
    query: list[str],
    tuned: dict[str, Any],
) -> None:
    _, reference = plain(corpus, **chosen)
    with sharded(corpus, cuts, **chosen) as folder:
        index = BM25Index.open(folder)
        assert_same_scores(index, reference, query)
        assert_same_statistics(index, reference)
        assert_same_scores(*both_tuned(index, reference, tuned), query)


@HALF
@given(
    corpus=labelled(),
    cuts=uneven(),
    chosen=parameters(),
    asked=st.lists(mixed, max_size=5),
    k=st.integers(0, 30),
    label=st.sampled_from(LABELS),
    least=st.none() | st.sampled_from([0.0, 0.5]),
)
def test_every_answer_is_that_of_a_plain_index(
    corpus: Corpus,
    cuts: list[float],
    chosen: dict[str, Any],
    asked: list[Any],
    k: int,
    label: int,
    least: float | None,
) -> None:
    index, _ = plain(corpus, **chosen)
    with sharded(corpus, cuts, **chosen) as folder:
        whole = BM25Index.open(folder)
        for chosen_filter in [None, *(given_filter for given_filter, _ in accepted(label))]:
            expected = index.search_batch(asked, k, chosen_filter, min_score=least)
            found = whole.search_batch(asked, k, chosen_filter, min_score=least)
            assert_same_rankings(found, expected)
            for query in asked:
                hits = whole.search(query, k, chosen_filter, min_score=least)
                assert hits == index.search(query, k, chosen_filter, min_score=least)
        for query in asked:
            assert whole.expand(query) == index.expand(query)
            assert whole.correct(query) == index.correct(query)
            for id in index.ids():
                assert whole.explain(query, id) == index.explain(query, id)
        assert whole.get(index.ids()) == index.get(index.ids())
        assert (whole.to_scipy() != index.to_scipy()).nnz == 0


def assert_same_rankings(found: Any, expected: Any) -> None:
    assert np.array_equal(found.rows, expected.rows)
    assert np.array_equal(found.counts, expected.counts)
    assert np.array_equal(found.scores.view(np.int64), expected.scores.view(np.int64))


@HALF
@given(
    corpus=labelled(),
    cuts=uneven(),
    chosen=parameters(),
    tuned=parameters(fields=False),  # a shard alone cannot give or take a weight of 0
    asked=st.lists(mixed, min_size=1, max_size=5),
    k=st.integers(0, 30),
    label=st.sampled_from(LABELS),
)
def test_the_merged_answers_of_shards_are_those_of_a_plain_index(
    corpus: Corpus,
    cuts: list[float],
    chosen: dict[str, Any],
    tuned: dict[str, Any],
    asked: list[Any],
    k: int,
    label: int,
) -> None:
    index = plain(corpus, **chosen)[0].tune(**tuned)
    with sharded(corpus, cuts, **chosen) as folder:
        shards = [open_shard(folder, number) for number in range(len(cuts) + 1)]
        searchers = [shard.searcher.tune(**tuned) for shard in shards]
        for chosen_filter in (None, {"label": label}, lambda metadata: metadata["label"] == label):
            expected = index.search_batch(asked, k, chosen_filter)
            batches = [searcher.search_batch(asked, k, chosen_filter) for searcher in searchers]
            rankings = [Ranking(batch.rows, batch.scores, batch.counts) for batch in batches]
            merged = merge_rankings(rankings, [shard.first_row for shard in shards], k)
            assert_same_rankings(merged, expected)
            hits = merge_hits([s.search(asked[0], k, chosen_filter) for s in searchers], k)
            assert hits == index.search(asked[0], k, chosen_filter)
        scores = [searcher.scores(asked[0]) for searcher in searchers]
        assert np.array_equal(np.concatenate(scores), index.scores(asked[0]))
        matrices = [searcher.to_scipy() for searcher in searchers]
        assert sum(m.sum(dtype=float) for m in matrices) == pytest.approx(
            index.to_scipy().sum(dtype=float), rel=1e-9
        )


UPDATES = given(
    corpus=labelled(),
    cuts=uneven(),
    chosen=parameters(),
    history=histories,
    capacity=st.integers(0, 6),
    query=queries,
)


@UPDATES
@settings(max_examples=settings().max_examples // 2)
def test_after_updates_everything_is_the_references(**drawn: Any) -> None:
    check_updates(**drawn)


@pytest.mark.slow
@UPDATES
@settings(max_examples=30)
def test_after_updates_everything_is_the_references_at_length(**drawn: Any) -> None:
    check_updates(**drawn)


def check_updates(
    corpus: Corpus,
    cuts: list[float],
    chosen: dict[str, Any],
    history: list[Step],
    capacity: int,
    query: list[str],
) -> None:
    """Take the steps of a history on both sides, with commits in between."""
    _, reference = plain(corpus, **chosen)
    with sharded(corpus, cuts, **chosen) as folder:
        reader = BM25Index.open(folder)
        with BM25Index.open(folder, mode="w") as writer, pytest.MonkeyPatch.context() as patch:
            patch.setattr("bm25rag.merging.policy.LEAST", 0)
            set_capacity(writer, capacity)
            for number, step in enumerate(history):
                apply(step, writer, reference)
                assert_same_scores(writer, reference, query)
                if number % 3 == 1:
                    writer.maintain() if number % 2 else writer.compact()
                if number % 2:
                    writer.commit()
                    reader.refresh()
                    assert_same_scores(reader, reference, query)
        reader.refresh()
        assert_same_scores(reader, reference, query)
        assert_same_statistics(reader, reference)
        BM25Index.verify(folder)
        count = read_sharded(str(folder)).shard_count
        found = [open_shard(folder, number).searcher.search(query, 40) for number in range(count)]
        assert bits(merge_hits(found, 40)) == bits(reference.search(query, 40))


@pytest.mark.parametrize("k", [1, 8, 23, 99, 10**30])
def test_ties_at_the_cut_go_to_the_first_documents(k: int) -> None:
    """Forty equal documents in shards of 0, 5, 0, 18 and 17."""
    corpus: Corpus = ([["a", "b"]] * 40, [number % 3 for number in range(40)])
    expected = list(range(min(k, 40)))
    with sharded(corpus, [0.0, 0.125, 0.125, 0.575]) as folder:
        index = BM25Index.open(folder)
        assert index.search_batch([["a"]], k).rows.tolist() == [expected]
        assert [hit.id for hit in index.search(["a"], k)] == [str(row) for row in expected]
        third = [hit.id for hit in index.search(["a"], k, filter={"label": 1})]
        assert third == [str(row) for row in range(1, 40, 3)][:k]
        shards = [open_shard(folder, number) for number in range(5)]
        assert [len(shard.searcher) for shard in shards] == [0, 5, 0, 18, 17]
        batches = [shard.searcher.search_batch([["a"]], k) for shard in shards]
        rankings = [Ranking(batch.rows, batch.scores, batch.counts) for batch in batches]
        merged = merge_rankings(rankings, [shard.first_row for shard in shards], k)
        assert merged.rows.tolist() == [expected]
        hits = merge_hits([shard.searcher.search(["a"], k) for shard in shards], k)
        assert [hit.id for hit in hits] == [str(row) for row in expected]

"""Every score and every ranking equals the reference's, bit for bit."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bm25rag import BM25Index
from support.holding import (
    accepted,
    apply,
    assert_same_scores,
    assert_same_statistics,
    bits,
    build,
    tuned,
)
from support.reference import VARIANTS, Reference
from support.strategies import (
    LABELS,
    Add,
    Step,
    corpora,
    histories,
    parameters,
    queries,
    travelled_histories,
)

pytestmark = pytest.mark.usefixtures("backend")


@pytest.mark.parametrize("variant", VARIANTS)
@given(data=st.data(), texts=corpora, query=queries)
def test_scores_and_ranking_are_the_references(
    variant: str, data: st.DataObject, texts: list[list[str]], query: list[str]
) -> None:
    index, reference = build(texts, **data.draw(parameters(variant)))
    assert_same_scores(index, reference, query)


@pytest.mark.slow
@given(chosen=parameters(), texts=corpora, query=queries)
@example(  # f(1) - f(0) is only what rounding left of it: the order of every addition shows
    chosen={"variant": "bm25l", "k1": 5.622588701668367e-15, "b": 0.0, "delta": 1.0},
    texts=[["a"]],
    query=["a"],
)
@settings(max_examples=500)
def test_scores_and_ranking_are_the_references_at_length(
    chosen: dict[str, Any], texts: list[list[str]], query: list[str]
) -> None:
    index, reference = build(texts, **chosen)
    assert_same_scores(index, reference, query)


@given(chosen=parameters(), texts=corpora, query=queries, data=st.data())
def test_every_k_cuts_the_same_list(
    chosen: dict[str, Any], texts: list[list[str]], query: list[str], data: st.DataObject
) -> None:
    index, reference = build(texts, **chosen)
    everything = bits(reference.matches(query))
    k = data.draw(st.integers(0, len(texts) + 2))
    for kind in (k, np.int64(k), np.uint8(k)):
        assert bits(index.search(query, k=kind)) == everything[:k]


@given(chosen=parameters(), texts=corpora, query=queries, data=st.data())
def test_filters_restrict_the_answers_and_change_no_score(
    chosen: dict[str, Any], texts: list[list[str]], query: list[str], data: st.DataObject
) -> None:
    size = len(texts)
    labels = data.draw(st.lists(st.sampled_from(LABELS), min_size=size, max_size=size))
    index, reference = build(texts, labels, **chosen)
    k = data.draw(st.integers(1, 6))
    for given_filter, accept in accepted(data.draw(st.sampled_from(LABELS))):
        expected = bits(reference.search(query, k, accept))
        assert bits(index.search(query, k, filter=given_filter)) == expected
        batch = index.search_batch([query, query[:1]], k, filter=given_filter)
        assert bits(batch.hits()[0]) == expected
        passing = [name for name in reference.ids if accept(name, reference.metadata[name])]
        assert index.ids(given_filter) == passing
        assert index.count(given_filter) == len(passing)


@given(chosen=parameters(), texts=corpora, query=queries, data=st.data())
def test_min_score_is_an_inclusive_cut_on_the_returned_score(
    chosen: dict[str, Any], texts: list[list[str]], query: list[str], data: st.DataObject
) -> None:
    index, reference = build(texts, **chosen)
    scores = [hit.score for hit in reference.matches(query)]
    edges = scores + [float(np.nextafter(score, np.inf)) for score in scores]
    threshold = data.draw(st.sampled_from([*edges, 0.0, -0.0, -np.inf, np.inf, -1.0]))
    k = data.draw(st.integers(1, len(texts) + 1))
    expected = bits(reference.search(query, k, min_score=threshold))
    assert bits(index.search(query, k, min_score=threshold)) == expected
    batch = index.search_batch([query], k, min_score=threshold)
    assert bits(batch.hits()[0]) == expected


@given(
    chosen=parameters(),
    texts=corpora,
    asked=st.lists(queries, max_size=9),
    k=st.integers(0, 30),
    threads=st.sampled_from([None, 1, 2, 4]),
)
def test_a_batch_agrees_with_single_searches(
    chosen: dict[str, Any],
    texts: list[list[str]],
    asked: list[list[str]],
    k: int,
    threads: int | None,
) -> None:
    index, reference = build(texts, **chosen)
    batch = index.search_batch(asked, k, threads=threads)
    width = min(k, len(texts))
    assert batch.rows.dtype == np.int64
    assert batch.scores.dtype == np.float64
    assert batch.rows.shape == batch.scores.shape == (len(asked), width)
    assert batch.counts.shape == (len(asked),)
    for place, query in enumerate(asked):
        expected = reference.search(query, k)
        count = int(batch.counts[place])
        assert count == len(expected)
        assert batch.rows[place, :count].tolist() == [hit.row for hit in expected]
        assert (batch.rows[place, count:] == -1).all()
        assert (batch.scores[place, count:] == -np.inf).all()
        assert batch.ids()[place] == [hit.id for hit in expected]
        assert bits(batch.hits()[place]) == bits(expected) == bits(index.search(query, k))
        assert [s.hex() for s in batch.scores[place, :count].tolist()] == [
            hit.score.hex() for hit in expected
        ]


@given(chosen=parameters(), texts=corpora, query=queries)
def test_contributions_and_shift_sum_to_the_score(
    chosen: dict[str, Any], texts: list[list[str]], query: list[str]
) -> None:
    index, reference = build(texts, **chosen)
    for name, score in zip(reference.ids, reference.scores(query), strict=True):
        why = index.explain(query, name)
        assert why.id == name
        assert why.score.hex() == score.hex()
        assert why.shift.hex() == reference.shift(query).hex()
        document = reference.documents[name]
        assert why.matched == (not reference.words(document).isdisjoint(query))
        total = 0.0
        for part in why.terms:
            total += part.contribution
        assert (total + why.shift).hex() == score.hex()
        found = {part.term: part.contribution for part in why.terms if part.document_frequency}
        assert found == reference.explain(query, name)
        assert list(found) == list(reference.explain(query, name))
        for part in why.terms:
            assert part.tf == reference.tf(document, part.term)
            assert part.fields == reference.counts(document, part.term)
            assert part.count == query.count(part.term)
            assert part.document_frequency == reference.df(part.term)


@given(chosen=parameters(), texts=corpora)
def test_the_matrix_holds_the_float32_part_of_every_posting(
    chosen: dict[str, Any], texts: list[list[str]]
) -> None:
    index, reference = build(texts, **chosen)
    matrix = index.to_scipy()
    vocabulary = list(reference.vocabulary())
    expected = np.zeros((len(texts), len(vocabulary)), dtype=np.float32)
    postings = 0
    for column, term in enumerate(vocabulary):
        weight = reference.weights([term])[0][2]
        for row, words in enumerate(reference.documents.values()):
            if term in reference.words(words):
                expected[row, column] = reference.part(weight, words, term, reference.average)
                postings += 1
    assert matrix.format == "csc"
    assert matrix.dtype == np.float32
    assert matrix.shape == expected.shape
    assert matrix.nnz == postings
    assert matrix.toarray().tobytes() == expected.tobytes()


@given(chosen=parameters(), steps=histories, query=queries)
def test_any_history_gives_the_scores_of_an_index_built_afresh(
    chosen: dict[str, Any], steps: list[Step], query: list[str]
) -> None:
    index, reference = BM25Index(**chosen), Reference(**chosen)
    for step in steps:
        index = apply(index, reference, step)
        assert_same_scores(index, reference, query)
    assert_same_statistics(index, reference)
    survivors = list(reference.documents.values())
    afresh = BM25Index.from_texts(survivors, ids=reference.ids, **chosen)
    assert bits(afresh.search(query, 100)) == bits(index.search(query, 100))


@pytest.mark.slow
@given(chosen=parameters(), steps=travelled_histories, query=queries)
@settings(max_examples=200)
def test_histories_with_copies_pickles_and_folders_between_at_length(
    chosen: dict[str, Any], steps: list[Step], query: list[str]
) -> None:
    index, reference = BM25Index(**chosen), Reference(**chosen)
    for step in steps:
        index = apply(index, reference, step)
        assert_same_scores(index, reference, query)
    assert_same_statistics(index, reference)


@given(chosen=parameters(), steps=travelled_histories, query=queries)
def test_copies_pickles_and_folders_change_nothing(
    chosen: dict[str, Any], steps: list[Step], query: list[str]
) -> None:
    index, reference = BM25Index(**chosen), Reference(**chosen)
    for step in steps:
        index = apply(index, reference, step)
    assert_same_statistics(index, reference)
    assert_same_scores(index, reference, query)


@given(chosen=parameters(), other=parameters(), steps=histories, query=queries)
def test_a_tuned_view_is_an_index_built_with_those_parameters(
    chosen: dict[str, Any], other: dict[str, Any], steps: list[Step], query: list[str]
) -> None:
    index, reference = BM25Index(**chosen), Reference(**chosen)
    for step in steps:
        index = apply(index, reference, step)
    before = bits(index.search(query, 100))
    view, expected = tuned(index, reference, other)
    assert_same_scores(view, expected, query)
    assert_same_statistics(view, expected)
    assert bits(index.search(query, 100)) == before


@given(chosen=parameters(), steps=histories, query=queries)
def test_a_view_keeps_its_snapshot_while_the_index_changes(
    chosen: dict[str, Any], steps: list[Step], query: list[str]
) -> None:
    index, reference = build([["a", "b"], ["b", "b", "c"], []], **chosen)
    view, snapshot = index.tune(k1=0.7), reference.tune(k1=0.7)
    for step in steps:
        index = apply(index, reference, step)
    assert_same_scores(view, snapshot, query)
    assert_same_statistics(view, snapshot)


@given(
    chosen=parameters(),
    rounds=st.lists(st.tuples(histories, st.sampled_from(["commit", "rollback", "reopen"]))),
    query=queries,
)
@settings(max_examples=15)
def test_a_writer_keeps_committed_changes_only(
    chosen: dict[str, Any], rounds: list[tuple[list[Step], str]], query: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        BM25Index(**chosen).save(path)
        reference = Reference(**chosen)
        writer = BM25Index.open(path, mode="w")
        for steps, ending in rounds[:4]:
            committed = copy.deepcopy(reference)
            for step in steps:
                if isinstance(step, Add) and step.ids is None:
                    continue  # whether rolling back frees a number is not specified
                apply(writer, reference, step)
            assert_same_scores(writer, reference, query)
            if ending == "commit":
                writer.commit()
            elif ending == "rollback":
                writer.rollback()
                reference = committed
            else:
                writer.commit()
                writer.close()
                writer = BM25Index.open(path, mode="w")
            assert_same_statistics(writer, reference)
            assert_same_scores(writer, reference, query)
            reader = BM25Index.open(path)
            assert_same_statistics(reader, reference)
            assert_same_scores(reader, reference, query)
        writer.close()

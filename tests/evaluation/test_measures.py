"""Measures equal trec_eval's, and input that cannot be evaluated gets a clear error."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag.evaluation import Evaluation, evaluate
from bm25rag.evaluation.notation import parse_measure
from support.ndcg import ndcg

pytrec_eval = pytest.importorskip("pytrec_eval")

NAMES = {
    "nDCG@10": "ndcg_cut_10",
    "nDCG@3": "ndcg_cut_3",
    "nDCG": "ndcg",
    "Success@5": "success_5",
    "RR": "recip_rank",
    "P@5": "P_5",
    "R@10": "recall_10",
    "AP": "map",
    "AP@10": "map_cut_10",
    "Rprec": "Rprec",
}


def random_case(chance: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a run and judgements: ties, unjudged documents, grades from -1 to 3, empty queries."""
    documents = [f"d{number}" for number in range(chance.randint(1, 30))]
    queries = [f"q{number}" for number in range(chance.randint(1, 5))]
    run, qrels = {}, {}
    for query in queries:
        found = chance.sample(documents, chance.randint(0, len(documents)))
        run[query] = {id: chance.choice([chance.random(), 0.5, 1.0, -3.0]) for id in found}
        judged = chance.sample(documents, chance.randint(1, len(documents)))
        qrels[query] = {id: chance.randint(-1, 3) for id in judged}
    return run, qrels


def ranking(found: dict[str, float]) -> list[str]:
    """Order documents as trec_eval does: by float32 score, then by id, both descending."""
    return sorted(found, key=lambda id: (np.float32(found[id]), id), reverse=True)


@pytest.mark.parametrize("seed", range(8))
def test_measures_equal_those_of_pytrec_eval_on_random_runs(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        run, qrels = random_case(chance)
        # Negative grades, which mean "not relevant" too, make trec_eval write past its arrays.
        safe = {q: {id: max(grade, 0) for id, grade in qrels[q].items()} for q in qrels}
        expected = pytrec_eval.RelevanceEvaluator(safe, set(NAMES.values())).evaluate(run)
        found = evaluate(run, qrels, NAMES)
        for query, values in expected.items():
            for ours, theirs in NAMES.items():
                assert found.per_query[query][ours] == values[theirs], (query, ours)
        for ours in NAMES:
            per_query = [one[ours] for one in found.per_query.values()]
            assert found.mean[ours] == pytest.approx(sum(per_query) / len(qrels), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_cut_measures_equal_their_definitions_on_random_runs(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        run, qrels = random_case(chance)
        found = evaluate(run, qrels, ["RR@3", "F1@5", "RR(rel=2)@3", "nDCG@10", "P(rel=2)@5"])
        for query, values in found.per_query.items():
            order, grades = ranking(run[query]), qrels[query]
            relevant = {id for id, grade in grades.items() if grade >= 1}
            high = {id for id, grade in grades.items() if grade >= 2}
            ranks = [rank for rank, id in enumerate(order[:3], 1) if id in relevant]
            assert values["RR@3"] == (1 / ranks[0] if ranks else 0)
            ranks = [rank for rank, id in enumerate(order[:3], 1) if id in high]
            assert values["RR(rel=2)@3"] == (1 / ranks[0] if ranks else 0)
            assert values["P(rel=2)@5"] == pytest.approx(len(high & set(order[:5])) / 5)
            hits = len(relevant & set(order[:5]))
            precision, recall = hits / 5, hits / len(relevant) if relevant else 0
            f1 = 2 * precision * recall / (precision + recall) if hits else 0
            assert values["F1@5"] == pytest.approx(f1)
            positive = {id: max(grade, 0) for id, grade in grades.items()}
            assert values["nDCG@10"] == pytest.approx(ndcg(order, positive))


def test_a_judged_query_without_results_counts_as_0_and_is_named() -> None:
    found = evaluate({"a": {"d": 1.0}}, {"a": {"d": 1}, "b": {"d": 1}}, "RR@10")
    assert found.mean == {"RR@10": 0.5}
    assert found.missing == ("b",)
    assert any("count as 0: 'b'" in note for note in found.notes)


def test_a_query_without_judgements_does_not_count_and_is_named() -> None:
    found = evaluate({"a": {"d": 1.0}, "b": {"d": 1.0}}, {"a": {"d": 1}}, "RR@10")
    assert found.mean == {"RR@10": 1.0}
    assert found.unjudged == ("b",)
    assert list(found.per_query) == ["a"]


def test_a_query_with_nothing_relevant_is_named() -> None:
    run = {"a": {"d": 1.0}, "b": {"d": 1.0}}
    found = evaluate(run, {"a": {"d": 1}, "b": {"d": 0, "e": -1}}, "nDCG@10")
    assert found.without_relevant == ("b",)
    assert found.mean == {"nDCG@10": 0.5}


def test_a_query_whose_judgements_are_empty_counts_as_0() -> None:
    found = evaluate({"a": {"d": 1.0}, "b": {"d": 1.0}}, {"a": {"d": 1}, "b": {}}, "AP")
    assert found.per_query["b"] == {"AP": 0.0}


@pytest.mark.parametrize(
    ("run", "qrels", "error", "message"),
    [
        ({"a": {"d": 1.0}}, {}, ValueError, "qrels is empty"),
        ({"a": {"d": 1.0}}, {"a": {}}, ValueError, "qrels is empty"),
        ({}, {"a": {"d": 1}}, ValueError, "the run has no queries, the qrels have 'a'"),
        ({"1": {"d": 1.0}}, {"q1": {"d": 1}}, ValueError, "the run has '1', the qrels have 'q1'"),
        ({1: {"d": 1.0}}, {"1": {"d": 1}}, TypeError, r"must be a str, got 1 \(int\)"),
        ({"a": {7: 1.0}}, {"a": {"7": 1}}, TypeError, r"run\['a'\] must be a str, got 7"),
        ({"a": {"d": 1.0}}, {"a": {7: 1}}, TypeError, r"qrels\['a'\] must be a str, got 7"),
        ({"a": {"d": float("nan")}}, {"a": {"d": 1}}, ValueError, r"run\['a'\]\['d'\] is NaN"),
        ({"a": {"d": float("inf")}}, {"a": {"d": 1}}, ValueError, r"\['d'\] is infinite"),
        ({"a": {"d": np.float32("-inf")}}, {"a": {"d": 1}}, ValueError, r"\['d'\] is infinite"),
        ({"a": {"d": 10**400}}, {"a": {"d": 1}}, ValueError, r"run\['a'\]\['d'\] is infinite"),
        ({"a": {"d": "2"}}, {"a": {"d": 1}}, TypeError, "must be a number, got '2'"),
        ({"a": {"d": True}}, {"a": {"d": 1}}, TypeError, "must be a number, got True"),
        ({"a": {"d": 1.0}}, {"a": {"d": 0.5}}, TypeError, r"must be an int, got 0.5 \(float\)"),
        ({"a": {"d": 1.0}}, {"a": {"d": "1"}}, TypeError, "must be an int, got '1'"),
        ({"a": {"d": 1.0}}, {"a": {"d": 10**12}}, ValueError, "grade up to 1000"),
        ({"a": {"d\0": 1.0}}, {"a": {"d": 1}}, ValueError, "NUL"),
        ({"a": {"\ud800": 1.0}}, {"a": {"d": 1}}, ValueError, "surrogate"),
        ({"a": ["d"]}, {"a": {"d": 1}}, TypeError, r"run\['a'\] must be a dict"),
        ([("a", "d", 1.0)], {"a": {"d": 1}}, TypeError, "run must be a dict of dicts"),
    ],
)
def test_what_cannot_be_evaluated_is_said(
    run: Any, qrels: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        evaluate(run, qrels, "nDCG@10")


@given(st.text(min_size=1).filter(lambda id: "\0" not in id))
def test_ids_may_be_any_text_with_spaces_too(id: str) -> None:
    found = evaluate({id: {id: 1.0}}, {id: {id: 1}}, "P@1")
    assert found.per_query == {id: {"P@1": 1.0}}


def test_numbers_of_numpy_are_numbers() -> None:
    found = evaluate({"a": {"d": np.float32(1), "e": 2}}, {"a": {"d": np.int64(1)}}, "RR")
    assert found.mean == {"RR": 0.5}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("accuracy", "unknown measure 'accuracy'; measures are such as nDCG@10"),
        ("P", "needs a cutoff, as in 'P@10'"),
        ("Rprec@5", "has no cutoff"),
        ("nDCG@0", "cutoff of 'nDCG@0' must be"),
        ("nDCG(rel=2)@10", "uses all grades"),
        ("P(rel=0)@10", "at least 1"),
        ("nDCG@10@5", "unknown measure"),
        ("nDCG@-1", "unknown measure"),
    ],
)
def test_a_wrong_measure_is_refused_with_the_right_ones(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_measure(name)


def test_measures_have_the_names_they_were_asked_by() -> None:
    found = evaluate({"a": {"d": 1.0}}, {"a": {"d": 1}}, ["MRR@10", "RR@10", "NDCG@10", "MAP"])
    assert found.mean == {"MRR@10": 1.0, "RR@10": 1.0, "NDCG@10": 1.0, "MAP": 1.0}


def test_a_measure_that_was_not_evaluated_is_refused() -> None:
    with pytest.raises(ValueError, match="'AP' was not evaluated; measures are"):
        Evaluation({"RR": 1.0}, {"a": {"RR": 1.0}}).values("AP")
    with pytest.raises(ValueError, match="measures is empty"):
        evaluate({"a": {"d": 1.0}}, {"a": {"d": 1}}, [])


def test_without_the_extra_the_message_has_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from bm25rag.errors import MissingDependencyError

    monkeypatch.setitem(sys.modules, "pytrec_eval", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bm25rag\[eval\]'"):
        evaluate({"a": {"d": 1.0}}, {"a": {"d": 1}})


def test_what_is_public_is_there_and_documented() -> None:
    import bm25rag.evaluation as package

    for name in package.__all__:
        assert getattr(package, name, None) is not None
        assert name.isupper() or getattr(package, name).__doc__


def test_importing_the_core_imports_nothing_of_evaluation() -> None:
    import subprocess
    import sys

    script = "import bm25rag, sys; print([m for m in sys.modules if 'evaluation' in m])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"

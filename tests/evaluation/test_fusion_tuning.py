"""Tuning a fusion finds the method and weights that are best, and says what they gain elsewhere."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from bm25rag.evaluation import FusionSettings, evaluate, fuse_runs, tune_fusion
from bm25rag.fusion import fuse

pytest.importorskip("pytrec_eval")

QUERIES = [f"q{number}" for number in range(20)]
QRELS = {query: {"good": 1} for query in QUERIES}
# The words are wrong, but not sure of it; the vectors are right, and are.
WORDS = {query: {"bad": 9.0, "good": 8.5, "other": 1.0} for query in QUERIES}
VECTORS = {query: {"good": 0.9, "other": 0.2, "bad": 0.1} for query in QUERIES}


def test_the_best_settings_and_what_they_gain_are_found() -> None:
    found = tune_fusion([WORDS, VECTORS], QRELS, "RR@10", weights=[(1, 0), (0.5, 0.5)])
    assert found.best == FusionSettings("minmax", (0.5, 0.5))
    assert (found.best_mean, found.held_out.baseline, found.held_out.mean) == (1.0, 0.5, 1.0)
    assert set(found.chosen) == {found.best}
    assert len(found.points) == 6
    expected = "best: minmax, weights 0.5, 0.5\nRR@10 on held-out queries: 0.5000 to 1.0000"
    assert str(found).startswith(expected)
    assert json.loads(json.dumps(found.to_dict()))["best"] == found.best.to_dict()


def test_every_point_has_the_mean_that_evaluate_gives() -> None:
    found = tune_fusion([WORDS, VECTORS], QRELS, "nDCG@10")
    assert len(found.points) == 33
    for settings, mean in found.points:
        run = fuse_runs([WORDS, VECTORS], **settings.to_dict())
        assert mean == pytest.approx(evaluate(run, QRELS, "nDCG@10").mean["nDCG@10"], abs=1e-12)


def test_runs_are_fused_query_by_query_and_keep_the_order_of_ties() -> None:
    runs = [{"q1": {"b": 1.0, "a": 2.0}}, {"q1": {"c": 0.5}, "q2": {"d": 1.0}}]
    expected = fuse([[("a", 2.0), ("b", 1.0)], [("c", 0.5)]])
    assert fuse_runs(runs) == {
        "q1": {id: float(-rank) for rank, (id, _) in enumerate(expected)},
        "q2": {"d": 0.0},
    }


def test_queries_of_no_run_are_left_out_and_said() -> None:
    found = tune_fusion([WORDS, {}], QRELS | {"else": {"a": 1}}, methods=["rrf"])
    assert found.notes == ("1 judged queries are in no run and are left out",)
    assert found.held_out.difference == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["sum"]}, "method must be one of"),
        ({"weights": [(1, 1, 1)]}, "weights must have one for each of 2 rankings"),
        ({"weights": []}, "methods and weights must not be empty"),
        ({"folds": 1}, "folds must be"),
        ({"measure": "best"}, "best"),
        ({"qrels": {"q1": {"good": 1}}}, "at least two judged queries"),
    ],
)
def test_what_cannot_be_tuned_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tune_fusion(**({"runs": [WORDS, VECTORS], "qrels": QRELS} | arguments))


def noisy_runs(seed: int) -> list[dict[str, dict[str, float]]]:
    """Make runs of two retrievers that are right by chance, neither more often."""
    draw = random.Random(seed)
    return [
        {query: {id: draw.random() for id in ("good", "bad", "other")} for query in QUERIES}
        for _ in range(2)
    ]


@pytest.mark.slow
def test_equal_weights_stay_unless_others_are_better_by_two_standard_errors() -> None:
    kept = 0
    for seed in range(20):
        found = tune_fusion(noisy_runs(seed), QRELS, "RR@10")
        assert found.default == found.points[0][0] == FusionSettings("minmax", (0.5, 0.5))
        kept += found.best == found.default
        assert found.best_mean >= found.points[0][1]
        best = max(mean for _, mean in found.points)
        assert found.best == found.default or best >= found.best_mean > found.points[0][1]
    assert kept >= 12, "chance alone is no reason to leave the default"
    sure = {query: {"bad": 9.0, "good": 1.0, "other": 0.5} for query in QUERIES}
    unsure = {query: {"good": 0.9, "bad": 0.85, "other": 0.1} for query in QUERIES}
    found = tune_fusion([sure, unsure], QRELS, "RR@10", weights=[(1, 0), (0, 1)])
    assert (found.best.weights, found.best_mean, found.points[0][1]) == ((0, 1), 1.0, 0.5)


def test_the_gain_on_held_out_queries_is_told_against_the_default_as_well() -> None:
    found = tune_fusion([WORDS, VECTORS], QRELS, "RR@10")
    told = found.held_out_default
    assert (told.baseline, told.mean, told.difference) == (1.0, 1.0, 0.0)
    assert found.held_out.difference == 0.5
    assert "held-out queries, against the default (minmax, weights 0.5, 0.5): 1.0000" in str(found)
    facts = found.to_dict()
    assert facts["held_out_default"] == told.to_dict()
    assert facts["default"] == {"method": "minmax", "weights": [0.5, 0.5]}


def test_the_default_is_of_the_first_method_and_tried_once() -> None:
    found = tune_fusion([WORDS, VECTORS], QRELS, methods=["rrf"], weights=[(2, 2), (3, 1)])
    assert [settings for settings, _ in found.points] == [
        FusionSettings("rrf", (0.5, 0.5)),
        FusionSettings("rrf", (3, 1)),
    ]
    three = tune_fusion([WORDS, VECTORS, VECTORS], QRELS, methods=["rrf"])
    assert three.default.weights == (1 / 3, 1 / 3, 1 / 3)


def test_two_queries_are_too_few_to_leave_the_default_for_one() -> None:
    few = {query: QRELS[query] for query in QUERIES[:2]}
    found = tune_fusion([WORDS, VECTORS], few, "RR@10", weights=[(1, 0), (0, 1)], folds=2)
    assert set(found.chosen) == {found.default}

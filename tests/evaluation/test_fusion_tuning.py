"""Tuning a fusion finds the method and weights that are best, and says what they gain elsewhere."""

from __future__ import annotations

import json
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

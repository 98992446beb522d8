"""Finds the method and the weights that fuse rankings best, by cross-validation over queries.

With dozens of settings, the best on some queries owes part of its lead to chance: on new ones it
can be worse than equal weights. So these stay unless others are better by two standard errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, get_args

import numpy as np

from bm25rag.common.arrays import Float64
from bm25rag.common.checks import check_count, check_sequence
from bm25rag.evaluation.measures import Evaluator, Qrels, Run
from bm25rag.evaluation.notation import parse_measure
from bm25rag.evaluation.significance import Comparison
from bm25rag.evaluation.tuning import Tuned, compare_held_out, cross_validate, describe_held_out
from bm25rag.fusion import FusionMethod, fuse

METHODS: tuple[FusionMethod, ...] = get_args(FusionMethod)
_STEPS = 10
# By how many standard errors of the mean gain other settings must be better than the default.
_ERRORS = 2.0


class FusionSettings(NamedTuple):
    """Arguments of ``fuse``, and of the hybrid retrievers: ``**settings.to_dict()``."""

    method: FusionMethod
    weights: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.method}, weights {', '.join(f'{weight:g}' for weight in self.weights)}"

    def to_dict(self) -> dict[str, Any]:
        """Return them as JSON values."""
        return {"method": self.method, "weights": list(self.weights)}


@dataclass(frozen=True)
class FusionTuning(Tuned):
    """The result of tuning a fusion.

    Parameters
    ----------
    default
        The first method with equal weights: where only some methods are tried, not what ``fuse``
        does by default.
    best
        The settings with the highest mean over all queries, among those that are better than the
        default by two standard errors; the default where there are none.
    points
        All settings tried, the default first, with their means over all queries.
    held_out
        Each fold's queries with the settings that the other folds choose as ``best``, compared
        with the first run alone. Its ``mean`` is what to expect of new queries.
    held_out_default
        The same, compared with the default settings: what tuning is worth.
    chosen, notes
        The settings chosen for each fold, and which queries were left out.
    """

    measure: str
    default: FusionSettings
    best: FusionSettings
    points: tuple[tuple[FusionSettings, float], ...]
    held_out: Comparison
    held_out_default: Comparison
    chosen: tuple[FusionSettings, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        against = f", against the default ({self.default})"
        alone = describe_held_out(self.held_out)
        return f"best: {self.best}\n{alone}\n{describe_held_out(self.held_out_default, against)}"


def fuse_runs(
    runs: Iterable[Run],
    method: FusionMethod = "minmax",
    weights: Sequence[float] | None = None,
    rank_constant: int = 60,
) -> dict[str, dict[str, float]]:
    """Fuse runs query by query, for ``evaluate`` and ``write_run``, with the arguments of ``fuse``.

    The result has the queries of any run, best documents first; scores fall by rank, so that every
    evaluator keeps the order.
    """
    given = list(check_sequence("runs", runs, "runs"))
    fused: dict[str, dict[str, float]] = {}
    for query in dict.fromkeys(id for run in given for id in run):
        rankings = [sorted(run.get(query, {}).items(), key=lambda pair: -pair[1]) for run in given]
        ranking = fuse(rankings, method, weights, rank_constant=rank_constant)
        fused[query] = {id: float(-rank) for rank, (id, _) in enumerate(ranking)}
    return fused


def tune_fusion(
    runs: Sequence[Run],
    qrels: Qrels,
    measure: str = "nDCG@10",
    *,
    methods: Sequence[FusionMethod] = METHODS,
    weights: Sequence[Sequence[float]] | None = None,
    folds: int = 5,
    seed: int = 0,
) -> FusionTuning:
    """Try all methods with all weights, and measure by cross-validation what the best gains.

    Equal weights of the first method are the default, which stays unless other settings are
    better by two standard errors of the mean gain, paired over queries.

    Parameters
    ----------
    runs
        A run of each retriever, BM25's first: scores by query id and document id, higher is
        better. Cut them at as many results as the hybrid retriever fuses.
    qrels, measure, folds, seed
        As in ``tune``.
    methods
        Those of ``fuse``.
    weights
        Weights to try beside equal ones, a number for each run; ``None`` for all tenths that add
        up to 1.

    Examples
    --------
    >>> words = {"q1": {"a": 9.0, "b": 7.0, "c": 0.5}, "q2": {"b": 3.0}}
    >>> vectors = {"q1": {"b": 0.9, "a": 0.2, "c": 0.1}, "q2": {"c": 0.7, "b": 0.6}}
    >>> tune_fusion([words, vectors], {"q1": {"b": 1}, "q2": {"b": 1}}, "RR@10").best
    FusionSettings(method='minmax', weights=(0.5, 0.5))
    """
    parse_measure(measure)
    given = list(check_sequence("runs", runs, "runs"))
    judged = {id: grades for id, grades in qrels.items() if any(id in run for run in given)}
    check_count("folds", folds, least=2)
    if len(judged) < 2:
        message = "tuning needs at least two judged queries, one to choose by, one to test"
        raise ValueError(f"{message}; the runs have {len(judged)}")
    grid = list(_grid(len(given), methods, weights))
    evaluator = Evaluator(judged, measure)
    given = [{id: run.get(id, {}) for id in judged} for run in given]
    first = evaluator.evaluate(given[0])
    evaluations = [evaluator.evaluate(fuse_runs(given, *settings)) for settings in grid]
    values = np.array([one.values(measure) for one in evaluations])
    chosen, held_out = cross_validate(values, folds, seed, _surely_better)
    missing = len(qrels) - len(judged)
    return FusionTuning(
        measure,
        grid[0],
        grid[_surely_better(values)],
        tuple(zip(grid, values.mean(axis=1).tolist(), strict=True)),
        compare_held_out(first, held_out, measure, seed),
        compare_held_out(evaluations[0], held_out, measure, seed),
        tuple(grid[point] for point in chosen),
        (f"{missing:,} judged queries are in no run and are left out",) if missing else (),
    )


def _surely_better(values: Float64) -> int:
    """Return the best setting of those surely better than the first; else the first."""
    gains = values - values[0]
    queries = gains.shape[1]
    if queries < 2:
        return 0
    means, errors = gains.mean(axis=1), gains.std(axis=1, ddof=1) / np.sqrt(queries)
    return int(np.where(means > _ERRORS * errors, means, 0.0).argmax())


def _grid(
    runs: int, methods: Sequence[FusionMethod], weights: Sequence[Sequence[float]] | None
) -> Iterator[FusionSettings]:
    """Yield the default, then all others; raise if there are none."""
    if weights is None:
        tenths = product(range(_STEPS + 1), repeat=runs)
        weights = [[w / _STEPS for w in each] for each in tenths if sum(each) == _STEPS]
        weights.sort(key=lambda each: max(each))  # of equally good ones, the most even
    if not (methods and len(weights)):
        raise ValueError("methods and weights must not be empty")
    default = FusionSettings(methods[0], (1 / runs,) * runs)
    yield default
    for method, each in product(methods, map(tuple, weights)):
        is_even = len(each) == runs and each[0] > 0 and len(set(each)) == 1
        if method != default.method or not is_even:
            yield FusionSettings(method, each)

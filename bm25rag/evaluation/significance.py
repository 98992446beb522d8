"""Statistical significance: bootstrap intervals and a paired test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from bm25rag.common.arrays import Float64
from bm25rag.common.optional import load
from bm25rag.evaluation.measures import Evaluation

_RESAMPLES = 9999
# Maximum numbers drawn at a time: 80 MB.
_DRAWN = 10_000_000


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class Change(NamedTuple):
    """How much a query gained, or lost if ``difference`` is negative."""

    query: str
    before: float
    after: float
    difference: float


@dataclass(frozen=True)
class Comparison:
    """A run compared with a baseline, by one measure: the means of both, and their ``difference``.

    Parameters
    ----------
    interval
        Bootstrap confidence interval of the difference, 95 %; ``None`` for one query.
    p_value
        Of the two-sided paired randomization test: how often chance gives a difference at least
        as large. ``None`` for one query.
    changes
        The queries whose values differ, largest gain first.
    queries
        How many queries were compared.
    """

    measure: str
    baseline: float
    mean: float
    difference: float
    interval: Interval | None
    p_value: float | None
    changes: tuple[Change, ...]
    queries: int

    @property
    def significant(self) -> bool:
        """Whether the p value is below 0.05."""
        return self.p_value is not None and self.p_value < 0.05

    def gained(self, count: int = 10) -> list[Change]:
        """Return up to ``count`` queries that gained most."""
        return [change for change in self.changes if change.difference > 0][:count]

    def lost(self, count: int = 10) -> list[Change]:
        """Return up to ``count`` queries that lost most, worst first."""
        return [change for change in self.changes[::-1] if change.difference < 0][:count]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the changes as JSON values, and how many gained and lost."""
        return {
            "measure": self.measure,
            "queries": self.queries,
            "baseline": self.baseline,
            "mean": self.mean,
            "difference": self.difference,
            "interval": None if self.interval is None else list(self.interval),
            "p_value": self.p_value,
            "significant": self.significant,
            "gained": len(self.gained(self.queries)),
            "lost": len(self.lost(self.queries)),
        }


def bootstrap_interval(
    values: Sequence[float], confidence: float = 0.95, seed: int = 0
) -> Interval | None:
    """Return the percentile bootstrap interval of a mean over queries, whose values these are.

    The same seed gives the same interval. ``None`` for fewer than two values, which do not show
    their spread. It needs SciPy.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    if len(values) < 2:
        return None
    bootstrap = load("scipy.stats", "evaluation needs scipy", "eval").bootstrap
    result = bootstrap(
        (np.asarray(values, np.float64),),
        np.mean,
        n_resamples=_RESAMPLES,
        batch=max(1, _DRAWN // len(values)),
        confidence_level=confidence,
        method="percentile",
        **_seed(bootstrap, seed),
    )
    return Interval(*map(float, result.confidence_interval))


def compare(after: Evaluation, before: Evaluation, measure: str, seed: int = 0) -> Comparison:
    """Compare a run with a baseline on the same queries, by a measure of both evaluations.

    The test is Fisher's randomization test on the paired differences (Smucker, Allan,
    Carterette, CIKM 2007): exact for few queries, else from 9,999 random changes of sign. It needs
    SciPy. A ``ValueError`` says that the measure was not evaluated, or that the queries differ.
    """
    after.values(measure)
    before.values(measure)
    if set(after.per_query) != set(before.per_query):
        alone = sorted(set(after.per_query) ^ set(before.per_query))
        raise ValueError(
            f"the evaluations have different queries ({alone[0]!r} is in only one): "
            "evaluate both against the same qrels"
        )
    pairs = {
        id: (before.per_query[id][measure], new[measure]) for id, new in after.per_query.items()
    }
    changes = [Change(id, old, new, new - old) for id, (old, new) in pairs.items()]
    differences = np.array([change.difference for change in changes])
    return Comparison(
        measure,
        before.mean[measure],
        after.mean[measure],
        after.mean[measure] - before.mean[measure],
        bootstrap_interval(differences.tolist(), seed=seed),
        _p_value(differences, seed),
        tuple(sorted((c for c in changes if c.difference), key=lambda c: -c.difference)),
        len(changes),
    )


def _p_value(differences: Float64, seed: int) -> float | None:
    if len(differences) < 2:
        return None
    if not differences.any():
        return 1.0
    test = load("scipy.stats", "evaluation needs scipy", "eval").permutation_test
    result = test(
        (differences,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=_RESAMPLES,
        batch=max(1, _DRAWN // len(differences)),
        **_seed(test, seed),
    )
    return float(result.pvalue)


def _seed(function: Any, seed: int) -> dict[str, int]:
    """Name the argument for the seed as the installed SciPy does (``rng`` from 1.15 on)."""
    return {"rng" if "rng" in signature(function).parameters else "random_state": seed}

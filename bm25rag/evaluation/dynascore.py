"""Dynascore: one number from accuracy, latency and cost, by the user's own weights.

Ma et al. (Dynaboard, NeurIPS 2021) define it, and Santhanam et al. (Findings of ACL 2023) rank
retrievers by it. Systems are ordered by accuracy. The average marginal rate of substitution
(AMRS) of another quantity is how much of it a point of accuracy costs, averaged over neighbours::

    AMRS(m) = mean over neighbours i, i + 1 of |m[i + 1] - m[i]| / (accuracy[i + 1] - accuracy[i])

so that ``m / AMRS(m)`` is in points of accuracy, and a score is the weighted sum of these. Costs
(latency, dollars) are negated. As in Dynaboard's implementation, neighbours whose accuracies
differ by at most a ten-thousandth of the best do not count: they would make the rate depend on
noise. Systems of equal accuracy stand in the order of the rows: the first and the last of them are
neighbours of others, so that the rates depend on that order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from bm25rag.common.checks import check_real

# The share of the best accuracy by which neighbours must differ.
_LEAST_STEP = 1e-4


class Dynascores(NamedTuple):
    """The scores of systems, best first, and the rates behind them.

    ``rates`` are the AMRS of each quantity: how much of it a point of accuracy costs; 1 for
    accuracy. A quantity that is the same for all systems has a rate of 0 and adds nothing to any
    score.
    """

    scores: dict[str, float]
    rates: dict[str, float]


def dynascore(
    rows: Mapping[str, Mapping[str, float | None]],
    weights: Mapping[str, float],
    accuracy: str = "accuracy",
    higher_is_better: Collection[str] = (),
    rates: Mapping[str, float] | None = None,
) -> Dynascores:
    """Score systems by accuracy and costs.

    Parameters
    ----------
    rows
        The quantities of each system by name, such as ``accuracy``, ``latency`` and ``cost``.
    weights
        Weights by quantity, which sum to one. Quantities without a weight do not count.
    accuracy
        The name of the quantity that the others are substituted for.
    higher_is_better
        Quantities that are not negated, besides accuracy.
    rates
        The AMRS of each quantity, from another table, so that scores can be compared with those
        in it; ``None`` to compute them from these rows.

    Raises
    ------
    ValueError
        If weights are negative or do not sum to one, if a quantity is missing, infinite or NaN,
        if a rate is missing or not above 0, or if there are none and no two systems differ in
        accuracy.

    Examples
    --------
    >>> rows = {"a": {"accuracy": 30, "latency": 10}, "b": {"accuracy": 40, "latency": 110}}
    >>> dynascore(rows, {"accuracy": 0.5, "latency": 0.5})
    Dynascores(scores={'a': 14.5, 'b': 14.5}, rates={'accuracy': 1.0, 'latency': 10.0})
    """
    _check_weights(weights)
    names = list(dict.fromkeys([accuracy, *weights]))
    table = {
        system: {name: _quantity(system, row, name) for name in names}
        for system, row in rows.items()
    }
    if rates is None:
        rates = _rates(list(table.values()), accuracy)
    else:
        rates = {name: _rate(rates, name) for name in names if name != accuracy} | {accuracy: 1.0}
    signs = {name: 1 if name in {accuracy, *higher_is_better} else -1 for name in names}
    scores = {
        system: math.fsum(
            weights.get(name, 0.0) * signs[name] * row[name] / rates[name]
            for name in names
            if rates[name]
        )
        for system, row in table.items()
    }
    return Dynascores(dict(sorted(scores.items(), key=lambda item: -item[1])), dict(rates))


def _rate(rates: Mapping[str, float], name: str) -> float:
    if name not in rates:
        raise ValueError(f"rates have no {name!r}; they have {list(rates)}")
    if not 0 < rates[name] < math.inf:
        raise ValueError(f"rates[{name!r}] must be a number above 0, got {rates[name]!r}")
    return rates[name]


def _check_weights(weights: Mapping[str, float]) -> None:
    for name, weight in weights.items():
        check_real(f"weights[{name!r}]", weight, 0.0, 1.0)
    total = math.fsum(weights.values())
    if not math.isclose(total, 1.0, abs_tol=1e-6):
        raise ValueError(f"weights must sum to one, got {dict(weights)}, which sum to {total:g}")


def _quantity(system: str, row: Mapping[str, float | None], name: str) -> float:
    if name not in row:
        raise ValueError(f"the row of {system!r} has no {name!r}; it has {list(row)}")
    value = row[name]
    if value is None or not math.isfinite(value):
        hint = "leave out systems that were not measured"
        raise ValueError(f"{name!r} of {system!r} must be a finite number, got {value!r}; {hint}")
    return float(value)


def _rates(table: list[dict[str, float]], accuracy: str) -> dict[str, float]:
    ordered = sorted(table, key=lambda row: row[accuracy])
    best = max((abs(row[accuracy]) for row in ordered), default=0.0)
    steps = [
        (low, high)
        for low, high in pairwise(ordered)
        if high[accuracy] - low[accuracy] > best * _LEAST_STEP
    ]
    if not steps:
        raise ValueError(
            f"a Dynascore needs at least two systems that differ in {accuracy!r}: "
            "its rates are the costs of a point of it"
        )
    return {
        name: fmean(
            abs(high[name] - low[name]) / (high[accuracy] - low[accuracy]) for low, high in steps
        )
        for name in ordered[0]
    }

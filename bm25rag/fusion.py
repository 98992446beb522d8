"""Several rankings of the same documents fused into one, such as BM25's and that of embeddings.

A ranking is pairs of id and score, best first. Every method gives each document of a ranking a
value; the fused score is the sum of the values, each times the weight of its ranking.

``rrf``
    Reciprocal rank fusion [1]_: ``1 / (rank_constant + rank)``, with ranks from 1. Scores are
    not used. A document that a ranking lacks gets 0.
``minmax``
    ``(s - last) / (best - last)``, where ``best`` and ``last`` are the first and the last score
    of the ranking: the convex combination of [2]_. A document that a ranking lacks gets 0, as its
    last one does.
``zscore``
    ``(s - mean) / deviation``, the standard score [2]_ [3]_, with the deviation of the whole
    ranking (divided by n). A document that a ranking lacks gets the value of its last one.

Where all scores of a ranking are equal, or it is a single document, there is nothing to scale by:
each gets 1, and a document that the ranking lacks 0. So being found never counts for less than
being missed.

References
----------
.. [1] G. V. Cormack, C. L. A. Clarke, S. Büttcher. Reciprocal rank fusion outperforms Condorcet
   and individual rank learning methods. SIGIR 2009.
.. [2] S. Bruch, S. Gai, A. Ingber. An analysis of fusion functions for hybrid retrieval.
   ACM TOIS 42(1), 2023.
.. [3] M. Montague, J. A. Aslam. Relevance score normalization for metasearch. CIKM 2001.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

from bm25rag.common.checks import (
    LARGEST_WEIGHT,
    check_choice,
    check_count,
    check_id,
    check_real,
    check_sequence,
)

__all__ = ["FusionMethod", "Ranking", "check_fusion", "fuse"]

Ranking: TypeAlias = Sequence[tuple[str, float]]
"""Ids and scores, best first."""
FusionMethod: TypeAlias = Literal["minmax", "zscore", "rrf"]
"""How the values of several rankings become comparable."""


def fuse(
    rankings: Sequence[Ranking],
    method: FusionMethod = "minmax",
    weights: Sequence[float] | None = None,
    k: int | None = None,
    rank_constant: int = 60,
) -> list[tuple[str, float]]:
    """Fuse rankings into one; a document of several is one result.

    Parameters
    ----------
    rankings
        Ids and finite scores, best first: falling, as similarities do, or rising, as distances
        do. Of equal ids in one ranking the first counts.
    method
        As at the top of this module.
    weights
        A weight from 0 to 1e30 for each ranking, not all 0; ``None`` for 1 each.
    k
        How many at most, >= 0; ``None`` for all.
    rank_constant
        For ``rrf``, >= 0: the larger, the less the first ranks count more than the others.

    Returns
    -------
    fused
        Ids and scores, best first. Of equal scores, the id with the better best rank comes first,
        then that of the earlier ranking. The values of a document are added in the order of the
        rankings, in float64, so the bits of a score depend on nothing else.

    Raises
    ------
    TypeError
        If an argument or an element has the wrong type.
    ValueError
        If a method, a weight, ``k`` or ``rank_constant`` is out of range, a score is NaN or
        infinite, or the scores of a ranking neither fall nor rise (``rrf`` takes those too).

    Examples
    --------
    >>> words = [("a", 9.0), ("b", 7.0), ("c", 5.0)]
    >>> vectors = [("d", 0.9), ("b", 0.8), ("a", 0.5)]
    >>> fuse([words, vectors])
    [('b', 1.25), ('a', 1.0), ('d', 1.0), ('c', 0.0)]
    """
    several = list(check_sequence("rankings", rankings, "rankings"))
    factors = check_fusion(method, weights, rank_constant, len(several))
    ranked = [_read(number, ranking) for number, ranking in enumerate(several)]
    weighted = list(zip(ranked, factors, strict=True))
    # Each id once: all first ranks in the order of the rankings, all second ranks, ...
    placed = [(rank, n, id) for n, scores in enumerate(ranked) for rank, id in enumerate(scores)]
    order = list(dict.fromkeys(id for _, _, id in sorted(placed)))
    fused = dict.fromkeys(order, 0.0)
    for number, (scores, weight) in enumerate(weighted):
        values, lacking = _values(scores, method, number, rank_constant)
        for id in order if lacking else values:
            fused[id] += weight * values.get(id, lacking)
    # Sorting is stable: equal scores stay in the order of their ranks.
    best = sorted(fused.items(), key=lambda pair: -pair[1])
    return best if k is None else best[: check_count("k", k)]


def check_fusion(
    method: FusionMethod,
    weights: Sequence[float] | None = None,
    rank_constant: int = 60,
    count: int = 2,
) -> list[float]:
    """Check the arguments of ``fuse`` before there are rankings, as a constructor does.

    ``count`` is how many rankings there will be; each has one of the weights that are returned.
    """
    check_choice("method", method, get_args(FusionMethod))
    check_count("rank_constant", rank_constant)
    if weights is None:
        return [1.0] * count
    given = list(check_sequence("weights", weights, "float"))
    if len(given) != count:
        raise ValueError(f"weights must have one for each of {count} rankings, got {given!r:.100}")
    checked = [check_real(f"weights[{n}]", w, 0, LARGEST_WEIGHT) for n, w in enumerate(given)]
    if count and not any(checked):
        raise ValueError(f"weights must not all be 0, got {given!r:.100}")
    return checked


def _read(number: int, ranking: object) -> dict[str, float]:
    """Return the scores of a ranking by id, in its order."""
    scores: dict[str, float] = {}
    for place, pair in enumerate(check_sequence(f"rankings[{number}]", ranking, "(id, score)")):
        id, score = check_pair(f"rankings[{number}][{place}]", pair)
        if type(id) is not str or type(score) is not float or not math.isfinite(score):
            id = check_id(f"the id of rankings[{number}][{place}]", id)
            name, given = f"the score of {id!r} in rankings[{number}]", score
            score = check_real(name, given, -math.inf, math.inf)
            if math.isinf(score):
                raise ValueError(f"{name} must be finite, got {given!r}")
        scores.setdefault(id, score)
    return scores


def check_pair(name: str, pair: Any) -> tuple[Any, Any]:
    """Return an id and a score, which are not checked; what is no pair of them is named."""
    try:
        if isinstance(pair, str):  # an id, which may have two characters
            raise TypeError
        id, score = pair
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair (id, score), got {pair!r:.100}") from None
    return id, score


def _values(
    scores: dict[str, float], method: FusionMethod, number: int, rank_constant: int
) -> tuple[dict[str, float], float]:
    """Return the value of each document of a ranking, and that of those it lacks."""
    if method == "rrf":
        return {id: 1 / (rank_constant + rank) for rank, id in enumerate(scores, start=1)}, 0.0
    values, lacking = _SCALES[method](_check_order(list(scores.values()), list(scores), number))
    return dict(zip(scores, values, strict=True)), lacking


def _check_order(scores: list[float], ids: list[str], number: int) -> list[float]:
    rising = bool(scores) and scores[-1] > scores[0]
    for place in range(1, len(scores)):
        before, here = scores[place - 1], scores[place]
        if before > here if rising else before < here:
            raise ValueError(
                f"the scores of rankings[{number}] must fall or rise from the best to the last, "
                f"got {before!r} ({ids[place - 1]!r}) before {here!r} ({ids[place]!r}), from "
                f"{scores[0]!r} to {scores[-1]!r}: sort it, or use method='rrf'"
            )
    return scores


def _minmax(scores: list[float]) -> tuple[list[float], float]:
    if not scores or scores[0] == scores[-1]:
        return [1.0] * len(scores), 0.0
    best, last = scores[0], scores[-1]
    if math.isinf(best - last):  # halves of such large numbers are exact
        return _minmax([score / 2 for score in scores])
    return [(score - last) / (best - last) for score in scores], 0.0


def _zscore(scores: list[float]) -> tuple[list[float], float]:
    values, lacking = _minmax(scores)
    if not values or values[-1] == values[0]:
        return values, lacking
    # The scale and direction of the scores do not change their z-scores. Those from 1 to 0 cannot
    # overflow, and their deviation is not 0.
    mean = _sum(values) / len(values)
    deviation = math.sqrt(_sum([(value - mean) ** 2 for value in values]) / len(values))
    standard = [(value - mean) / deviation for value in values]
    return standard, standard[-1]


def _sum(values: Sequence[float]) -> float:
    """Add in order; since Python 3.12, ``sum`` of floats compensates for rounding."""
    total = 0.0
    for value in values:
        total += value
    return total


_SCALES: dict[str, Callable[[list[float]], tuple[list[float], float]]] = {
    "minmax": _minmax,
    "zscore": _zscore,
}

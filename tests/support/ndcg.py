"""Normalised discounted cumulative gain, as trec_eval counts it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def ndcg(ranking: Sequence[str], grades: Mapping[str, int], depth: int = 10) -> float:
    """Gain is the grade, the discount log2(rank + 1), the ideal the best order of all grades."""
    gained = [grades.get(name, 0) for name in ranking[:depth]]
    ideal = sorted(grades.values(), reverse=True)[:depth]
    best = discounted(ideal)
    return discounted(gained) / best if best else 0.0


def discounted(gains: Sequence[int]) -> float:
    """Sum gains over log2(rank + 1), ranks counted from 1."""
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))

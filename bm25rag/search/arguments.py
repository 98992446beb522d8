"""Arguments that all searches share, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bm25rag.common.checks import check_count, check_real

if TYPE_CHECKING:
    from bm25rag.filters import Filter, FilterSpec


def parse_filter(filter: FilterSpec | None) -> Filter | None:
    """Parse a filter; for most searches there is none, and nothing to import."""
    if filter is None:
        return None
    from bm25rag.filters import parse_filter

    return parse_filter(filter)


def check_search(
    k: int, filter: FilterSpec | None, min_score: float | None, offset: int
) -> tuple[int, Filter | None, float | None, int]:
    """Return ``k``, the filter, ``min_score`` and ``offset``, checked."""
    floor = None if min_score is None else check_real("min_score", min_score, -np.inf, np.inf)
    return check_count("k", k), parse_filter(filter), floor, check_count("offset", offset)

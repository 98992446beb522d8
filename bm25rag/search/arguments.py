"""Arguments that all searches share, checked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bm25rag.common.checks import check_count, check_real

if TYPE_CHECKING:
    from bm25rag.filters import Filter, FilterSpec
    from bm25rag.search.snapshot import Snapshot


def parse_filter(filter: FilterSpec | None, snapshot: Snapshot) -> Filter | None:
    """Parse a filter, and check that documents have the fields that it relies on."""
    if filter is None:  # for most searches, and nothing to import
        return None
    from bm25rag.filters import parse_filter

    parsed = parse_filter(filter)
    # Other parts of a collection may have a field, and nothing has one if it is empty.
    if parsed is not None and parsed.demands and snapshot.count and not snapshot.is_part:
        from bm25rag.search.known_fields import check_demands, fields_of, has_field

        check_demands(parsed.demands, partial(has_field, snapshot), partial(fields_of, snapshot))
    return parsed


def check_search(
    snapshot: Snapshot, k: int, filter: FilterSpec | None, min_score: float | None, offset: int
) -> tuple[int, Filter | None, float | None, int]:
    """Return ``k``, the filter, ``min_score`` and ``offset``, checked."""
    floor = None if min_score is None else check_real("min_score", min_score, -np.inf, np.inf)
    most, first = check_count("k", k), check_count("offset", offset)
    return most, parse_filter(filter, snapshot), floor, first

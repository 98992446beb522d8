"""Filters and metadata for the property tests."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from bm25rag.filters import parse_filter

HUGE = 2**53 + 1
PLUS_TWO = timezone(timedelta(hours=2))
NAMES = st.sampled_from(["a", "b", "a.b", "b.a"])
MOMENTS = st.sampled_from(
    [datetime(2024, 1, 1), datetime(2024, 1, 1, 2, tzinfo=PLUS_TWO), datetime(2020, 1, 1)]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    st.sampled_from([0.0, 1.0, 1.5, 2.0**53, 2**53, HUGE]),
    st.sampled_from(["", "a", "A", "ab", "1", "2024-01-01"]),
    st.sampled_from([date(2024, 1, 1), date(2020, 1, 1)]),
    MOMENTS,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)
METADATA = st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2)
ORDERED = SCALARS.filter(lambda value: value is not None and not isinstance(value, bool))
DATES = st.sampled_from(["2024-01-01", "2020-01-01T00:00:00Z", date(2024, 1, 1)]) | MOMENTS
COMPARED = st.sampled_from(["$lt", "$lte", "$gt", "$gte"])
OPERATORS = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$ne", "$contains"]), VALUES),
    st.tuples(COMPARED, ORDERED),
    st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(VALUES, max_size=3)),
    st.tuples(st.sampled_from(["$containsAny", "$containsAll"]), st.lists(VALUES, max_size=3)),
    st.tuples(st.sampled_from(["$icontains", "$startswith"]), st.sampled_from(["", "a", "A"])),
    st.tuples(st.just("$exists"), st.booleans()),
    st.tuples(st.just("$date"), DATES | st.dictionaries(COMPARED, DATES, min_size=1)),
).map(lambda pair: dict([pair]))
FIELDS = st.dictionaries(NAMES, OPERATORS | VALUES, min_size=1, max_size=2)
IDS = st.builds(lambda ids: {"$id": {"$in": ids}}, st.lists(st.sampled_from(["id", "x"])))
FILTERS = st.recursive(
    FIELDS | IDS,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"$and": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"$or": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"$not": part}, inner),
    ),
    max_leaves=5,
)


def passes(filter: Any, metadata: dict[str, Any] | None = None, id: str = "id") -> bool:
    """Say whether a document passes a filter."""
    tree = parse_filter(filter)
    result = True if tree is None else tree.matches(id, metadata or {})
    assert result is True or result is False
    return result

"""Laws that hold for every filter and every metadata, and anything at all as a filter."""

from __future__ import annotations

import string
from collections.abc import Hashable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bm25rag.errors import FilterError
from bm25rag.filters import Filter, parse_filter
from support.filter_strategies import FILTERS, METADATA, NAMES, OPERATORS, ORDERED, VALUES, passes


@given(NAMES, VALUES, METADATA)
def test_ne_is_the_complement_of_eq(name: str, value: Any, metadata: dict[str, Any]) -> None:
    assert passes({name: {"$ne": value}}, metadata) is not passes({name: {"$eq": value}}, metadata)


@given(NAMES, st.lists(VALUES, max_size=3), METADATA)
def test_in_is_any_eq_and_nin_its_complement(
    name: str, values: list[Any], metadata: dict[str, Any]
) -> None:
    expected = any(passes({name: {"$eq": value}}, metadata) for value in values)
    assert passes({name: {"$in": values}}, metadata) is expected
    assert passes({name: {"$nin": values}}, metadata) is not expected


@given(NAMES, ORDERED, METADATA)
def test_lte_is_lt_or_eq(name: str, operand: Any, metadata: dict[str, Any]) -> None:
    for strict in ("$lt", "$gt"):
        either = {"$or": [{name: {strict: operand}}, {name: {"$eq": operand}}]}
        assert passes({name: {f"{strict}e": operand}}, metadata) is passes(either, metadata)


@given(FILTERS, METADATA)
def test_not_is_the_complement(filter: dict[str, Any], metadata: dict[str, Any]) -> None:
    assert passes({"$not": filter}, metadata) is not passes(filter, metadata)


@given(NAMES, OPERATORS, METADATA)
def test_not_below_a_field_is_the_complement(
    name: str, operators: dict[str, Any], metadata: dict[str, Any]
) -> None:
    assert passes({name: {"$not": operators}}, metadata) is not passes({name: operators}, metadata)


@given(st.lists(FILTERS, min_size=1, max_size=3), METADATA)
def test_de_morgan(parts: list[dict[str, Any]], metadata: dict[str, Any]) -> None:
    negated = [{"$not": part} for part in parts]
    results = [passes(part, metadata) for part in parts]
    assert passes({"$and": parts}, metadata) is all(results)
    assert passes({"$or": parts}, metadata) is any(results)
    assert passes({"$not": {"$and": parts}}, metadata) is passes({"$or": negated}, metadata)
    assert passes({"$not": {"$or": parts}}, metadata) is passes({"$and": negated}, metadata)


def reordered(filter: Any) -> Any:
    if isinstance(filter, dict):
        return {
            name: reordered(item[::-1] if name in ("$in", "$nin", "$and", "$or") else item)
            for name, item in reversed(filter.items())
        }
    return [reordered(item) for item in filter] if isinstance(filter, list) else filter


@given(FILTERS, METADATA)
def test_order_without_meaning_changes_neither_key_nor_result(
    filter: dict[str, Any], metadata: dict[str, Any]
) -> None:
    other = reordered(filter)
    assert parse_filter(filter).key == parse_filter(other).key
    assert passes(filter, metadata) is passes(other, metadata)


@given(st.lists(OPERATORS, min_size=2, max_size=12), st.lists(VALUES, max_size=12))
def test_filters_with_equal_keys_give_equal_results(
    operators: list[dict[str, Any]], values: list[Any]
) -> None:
    results: dict[Hashable, list[bool]] = {}
    for operator in operators:
        tree = parse_filter({"a": operator})
        found = [tree.matches("id", {"a": value}) for value in values]
        assert results.setdefault(tree.key, found) == found


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(
            st.sampled_from(
                ["$and", "$or", "$not", "$id", "$eq", "$ne", "$in", "$gt", "$date", "$exists", "$x"]
            )
            | st.text(string.printable, max_size=3)
            | st.integers(),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(ANYTHING | st.dictionaries(st.text(max_size=3), ANYTHING), METADATA)
def test_anything_at_all_is_a_filter_or_one_clear_error(
    filter: Any, metadata: dict[str, Any]
) -> None:
    error: Exception | None = None
    tree = None
    try:
        tree = parse_filter(filter)
    except (FilterError, TypeError) as refusal:
        error = refusal
    if error is not None:
        assert str(error).startswith("filter")
        assert isinstance(error, TypeError) is not isinstance(filter, dict)
    elif tree is not None:
        assert isinstance(tree, Filter)
        assert isinstance(tree.matches("id", metadata), bool)
        assert tree.key is not None
        hash(tree.key)

"""What is not a filter, or is malformed, gets an error that names the place, and never crashes."""

from __future__ import annotations

import sys
from collections import OrderedDict
from datetime import date
from typing import Any

import numpy as np
import pytest

from bm25rag.errors import FilterError
from bm25rag.filters import And, Condition, Not, Or, parse_filter
from support.filter_strategies import passes


@pytest.mark.parametrize("filter", [[], [{"a": 1}], "a", b"a", 1, 0, 1.5, True, ("a",), date.min])
def test_what_is_no_filter_is_a_type_error_that_names_the_argument(filter: Any) -> None:
    came = type(filter).__name__
    with pytest.raises(TypeError, match=f"^filter: expected a dict, a set of ids.*got {came}$"):
        parse_filter(filter)


@pytest.mark.parametrize(
    ("filter", "advice"),
    [
        (["a"], r"of a list of ids, give set\(ids\)"),
        (np.array([True]), r"of a mask, give set\(itertools\.compress\(index\.ids\(\), mask\)\)"),
        (np.float32([0, 1]), r"of a mask, give set\("),
    ],
)
def test_a_list_of_ids_and_a_mask_are_told_what_to_give(filter: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        parse_filter(filter)


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ({1: 2}, "filter: expected names as str, got int"),
        ({"$foo": 1}, r"filter at \$foo: unknown name; known here: \$and, \$or, \$not, \$id"),
        ({"$gte": 1}, r"filter at \$gte: unknown name"),
        ({"$": 1}, r"filter at \$: unknown name"),
        ({"$id.a": 1}, r"filter at \$id\.a: unknown name"),
        ({"$and": []}, r"filter at \$and: expected a non-empty list of filters, got an empty one"),
        ({"$or": []}, r"filter at \$or: expected a non-empty list"),
        ({"$and": {"a": 1}}, r"filter at \$and: .*got dict"),
        ({"$or": None}, r"filter at \$or: .*got NoneType"),
        ({"$or": np.array([1, 2])}, r"got numpy\.ndarray \(use its \.tolist\(\)\)"),
        ({"$and": [{"a": 1}, 2]}, r"filter at \$and\[1\]: expected a dict, .*got int"),
        ({"$and": [None]}, r"filter at \$and\[0\]: .*got NoneType"),
        ({"$not": [{"a": 1}]}, r"filter at \$not: .*got list"),
        ({"$not": None}, r"filter at \$not: .*got NoneType"),
        (
            {"$and": [{"a": 1}, {"year": {"$gte": [1]}}]},
            r"^filter at \$and\[1\]\.year\.\$gte: "
            r"expected a number, string, date or datetime, got list$",
        ),
        ({"a": {"$foo": 1}}, r"filter at a\.\$foo: unknown operator; known here: \$eq, .*\$not"),
        ({"a": {"$and": [{"$eq": 1}]}}, r"filter at a\.\$and: unknown operator"),
        ({"a": {"$eq": 1, "b": 2}}, r"filter at a\.b: a field's name among operators"),
        ({"a": {"b": 2, "$eq": 1}}, r"filter at a\.b: a field's name among operators"),
        ({"a": {"$eq": 1, 2: 3}}, "filter at a: expected names as str, got int"),
        ({"a": {"b": {"$gt": 1}}}, r"filter at a\.b\.\$gt: expected no operator inside a value"),
        ({"a": [{"$gt": 1}]}, r"filter at a\[0\]\.\$gt: expected no operator inside a value"),
        ({"a": {"$not": {}}}, r"filter at a\.\$not: expected a dict of operators, got an empty"),
        ({"a": {"$not": 1}}, r"filter at a\.\$not: expected a dict of operators, got int"),
        ({"a": {"$not": {"b": 1}}}, r"filter at a\.\$not\.b: a field's name among operators"),
        ({"a": {"$date": {}}}, r"filter at a\.\$date: expected a dict of operators, got an empty"),
        ({"a": {"$date": {"$not": {}}}}, r"filter at a\.\$date\.\$not: unknown operator"),
        ({"a": {"$date": {"$exists": True}}}, r"known here: \$eq, \$lt, .*\$in, \$ne, \$nin$"),
        ({"a": {"$date": "soon"}}, r"expected an ISO 8601 string, .* got 'soon'"),
        ({"a": {"$in": "abc"}}, r"filter at a\.\$in: expected a list, tuple or set, got str"),
        ({"a": {"$nin": {"b": 1}}}, r"filter at a\.\$nin: expected a list.*got dict"),
        ({"a": {"$in": range(3)}}, r"got range"),
        ({"a": {"$in": [1, b"x"]}}, r"filter at a\.\$in\[1\]: expected a JSON value, .*got bytes"),
        ({"a": {"$icontains": 1}}, r"filter at a\.\$icontains: expected a string, got int"),
        ({"a": {"$startswith": None}}, r"filter at a\.\$startswith: expected a string"),
        ({"a": {"$exists": 1}}, r"filter at a\.\$exists: expected true or false, got int"),
        ({"a": float("nan")}, r"filter at a: expected a number, got NaN"),
        ({"a": [1, float("nan")]}, r"filter at a\[1\]: expected a number, got NaN"),
        ({"a": b"x"}, "filter at a: .*got bytes"),
        ({"a": {1}}, "filter at a: .*got set"),
        ({"a": np.float64("nan")}, "filter at a: expected a number, got NaN"),
        ({"a": (b"x",)}, r"filter at a\[0\]: expected a JSON value, .*got bytes"),
        ({"a": np.timedelta64(1, "s")}, r"filter at a: .*got numpy\.timedelta64"),
        ({"a": {"$containsAny": "abc"}}, r"filter at a\.\$containsAny: expected a list.*got str"),
        ({"a": {"$containsAll": {"b": 1}}}, r"\$containsAll: expected a list.*got dict"),
        ({"$id": {"$containsAny": ["x"]}}, r"filter at \$id\.\$containsAny: unknown operator"),
        ({"a": 1j}, "filter at a: .*got complex"),
        ({"a": {1: 2}}, "filter at a: expected the keys of a dict as str, got int"),
        ({"a": parse_filter}, "filter at a: .*got function"),
        ({"$and": [parse_filter({"a": 1})]}, r"filter at \$and\[0\]: .*got Condition"),
        ({"a": {0: {"$gt": 1}}}, r"^filter at a\.0\.\$gt: expected no operator inside a value"),
        ({"a": {"b": {None: {"gt": 1}}}}, r"^filter at a\.b: expected the keys .* got NoneType"),
    ],
)
def test_a_malformed_filter_is_refused_at_its_place(filter: Any, message: str) -> None:
    with pytest.raises(FilterError, match=message):
        parse_filter(filter)


def test_a_very_long_place_is_shortened_in_the_message() -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter({"a" * 100_000: b""})
    assert len(str(caught.value)) < 400


def nest(wrap: Any, inner: Any, levels: int) -> Any:
    for _ in range(levels):
        inner = wrap(inner)
    return inner


NESTED = [
    lambda levels: nest(lambda inner: {"$not": inner}, {"a": 1}, levels),
    lambda levels: nest(lambda inner: {"$and": [inner, {"b": 1}]}, {"a": 1}, levels),
    lambda levels: nest(lambda inner: {"$or": [{"b": 1}, inner]}, {"a": 1}, levels),
    lambda levels: {"a": nest(lambda inner: {"$not": inner}, {"$eq": 1}, levels)},
    lambda levels: {"a": nest(lambda inner: [inner], 1, levels)},
    lambda levels: {"a": nest(lambda inner: {"b": inner}, 1, levels)},
    lambda levels: {"a": {"$in": [nest(lambda inner: [inner], 1, levels)]}},
]


@pytest.mark.parametrize("build", NESTED)
def test_deep_nesting_is_refused_and_moderate_nesting_works(build: Any) -> None:
    for levels in (101, 200, 10_000):
        with pytest.raises(FilterError, match="at most 100 levels of nesting"):
            parse_filter(build(levels))
    tree = parse_filter(build(95))
    assert tree.key
    tree.matches("id", {"a": 1, "b": 1})


def test_a_value_nested_deeper_than_the_operand_is_compared_without_trouble() -> None:
    value = nest(lambda inner: [inner], 1, sys.getrecursionlimit() * 2)
    assert not passes({"field": [[1]]}, {"field": value})
    assert not passes({"field": {"$in": [[[1]]]}}, {"field": value})
    assert passes({"field": {"$ne": [[1]]}}, {"field": value})


def test_a_filter_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["$and"] = [loop]
    values: list[Any] = []
    values.append(values)
    for filter in (loop, {"a": values}, {"a": {"$contains": values}}, {"a": {"$in": values}}):
        with pytest.raises(FilterError, match="at most 100 levels of nesting"):
            parse_filter(filter)


def test_dict_subclasses_are_dicts() -> None:
    assert passes(OrderedDict(a=OrderedDict({"$eq": 1})), {"a": 1})
    assert passes({"a": OrderedDict(b=1)}, {"a": {"b": 1}})


def test_the_core_sees_one_path_and_one_predicate_per_leaf() -> None:
    tree = parse_filter({"a.b": {"$ne": 1}, "$or": [{"c": 2}, {"$id": {"$gt": "x"}}]})
    assert isinstance(tree, And)
    negated, either = tree.parts
    assert isinstance(negated, Not)
    assert isinstance(either, Or)
    condition = negated.part
    assert isinstance(condition, Condition)
    assert condition.path == ("a", "b")
    assert condition.operator.passes(1.0)
    assert not condition.operator.passes(None, False)

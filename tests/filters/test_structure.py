"""Paths, ids and combinations, the cache keys of the tree and its independence of the caller."""

from __future__ import annotations

import copy
import pickle
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag.errors import FilterError
from bm25rag.filters import Condition, IdSet, escape_key, parse_filter
from bm25rag.filters.values import Members
from support.filter_strategies import passes

# --- paths and ids --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "metadata"),
    [
        ("a.b", {"a": {"b": 1}}),
        ("a.b.c", {"a": {"b": {"c": 1}}}),
        ("a\\.b", {"a.b": 1}),
        ("a\\\\.b", {"a\\": {"b": 1}}),
        ("\\$id", {"$id": 1}),
        ("a$", {"a$": 1}),
        ("a.$b", {"a": {"$b": 1}}),
        ("a.\\$b", {"a": {"$b": 1}}),
        ("", {"": 1}),
        (".", {"": {"": 1}}),
        ("a..b", {"a": {"": {"b": 1}}}),
        ("a\n.b", {"a\n": {"b": 1}}),
    ],
)
def test_a_path_reaches_into_nested_metadata(name: str, metadata: dict[str, Any]) -> None:
    assert passes({name: 1}, metadata)


@pytest.mark.parametrize(
    "metadata",
    [{}, {"a.b": 1}, {"a": [{"b": 1}]}, {"a": "b"}, {"a": None}, {"a": {"c": 1}}, {"a": 1}],
)
def test_a_path_does_not_reach_through_anything_but_dicts(metadata: dict[str, Any]) -> None:
    assert not passes({"a.b": {"$exists": True}}, metadata)
    assert passes({"a.b": None}, metadata)


@pytest.mark.parametrize("name", ["a\\", "a\\b", "\\n.a", "a\\\\\\"])
def test_a_stray_backslash_in_a_field_name_is_refused(name: str) -> None:
    with pytest.raises(FilterError, match="after a backslash"):
        parse_filter({name: 1})


KEYS = st.text(st.sampled_from(".$\\ab\n"), max_size=5)


@given(st.lists(KEYS, min_size=1, max_size=4))
def test_escaped_keys_joined_by_dots_are_the_path(keys: list[str]) -> None:
    condition = parse_filter({".".join(map(escape_key, keys)): 1})
    assert isinstance(condition, Condition)
    assert condition.path == tuple(keys)


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        ("doc-1", True),
        ("doc-2", False),
        ({"$eq": "doc-1"}, True),
        ({"$ne": "doc-1"}, False),
        ({"$in": ["doc-2", "doc-1"]}, True),
        ({"$nin": ["doc-2", "doc-1"]}, False),
        ({"$in": []}, False),
        ({"$startswith": "doc-"}, True),
        ({"$contains": "c-"}, True),
        ({"$icontains": "DOC"}, True),
        ({"$gte": "doc-1", "$lt": "doc-2"}, True),
        ({"$gt": "doc-1"}, False),
        ({"$not": {"$startswith": "doc"}}, False),
    ],
)
def test_the_id_is_filtered_on_by_its_reserved_name(operators: Any, expected: bool) -> None:
    assert passes({"$id": operators}, {"$id": "other"}, id="doc-1") is expected


@pytest.mark.parametrize("operators", [1, None, {"$in": [1]}, {"$exists": True}, {"$date": "x"}])
def test_an_id_takes_only_strings(operators: Any) -> None:
    with pytest.raises(FilterError, match=r"filter at \$id"):
        parse_filter({"$id": operators})


def test_sets_of_ids_are_filters_and_say_their_ids() -> None:
    assert parse_filter({"a", "b"}) == IdSet(frozenset({"a", "b"}))
    assert parse_filter({"$id": {"$in": ["b", "a", "a"]}}).ids == {"a", "b"}
    assert parse_filter({"$id": "a"}).ids == {"a"}
    assert parse_filter(set()).ids == frozenset()
    assert parse_filter({"a": 1}).ids is None
    assert passes(frozenset({"id"}))
    assert not passes(set())


@pytest.mark.parametrize("members", [{1}, {"a", None}, frozenset({b"a"})])
def test_a_set_with_a_member_that_is_no_string_is_refused(members: Any) -> None:
    with pytest.raises(TypeError, match="filter: expected ids as str in the set, got"):
        parse_filter(members)
    with pytest.raises(FilterError, match=r"filter at \$not: expected ids as str in the set"):
        parse_filter({"$not": members})


# --- combinations ---------------------------------------------------------------------------------


def test_no_filter_is_none() -> None:
    assert parse_filter(None) is None
    assert parse_filter({}) is None


def test_a_parsed_filter_is_returned_as_it_is() -> None:
    tree = parse_filter({"a": 1})
    assert parse_filter(tree) is tree


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"a": 1, "b": 2}, True),
        ({"a": 1, "b": 3}, False),
        ({"$and": [{"a": 1}, {"b": 2}]}, True),
        ({"$and": [{"a": 1}, {"b": 3}]}, False),
        ({"$or": [{"a": 0}, {"b": 2}]}, True),
        ({"$or": [{"a": 0}, {"b": 3}]}, False),
        ({"$or": ({"a": 0}, {"b": 2})}, True),
        ({"a": 1, "$or": [{"b": 3}, {"b": 4}]}, False),
        ({"$not": {"a": 1, "b": 3}}, True),
        ({"$not": {"a": 1, "b": 2}}, False),
        ({"a": {"$not": {"$gt": 0, "$lt": 5}}}, False),
        ({"a": {"$not": {"$not": {"$eq": 1}}}}, True),
        ({"absent": {"$not": {"$gt": 0}}}, True),
        ({"$not": {}}, False),
        ({"$and": [{}]}, True),
        ({"$or": [{}, {"a": 0}]}, True),
        ({"$and": [{"id"}, {"a": 1}]}, True),
        ({"$or": [set(), {"a": 0}]}, False),
        ({"$and": [{"a": 1}, lambda metadata: metadata["b"] == 2]}, True),
    ],
)
def test_filters_combine(filter: Any, expected: bool) -> None:
    assert passes(filter, {"a": 1, "b": 2}) is expected


def test_a_callable_gets_a_copy_of_the_metadata_and_its_truth_counts() -> None:
    def spoil(metadata: dict[str, Any]) -> list[int]:
        metadata["nested"]["list"].append(1)
        metadata.clear()
        return [1]

    metadata = {"nested": {"list": []}}
    assert passes(spoil, metadata)
    assert metadata == {"nested": {"list": []}}
    assert not passes(lambda metadata: None)


def test_what_a_callable_raises_propagates() -> None:
    with pytest.raises(ZeroDivisionError):
        passes(lambda metadata: 1 / 0)


def test_nothing_with_a_callable_in_it_has_a_cache_key() -> None:
    def always(metadata: dict[str, Any]) -> bool:
        return True

    for filter in (always, {"$not": always}, {"$or": [{"a": 1}, {"$and": [always]}]}):
        assert parse_filter(filter).key is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
        ({"a": {"$gt": 1, "$lt": 2}}, {"a": {"$lt": 2, "$gt": 1}}),
        ({"a": 1}, {"a": {"$eq": 1}}),
        ({"a": {"$ne": 1}}, {"$not": {"a": 1}}),
        ({"a": {"$in": [1, "b"]}}, {"a": {"$in": ("b", 1.0, 1)}}),
        ({"a": {"$in": ["x", "y"]}}, {"a": {"$in": ("y", "x", "x")}}),
        ({"a": {"$in": [1, None, True]}}, {"a": {"$in": [True, None, 1.0]}}),
        ({"$and": [{"a": 1}, {"b": 2}]}, {"a": 1, "b": 2}),
        ({"$or": [{"a": 1}, {"b": 2}]}, {"$or": [{"b": 2}, {"a": 1}]}),
        ({"x", "y"}, {"$id": {"$in": ["y", "x"]}}),
        ({"a": {"$date": "2024-01-01"}}, {"a": {"$date": {"$eq": date(2024, 1, 1)}}}),
        ({"a": {"$icontains": "ß"}}, {"a": {"$icontains": "SS"}}),
        ({"a\\$": 1}, {"a$": 1}),
    ],
)
def test_equal_filters_have_equal_keys(left: Any, right: Any) -> None:
    assert parse_filter(left).key == parse_filter(right).key


def test_different_filters_have_different_keys() -> None:
    filters: list[Any] = [
        {"a": 1},
        {"a": True},
        {"a": "1"},
        {"a": "0x1"},
        {"a": [1]},
        {"a": {"$in": [1]}},
        {"a": {"$in": []}},
        {"a": {"$in": [[1]]}},
        {"a": {"$in": [True]}},
        {"a": {"$in": [1, True]}},
        {"a": {"$in": ["1"]}},
        {"a": {"$in": [None]}},
        {"a": {"$in": ["x", "y"]}},
        {"a": {"$in": ["x,y"]}},
        {"b": {"$in": ["x", "y"]}},
        {"a": {"$date": {"$in": ["2024-01-01"]}}},
        {"a": {"$nin": ["x", "y"]}},
        {"$id": {"$in": ["x", "y"]}},
        {"a": {"$contains": 1}},
        {"a": {"$ne": 1}},
        {"b": 1},
        {"a.b": 1},
        {"a\\.b": 1},
        {"a": 1, "b": 1},
        {"$or": [{"a": 1}, {"b": 1}]},
        {"a": date(2024, 1, 1)},
        {"a": "2024-01-01"},
        {"a": datetime(2024, 1, 1)},
        {"a": {"$date": "2024-01-01"}},
        {"a": {"$date": {"$lt": "2024-01-01"}}},
        {"a": {"$lt": datetime(2024, 1, 1)}},
        {"a": {"$exists": True}},
        {"a": {"$exists": False}},
        {"a"},
        {"$id": {"$startswith": "a"}},
        {"$id": {"$contains": "a"}},
        {"\\$id": {"$contains": "a"}},
        set(),
        {"a', 'b"},
        {"a", "b"},
        {"$not": {}},
        {"$and": [{}]},
    ]
    keys = [parse_filter(filter).key for filter in filters]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "spec",
    [{"a.b": 1}, {"a": {"$in": ["x", [1]]}}, {"a": {"$date": "2024-01-01"}},
     {"a": {"$lt": date(2024, 1, 1)}}, {"$id": {"$startswith": "x"}}],
)  # fmt: skip
def test_a_condition_is_a_value_that_can_be_copied(spec: Any) -> None:
    condition = parse_filter(spec)
    condition.matches("x", {"a": "x"})  # so that whatever is made on first use exists
    twin = pickle.loads(pickle.dumps(condition))
    assert twin == condition == copy.deepcopy(condition)
    assert hash(twin) == hash(condition)
    assert repr(twin) == repr(condition)
    assert twin.matches("x", {"a": "x"}) == condition.matches("x", {"a": "x"})
    with pytest.raises(AttributeError, match="operand"):
        condition.operator.operand = 2


def test_what_is_shown_of_a_comparison_says_which_it_is() -> None:
    shown = {repr(parse_filter({"a": {name: 1}})) for name in ("$lt", "$lte", "$gt", "$gte")}
    assert len(shown) == 4


def test_conditions_that_python_equates_and_filters_do_not_are_unlike() -> None:
    assert parse_filter({"a": 1}) == parse_filter({"a": 1.0})
    assert parse_filter({"a": 1}) != parse_filter({"a": True})
    assert parse_filter({"a": {"$lt": 1}}) != parse_filter({"a": {"$lte": 1}})


def test_what_has_been_found_equal_to_a_key_equals_every_copy_of_it() -> None:
    first, second, third = (Members(["a", 1, number]) for number in (2, 2.0, 3))
    for _ in range(2):  # the second time the sets are the same object
        assert first == second
        assert second == first
        assert hash(first) == hash(second)
        assert third not in {first, second}
    assert first != ("a", 1, 2)


def test_an_edit_of_the_callers_filter_changes_nothing() -> None:
    value, members, ids = {"deep": [1]}, ["a", "b"], {"id"}
    filter = {"field": {"$eq": value}, "other": {"$in": members}}
    tree, by_id = parse_filter(filter), parse_filter(ids)
    key, metadata = tree.key, {"field": {"deep": [1]}, "other": "b"}
    value["deep"].append(2)
    members.clear()
    filter.clear()
    ids.clear()
    assert tree.matches("id", metadata)
    assert tree.key == key
    assert by_id.matches("id", {})

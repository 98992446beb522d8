"""The filter language: every operator on every kind of value, and what it must not accept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bm25rag.errors import FilterError
from bm25rag.filters import parse_filter
from support.environment import ROOT
from support.filter_strategies import passes

DOCS = ROOT / "docs" / "filters.md"
HUGE = 2**53 + 1
PLUS_TWO = timezone(timedelta(hours=2))
MISSING = object()


def passes_value(operators: Any, value: Any) -> bool:
    return passes({"field": operators}, {} if value is MISSING else {"field": value})


# --- equality -------------------------------------------------------------------------------------

# Values in one row are equal to each other, and to nothing in another row.
CLASSES: list[list[Any]] = [
    [None, MISSING],
    [True],
    [False],
    [0, 0.0, -0.0],
    [1, 1.0],
    [-1.5],
    [HUGE],
    [float(HUGE)],
    [10**5000],
    [1e300, int(1e300)],
    [""],
    ["1"],
    ["a"],
    ["A"],
    ["\ud800"],
    ["\U00010000"],
    ["\ud800\udc00"],  # two lone surrogates are not the character that their pair encodes
    ["2024-01-01"],
    ["null"],
    [date(2024, 1, 1)],
    [
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2024, 1, 1, 2, tzinfo=PLUS_TWO),
        datetime(2024, 1, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
    ],
    [datetime(2024, 1, 1, 0, 0, 0, 1)],
    [datetime(1, 1, 1, tzinfo=PLUS_TWO)],
    [datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=5)))],
    [[]],
    [[1], [1.0]],
    [[True]],
    [[None]],
    [[1, 2]],
    [[2, 1]],
    [[[1]], [[1.0]]],
    [[datetime(2024, 1, 1)], [datetime(2024, 1, 1, tzinfo=UTC)]],
    [{}],
    [{"a": 1}, {"a": 1.0}],
    [{"a": True}],
    [{"a": None}],
    [{"a": 1, "b": [1]}, {"b": [1.0], "a": 1}],
]
PAIRS = [
    (value, operand, i == j)
    for i, values in enumerate(CLASSES)
    for j, operands in enumerate(CLASSES)
    for value in values
    for operand in operands
    if operand is not MISSING
]


def test_equality_is_typed_and_exact_for_every_pair_of_values() -> None:
    for value, operand, equal in PAIRS:
        assert passes_value({"$eq": operand}, value) is equal, (value, operand)
        assert passes_value(operand, value) is equal, (value, operand)
        assert passes_value({"$in": ["other", operand]}, value) is equal, (value, operand)


def test_ne_and_nin_are_exact_complements_for_every_pair_of_values() -> None:
    for value, operand, equal in PAIRS:
        assert passes_value({"$ne": operand}, value) is not equal, (value, operand)
        assert passes_value({"$nin": [operand, "other"]}, value) is not equal, (value, operand)


def test_contains_finds_elements_by_the_same_equality() -> None:
    for value, operand, equal in PAIRS:
        if value is not MISSING:
            found = passes_value({"$contains": operand}, [[], "other", value])
            assert found is (equal or operand == []), (value, operand)


def test_keys_are_equal_exactly_where_operands_are() -> None:
    for value, operand, equal in PAIRS:
        if value is not MISSING:
            keys = {parse_filter({"f": {"$eq": item}}).key for item in (value, operand)}
            assert (len(keys) == 1) is equal, (value, operand)


def test_in_takes_every_collection_and_the_empty_one_holds_nothing() -> None:
    for collection in ([1, "a"], (1, "a"), {1, "a"}, frozenset({1, "a"})):
        assert passes_value({"$in": collection}, 1.0)
        assert passes_value({"$in": collection}, "a")
        assert not passes_value({"$in": collection}, True)
    assert not passes_value({"$in": []}, None)
    assert not passes_value({"$in": []}, [])
    assert passes_value({"$nin": []}, MISSING)


def test_a_missing_field_passes_ne() -> None:
    assert passes_value({"$ne": "x"}, MISSING)
    assert not passes_value({"$ne": None}, MISSING)


# --- order ----------------------------------------------------------------------------------------

ASCENDING: list[list[list[Any]]] = [
    [[float("-inf")], [-(10**400)], [-1.5], [0, -0.0], [1, 1.0], [float(2**53)], [HUGE], [10**400]],
    [[""], ["A"], ["B"], ["a"], ["aa"], ["\uffff"], ["\U00010000"]],
    [[date(1, 1, 1)], [date(2024, 1, 1)], [date(2024, 1, 2)]],
    [
        [datetime(1, 1, 1, tzinfo=PLUS_TWO)],
        [datetime(1, 1, 1)],
        [datetime(2024, 1, 1, 11), datetime(2024, 1, 1, 13, tzinfo=PLUS_TWO)],
        [datetime(2024, 1, 1, 12, tzinfo=UTC)],
        [datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=5)))],
    ],
    [[None]],
    [[MISSING]],
    [[True]],
    [[[1]]],
    [[{"a": 1}]],
]


def ranked() -> Iterator[tuple[int, int, Any]]:
    for kind, ranks in enumerate(ASCENDING):
        for rank, values in enumerate(ranks):
            for value in values:
                yield kind, rank, value


def test_only_like_types_order_and_they_order_exactly() -> None:
    for kind, rank, value in ranked():
        for operand_kind, operand_rank, operand in ranked():
            if operand_kind > 3:
                continue
            # Infinity is useful as a bound; an infinite value does not order with anything.
            like = kind == operand_kind and value not in (float("inf"), float("-inf"))
            expected = {
                "$lt": like and rank < operand_rank,
                "$lte": like and rank <= operand_rank,
                "$gt": like and rank > operand_rank,
                "$gte": like and rank >= operand_rank,
            }
            for name, result in expected.items():
                assert passes_value({name: operand}, value) is result, (value, name, operand)


@pytest.mark.parametrize("name", ["$lt", "$lte", "$gt", "$gte"])
@pytest.mark.parametrize("operand", [None, True, [1], {"a": 1}, (1,), b"a", float("nan")])
def test_what_has_no_order_is_refused_as_the_operand_of_an_ordering(
    name: str, operand: Any
) -> None:
    with pytest.raises(FilterError, match=rf"filter at year\.\{name}: expected a number"):
        parse_filter({"year": {name: operand}})


def test_several_operators_below_one_field_must_all_hold() -> None:
    between = {"$gte": 1, "$lt": 5}
    assert [passes_value(between, n) for n in (0, 1, 4, 5)] == [False, True, True, False]


# --- text, presence -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operators", "value", "expected"),
    [
        ({"$contains": "bc"}, "abcd", True),
        ({"$contains": "BC"}, "abcd", False),
        ({"$contains": ""}, "abcd", True),
        ({"$contains": "b"}, ["abc"], False),
        ({"$contains": "abc"}, ["abc"], True),
        ({"$contains": 1}, "1", False),
        ({"$contains": 1}, 1, False),
        ({"$contains": 1}, [True], False),
        ({"$contains": "a"}, {"a": 1}, False),
        ({"$contains": None}, [None], True),
        ({"$contains": None}, None, False),
        ({"$contains": None}, MISSING, False),
        ({"$contains": [1]}, [1], False),
        ({"$contains": [1]}, [[1.0]], True),
        ({"$containsAny": ["x", "b"]}, ["a", "b"], True),
        ({"$containsAny": ["x", "b"]}, ["B", "bb", ["b"]], False),
        ({"$containsAny": {"x", "b"}}, ["b"], True),
        ({"$containsAny": [1]}, [True, "1"], False),
        ({"$containsAny": [1]}, [1.0], True),
        ({"$containsAny": [None]}, [None], True),
        ({"$containsAny": [None]}, MISSING, False),
        ({"$containsAny": [[1]]}, [[1.0]], True),
        ({"$containsAny": [[1]]}, [1], False),
        ({"$containsAny": []}, ["a"], False),
        ({"$containsAny": ["a"]}, "a", False),
        ({"$containsAny": ["a"]}, {"a": 1}, False),
        ({"$containsAll": ("a", "b")}, ["b", "c", "a"], True),
        ({"$containsAll": ["a", "b"]}, ["a", "a"], False),
        ({"$containsAll": [1, 1.0]}, [1], True),
        ({"$containsAll": [float("inf")]}, [float("inf")], False),
        ({"$containsAll": []}, [], True),
        ({"$containsAll": []}, "a", False),
        ({"$containsAll": []}, MISSING, False),
        ({"$containsAll": ["a"]}, "a", False),
        ({"$icontains": "STRASSE"}, "Hauptstraße", True),
        ({"$icontains": "straße"}, "HAUPTSTRASSE", True),
        ({"$icontains": "str"}, ["STRASSE", 1], False),
        ({"$icontains": "straße"}, [1, None, "STRASSE"], True),
        ({"$icontains": "1"}, 1, False),
        ({"$icontains": "a"}, MISSING, False),
        ({"$startswith": "ab"}, "abc", True),
        ({"$startswith": "AB"}, "abc", False),
        ({"$startswith": "bc"}, "abc", False),
        ({"$startswith": ""}, "", True),
        ({"$startswith": "a"}, ["abc"], False),
        ({"$startswith": ""}, MISSING, False),
        ({"$exists": True}, None, True),
        ({"$exists": True}, MISSING, False),
        ({"$exists": False}, None, False),
        ({"$exists": False}, MISSING, True),
    ],
)
def test_contains_icontains_startswith_and_exists(
    operators: Any, value: Any, expected: bool
) -> None:
    assert passes_value(operators, value) is expected


# --- dates ----------------------------------------------------------------------------------------

INSTANTS: list[list[Any]] = [
    ["2023-12-31T22:00:00", "2024-01-01T00:00:00+02:00", datetime(2024, 1, 1, tzinfo=PLUS_TWO)],
    [
        "2024-01-01",
        "20240101",
        "2024-W01-1",
        "2024-01-01 00:00",
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00.000+00:00",
        date(2024, 1, 1),
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, tzinfo=UTC),
    ],
    ["2024-01-01T00:00:00.000001", datetime(2024, 1, 1, 0, 0, 0, 1)],
    ["9999-12-31T23:59:59-12:00"],
]
NO_INSTANTS = [None, MISSING, True, 2024, 1.5, "", "soon", "2024-13-01", [], ["2024-01-01"], {}]


def test_date_compares_instants_however_they_are_written() -> None:
    rows = [(rank, value) for rank, values in enumerate(INSTANTS) for value in values]
    for rank, value in rows:
        for operand_rank, operand in rows:
            expected = {
                "$eq": rank == operand_rank,
                "$ne": rank != operand_rank,
                "$lt": rank < operand_rank,
                "$lte": rank <= operand_rank,
                "$gt": rank > operand_rank,
                "$gte": rank >= operand_rank,
            }
            for name, result in expected.items():
                found = passes_value({"$date": {name: operand}}, value)
                assert found is result, (value, name, operand)
            assert passes_value({"$date": operand}, value) is expected["$eq"]
            assert passes_value({"$date": {"$in": [operand]}}, value) is expected["$eq"]
            assert passes_value({"$date": {"$nin": [operand]}}, value) is expected["$ne"]


@pytest.mark.parametrize("value", NO_INSTANTS)
def test_a_value_that_names_no_instant_passes_only_the_complements(value: Any) -> None:
    for name in ("$eq", "$lt", "$lte", "$gt", "$gte"):
        assert not passes_value({"$date": {name: "2024-01-01"}}, value)
    assert not passes_value({"$date": {"$in": ["2024-01-01"]}}, value)
    assert passes_value({"$date": {"$ne": "2024-01-01"}}, value)
    assert passes_value({"$date": {"$nin": ["2024-01-01"]}}, value)


@pytest.mark.parametrize("operand", [item for item in NO_INSTANTS if item is not MISSING])
def test_an_operand_that_names_no_instant_is_refused(operand: Any) -> None:
    with pytest.raises(FilterError, match=r"filter at when\.\$date"):
        parse_filter({"when": {"$date": operand}})
    with pytest.raises(FilterError, match=r"filter at when\.\$date\.\$in\[1\]: expected an ISO"):
        parse_filter({"when": {"$date": {"$in": ["2024-01-01", operand]}}})


# --- the documentation ----------------------------------------------------------------------------


def documented() -> list[tuple[str, str]]:
    blocks = re.findall(
        r"^```filters\n(.*?)^```", DOCS.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    lines = "".join(blocks).splitlines()
    return [tuple(re.split(r"\s+# ", line)) for line in lines]


@pytest.mark.parametrize(("example", "found"), documented())
def test_the_documented_examples_find_what_is_written_behind_them(example: str, found: str) -> None:
    setup = re.search(r"^```python\n(.*?)^```", DOCS.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(setup[1], names)
    tree = parse_filter(eval(example, names))
    ids = [id for id, metadata in names["documents"].items() if tree.matches(id, metadata)]
    assert ids == ([] if found == "nothing" else found.split(", "))


def test_the_documentation_names_every_operator() -> None:
    text = DOCS.read_text("utf-8")
    with pytest.raises(FilterError) as caught:
        parse_filter({"a": {"$unknown": 1}})
    known = str(caught.value).rpartition("known here: ")[2].split(", ")
    assert len(known) == 16
    assert all(f"`{name}`" in text for name in [*known, "$and", "$or", "$id"])

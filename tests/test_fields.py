"""Masks that come from fields are those of the predicate asked for every document."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_filters_properties import FILTERS, METADATA, OPERATORS, VALUES

from bm25rag import BM25Index
from bm25rag.columns import build_column
from bm25rag.documents import encode_metadata
from bm25rag.fields import Fields, build_fields, merge_fields
from bm25rag.filters import Condition, Filter, parse_filter
from bm25rag.masks import masks_of

EAST = timezone(timedelta(hours=2))
# Values at the edges of how fields hold them, and the same once more in other spellings.
EDGES: list[Any] = [
    None, False, True, 0, 1, -1, 0.0, -0.0, 1.0, 0.1, 1.5, -1.5, 1e300, -1e300, 5e-324,
    2**53, 2**53 + 1, 2.0**53, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2.0**63, -(2.0**63),
    2**64, 10**30, 10**30 + 1, 1e30, -(10**400),
    "", "a", "A", "aB", "ab", "1", "\x00", "é", "e\u0301", "ß", "SS", "\ud800", "\udfff", "\ue000",
    "\U00010000", "a\ud83d\ude00", "x" * 300,
    "2024-01-01", "20240101", "2024-01-01T00:00:00Z", "2024-01-01T02:00+02:00", "2024-13-01",
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-14:00",
    date(1, 1, 1), date(2024, 1, 1), date(9999, 12, 31),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), datetime(2024, 1, 1),
    datetime(2024, 1, 1, 2, tzinfo=EAST), datetime(2024, 1, 1, 0, 0, 0, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999, timezone(-timedelta(hours=14))),
    [], [[]], [None], [True], [1], [1.0], ["a"], ["A"], ["a", 1], [1, "a"], ["a", "a"], [[1], [1.0]],
    [{}], [{"a": 1}], [{"$date": 1}], [2**70], [date(2024, 1, 1)], [datetime(2024, 1, 1)], [1, [2]],
    {}, {"a": 1}, {"a": 1.0}, {"a": None}, {"b": 1}, {"a": 1, "b": 2}, {"b": 2, "a": 1},
    {"a": {"a": 1}}, {"a": []}, {"a": [1]}, {"$date": "2024-01-01"}, {"$": 1}, {"": 1}, {"a.b": 1},
]  # fmt: skip
NAMES = ("$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$contains", "$icontains", "$startswith")


def fields_of(metadata: list[dict[str, Any]]) -> Fields:
    return build_fields(build_column(encode_metadata(one, "id") or None for one in metadata))


def index_of(metadata: list[dict[str, Any]]) -> BM25Index:
    return BM25Index.from_texts([[]] * len(metadata), metadata=metadata)


def found(index: BM25Index, filter: Filter) -> list[bool]:
    (mask,) = masks_of(index._snapshot.parts, filter)
    return mask.tolist()


def asked(metadata: list[dict[str, Any]], filter: Filter) -> list[bool]:
    return [filter.matches(str(number), one) for number, one in enumerate(metadata)]


def conditions() -> Iterator[dict[str, Any]]:
    """Every operator with every operand that it takes."""
    for operand in EDGES:
        for name in NAMES:
            yield {"v": {name: operand}}
        yield {"v": {"$in": [operand, "a", 2**64, [1]]}}
        yield {"v": {"$nin": [operand, 1]}}
        for name in ("$eq", "$ne", "$lt", "$lte", "$gt", "$gte"):
            yield {"v": {"$date": {name: operand}}}
        yield {"v": {"$date": {"$in": [operand, "2024-01-01"]}}}
    yield from ({"v": {"$exists": flag}} for flag in (True, False))
    yield from ({"v": {name: []}} for name in ("$in", "$nin"))
    yield from ({"v": {"$lt": bound}} for bound in (float("inf"), -float("inf"), 1.25, 2**63 + 1))
    yield from ({name: 1} for name in ("v.a", "v.b", "v.a.a", "v.\\$", "v.", "v.a\\.b", "v.a.b"))


def readable(specs: Iterator[dict[str, Any]]) -> Iterator[Filter]:
    for spec in specs:
        try:
            tree = parse_filter(spec)
        except Exception:  # an operand that the operator does not take
            continue
        assert tree is not None
        yield tree


@pytest.fixture(params=["together", "alone", "many", "merged", "few"])
def corpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Metadata with all values of the edges, so that fields of every make come to be."""
    everything = [{"v": value} for value in EDGES]
    match request.param:
        case "alone":  # a document of each, and some that have nothing
            return [{}, *everything, {"w": 1}]
        case "many":  # each value many times, in another order each time
            return [*everything, *reversed(everything), *everything[::2]]
        case "merged":
            monkeypatch.setattr("bm25rag.fields.building.AT_ONCE", 5)
        case "few":  # not every path has its field
            monkeypatch.setattr("bm25rag.fields.building.MOST_FIELDS", 2)
            monkeypatch.setattr("bm25rag.fields.building.AT_ONCE", 50)
    return everything


def test_every_operator_says_of_fields_what_it_says_of_documents(
    corpus: list[dict[str, Any]],
) -> None:
    index = index_of(corpus)
    for filter in readable(conditions()):
        assert found(index, filter) == asked(corpus, filter), filter


def test_other_predicates_are_asked_for_values_and_where_those_are_not_whole_for_documents(
    corpus: list[dict[str, Any]],
) -> None:
    index = index_of(corpus)
    for wanted in EDGES:

        def same(value: Any, present: bool, wanted: Any = wanted) -> bool:
            if {type(value), type(wanted)} <= {int, float}:
                return present and value == wanted
            return present and repr(value) == repr(wanted)  # tells datetimes' zones too

        filter = Condition(("v",), same, repr(wanted))
        assert found(index, filter) == asked(corpus, filter)
    missing = Condition(("v",), lambda value, present: not present, "missing")
    assert found(index, missing) == asked(corpus, missing)


@given(st.lists(METADATA, max_size=12), st.lists(FILTERS, min_size=1, max_size=4))
def test_any_filter_says_of_fields_what_it_says_of_documents(
    metadata: list[dict[str, Any]], filters: list[dict[str, Any]]
) -> None:
    index = index_of(metadata)
    for spec in filters if metadata else ():
        filter = parse_filter(spec)
        assert filter is not None
        assert found(index, filter) == asked(metadata, filter)

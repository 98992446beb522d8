"""What was stored from an object is found by a filter with that object: one conversion for both."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict, namedtuple
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.errors import FilterError
from bm25rag.filters import parse_filter


class Colour(StrEnum):
    RED = "red"


class Mixed(str, Enum):  # noqa: UP042 - its str() is not its value
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Plain(Enum):
    RED = "red"
    SPAN = (1, 2)


class Text(str):
    __slots__ = ()


class Moment(datetime):
    pass


class Day(date):
    pass


Span = namedtuple("Span", "first last")

KINDS: list[Any] = [
    Colour.RED,
    Mixed.RED,
    Level.HIGH,
    Plain.RED,
    Plain.SPAN,
    Text("red"),
    Moment(2024, 5, 1, 12),
    Day(2024, 5, 1),
    UUID(int=7),
    Decimal("1.50"),
    PurePosixPath("docs/a.md"),
    (1, 2),
    (),
    ((1, "a"), [2.5]),
    Span(1, 2),
    OrderedDict(b=1, a=(2,)),
    MappingProxyType({"$a": Colour.RED, "b": date(2024, 5, 1)}),
    {Colour.RED: (Level.HIGH,)},
    np.int32(7),
    np.float32(0.1),
    np.float64(1.5),
    np.True_,
    np.str_("red"),
    np.array([1, 2]),
    np.array([[1.5], [2.5]]),
    np.datetime64("2024-05-01"),
    np.datetime64("2024-05-01T12:00:00.123456789"),
    np.datetime64("NaT", "D"),
]
named = pytest.mark.parametrize("given", KINDS, ids=lambda value: type(value).__name__)


def assert_found(value: Any) -> None:
    index = BM25Index.from_texts(["red", "red"], metadata=[{"v": value, "l": [value]}, {"w": 1}])
    (stored,) = (one.metadata["v"] for one in index.get(["0"]))
    others = [] if stored is not None else ["1"]  # null equals a missing field
    operators: list[Any] = [{"$eq": value}, {"$in": [value]}, {"$in": (value,)}]
    operators += [] if isinstance(stored, dict) else [value]
    for operator in operators:
        assert index.ids({"v": operator}) == ["0", *others], operator
    for operator in ({"$contains": value}, {"$containsAny": [value]}, {"$containsAll": (value,)}):
        assert index.ids({"l": operator}) == ["0"], operator
    assert index.ids({"v": {"$ne": value}}) == ([] if others else ["1"])
    if isinstance(stored, str | int | float | date) and not isinstance(stored, bool):
        assert index.ids({"v": {"$gte": value, "$lte": value}}) == ["0"]
    if isinstance(stored, str):
        assert index.ids({"v": {"$startswith": value}}) == ["0"]
        assert index.ids({"v": {"$icontains": value}}) == ["0"]
    if isinstance(stored, date):
        assert index.ids({"v": {"$date": value}}) == ["0"]


@named
def test_every_kind_that_metadata_accept_is_an_operand(given: Any) -> None:
    assert_found(given)


def test_values_of_pandas_are_operands() -> None:
    pandas = pytest.importorskip("pandas")
    for value in (pandas.Timestamp("2024-05-01T12:00Z"), pandas.NaT, pandas.NA):
        assert_found(value)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.dates(),
    st.datetimes(),
    st.uuids(),
    st.decimals(allow_nan=False),
    st.integers(-(2**31), 2**31 - 1).map(np.int32),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(np.float32),
    st.booleans().map(np.bool_),
    st.sampled_from([Colour.RED, Mixed.RED, Level.HIGH, Plain.RED, Plain.SPAN]),
    st.dates().map(np.datetime64),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(MappingProxyType),
    ),
    max_leaves=5,
)


@given(values)
def test_whatever_was_stored_is_found(value: Any) -> None:
    assert_found(value)


def test_names_of_fields_are_read_as_keys_of_metadata_are() -> None:
    index = BM25Index.from_texts(["red"], metadata=[{Colour.RED: 1, Plain.RED.value + "s": 2}])
    assert index.ids({Colour.RED: {"$gte": 1}}) == index.ids({Plain.RED: 1}) == ["0"]


def test_ids_of_enums_are_their_values_as_metadata_are() -> None:
    index = BM25Index.from_texts(["red"], ids=[Mixed.RED])
    assert index.ids() == ["red"]
    for filter in ({"$id": Mixed.RED}, {"$id": {"$in": {Colour.RED}}}, {Mixed.RED}):
        assert index.ids(filter) == ["red"]


def test_what_metadata_refuse_is_no_operand() -> None:
    for value in ({1}, b"red", 1j, object(), np.timedelta64(1, "s"), {1: 2}):
        with pytest.raises(FilterError, match="filter at v"):
            parse_filter({"v": {"$eq": value}})


def test_plain_operands_do_not_load_what_checks_metadata() -> None:
    code = (
        "import sys; from datetime import date, datetime; from bm25rag.filters import parse_filter;"
        "parse_filter({'a': 1, 'b': {'$in': ['x', None]}, 'c': [1.5, {'d': True}],"
        " 'e': {'$gte': date(2024, 5, 1)}, 'f': {'$date': '2024-05-01'}, 'g': {'$exists': True}});"
        "sys.exit('bm25rag.common.storable' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

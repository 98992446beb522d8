"""Metadata from loaders, splitters and data frames: what is stored and comes back."""

from __future__ import annotations

import collections
import enum
import math
import random
import types
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from bm25rag import BM25Index, Document
from bm25rag.errors import MetadataError

pytestmark = pytest.mark.usefixtures("backend")


class Text(str):
    """A subclass of str."""

    __slots__ = ()


class Color(enum.Enum):
    """An enum of strings, one of lists and one of tuples."""

    RED = "red"
    PAIR = (1, "two")


class Level(enum.IntEnum):
    """An enum that is an int."""

    LOW = 1


class Kind(str, enum.Enum):  # noqa: UP042
    """A string enum written the old way."""

    PAGE = "page"


class Point(NamedTuple):
    """A named tuple."""

    x: int
    y: float


class Later(datetime):
    """A subclass of datetime."""


UTC = UTC
ID = UUID("12345678123456781234567812345678")
BIG = np.longdouble("1.5")

# What is given, and what comes back: docs/metadata.md has the same table.
ACCEPTED: list[tuple[Any, Any]] = [
    ((1, "two", (3.0,)), [1, "two", [3.0]]),
    (Point(1, 2.5), [1, 2.5]),
    ([(0, 5), {"range": (5, 9)}], [[0, 5], {"range": [5, 9]}]),
    (np.int64(7), 7),
    (np.uint64(2**64 - 1), 2**64 - 1),
    (np.float32(0.5), 0.5),
    (np.float64(1.5), 1.5),
    (BIG, 1.5),
    (np.bool_(True), True),
    (np.str_("red"), "red"),
    (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    (np.array(5), 5),
    (np.array(["a", None, 1], dtype=object), ["a", None, 1]),
    (np.datetime64("2024-05-01"), date(2024, 5, 1)),
    (np.datetime64("2024-05-01T12:00:00.123456789"), datetime(2024, 5, 1, 12, 0, 0, 123456)),
    (np.datetime64("NaT", "D"), None),
    (np.datetime64("NaT", "ns"), None),
    (Color.RED, "red"),
    (Color.PAIR, [1, "two"]),
    (Level.LOW, 1),
    (Kind.PAGE, "page"),
    (Text("words"), "words"),
    (True, True),
    (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    (collections.defaultdict(list, a=[1]), {"a": [1]}),
    (collections.Counter("aab"), {"a": 2, "b": 1}),
    (types.MappingProxyType({"a": (1,)}), {"a": [1]}),
    ({Text("key"): 1, Kind.PAGE: 2, np.str_("numpy"): 3}, {"key": 1, "page": 2, "numpy": 3}),
    (ID, "12345678-1234-5678-1234-567812345678"),
    (PurePosixPath("a/b.md"), "a/b.md"),
    (Decimal("1.10"), "1.10"),
    (Later(2024, 5, 1, 12, tzinfo=UTC), datetime(2024, 5, 1, 12, tzinfo=UTC)),
    (
        datetime(2024, 7, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2024, 7, 1, tzinfo=timezone(timedelta(hours=2))),
    ),
    (
        datetime(2024, 7, 1, tzinfo=timezone(timedelta(seconds=-3661, microseconds=5))),
        datetime(2024, 7, 1, tzinfo=timezone(timedelta(seconds=-3661, microseconds=5))),
    ),
    (math.inf, math.inf),
    (-math.inf, -math.inf),
    (np.float64(np.inf), math.inf),
]  # fmt: skip


def typed(value: Any) -> Any:
    """Return a value along with the exact types of everything in it."""
    if isinstance(value, dict):
        return dict, [(typed(key), typed(item)) for key, item in value.items()]
    if isinstance(value, list):
        return list, [typed(item) for item in value]
    if isinstance(value, datetime):
        return type(value), value, value.utcoffset()
    return type(value), value


@pytest.mark.parametrize(("given", "back"), ACCEPTED, ids=lambda value: repr(value)[:60])
def test_what_has_one_obvious_form_is_stored_in_it(given: Any, back: Any, tmp_path: Path) -> None:
    index = BM25Index.from_texts(["red"], metadata=[{"value": given, "in": [given]}])
    index.add_documents([Document("d", "red", {"value": given, "in": [given]})])
    index.add(["red"], ["u"])
    index.update_metadata(["u"], [{"value": given, "in": [given]}])
    index.save(tmp_path / "index")
    expected = typed({"value": back, "in": [back]})
    for each in (index, BM25Index.open(tmp_path / "index", verify=True)):
        assert [typed(hit.metadata) for hit in each.search("red")] == [expected] * 3
    index.compact()
    assert typed(index.get(["u"])[0].metadata) == expected


def test_nan_comes_back_as_nan() -> None:
    index = BM25Index.from_texts(
        ["red"] * 2, metadata=[{"n": math.nan}, {"n": [np.float32("nan")]}]
    )
    first, second = (hit.metadata["n"] for hit in index.search("red"))
    assert type(first) is float
    assert math.isnan(first)
    assert type(second[0]) is float
    assert math.isnan(second[0])


def test_metadata_that_is_any_mapping_is_a_dict_afterwards() -> None:
    given = types.MappingProxyType({"a": 1})
    index = BM25Index.from_texts(["red"], metadata=[given])  # type: ignore[list-item]
    assert typed(index.search("red")[0].metadata) == typed({"a": 1})


def test_the_rows_of_a_data_frame_are_metadata() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "when": pandas.to_datetime(["2024-05-01T12:00:00.123456789", None]),
            "where": pandas.to_datetime(["2024-05-01", "2024-05-02"]).tz_localize("Europe/Paris"),
            "price": [1.5, None],
            "count": pandas.array([3, None], dtype="Int64"),
            "kind": pandas.Categorical(["a", "b"]),
        }
    )
    index = BM25Index.from_texts(["red"] * 2, metadata=frame.to_dict("records"))
    first, second = (hit.metadata for hit in index.search("red"))
    east = timezone(timedelta(hours=2))
    assert typed(first) == typed(
        {
            "when": datetime(2024, 5, 1, 12, 0, 0, 123456),
            "where": datetime(2024, 5, 1, tzinfo=east),
            "price": 1.5,
            "count": 3,
            "kind": "a",
        }
    )
    assert (second["when"], second["count"]) == (None, None)
    assert math.isnan(second["price"])
    for refused in (pandas.Timedelta(1), pandas.Period("2024"), pandas.Series([1])):
        with pytest.raises(MetadataError, match="'bad'"):
            index.add(["red"], metadata=[{"bad": refused}])


def test_a_data_frame_or_a_mapping_in_place_of_texts_is_refused_with_a_hint() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["red cat"], "id": ["a"]})
    index = BM25Index()
    for given in (frame, {"text": "red cat"}):
        with pytest.raises(TypeError, match=r"texts must be .*pick one column"):
            index.add(given)
        with pytest.raises(TypeError, match=r"queries must be .*pick one column"):
            index.search_batch(given)
    with pytest.raises(TypeError, match=r"metadata must be .*put one dict into a list"):
        index.add(["red cat"], metadata={"year": 2020})
    assert index.add(frame["text"], ids=frame["id"]) == ["a"]


# --- NaN and infinities in filters ------------------------------------------------------------

NUMBERS = [1.5, math.nan, math.inf, -math.inf, 2**70, 3, None]


def numbers(many: bool) -> BM25Index:
    """One document per number; filters use fields for many documents and ask each of a few."""
    index = BM25Index.from_texts(
        ["red"] * len(NUMBERS), map(str, range(len(NUMBERS))), [{"n": n} for n in NUMBERS]
    )
    if many:
        index.add(["blue"] * 200, metadata=[{"n": float(n % 3)} for n in range(200)])
        index.compact()
        index.delete([id for id in index.ids() if int(id) >= len(NUMBERS)])
    return index


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"n": math.inf}, []),
        ({"n": {"$in": [math.inf, -math.inf, 3]}}, ["5"]),
        ({"n": {"$eq": -math.inf}}, []),
        ({"n": {"$ne": math.inf}}, ["0", "1", "2", "3", "4", "5", "6"]),
        ({"n": {"$ne": 3}}, ["0", "1", "2", "3", "4", "6"]),
        ({"n": {"$gt": 1}}, ["0", "4", "5"]),
        ({"n": {"$gte": -math.inf}}, ["0", "4", "5"]),
        ({"n": {"$lt": math.inf}}, ["0", "4", "5"]),
        ({"n": {"$lte": 2}}, ["0"]),
        ({"n": {"$exists": True}}, ["0", "1", "2", "3", "4", "5", "6"]),
        ({"n": None}, ["6"]),
    ],
    ids=repr,
)
def test_nan_and_infinities_equal_nothing_and_order_with_nothing(
    filter: dict[str, Any], expected: list[str], many: bool
) -> None:
    index = numbers(many)
    assert index.ids(filter) == expected
    assert [hit.id for hit in index.search("red", k=99, filter=filter)] == expected
    assert [found.id for found in index.get(index.ids(), filter)] == expected
    index.update_metadata(["5"], [{"n": 3}])
    assert index.ids(filter) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_inside_lists_and_dicts_they_equal_nothing_either(value: float) -> None:
    index = BM25Index.from_texts(
        ["red"] * 2, metadata=[{"l": [value, 1], "d": {"x": value}}, {"l": [2], "d": {"x": 2}}]
    )
    if not math.isnan(value):  # which filters refuse
        assert index.ids({"l": {"$contains": value}}) == []
        assert index.ids({"l": [value, 1]}) == []
        assert index.ids({"d": {"x": value}}) == []
    assert index.ids({"l": {"$contains": 1}}) == ["0"]
    assert index.ids({"l": [2]}) == ["1"]


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.untraced
@pytest.mark.parametrize("wanted", [7, 20_000])
def test_an_error_names_the_row_the_id_and_the_key(wanted: int) -> None:
    rows = [{"n": [1, {"x": {1}}]} if row == wanted else {"n": 1} for row in range(wanted + 2)]
    ids = [f"id{row}" for row in range(len(rows))]
    complaint = rf"\[{wanted}\].*'id{wanted}'.*'n\.1\.x'.*a set.*sorted"
    calls: list[tuple[str, Callable[[BM25Index], object]]] = [
        ("metadata", lambda index: index.add(["red"] * len(rows), ids, rows)),
        ("metadata", lambda index: index.add(iter(["red"] * len(rows)), iter(ids), iter(rows))),
        ("documents", lambda index: index.add_documents(records(ids, rows))),
        ("documents", lambda index: index.add_documents(list(records(ids, rows)))),
    ]
    for name, call in calls:
        index = BM25Index()
        with pytest.raises(MetadataError, match=name + complaint) as caught:
            call(index)
        assert (caught.value.document, caught.value.key) == (f"id{wanted}", "n.1.x")
        assert len(index) == 0


def records(ids: list[str], metadata: list[Any]) -> Iterator[Document]:
    for id, one in zip(ids, metadata, strict=True):
        yield Document(id, "red", one)


def test_the_row_is_right_where_earlier_documents_are_skipped() -> None:
    index = BM25Index.from_texts(["red"], ids=["a"])
    with pytest.raises(MetadataError, match=r"metadata\[2\].*'c'.*'bad'"):
        index.add(["x"] * 3, ["a", "b", "c"], [{"bad": {1}}, {}, {"bad": {1}}], on_duplicate="skip")


# Between metadata that are written together stands ``"\\0"``, and all are parted at it.
TOGETHER = [
    {},
    {"a": 1},
    {"a": ["\0", "\0"]},
    {"\0": {"b": "\0"}},
    {"a": ',"\\u0000",'},
    {"a": "\ud800"},
]


def test_metadata_that_are_written_together_are_their_own() -> None:
    each = random.Random(17).choices(TOGETHER, k=300)
    index = BM25Index.from_texts(["red"] * len(each), metadata=each)
    assert [document.metadata for document in index.get(index.ids())] == each


def test_an_integer_among_many_that_cannot_be_written_is_named() -> None:
    each: list[dict[str, Any]] = [{"a": number} for number in range(300)]
    each[200] = {"long": 10**5000}
    with pytest.raises(MetadataError, match=r"metadata\[200\].*'long'.*digits"):
        BM25Index.from_texts(["red"] * len(each), metadata=each)


def test_an_integer_too_long_to_be_written_is_named_too() -> None:
    with pytest.raises(MetadataError, match=r"'culprit'.*'i'.*digits"):
        BM25Index.from_texts(["red"], ids=["culprit"], metadata=[{"fine": 1, "i": 10**5000}])


@pytest.mark.parametrize("offset", [500, -500, 999_999])
def test_a_time_zone_offset_below_a_second_is_refused_not_changed(offset: int) -> None:
    moment = datetime(2024, 1, 1, tzinfo=timezone(timedelta(microseconds=offset)))
    with pytest.raises(MetadataError, match="offset"):
        BM25Index.from_texts(["red"], metadata=[{"when": moment}])


def test_an_object_array_that_holds_itself_is_refused() -> None:
    loop = np.empty((), object)
    loop[()] = loop
    with pytest.raises(MetadataError, match="deep"):
        BM25Index.from_texts(["red"], metadata=[{"loop": loop}])


def test_one_mapping_yielded_again_and_again_is_taken_as_it_was_each_time() -> None:
    def changing() -> Iterator[Any]:
        one: Any = collections.OrderedDict(tags=[], array=np.zeros(1, np.int64))
        for number in range(3):
            one["tags"].append(number)
            one["array"][0] = number
            yield one

    index = BM25Index.from_texts(["red"] * 3, metadata=changing())
    found = [hit.metadata for hit in index.search("red")]
    assert [one["tags"] for one in found] == [[0], [0, 1], [0, 1, 2]]
    assert [one["array"] for one in found] == [[0], [1], [2]]


def test_a_dict_within_a_tuple_is_taken_as_it_was_too() -> None:
    def changing() -> Iterator[Any]:
        inner = {"n": 0}
        array = np.array([inner], object)
        for number in range(3):
            inner["n"] = number
            yield {"span": (inner,), "array": array}

    index = BM25Index.from_texts(["red"] * 3, metadata=changing())
    found = [hit.metadata for hit in index.search("red")]
    assert [one["span"][0]["n"] for one in found] == [0, 1, 2]
    assert [one["array"][0]["n"] for one in found] == [0, 1, 2]


class Same(enum.Enum):
    """A member whose value is again a member, endlessly."""

    SELF = "self"

    @property
    def value(self) -> Any:
        return self


class Odd(tzinfo):
    """A time zone of more than a day."""

    def utcoffset(self, when: Any) -> timedelta:
        return timedelta(hours=30)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"k": [10**5000]}, r"'bad\.k\.0'.*digits"),
        (np.array([(1, "2024-01-01")], [("a", "i4"), ("t", "M8[ns]")])[0], "'bad'.*numpy"),
        (np.array([(1, 5)], [("a", "i4"), ("t", "m8[ns]")]), "'bad'.*numpy"),
        ({"red": 1, Color.RED: 2}, "'bad'.*two keys"),
        (Same.SELF, "'bad'.*deep"),
        (datetime(2024, 1, 1, tzinfo=Odd()), "'bad'.*datetime"),
    ],
    ids=["long integer", "record", "records", "two keys", "enum", "time zone"],
)
def test_other_values_without_an_obvious_form_are_refused_by_row_and_key(
    value: Any, words: str
) -> None:
    index = BM25Index()
    rows: list[dict[str, Any]] = [{}, {"bad": value}]
    with pytest.raises(MetadataError, match=r"metadata\[1\].*" + words):
        index.add(["red"] * 2, metadata=rows)
    with pytest.raises(MetadataError, match=r"documents\[1\].*" + words):
        index.add_documents(records(["a", "b"], rows))


def test_a_timestamp_beyond_pythons_years_is_refused_by_row_and_key() -> None:
    pandas = pytest.importorskip("pandas")
    far = pandas.Timestamp(np.datetime64("20000-01-01", "s"))
    with pytest.raises(MetadataError, match=r"metadata\[0\].*'bad'.*datetime"):
        BM25Index.from_texts(["red"], metadata=[{"bad": far}])

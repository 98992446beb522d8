"""Evaluating a filter on fields gives the same result as asking it about every document."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.columns.column import build_column
from bm25rag.common.strings import utf8
from bm25rag.errors import CorruptIndexError, FilterError
from bm25rag.filters import AsMoment, Condition, Filter, Operator, parse_filter
from bm25rag.filters.operators import In
from bm25rag.filters.values import instant_of, moment_of
from bm25rag.metadata.conditions import find_strings
from bm25rag.metadata.field import StringRange
from bm25rag.metadata.field_builder import build_fields
from bm25rag.metadata.field_merge import unite
from bm25rag.metadata.instants import NO_MOMENT, Texts, read_iso
from bm25rag.search.filter_masks import masks_of
from support.cases import first
from support.filter_strategies import FILTERS, METADATA
from support.holding import saved_and_opened

EAST = timezone(timedelta(hours=2))
# Values at the limits of how fields store them, and the same values spelt differently.
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
    [], [[]], [None], [True], [1], [1.0], ["a"], ["A"], ["a", 1], [1, "a"], ["a", "a"],
    [[1], [1.0]], [{}], [{"a": 1}], [{"$date": 1}], [2**70], [date(2024, 1, 1)],
    [datetime(2024, 1, 1)], [1, [2]], {}, {"a": 1}, {"a": 1.0}, {"a": None}, {"b": 1},
    {"a": 1, "b": 2}, {"b": 2, "a": 1},
    {"a": {"a": 1}}, {"a": []}, {"a": [1]}, {"$date": "2024-01-01"}, {"$": 1}, {"": 1}, {"a.b": 1},
]  # fmt: skip
NAMES = ("$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$contains", "$icontains", "$startswith")


class Same(Operator):
    """An adapter's operator that distinguishes what prints differently, such as time zones."""

    __slots__ = ()
    name = "same"

    def __init__(self, operand: Any) -> None:
        super().__init__(operand, repr(operand))

    def passes(self, value: Any, present: bool = True) -> bool:
        if {type(value), type(self.operand)} <= {int, float}:
            return present and value == self.operand
        return present and repr(value) == repr(self.operand)


class Missing(Operator):
    """An adapter's operator that passes missing values."""

    __slots__ = ()
    name = "missing"

    def passes(self, value: Any, present: bool = True) -> bool:
        return not present


class Named(AsMoment):
    """An adapter's operator that compares datetimes, and reads more than ISO 8601."""

    __slots__ = ()

    def read(self, text: str) -> datetime | None:
        return datetime(2024, 1, 1) if text in ("a", "ß", "20240101") else read_iso(text)


def index_of(metadata: list[dict[str, Any]]) -> BM25Index:
    return BM25Index.from_texts([[]] * len(metadata), metadata=metadata)


def found(index: BM25Index, filter: Filter) -> list[bool]:
    (allowed,) = masks_of(index._snapshot.views, filter)
    return allowed.mask.tolist()


def asked(metadata: list[dict[str, Any]], filter: Filter) -> list[bool]:
    return [filter.matches(str(number), one) for number, one in enumerate(metadata)]


def conditions() -> Iterator[dict[str, Any]]:
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


def comparisons_of_moments() -> Iterator[AsMoment]:
    moments = [value for value in EDGES if type(value) is datetime]
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq):
        for moment in moments:
            for one in (moment, moment.replace(tzinfo=None), moment.replace(tzinfo=EAST)):
                yield Named(compare, [one], None)
    yield Named(operator.eq, moments, None)
    yield Named(operator.eq, [], None)


def readable(specs: Iterator[dict[str, Any]]) -> Iterator[Filter]:
    for spec in specs:
        try:
            tree = parse_filter(spec)
        except FilterError:  # an operand that the operator does not accept
            continue
        assert tree is not None
        yield tree


@pytest.fixture(params=first(3, ["together", "many", "few", "alone", "merged", "pieces"]))
def corpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Make metadata with all these values, so that there are fields of every kind."""
    everything = [{"v": value} for value in EDGES]
    match request.param:
        case "alone":  # one document for each, and some without metadata
            return [{}, *everything, {"w": 1}]
        case "many":  # each value many times, in a different order each time
            return [*everything, *reversed(everything), *everything[::2]]
        case "merged":
            monkeypatch.setattr("bm25rag.metadata.field_builder.CHUNK", 5)
        case "pieces":
            monkeypatch.setattr("bm25rag.metadata.field_builder._BATCH", 3)
            monkeypatch.setattr("bm25rag.common.gil.BLOCK", 3)
            return [*everything, *reversed(everything)]
        case "few":  # not every path has its field
            monkeypatch.setattr("bm25rag.metadata.field_builder.MAX_FIELDS", 2)
            monkeypatch.setattr("bm25rag.metadata.field_builder.CHUNK", 50)
    return everything


@pytest.mark.parametrize("distinct", [1, 2, 255, 256, 257, 65_536, 65_537])
def test_passing_values_are_found_by_runs_and_one_by_one(distinct: int) -> None:
    """In codes of 8, 16 and 32 bits, up to the largest of each, and in several blocks."""
    generator = np.random.default_rng(distinct)
    metadata = [b'{"n":%d}' % (row % distinct) for row in range(70_000)]
    fields = build_fields(build_column(metadata))
    field = fields.find(("n",))
    assert field is not None
    for runs in (0, 1, 2, 4, 5, 30):
        passing = np.zeros(distinct, np.bool_)
        for start in generator.integers(0, distinct, runs).tolist():
            passing[start : start + int(generator.integers(1, distinct + 1))] = True
        for wanted in (passing, ~passing):
            assert (field.hits(wanted) == wanted[field.codes]).all()


@pytest.mark.untraced
def test_every_operator_says_of_fields_what_it_says_of_documents(
    corpus: list[dict[str, Any]],
) -> None:
    index = index_of(corpus)
    for filter in readable(conditions()):
        assert found(index, filter) == asked(corpus, filter), filter


def test_an_adapters_operator_is_asked_for_values_and_for_documents_where_fields_hold_a_part(
    corpus: list[dict[str, Any]],
) -> None:
    index = index_of(corpus)
    for one in (Missing(None), *map(Same, EDGES), *comparisons_of_moments()):
        filter = Condition(("v",), one)
        assert found(index, filter) == asked(corpus, filter)


@given(st.lists(st.sets(st.text(max_size=3)), min_size=1), st.integers(1, 5), st.integers(1, 5))
def test_sorted_strings_are_united_piece_by_piece(
    sets: list[set[str]], block: int, step: int
) -> None:
    runs = [sorted(own) for own in sets]
    united, places = unite(runs, block, min(step, block))
    assert united == sorted(set().union(*sets))
    assert [[united[place] for place in own] for own in places] == runs


@given(
    st.sets(st.text(max_size=3), min_size=1),
    st.lists(st.text(max_size=3), min_size=1),
    st.sampled_from([1, 4]),
)
def test_of_many_strings_those_are_found_that_are_there(
    there: set[str], sought: list[str], sampled: int
) -> None:
    ordered = sorted(there)
    column = build_column(map(utf8, ordered))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.metadata.conditions._SAMPLED", sampled)
        places = find_strings(StringRange(column, 0, len(column)), list(map(utf8, sought)))
    assert [ordered[place] for place in places] == [one for one in sought if one in there]


@given(st.sets(st.text("aAsß\ud83d\ude00", max_size=4)), st.text("aasSß\ud83d", max_size=2))
def test_of_all_strings_those_with_a_part_are_found_at_once(there: set[str], part: str) -> None:
    ordered = sorted(there, key=utf8)
    column = build_column(map(utf8, ["aa", *ordered, "aa"]))
    strings = StringRange(column, 1, len(ordered))  # of others beside it
    found = strings.containing(utf8(part), False)
    assert found is not None
    assert [ordered[place] for place in found] == [one for one in ordered if part in one]
    folded = strings.containing(utf8(part.casefold()), True)
    if folded is None:
        assert not "".join(ordered).isascii()
    else:
        assert [ordered[place] for place in folded] == [
            one for one in ordered if part.casefold() in one.casefold()
        ]


def test_strings_without_a_part_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200,000 documents with 28,000 paths, the filter took 12 ms instead of 2."""
    index = BM25Index.from_texts(["red"] * 9, metadata=[{"path": f"/docs/{n}"} for n in range(9)])
    monkeypatch.setattr(StringRange, "texts", lambda _: pytest.fail("reads all"))
    assert index.ids({"path": {"$contains": "s/7"}}) == ["7"]
    assert index.ids({"path": {"$icontains": "S/7"}}) == ["7"]


def test_operands_that_fields_look_up_are_put_in_no_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    index = BM25Index.from_texts(["red"] * 3, metadata=[{"n": "a"}, {"n": "b"}, {}])
    monkeypatch.setattr(In, "_by_type", lambda _: pytest.fail("makes sets"))
    assert index.ids({"n": {"$in": ["b", "c"]}}) == ["1"]
    assert index.ids({"n": {"$in": ["b", None]}}) == ["1", "2"]


@given(st.lists(METADATA, min_size=1, max_size=12), st.lists(FILTERS, min_size=1, max_size=4))
def test_any_filter_says_of_fields_what_it_says_of_documents(
    metadata: list[dict[str, Any]], filters: list[dict[str, Any]]
) -> None:
    index = index_of(metadata)
    for spec in filters:
        filter = parse_filter(spec)
        assert filter is not None
        assert found(index, filter) == asked(metadata, filter)


def test_fields_of_too_many_paths_are_not_all_kept_and_the_filter_is_asked_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bm25rag.metadata.field_builder.MAX_FIELDS", 2)
    monkeypatch.setattr("bm25rag.metadata.field_merge.MAX_FIELDS", 2)
    metadata = [{"common": number, f"rare{number}": number} for number in range(6)]
    index = index_of(metadata)
    (part,) = index._snapshot.views
    assert not part.segment.fields.complete
    assert len(list(part.segment.fields)) == 2
    for spec in ({"rare4": 4}, {"common": 4}, {"rare4": {"$exists": False}}, {"rare9": None}):
        filter = parse_filter(spec)
        assert filter is not None
        assert found(index, filter) == asked(metadata, filter)
    index.add([[]], metadata=[{"rare4": 4}])
    index.delete(["0", "1", "2"])  # so that all is merged
    assert index.ids({"rare4": 4}) == ["4", "6"]
    assert index.ids({"common": {"$gte": 3}}) == ["3", "4", "5"]


@pytest.mark.parametrize(
    "stored",
    [b'{"v":' * 103 + b"1" + b"}" * 103, b'{"v":{"$date":"soon"}}', b'{"v":{"$datetime":1}}',
     b'{"v":{"$date":"2024-01-01T01:00"}}', b"[1]", b"1},{", b"{", b'{"v":"\xff"}'],
)  # fmt: skip
def test_metadata_that_we_did_not_write_make_no_fields(stored: bytes) -> None:
    with pytest.raises(CorruptIndexError, match="stored"):
        build_fields(build_column([b"{}", stored]))


# --- instants -----------------------------------------------------------------------------------

MOMENTS = st.datetimes(
    timezones=st.none()
    | st.builds(timezone, st.timedeltas(-timedelta(hours=23), timedelta(hours=23)))
)
SPELLED = st.one_of(
    st.builds(
        lambda moment, sep, spec: moment.isoformat(sep, spec),
        MOMENTS,
        st.sampled_from("TT -"),
        st.sampled_from(["auto", "minutes", "seconds", "milliseconds", "microseconds"]),
    ),
    st.builds(lambda moment: moment.replace(tzinfo=None).isoformat() + "Z", MOMENTS),
    st.builds(lambda moment: moment.date().isoformat(), MOMENTS),
)
# One character changed: most are no longer dates, and some are different ones.
DAMAGED = st.builds(
    lambda text, place, sign: text[: place % len(text)] + sign + text[place % len(text) + 1 :],
    SPELLED,
    st.integers(0, 40),
    st.sampled_from("0123456789-+:.TZ é"),
)


@given(st.lists(SPELLED | DAMAGED | st.text(max_size=33), max_size=20))
def test_strings_name_at_once_the_instants_that_they_name_alone(texts: list[str]) -> None:
    column = build_column(map(utf8, texts))
    moments = Texts(StringRange(column, 0, len(texts))).read(read_iso)
    for text, *named in zip(texts, *map(np.ndarray.tolist, moments), strict=True):
        alone = read_iso(text)
        expected = (NO_MOMENT, NO_MOMENT, False) if alone is None else moment_of(alone)
        assert tuple(named) == expected
        assert (instant_of(text) is None) == (alone is None)


def test_verify_lets_metadata_of_every_kind_through(
    corpus: list[dict[str, Any]], tmp_path: Path
) -> None:
    rare = [{"v": value} for value in ("\\u0024", "$", {"$date": 1}, float("nan"), float("inf"))]
    index = index_of([*corpus, *rare])
    index.save(tmp_path / "index")
    BM25Index.verify(tmp_path / "index")
    with BM25Index.open(tmp_path / "index", mode="w") as writer:
        writer.update_metadata(map(str, range(0, 40, 3)), corpus[20:34])
        writer.add([[]] * len(rare), metadata=rare)
    BM25Index.verify(tmp_path / "index")
    with BM25Index.open(tmp_path / "index", mode="w") as writer:
        writer.delete(map(str, range(10)))
        writer.compact()
    BM25Index.verify(tmp_path / "index")


# --- histories ----------------------------------------------------------------------------------

IDS = st.sampled_from("abcdefgh")
STEPS = st.one_of(
    st.tuples(st.just("add"), st.lists(st.tuples(IDS, METADATA), max_size=5)),
    st.tuples(st.just("update"), st.lists(st.tuples(IDS, METADATA), max_size=3)),
    st.tuples(st.just("delete"), st.lists(IDS, max_size=3)),
    st.tuples(st.sampled_from(["pickle", "save"]), st.just([])),
)


def take(index: BM25Index, model: dict[str, dict[str, Any]], step: tuple[str, Any]) -> BM25Index:
    name, what = step
    if name == "add":
        index.add(
            [["x"]] * len(what),
            [id for id, _ in what],
            [m for _, m in what],
            on_duplicate="replace",
        )
        for id, metadata in what:
            model.pop(id, None)
            model[id] = metadata
    elif name == "update":
        index.update_metadata([id for id, _ in what], [metadata for _, metadata in what])
        model.update({id: metadata for id, metadata in what if id in model})
    elif name == "delete":
        index.delete(what)
        for id in what:
            model.pop(id, None)
    else:
        return pickle.loads(pickle.dumps(index)) if name == "pickle" else saved_and_opened(index)
    return index


# Some filters pass nothing because a value has another type, which is told.
@pytest.mark.filterwarnings("ignore::bm25rag.errors.FilterWarning")
@pytest.mark.parametrize(("most", "few"), [(1000, 64), (1000, 0), (3, 0)])
@given(st.lists(STEPS, max_size=7), st.lists(FILTERS, min_size=1, max_size=3))
def test_filters_are_right_after_any_history(
    most: int, few: int, steps: list[tuple[str, Any]], filters: list[dict[str, Any]]
) -> None:
    trees = [tree for spec in filters if (tree := parse_filter(spec)) is not None]
    index, model = BM25Index(), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.search.filter_masks.FEW_CHANGED", few)
        for where in ("field_builder", "field_merge"):
            patch.setattr(f"bm25rag.metadata.{where}.MAX_FIELDS", most)
        for step in steps:
            earlier = index.tune(k1=1.0), dict(model)
            index = take(index, model, step)
            for filter in trees:
                assert_same_answers(index, model, filter)
                assert_same_answers(*earlier, filter)


def assert_same_answers(index: BM25Index, model: dict[str, dict[str, Any]], filter: Filter) -> None:
    """Compare everything that takes a filter with the filter asked about every document."""
    passing = [id for id, metadata in model.items() if filter.matches(id, metadata)]
    assert index.ids(filter) == passing
    assert index.count(filter) == len(passing)
    hits = index.search(["x"], k=len(model), filter=filter)
    assert [hit.id for hit in hits] == passing
    assert [document.id for document in index.get(list(model), filter)] == passing

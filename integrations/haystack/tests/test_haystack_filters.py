"""Filters mean what Haystack's own function says they mean."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from haystack import Document
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.errors import FilterError
from haystack.utils.filters import document_matches_filter
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from haystack_integrations.document_stores.bm25rag.filters import DateComparison
from hypothesis import example, given, settings
from hypothesis import strategies as st


class Colour(Enum):
    """Colours."""

    RED = "red"


PLUS_TWO = timezone(timedelta(hours=2))

VALUES: list[Any] = [
    None, True, False, 0, 1, 2, -1, 1.0, 0.5, 2**70, float("inf"),
    "", "a", "b", "1", "a.b", "2024", "20240101", "2024-01-01", "2024-01-01T00:00:00",
    "2024-01-01T00:00:00Z", "2024-01-01T02:00:00+02:00", "2024-01-01 00:00", "2023-12-31T23:00",
    "2024-01-01T00:00:00-05:00", "2024-13-01", "January 1, 2024",
    date(2024, 1, 1), date(2025, 1, 1),
    datetime(2024, 1, 1), datetime(2024, 1, 1, 2, tzinfo=PLUS_TWO),
    datetime(2024, 1, 1, 5, tzinfo=UTC), datetime(2024, 1, 1, 1),
    "2024-01-01T24:00", "20240101T000000Z", "2024-W01-1", "2024-01-01T00:00:00.000001Z", "10:30",
    "Mon, 01 Jan 2024 00:00:00 GMT", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), datetime(2024, 10, 27, 0, 30),
    datetime(9999, 12, 31, 23, 59, 59, 999999, timezone(-timedelta(hours=14))),
    datetime(2024, 10, 27, 0, 30, tzinfo=UTC), datetime(2024, 1, 1, 0, 0, 0, 1), float("nan"),
    [], [1], [True], ["a"], ["2024-01-01"], {}, {"b": 1}, {"b": True}, {"b": {"c": "a"}},
]  # fmt: skip
STORABLE = [value for value in VALUES if value != float("inf")]
BERLIN = ZoneInfo("Europe/Berlin")
OPERANDS = [
    *VALUES, datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN), datetime(2024, 1, 1, 1, tzinfo=BERLIN),
    datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN), [float("nan")], {"b": float("nan")},
]  # fmt: skip
ORDERABLE: list[Any] = [
    None, True, False, 0, 1, 0.5, 2**70, float("inf"), "20240101", "2024-01-01",
    "2024-01-01T00:00:00Z", "2024-01-01T02:00:00+02:00", date(2024, 1, 1), datetime(2024, 1, 1),
    datetime(2024, 1, 1, 2, tzinfo=PLUS_TWO), datetime(2024, 1, 1, tzinfo=UTC), float("nan"),
    datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN), "2024-01-01T00:00:00.000001", "January 1, 2024",
    datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN), "Mon, 01 Jan 2024 01:00:00 +0100",
    "9999-12-31T23:59:59-14:00",
]  # fmt: skip
FIELDS = ["meta.a", "a", "meta.x", "x", "id", "content", "score", "meta", "embedding", "blob",
          "sparse_embedding", "meta.a.b", "meta.a.b.c", "nowhere.a", "content.a"]  # fmt: skip


def expected(filters: dict[str, Any], document: Document) -> bool:
    """Ask Haystack; where it raises because values do not compare, they do not pass.

    Days, which it orders with days alone, are ordered as their midnights.
    """
    if "field" not in filters:
        results = [expected(condition, document) for condition in filters["conditions"]]
        return {"AND": all(results), "OR": any(results), "NOT": not all(results)}[
            filters["operator"]
        ]
    if filters["operator"] in (">", ">=", "<", "<="):
        filters = {**filters, "value": midnight(filters["value"])}
        document = replace(document, meta={k: midnight(v) for k, v in document.meta.items()})
    try:
        return document_matches_filter(filters, document)
    except (FilterError, TypeError, ValueError, ArithmeticError, AttributeError):
        return False


def midnight(value: Any) -> Any:
    return datetime(value.year, value.month, value.day) if type(value) is date else value


def comparison(field: str, operator: str, value: object) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


fields = st.sampled_from(FIELDS)
comparisons = st.one_of(
    st.builds(comparison, fields, st.sampled_from(["==", "!="]), st.sampled_from(OPERANDS)),
    st.builds(
        comparison,
        fields.filter(lambda field: field != "id"),
        st.sampled_from([">", ">=", "<", "<="]),
        st.sampled_from(ORDERABLE),
    ),
    st.builds(
        comparison,
        fields,
        st.sampled_from(["in", "not in"]),
        st.lists(st.sampled_from(OPERANDS), max_size=4),
    ),
)
filters = st.recursive(
    comparisons,
    lambda inner: st.builds(
        lambda operator, conditions: {"operator": operator, "conditions": conditions},
        st.sampled_from(["AND", "OR", "NOT"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    """Make a document for every value, and some that have more than content and meta."""
    values = [Document(id=str(n), meta={"a": value}) for n, value in enumerate(STORABLE)]
    return [
        *values,
        Document(id="empty", content=""),
        Document(id="2024-01-01", content="2024-01-01T00:00:00Z", score=1.0),
        Document(id="a", content="a", embedding=[1.0, 0.5], meta={"x": "a", "a.b": 1}),
        Document(id="b", blob=ByteStream(b"a"), sparse_embedding=SparseEmbedding([1], [0.5])),
    ]


@pytest.fixture(scope="module")
def corpus_store(corpus: list[Document]) -> BM25DocumentStore:
    store = BM25DocumentStore()
    store.write_documents(corpus)
    return store


@settings(max_examples=150, deadline=None, derandomize=True)
@example(comparison("meta.a", "in", []))
@example({"operator": "OR", "conditions": []})
@example({"operator": "NOT", "conditions": []})
@given(filters)
def test_a_filter_passes_what_haystacks_own_function_passes(
    corpus: list[Document], corpus_store: BM25DocumentStore, filters: dict[str, Any]
) -> None:
    passed = [document.id for document in corpus_store.filter_documents(filters)]
    assert passed == [document.id for document in corpus if expected(filters, document)]


@pytest.mark.parametrize("operator", ["==", "!=", ">", ">=", "<", "<="])
def test_every_pair_of_values_compares_as_haystack_compares_it(
    corpus: list[Document], corpus_store: BM25DocumentStore, operator: str
) -> None:
    for value in OPERANDS if operator in ("==", "!=") else ORDERABLE:
        asked = comparison("meta.a", operator, value)
        passed = [document.id for document in corpus_store.filter_documents(asked)]
        assert passed == [one.id for one in corpus if expected(asked, one)], asked


def test_a_day_is_ordered_as_its_midnight_whatever_it_is_compared_with(
    store: BM25DocumentStore,
) -> None:
    """YAML reads 2024-01-01 as a day, and OpenSearch orders what JSON makes of it."""
    at = [date(2024, 1, 1), "2024-01-01T00:00:00Z", datetime(2024, 1, 1, 0, 0, 1)]
    store.write_documents([Document(id=str(n), meta={"at": one}) for n, one in enumerate(at)])
    for operand in (
        date(2024, 1, 1),
        np.datetime64("2024-01-01"),
        "2024-01-01",
        datetime(2024, 1, 1),
    ):
        passed = store.filter_documents(comparison("meta.at", ">=", operand))
        assert [one.id for one in passed] == ["0", "1", "2"], operand
        passed = store.filter_documents(comparison("meta.at", ">", operand))
        assert [one.id for one in passed] == ["2"], operand
    assert store.count_documents_by_filter(comparison("meta.at", "==", date(2024, 1, 1))) == 1


def test_contains_looks_into_lists_and_strings_of_the_meta(store: BM25DocumentStore) -> None:
    metas = ({"tags": ["news", 1]}, {"tags": "newspaper"}, {"tags": ["New"]}, {"other": "news"}, {})
    store.write_documents([Document(id=f"{n}", meta=meta) for n, meta in enumerate(metas)])

    def found(field: str, value: object, *around: str) -> list[str]:
        filters: dict[str, Any] = {"field": field, "operator": "contains", "value": value}
        for name in around:
            filters = {"operator": name, "conditions": [filters]}
        return [document.id for document in store.filter_documents(filters)]

    assert found("meta.tags", "news") == ["0", "1"]
    assert found("tags", 1) == ["0"]
    assert found("meta.tags", "news", "NOT") == ["2", "3", "4"]
    assert found("id", "3", "AND") == ["3"]
    assert found("none.tags", "news") == []
    with pytest.raises(FilterError, match=r"operator 'contains' is for the meta, got .*'con"):
        found("content", "news")


def test_not_means_not_all(filled: BM25DocumentStore) -> None:
    conditions = [comparison("meta.lang", "==", "en"), comparison("meta.year", "==", 2021)]
    passed = filled.filter_documents({"operator": "NOT", "conditions": conditions})
    assert [document.id for document in passed] == ["dog", "hund", "fish"]


@pytest.mark.parametrize(
    "value",
    [(0, 5), np.int64(3), np.float32(0.5), np.array([1, 2]), Path("a.md"), Decimal("1.5"),
     UUID(int=5), Colour.RED, np.datetime64("2024-01-01T10:00"), OrderedDict(a=(1, 2)), [(1, 2)]],
)  # fmt: skip
def test_what_was_written_is_found_by_the_same_value(store: BM25DocumentStore, value: Any) -> None:
    store.write_documents([Document(id="1", meta={"a": value}), Document(id="2", meta={"a": "x"})])
    for filters in (comparison("meta.a", "==", value), comparison("meta.a", "in", [value, 7])):
        assert [one.id for one in store.filter_documents(filters)] == ["1"]
    for filters in (comparison("meta.a", "!=", value), comparison("meta.a", "not in", [value])):
        assert [one.id for one in store.filter_documents(filters)] == ["2"]


def test_numbers_of_numpy_order_as_pythons(store: BM25DocumentStore) -> None:
    store.write_documents([Document(id=str(n), meta={"a": n}) for n in range(3)])
    passed = store.filter_documents(comparison("meta.a", ">", np.int64(1)))
    assert [one.id for one in passed] == ["2"]


def test_numbers_that_are_not_finite_equal_nothing_and_order_with_nothing(
    store: BM25DocumentStore,
) -> None:
    values = [1.0, float("nan"), float("inf"), float("-inf")]
    store.write_documents([Document(id=str(n), meta={"a": one}) for n, one in enumerate(values)])
    for value in values[1:]:
        assert store.filter_documents(comparison("meta.a", "==", value)) == []
    for operator in (">", "<="):
        passed = store.filter_documents(comparison("meta.a", operator, 0.5))
        assert [one.id for one in passed] == (["0"] if operator == ">" else [])
    assert store.count_documents_by_filter(comparison("meta.a", "<", float("inf"))) == 1
    assert store.count_documents_by_filter(comparison("meta.a", "!=", 1.0)) == 3


def test_a_naive_date_takes_the_zone_of_what_it_is_compared_with(store: BM25DocumentStore) -> None:
    store.write_documents([Document(id="1", meta={"at": "2024-01-01T00:30:00+02:00"})])
    assert store.filter_documents(comparison("meta.at", ">=", "2024-01-01"))
    assert not store.filter_documents(comparison("meta.at", ">=", "2024-01-01T00:00:00Z"))


def test_nan_is_different_from_everything_and_orders_with_nothing(store: BM25DocumentStore) -> None:
    metas = [{"a": 1.5}, {"a": float("nan")}, {"a": "x"}, {"a": [float("nan")]}, {}]
    store.write_documents([Document(id=str(n), meta=meta) for n, meta in enumerate(metas)])
    nan = float("nan")
    for operator in (">", ">=", "<", "<=", "=="):
        assert store.filter_documents(comparison("meta.a", operator, nan)) == []
    assert store.count_documents_by_filter(comparison("meta.a", "!=", nan)) == len(metas)
    assert store.count_documents_by_filter(comparison("meta.a", "not in", [nan, "x"])) == 4
    assert store.count_documents_by_filter(comparison("meta.a", "in", [nan, 1.5])) == 1


def test_each_string_is_read_as_a_date_once_whatever_it_is_compared_with(
    store: BM25DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["Mon, 01 Jan 2024 00:00:00 GMT", "January 2, 2024", "2024-W02-1", "no date", "2024-03"]
    at = [datetime(2024, 1, 1), datetime(2024, 5, 1, tzinfo=PLUS_TWO), datetime(2024, 2, 1)]
    metas = [{"a": value} for value in [*texts, *at]]
    store.write_documents([Document(id=str(n), meta=meta) for n, meta in enumerate(metas)])
    read: list[str] = []
    original = DateComparison.read
    monkeypatch.setattr(
        DateComparison, "read", lambda self, text: read.append(text) or original(self, text)
    )
    for day in range(1, 29):
        asked = comparison("meta.a", ">=", datetime(2024, 1, day, tzinfo=UTC))
        passed = [one.id for one in store.filter_documents(asked)]
        documents = [Document(id=str(n), meta=meta) for n, meta in enumerate(metas)]
        assert passed == [document.id for document in documents if expected(asked, document)]
    assert sorted(read) == sorted(texts)


def test_keys_with_dollars_and_backslashes_are_taken_literally(store: BM25DocumentStore) -> None:
    store.write_documents([Document(id="1", meta={"$id": 2, "a\\b": {"$gt": 3}})])
    assert store.filter_documents(comparison("meta.$id", "==", 2))
    assert store.filter_documents(comparison("meta.a\\b.$gt", "==", 3))
    assert not store.filter_documents(comparison("meta.$id", "==", "1"))


def test_a_value_that_cannot_be_compared_does_not_pass_and_stops_nobody(
    store: BM25DocumentStore,
) -> None:
    store.write_documents(
        [Document(id="text", meta={"year": "soon"}), Document(id="number", meta={"year": 2024})]
    )
    passed = store.filter_documents(comparison("meta.year", ">", 2000))
    assert [document.id for document in passed] == ["number"]


def test_a_search_is_filtered_before_it_is_ranked(filled: BM25DocumentStore) -> None:
    results = filled.bm25_retrieval("cat", comparison("meta.lang", "==", "de"), top_k=1)
    assert [document.id for document in results] == ["hund"]


def test_a_search_can_be_filtered_by_what_is_not_meta(filled: BM25DocumentStore) -> None:
    asked = comparison("content", "==", "Dogs chase the cat.")
    assert [one.id for one in filled.bm25_retrieval("cat", asked)] == ["dog"]
    assert filled.count_documents_by_filter(asked) == 1


def test_values_that_print_alike_are_told_apart(store: BM25DocumentStore) -> None:
    long = [ByteStream(b"x" * 10_000 + end) for end in (b"1", b"2")]
    assert repr(long[0]) == repr(long[1])
    store.write_documents([Document(id=str(n), blob=blob) for n, blob in enumerate(long)])
    for n, blob in enumerate(long):
        passed = store.filter_documents(comparison("blob", "==", blob))
        assert [document.id for document in passed] == [str(n)]


def test_a_filter_sees_a_write_that_came_after_its_first_use(filled: BM25DocumentStore) -> None:
    asked = comparison("meta.lang", "in", ["en", "2024-01-01"])
    assert filled.count_documents_by_filter(asked) == 2
    filled.write_documents([Document(content="late", meta={"lang": "en"})])
    assert filled.count_documents_by_filter(asked) == 3


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"operator": "AND"}, "filters has no 'conditions'"),
        ({"conditions": []}, "filters has no 'operator'"),
        ({"operator": "XOR", "conditions": []}, "filters.operator must be one of 'AND', 'OR', "),
        ({"operator": "AND", "conditions": {}}, "filters.conditions must be a list, got dict"),
        ({"operator": "AND", "conditions": [{}]}, r"filters.conditions\[0\] has no 'operator'"),
        ({"operator": "OR", "conditions": ["a"]}, r"filters.conditions\[0\] must be a dict"),
        (comparison("meta.a", "like", 1), "filters.operator must be one of '==', '!=', '>'"),
        ({"field": "meta.a", "operator": "=="}, "filters has no 'value'"),
        ({"field": 1, "operator": "==", "value": 1}, "filters.field must be a str, got int"),
        (comparison("meta.a", "in", "abc"), "filters.value of 'in' must be a list, got str"),
        (comparison("meta.a", ">", [1]), "filters.value of '>' must not be a list"),
        (comparison("meta.a", "<", "soon"), "must be an ISO date if it is a string, got 'soon'"),
        (comparison("meta.a", ">", "10:30"), "must be an ISO date if it is a string, got '10:30'"),
        (comparison("meta.a", "==", {1}), r"filters.value: .*got set; .* sorted"),
        (comparison("meta.a", "in", ["a", b"b"]), r"filters.value.1: expected str, .*got bytes;"),
        (
            comparison("meta.a", ">", {}),
            "^filters.value of '>': expected a number, string, date or datetime, got dict",
        ),
        (comparison("meta.a", "==", [{1: 2}]), r"filters.value.0: .*key 1"),
        (
            {"lang": "en"},
            r"filters has no 'operator': .*; write it as in \{'field': 'meta.year', 'operator': ",
        ),
    ],
)
def test_what_is_malformed_is_haystacks_error_and_points_at_the_place(
    store: BM25DocumentStore, filters: dict[str, Any], message: str
) -> None:
    with pytest.raises(FilterError, match=message):
        store.filter_documents(filters)
    with pytest.raises(FilterError, match=message):
        store.bm25_retrieval("cat", filters)


def test_a_filter_that_holds_itself_is_an_error(store: BM25DocumentStore) -> None:
    endless: dict[str, Any] = {"operator": "AND"}
    endless["conditions"] = [endless]
    with pytest.raises(FilterError, match="nested more than 100 levels"):
        store.filter_documents(endless)


@pytest.mark.parametrize("filters", ["meta.a", [], 3, {"a"}])
def test_what_is_no_filter_is_a_type_error_that_names_it(
    store: BM25DocumentStore, filters: Any
) -> None:
    with pytest.raises(TypeError, match="filters must be a dict or None"):
        store.filter_documents(filters)

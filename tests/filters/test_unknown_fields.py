"""Filters that can find nothing since no document has their field: a warning, or $strict."""

from __future__ import annotations

import pickle
import re
import warnings
from ast import literal_eval
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index, Document
from bm25rag.errors import FilterError, FilterWarning
from bm25rag.filters import And, Not, parse_filter
from bm25rag.hybrid import HybridSearch
from bm25rag.open_shard import open_shard

METADATA: list[dict[str, Any]] = [
    {"year": 2020, "lang": "en"},
    {"year": 2024, "author": {"name": "x"}, "tags": ["a"]},
    {"a.b": 1},
]


@pytest.fixture
def index() -> BM25Index:
    index = BM25Index.from_texts(["red"] * 3, metadata=METADATA, vectors=[{"red": 1.0}] * 3)
    index.add(["red"], metadata=[{"gone": 1}])
    index.delete(["3"])
    index.update_metadata(["0"], [{"year": 2020, "lang": "en", "new": 1}])
    return index


CALLS: dict[str, Callable[[BM25Index, Any], object]] = {
    "search": lambda index, filter: index.search("red", filter=filter),
    "search_batch": lambda index, filter: index.search_batch(["red"], filter=filter),
    "explain": lambda index, filter: index.explain("red", "0", filter),
    "expand": lambda index, filter: index.expand("red", filter=filter),
    "correct": lambda index, filter: index.correct("red", filter),
    "search_hybrid": lambda index, filter: index.search_hybrid("red", {"red": 1.0}, filter=filter),
    "get": lambda index, filter: index.get(["0"], filter),
    "count": lambda index, filter: index.count(filter),
    "ids": lambda index, filter: index.ids(filter),
    "delete": lambda index, filter: index.delete(["0"], filter),
    "delete by filter": lambda index, filter: index.delete(filter=filter),
    "vectors.search": lambda index, filter: index.vectors.search({"red": 1.0}, filter=filter),
    "vectors.search_batch": lambda index, filter: index.vectors.search_batch([], filter=filter),
    "vectors.explain": lambda index, filter: index.vectors.explain({"red": 1.0}, "0", filter),
    "snapshot": lambda index, filter: index.snapshot().search("red", filter=filter),
    "HybridSearch": lambda index, filter: HybridSearch(index, "red", filter=filter).hits(),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)

LIKE_OPERATORS: list[tuple[Any, str]] = [
    ({"year": {"gte": 2}}, "{'year': {'$gte': 2}}"),
    ({"year": {"gte": 2, "lt": 5}}, "{'year': {'$gte': 2, '$lt': 5}}"),
    ({"year": {">=": 2}}, "{'year': {'$gte': 2}}"),
    ({"author": {"name": {"eq": "x"}}}, "{'author.name': {'$eq': 'x'}}"),
    ({"author.name": {"in": ["x"]}}, "{'author.name': {'$in': ['x']}}"),
    ({"year": {"not_in": [1]}}, "{'year': {'$nin': [1]}}"),
    ({"tags": {"contains_any": ["a"]}}, "{'tags': {'$containsAny': ['a']}}"),
    ({"must": [{"year": 1}]}, "{'$and': [{'year': 1}]}"),
    ({"should": {"year": 1}}, "{'$or': [{'year': 1}]}"),
    ({"and": [{"year": 1}]}, "{'$and': [{'year': 1}]}"),
    ({"OR": [{"year": 1}]}, "{'$or': [{'year': 1}]}"),
    ({"not": {"year": 1}}, "{'$not': {'year': 1}}"),
    ({"must_not": [{"year": 1}]}, "{'$not': {'$or': [{'year': 1}]}}"),
    ({"filter": {"year": 1}}, "{'$and': [{'year': 1}]}"),
    ({"$or": [{"lang": "en"}, {"must": [{"year": 1}]}]}, "{'$and': [{'year': 1}]}"),
    ({"year__gte": 2}, "{'year': {'$gte': 2}}"),
    ({"author__name__in": ["x"]}, "{'author.name': {'$in': ['x']}}"),
    ({"field": "year", "operator": ">=", "value": 2}, "{'year': {'$gte': 2}}"),
    ({"key": "lang", "op": "not in", "value": ["en"]}, "{'lang': {'$nin': ['en']}}"),
    (
        {"operator": "OR", "conditions": [{"field": "year", "operator": "==", "value": 1}]},
        "{'$or': [{'year': {'$eq': 1}}]}",
    ),
    ({"year": {"or": [{"gte": 1}]}}, "{'$or': [{'year': '...'}, '...']}"),
]
# Of Elasticsearch, Qdrant, Weaviate and Bedrock, and how they and others call id and metadata.
OF_SERVERS: list[tuple[Any, str]] = [
    ({"term": {"lang": "en"}}, "{'lang': {'$eq': 'en'}}"),
    ({"term": {"lang": {"value": "en"}}}, "{'lang': {'$eq': 'en'}}"),
    ({"terms": {"year": [2020, 2024]}}, "{'year': {'$in': [2020, 2024]}}"),
    ({"range": {"year": {"gte": 2020, "lt": 2024}}}, "{'year': {'$gte': 2020, '$lt': 2024}}"),
    ({"exists": {"field": "lang"}}, "{'lang': {'$exists': True}}"),
    ({"bool": {"must": [{"term": {"lang": "en"}}]}}, "{'$and': [{'lang': {'$eq': 'en'}}]}"),
    (
        {"bool": {"filter": {"term": {"lang": "en"}}, "must_not": {"term": {"year": 1}}}},
        "{'$and': [{'$and': [{'lang': {'$eq': 'en'}}]}, {'$not': {'year': {'$eq': 1}}}]}",
    ),
    ({"key": "lang", "match": {"value": "en"}}, "{'lang': {'$eq': 'en'}}"),
    ({"must": [{"key": "year", "range": {"gt": 1}}]}, "{'$and': [{'year': {'$gt': 1}}]}"),
    (
        {"must_not": [{"key": "lang", "match": {"any": ["de"]}}]},
        "{'$not': {'$or': [{'lang': {'$in': ['de']}}]}}",
    ),
    ({"has_id": [0]}, "{'$id': {'$in': ['0']}}"),
    ({"must": [{"has_id": ["0"]}]}, "{'$and': [{'$id': {'$in': ['0']}}]}"),
    ({"ids": {"values": ["0", "1"]}}, "{'$id': {'$in': ['0', '1']}}"),
    (
        {"path": ["lang"], "operator": "Equal", "valueText": "en"},
        "{'lang': {'$eq': 'en'}}",
    ),
    (
        {
            "operator": "Or",
            "operands": [
                {"path": ["year"], "operator": "GreaterThanEqual", "valueInt": 2024},
                {"path": "tags", "operator": "ContainsAny", "valueText": ["a"]},
            ],
        },
        "{'$or': [{'year': {'$gte': 2024}}, {'tags': {'$containsAny': ['a']}}]}",
    ),
    (
        {"field": "lang", "value_type": "str", "op": "eq", "value": "en"},
        "{'lang': {'$eq': 'en'}}",
    ),
    ({"equals": {"key": "lang", "value": "en"}}, "{'lang': {'$eq': 'en'}}"),
    ({"listContains": {"key": "tags", "value": "a"}}, "{'tags': {'$contains': 'a'}}"),
    (
        {"andAll": [{"lessThanOrEquals": {"key": "year", "value": 2020}}]},
        "{'$and': [{'year': {'$lte': 2020}}]}",
    ),
    (
        {"orAll": [{"notIn": {"key": "lang", "value": ["de"]}}]},
        "{'$or': [{'lang': {'$nin': ['de']}}]}",
    ),
    ({"id": "0"}, "{'$id': '0'}"),
    ({"_id": {"$in": ["0"]}}, "{'$id': {'$in': ['0']}}"),
    ({"metadata.lang": "en"}, "{'lang': 'en'}"),
    ({"meta.year": {"$gte": 2020}}, "{'year': {'$gte': 2020}}"),
]


@pytest.mark.parametrize(
    ("filter", "meant"), [*LIKE_OPERATORS, *OF_SERVERS], ids=lambda one: str(one)[:40]
)
def test_what_looks_like_an_operator_is_warned_of_with_the_right_spelling(
    index: BM25Index, filter: Any, meant: str
) -> None:
    with pytest.warns(FilterWarning) as caught:
        index.count(filter)
    assert [warning.filename for warning in caught] == [__file__]
    message = str(caught[0].message)
    assert message.endswith(f"did you mean {meant}?")
    assert "\n" not in message


def test_a_list_where_no_document_has_one_is_told_how_any_of_it_is_asked_for(
    index: BM25Index,
) -> None:
    lists = {"lang": ["en", "de"]}, {"author.name": ("x",)}, {"$not": {"year": [2020]}}
    for filter, field in zip(
        (*lists, {r"a\.b": [1]}), ("lang", "author.name", "year", r"a\.b"), strict=True
    ):
        told = re.escape(f"has a list in the field {field!r}, so")
        with pytest.warns(FilterWarning, match=told) as caught:
            index.count(filter)
        meant = str(caught[0].message).partition("did you mean ")[2].removesuffix("?")
        assert index.count(literal_eval(meant)) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert index.count({"tags": ["a"]}) == 1
        assert index.count({"tags": ["b"]}) == 0
        assert index.count({"lang": {"$eq": ["en"]}}) == 0
        assert index.count({"missing": ["a"], "lang": []}) == 0
        index.update_metadata(["0"], [{"lang": []}])
        assert index.count({"lang": ["en"]}) == 0
    with pytest.raises(FilterError, match=r"got bytes$"):
        index.count({"lang": [b"en"]})


MISTYPED: list[tuple[Any, Any]] = [
    ({"tags": "a"}, {"tags": {"$containsAny": ["a"]}}),
    ({"tags": {"$in": ["a", "none"]}}, {"tags": {"$containsAny": ["a", "none"]}}),
    ({"tags": "a", "year": 2024}, {"tags": {"$containsAny": ["a"]}}),
    ({"year": "2020"}, {"year": 2020}),
    ({"year": "2020.0"}, {"year": 2020.0}),
    ({"year": {"$in": ["2020", "x"]}}, {"year": {"$in": [2020]}}),
    ({"year": {"$in": ["2020", 10**5000]}}, {"year": {"$in": [2020]}}),
    ({"year": {"$gte": "2020"}}, {"year": {"$gte": 2020}}),
    ({"author.name": 7}, {"author.name": "7"}),
]


@pytest.mark.parametrize(("filter", "meant"), MISTYPED)
def test_a_filter_that_passes_nothing_since_types_differ_is_told(
    index: BM25Index, filter: Any, meant: Any
) -> None:
    index.add(["red"], metadata=[{"author": {"name": "7"}}])
    with pytest.warns(FilterWarning, match="value has another type") as caught:
        assert index.count(filter) == 0
    assert [warning.filename for warning in caught] == [__file__]
    told = str(caught[0].message).partition("did you mean ")[2].removesuffix("?")
    assert literal_eval(told) == meant
    assert index.count(meant) > 0
    with pytest.warns(FilterWarning, match="value has another type"):
        assert index.search("red", filter=filter) == []
    with pytest.raises(FilterError, match="value has another type"):
        index.count({"$strict": filter})


def test_the_type_of_what_a_view_does_not_show_is_not_told(index: BM25Index) -> None:
    view = index.restricted({"lang": "en"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert view.count({"tags": "a"}) == view.count({"year": "2024"}) == 0
    with pytest.warns(FilterWarning, match="did you mean {'year': 2020}"):
        assert view.count({"year": "2020"}) == 0


@pytest.mark.parametrize(
    "filter",
    [
        {"year": 1}, {"year": "1"}, {"missing": "a"}, {"tags": {"$contains": "none"}}, {"lang": 1},
        {"lang": "fr", "year": 2020}, {"year": "nan"}, {"year": "9" * 5000}, {"year": "1e999"},
        {"year": {"$in": []}}, {"year": {"$lt": "x"}}, {"tags": True}, {"lang": "e"},
    ],
)  # fmt: skip
def test_a_filter_that_passes_nothing_whatever_the_types_are_is_not(
    index: BM25Index, filter: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert index.count(filter) == 0
        assert index.count({"$not": filter}) == len(index)


@pytest.mark.parametrize("meant", [meant for _, meant in OF_SERVERS])
def test_what_is_meant_by_a_filter_of_a_server_finds_something(
    index: BM25Index, meant: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert index.count(literal_eval(meant)) > 0


@pytest.mark.parametrize("names", [["must"], ["must", "should", "bool", "filter"], "abcdefghij"])
@pytest.mark.parametrize("name", ["must", "bool", "id", "metadata.x", "x"])
@pytest.mark.parametrize("listed", [True, False])
def test_a_filter_that_contains_itself_is_refused_before_it_is_respelled_without_end(
    name: str, names: Sequence[str], listed: bool
) -> None:
    inner: dict[str, Any] = {}
    inner |= dict.fromkeys(names, [inner, inner] if listed else inner)
    endless: list[Any] = []
    endless.append(endless)
    for filter in ({name: inner}, {name: endless}):
        with pytest.raises(FilterError, match="at most 100 levels"):
            parse_filter(filter)


@pytest.mark.parametrize("name", ["id", "metadata.n", "n__gte"])
def test_a_number_that_python_does_not_write_is_no_reason_to_refuse_a_filter(name: str) -> None:
    index = BM25Index.from_texts(["red"], metadata=[{"id": 1, "metadata": {"n": 1}, "n__gte": 1}])
    assert index.count({name: 10**5000}) == 0
    assert index.count({name: {"$lt": 10**5000}}) == 1
    assert index.count({name: {"$in": {10**5000, 1}}}) == 1


@calls
def test_every_call_that_takes_a_filter_warns(
    index: BM25Index, call: Callable[[BM25Index, Any], object]
) -> None:
    # The document may not pass, which explain says with an error.
    with pytest.warns(FilterWarning, match=r"no document has the field 'year\.gte'"):
        call(index, {"$or": [{"lang": "en"}, {"year": {"gte": 2}}]})


@pytest.mark.parametrize(
    "filter",
    [
        {"range": {"gte": 2}},
        {"must": [1]},
        {"range": {"gte": 3}},
        {"filter": "coffee"},
        {"not": True},
        {"missing": {"name": 1}},
        {"range": {"$eq": {"gte": 2}}},
        {"key": "x", "range": {"$gte": 2}},
        {"missing": {"$eq": {"gte": 2}}},
    ],
)
def test_a_field_that_a_document_has_and_plain_values_are_left_alone(filter: Any) -> None:
    index = BM25Index.from_texts(["red"], metadata=[{"range": {"gte": 2}, "must": [1]}])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.count(filter)
        assert BM25Index().count(filter) == 0


def test_an_empty_index_warns_of_nothing() -> None:
    assert BM25Index().count({"year": {"gte": 2}}) == 0


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ({"a": {"$like": "x"}}, r"did you mean \$contains or \$icontains or \$startswith\?"),
        ({"a": {"$regex": "x"}}, r"did you mean \$contains or"),
        ({"a": {"$GTE": 1}}, r"did you mean \$gte\?"),
        ({"a": {"$not_in": [1]}}, r"did you mean \$nin\?"),
        ({"a": {"$notin": [1]}}, r"did you mean \$nin\?"),
        ({"a": {"$neq": 1}}, r"did you mean \$ne\?"),
        ({"a": {"$between": [1, 2]}}, r"did you mean \$gte or \$lte\?"),
        ({"a": {"$containsNay": [1]}}, r"did you mean \$containsAny\?"),
        ({"a": {"$all": [1]}}, r"did you mean \$containsAll\?"),
        ({"a": {"$any": [1]}}, r"did you mean \$containsAny\?"),
        ({"a": {"$gt": 1, "lte": 2}}, r"did you mean \$lte\?"),
        ({"a": {"not": {"$gt": 1}}}, r"did you mean \{'a': \{'\$not': \{'\$gt': 1\}\}\}\?"),
        ({"must": [{"a": {"$gt": 1}}]}, r"did you mean \{'\$and': \[\{'a': \{'\$gt': 1\}\}\]\}\?"),
        ({"$must": []}, r"did you mean \$and\?"),
        ({"$nor": []}, r"did you mean \$not\?"),
        ({"$foo": []}, r"unknown name; known here: \$and"),
    ],
)
def test_operators_of_other_languages_are_refused_with_the_nearest_right_ones(
    filter: Any, message: str
) -> None:
    with pytest.raises(FilterError, match=message):
        parse_filter(filter)


# --- $strict ----------------------------------------------------------------------------------


@calls
def test_strict_refuses_a_field_that_no_document_has_in_every_call(
    index: BM25Index, call: Callable[[BM25Index, Any], object]
) -> None:
    call(index, {"$strict": {"year": {"$exists": True}}})
    for filter in (
        {"$strict": {"yaer": 2020}},
        {"$or": [{"lang": "en"}, {"$strict": {"yaer": 1}}]},
    ):
        with pytest.raises(FilterError, match=r"\$strict: no document has the field 'yaer'"):
            call(index, filter)


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ({"yaer": 1}, r"did you mean 'year'\? known fields: 'year', "),
        ({"author.nam": "x"}, r"did you mean 'author\.name'\?"),
        ({"a": 1}, r"no document has the field 'a'"),
        ({"zzz": {"$exists": False}}, r"'zzz'; known fields: .*'lang'"),
        ({"gone": 1}, "no document has the field 'gone'"),
        ({"$not": {"$or": [{"year": 1}, {"zzz": 1}]}}, "'zzz'"),
        ({"year": {"gte": 1}, "zzz": 1}, "'zzz'"),
        ({"author": {"$strict": 1}}, r"unknown operator"),
    ],
)
def test_strict_says_what_to_change(index: BM25Index, filter: Any, message: str) -> None:
    with pytest.raises(FilterError, match=message) as caught:
        index.count({"$strict": filter})
    assert "'gone'" not in str(caught.value).partition("known fields")[2]


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ({"year": {"$gte": 2020}}, ["0", "1"]),
        ({"new": 1}, ["0"]),
        ({"a\\.b": 1}, ["2"]),
        ({"author.name": "x", "tags": {"$contains": "a"}}, ["1"]),
        ({"$id": "2"}, ["2"]),
        ({"1", "2"}, ["1", "2"]),
        (lambda metadata: "year" in metadata, ["0", "1"]),
        ({}, ["0", "1", "2"]),
    ],
)
def test_strict_changes_nothing_where_the_fields_are_known(
    index: BM25Index, filter: Any, found: list[str]
) -> None:
    for spec in ({"$strict": filter}, parse_filter({"$strict": filter})):
        assert index.ids(spec) == found
        assert [hit.id for hit in index.search("red", filter=spec)] == found
    assert index.count({"$not": {"$strict": filter}}) == 3 - len(found)


def test_strict_refuses_nothing_of_an_empty_index() -> None:
    index = BM25Index()
    assert index.ids({"$strict": {"yaer": 1}}) == []
    index.add(["red"])
    with pytest.raises(FilterError, match="known fields: none"):
        index.ids({"$strict": {"yaer": 1}})


def test_at_most_ten_fields_are_named() -> None:
    index = BM25Index.from_texts(["red"], metadata=[{f"field{n}": n for n in range(50)}])
    with pytest.raises(FilterError) as caught:
        index.count({"$strict": {"feild7": 1}})
    assert "did you mean 'field7'?" in str(caught.value)
    assert str(caught.value).count("'field") == 11


def test_a_parsed_strict_filter_keeps_its_demands_when_it_is_combined_and_pickled(
    index: BM25Index,
) -> None:
    strict = parse_filter({"$strict": {"yaer": 1}})
    assert strict is not None
    for filter in (strict, And((strict,)), Not(strict), pickle.loads(pickle.dumps(strict))):
        with pytest.raises(FilterError, match="yaer"):
            index.count(filter)


def test_shards_have_fields_together(tmp_path: Path) -> None:
    documents = [Document(str(n), "red", {f"only{n}": n}) for n in range(4)]
    BM25Index.build(documents, tmp_path / "it", shards=4)
    index = BM25Index.open(tmp_path / "it")
    assert index.ids({"$strict": {"only2": 2}}) == ["2"]
    with pytest.raises(FilterError, match="did you mean 'only"):
        index.ids({"$strict": {"onyl9": 2}})
    # One of them leaves that to whoever asks all.
    assert open_shard(tmp_path / "it", 0).searcher.ids({"$strict": {"only2": 2}}) == []


def test_a_filter_of_many_odd_conditions_is_warned_of_once(index: BM25Index) -> None:
    odd = [{f"f{number}": {"gte": number}} for number in range(2_000)]
    with pytest.warns(FilterWarning) as caught:
        assert index.search("red", filter={"$or": odd}) == []
    (warning,) = caught
    assert str(warning.message).count("did you mean {") == 3
    assert str(warning.message).endswith("\nand 1,997 more like these")


def test_documents_may_have_fields_called_operator_and_field(index: BM25Index) -> None:
    spelled = {"field": "year", "operator": ">=", "value": 2}
    index.add(["red"], ids=["odd"], metadata=[spelled])
    assert [hit.id for hit in index.search("red", filter=spelled)] == ["odd"]

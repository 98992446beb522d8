"""Translates MetadataFilters into the core's filter language, with LlamaIndex's meaning.

LlamaIndex compares as Python does, on metadata written as JSON: ``True == 1``; dates are
ISO strings, and the adapter stores them so; CONTAINS, ANY and ALL mean ``in``. A missing or null
value passes only NE, NIN and IS_EMPTY. The condition NOT passes nodes that match none of its
filters.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from itertools import chain, product
from typing import Any

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.retrievers.bm25rag.nodes import (
    LACKS_KEY,
    NODE_KEY,
    REF_DOC_ID,
    SOURCE_PATH,
    sources_without_key,
)
from pydantic_core import to_jsonable_python

from bm25rag import BM25Index
from bm25rag.filters import FilterSpec, escape_key, parse_filter

# LlamaIndex's stores write the id of the source document under these keys.
_SOURCE_KEYS = frozenset({"doc_id", "document_id", "ref_doc_id"})

# Matches no node: no id is in the empty set.
_NOTHING: frozenset[str] = frozenset()

# How ISO strings begin.
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
# Lists pass none of these; strings, numbers, booleans and missing values pass one.
_NO_LISTS: list[dict[str, Any]] = [
    {"$gte": ""},
    {"$gte": -math.inf},
    {"$in": [None, False, True]},
    {"$exists": False},
]

_MOST_ALTERNATIVES = 1 << 12
_LONGEST_CONTAINER = 200


def check_filters(filters: object) -> MetadataFilters | None:
    """Return ``filters`` if it is ``MetadataFilters`` or ``None``; else raise ``TypeError``."""
    if filters is None or isinstance(filters, MetadataFilters):
        return filters
    raise TypeError(f"filters must be MetadataFilters or None, got {type(filters).__name__}")


def translate(
    filters: MetadataFilters | None, index: BM25Index, *, lasting: bool = False
) -> FilterSpec | None:
    """Translate ``filters`` into the core's filter language; ``None`` and an empty list pass all.

    Parameters
    ----------
    filters
        The filters.
    index
        A snapshot of the index that is filtered: its nodes may lack the key by which their source
        is looked up, and may have dates.
    lasting
        Whether the result must also hold for a later state of the index.
    """
    if filters is None or not filters.filters:
        return None
    parts = [
        (translate(part, index, lasting=lasting) or {})
        if isinstance(part, MetadataFilters)
        else _translate_one(part, index, lasting)
        for part in filters.filters
    ]
    match filters.condition:
        case None | FilterCondition.AND:
            return {"$and": parts}
        case FilterCondition.OR:
            return {"$or": parts}
        case FilterCondition.NOT:
            return {"$not": {"$or": parts}}
    raise ValueError(f"filters: unknown condition {filters.condition!r}")


def _translate_one(filter: MetadataFilter, index: BM25Index, lasting: bool) -> FilterSpec:
    of_elements, build = _OF_ELEMENTS.get(filter.operator), _OPERATORS.get(filter.operator)
    if of_elements is not None:
        spec = of_elements(filter, lasting or _may_be_text(filter.key, index))
    elif build is not None:
        spec = build(filter)
    else:
        raise ValueError(f"filter on {filter.key!r}: unknown operator {filter.operator!r}")
    if filter.key in _SOURCE_KEYS:
        return _with_lost_sources(spec, index, lasting)
    return _with_dates(spec, filter, index, lasting)


def _may_be_text(key: str, index: BM25Index) -> bool:
    """Whether a value of a key may be compared as text; a date is one."""
    path = escape_key(key)
    return key in _SOURCE_KEYS or bool(index.count({"$or": [{path: {"$gte": ""}}, *_dates(path)]}))


def _with_lost_sources(spec: FilterSpec, index: BM25Index, lasting: bool) -> FilterSpec:
    """Filter nodes without the key by the source that their payloads name."""
    lost = sources_without_key(index)
    if not lost and not lasting:
        return spec
    test = parse_filter(spec)
    bare = set(index.ids(LACKS_KEY)).difference(*lost.values())
    passing = bare if test is None or test.matches("", {}) else set[str]()
    for source, ids in lost.items():
        if test is None or test.matches("", {NODE_KEY: {REF_DOC_ID: source}}):
            passing |= ids
    # By id only while the key is missing: a node that has it was written again.
    return {
        "$or": [
            {"$and": [spec, {"$not": LACKS_KEY}]},
            {"$and": [passing, LACKS_KEY]},
        ]
    }


def _with_dates(
    spec: FilterSpec, filter: MetadataFilter, index: BM25Index, lasting: bool
) -> FilterSpec:
    """Filter dates, which were written through the core, as their ISO strings."""
    asked = filter.value if isinstance(filter.value, list) else [filter.value]
    texts = [value for value in asked if isinstance(value, str)]
    path = escape_key(filter.key)
    dated: list[FilterSpec] = []
    dates = {"$or": _dates(path)}
    if texts and (lasting or index.count(dates)):
        dated.append(dates)
    if any(map(_DATE.match, texts)):  # a date inside a list is stored unlike other text
        dated.append({"$not": {"$or": [{path: test} for test in _NO_LISTS]}})
    if not dated:
        return spec
    test = parse_filter(spec)

    def passes(metadata: dict[str, Any]) -> bool:
        written = to_jsonable_python(metadata[filter.key])
        return test is None or test.matches("", {filter.key: written})

    either = _one_of(dated)
    return {"$or": [{"$and": [spec, {"$not": either}]}, {"$and": [either, passes]}]}


def _dates(path: str) -> list[FilterSpec]:
    return [{path: {"$gte": date.min}}, {path: {"$gte": datetime.min}}]


def _refuse(filter: MetadataFilter, expected: str) -> TypeError:
    return TypeError(
        f"filter on {filter.key!r}: operator {filter.operator.value!r} takes {expected}, "
        f"got {filter.value!r:.100}"
    )


# --- paths ---------------------------------------------------------


def _path(key: str) -> str:
    return SOURCE_PATH if key in _SOURCE_KEYS else escape_key(key)


def _passing(
    filter: MetadataFilter, tests: Iterable[dict[str, Any]], below: str = ""
) -> FilterSpec:
    """Pass nodes for which one of the tests holds."""
    path = _path(filter.key) + below
    return _one_of([{path: test} for test in tests])


def _one_of(parts: list[FilterSpec]) -> FilterSpec:
    if not parts:
        return _NOTHING
    return parts[0] if len(parts) == 1 else {"$or": parts}


# --- equality as in Python --------------------------------------------------------


def _equals(filter: MetadataFilter, value: Any) -> list[Any]:
    """Return the metadata values that equal ``value`` in Python."""
    if value is None or value != value:  # NaN equals nothing
        return []
    if isinstance(value, list):
        alternatives = [_equals(filter, item) for item in value]
        if sum(len(values) > 1 for values in alternatives) > _MOST_ALTERNATIVES.bit_length() - 1:
            raise ValueError(f"filter on {filter.key!r}: a list with too many zeros and ones")
        return [list(items) for items in product(*alternatives)]
    # To the core booleans are not numbers; to Python they are.
    return [value, bool(value)] if not isinstance(value, str) and value in (0, 1) else [value]


def _members(filter: MetadataFilter) -> list[Any]:
    """Return the metadata values that are ``in`` the filter's value."""
    value = filter.value
    if isinstance(value, list):
        return list(chain.from_iterable(_equals(filter, item) for item in value))
    if not isinstance(value, str):
        raise _refuse(filter, "a list")
    if len(value) > _LONGEST_CONTAINER:
        raise ValueError(
            f"filter on {filter.key!r}: operator {filter.operator.value!r} looks for parts of a "
            f"string of at most {_LONGEST_CONTAINER} characters, got {len(value)}; "
            "give a list to look for its members"
        )
    ends = range(len(value) + 1)
    return sorted({value[start:end] for start in ends for end in ends[start:]})


# --- operators --------------------------------------------------------------------


def _eq(filter: MetadataFilter) -> FilterSpec:
    return _passing(filter, _any_of(_equals(filter, filter.value)))


def _in(filter: MetadataFilter) -> FilterSpec:
    return _passing(filter, _any_of(_members(filter)))


def _any_of(values: list[Any]) -> list[dict[str, Any]]:
    return [{"$in": values}] if values else []


def _ordered(
    name: str, holds: Callable[[Any, Any], bool]
) -> Callable[[MetadataFilter], FilterSpec]:
    def build(filter: MetadataFilter) -> FilterSpec:
        value = filter.value
        if isinstance(value, str):
            return _passing(filter, [{name: value}])
        if value is None or isinstance(value, list):
            raise _refuse(filter, "a string or a number")
        if value != value:  # NaN orders with nothing
            return _NOTHING
        bools = [flag for flag in (False, True) if holds(flag, value)]
        return _passing(filter, [{name: value}, *_any_of(bools)])

    return build


def _contains(filter: MetadataFilter, value: Any) -> FilterSpec:
    """Pass lists that contain the value, strings that contain the part, dicts that have the key."""
    values = [None] if value is None else _equals(filter, value)
    elements = _passing(filter, [{"$contains": each} for each in values])
    if not isinstance(value, str):
        return elements
    return {"$or": [elements, _passing(filter, [{"$exists": True}], f".{escape_key(value)}")]}


def _elements(filter: MetadataFilter) -> Sequence[Any]:
    if not isinstance(filter.value, (list, str)):
        raise _refuse(filter, "a list")
    return filter.value


def _any(filter: MetadataFilter, texts: bool) -> FilterSpec:
    """Pass what contains one of the values.

    ``$containsAny`` is quicker by far than as many ``$contains``, which only texts need.
    """
    path, values = _path(filter.key), _elements(filter)
    members = [one for each in values for one in _equals(filter, each)]
    parts: list[FilterSpec] = [{path: {"$containsAny": members}}]
    for value in values:
        if isinstance(value, str):
            parts.append({f"{path}.{escape_key(value)}": {"$exists": True}})
            parts += [{path: {"$contains": value}}] if texts else []
    return _one_of(parts)


def _all(filter: MetadataFilter, texts: bool) -> FilterSpec:
    """Pass what contains all of the values."""
    path, values = _path(filter.key), _elements(filter)
    equal = [_equals(filter, value) for value in values]
    if texts or not values or any(len(each) != 1 for each in equal):
        return {"$and": [{path: {"$ne": None}}, *(_contains(filter, value) for value in values)]}
    keys = [{f"{path}.{escape_key(str(value))}": {"$exists": True}} for value in values]
    in_dict = {"$and": keys} if all(isinstance(value, str) for value in values) else _NOTHING
    return _one_of([{path: {"$containsAll": [one for (one,) in equal]}}, in_dict])


def _text(name: str) -> Callable[[MetadataFilter], FilterSpec]:
    def build(filter: MetadataFilter) -> FilterSpec:
        if not isinstance(filter.value, str):
            raise _refuse(filter, "a string")
        # Every string is >= "": that excludes lists, whose elements the core would match.
        return _passing(filter, [{"$gte": "", name: filter.value}])

    return build


def _is_empty(filter: MetadataFilter) -> FilterSpec:
    return {_path(filter.key): {"$in": [None, "", []]}}


_OPERATORS: dict[FilterOperator, Callable[[MetadataFilter], FilterSpec]] = {
    FilterOperator.EQ: _eq,
    FilterOperator.NE: lambda filter: {"$not": _eq(filter)},
    FilterOperator.GT: _ordered("$gt", operator.gt),
    FilterOperator.GTE: _ordered("$gte", operator.ge),
    FilterOperator.LT: _ordered("$lt", operator.lt),
    FilterOperator.LTE: _ordered("$lte", operator.le),
    FilterOperator.IN: _in,
    FilterOperator.NIN: lambda filter: {"$not": _in(filter)},
    FilterOperator.CONTAINS: lambda filter: _contains(filter, filter.value),
    FilterOperator.TEXT_MATCH: _text("$contains"),
    FilterOperator.TEXT_MATCH_INSENSITIVE: _text("$icontains"),
    FilterOperator.IS_EMPTY: _is_empty,
}

# They also take whether a value may be a text.
_OF_ELEMENTS: dict[FilterOperator, Callable[[MetadataFilter, bool], FilterSpec]] = {
    FilterOperator.ANY: _any,
    FilterOperator.ALL: _all,
}

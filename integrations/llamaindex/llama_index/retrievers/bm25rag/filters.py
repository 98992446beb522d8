"""Translates MetadataFilters into the core's filter language, with LlamaIndex's meaning.

LlamaIndex compares as Python does, on metadata written as JSON: ``True == 1``; dates are
ISO strings, and the adapter stores them so; CONTAINS, ANY and ALL mean ``in``. A missing or null
value passes only NE, NIN and IS_EMPTY. The condition NOT passes nodes that match none of its
filters.

``_AsPython`` is that meaning. Of many values, the core's own operators are quicker; they are used
where they mean the same.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import date, datetime
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
from bm25rag.adapters import Asking, decay_dict
from bm25rag.filters import (
    And,
    Condition,
    Filter,
    FilterSpec,
    Not,
    Operator,
    Or,
    escape_key,
    parse_filter,
)

# LlamaIndex's stores write the id of the source document under these keys.
_SOURCE_KEYS = frozenset({"doc_id", "document_id", "ref_doc_id"})
# How ISO strings begin.
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PLAIN = frozenset({str, int, float, bool})
_DEEPEST = 100


def path_of(key: str) -> str:
    """Return the core's path for a key of the metadata."""
    return SOURCE_PATH if key in _SOURCE_KEYS else escape_key(key)


def check_asking(asking: Asking, spans_key: object) -> Asking:
    """Return options that name keys of the metadata; raise an error for one that is wrong."""
    if not isinstance(spans_key, str | None):
        raise TypeError(f"spans_key must be a str or None, got {spans_key!r:.100}")
    checked = asking.with_paths(path_of).checked()
    return checked._replace(group=asking.group, decay=decay_dict(asking.decay))


def check_filters(filters: object) -> MetadataFilters | None:
    """Return ``filters`` if it is ``MetadataFilters`` or ``None``; else raise ``TypeError``."""
    if filters is None or isinstance(filters, MetadataFilters):
        return filters
    raise TypeError(f"filters must be MetadataFilters or None, got {type(filters).__name__}")


def translate(
    filters: MetadataFilters | None, index: BM25Index, *, lasting: bool = False, depth: int = 1
) -> Filter | None:
    """Translate ``filters`` into the core's filter language; ``None`` and an empty list pass all.

    ``index`` is a snapshot of what is filtered: its nodes may lack the key by which their source
    is looked up, and may have dates. ``lasting``: the result must also hold for a later state.
    """
    if filters is None or not filters.filters:
        return None
    if depth > _DEEPEST:
        raise ValueError(f"filters are nested more than {_DEEPEST} levels deep")
    parts = tuple(
        (translate(part, index, lasting=lasting, depth=depth + 1) or And(()))
        if isinstance(part, MetadataFilters)
        else _translate_one(part, index, lasting)
        for part in filters.filters
    )
    match filters.condition:
        case None | FilterCondition.AND:
            return And(parts)
        case FilterCondition.OR:
            return Or(parts)
        case FilterCondition.NOT:
            return Not(Or(parts))
    raise ValueError(f"filters: unknown condition {filters.condition!r}")


def _translate_one(filter: MetadataFilter, index: BM25Index, lasting: bool) -> Filter:
    if filter.operator not in _OPERATORS:
        raise ValueError(f"filter on {filter.key!r}: unknown operator {filter.operator!r}")
    _, takes, expected = _OPERATORS[filter.operator]
    if not isinstance(filter.value, takes):
        raise TypeError(
            f"filter on {filter.key!r}: operator {filter.operator.value!r} takes {expected}, "
            f"got {filter.value!r:.100}"
        )
    path = path_of(filter.key)
    spec = None if _needs_python(filter, index, lasting) else _quick(filter, path, index)
    if spec is None:
        keys = (NODE_KEY, REF_DOC_ID) if path == SOURCE_PATH else (filter.key,)
        translated: Filter = Condition(keys, _AsPython(filter))
    else:
        translated = _parsed(spec)
    if filter.operator in (FilterOperator.NE, FilterOperator.NIN):
        translated = Not(translated)
    return _with_lost_sources(translated, index, lasting) if path == SOURCE_PATH else translated


def _with_lost_sources(filter: Filter, index: BM25Index, lasting: bool) -> Filter:
    """Filter nodes without the key by the source that their payloads name."""
    lost = sources_without_key(index)
    if not lost and not lasting:
        return filter
    bare = set(index.ids(LACKS_KEY)).difference(*lost.values())
    passing = bare if filter.matches("", {}) else set[str]()
    for source, ids in lost.items():
        if filter.matches("", {NODE_KEY: {REF_DOC_ID: source}}):
            passing |= ids
    # By id only while the key is missing: a node that has it was written again.
    by_id = _parsed({"$and": [passing, LACKS_KEY]})
    return Or((And((filter, Not(_parsed(LACKS_KEY)))), by_id))


def _parsed(spec: FilterSpec) -> Filter:
    return parse_filter(spec) or And(())


# --- as Python compares ---------------------------------------------------------------------


class _AsPython(Operator):
    """What LlamaIndex says of a value of the metadata; the core asks once for each value."""

    __slots__ = ("_holds",)
    name = "LlamaIndex"

    def __init__(self, filter: MetadataFilter) -> None:
        super().__init__(filter.value, (filter.operator.value, repr(filter.value)))
        self._holds = _OPERATORS[filter.operator][0]

    def passes(self, value: Any, present: bool = True) -> bool:
        """Say whether a value passes; what does not compare does not."""
        if value is None:
            return False
        try:
            written = value if type(value) in _PLAIN else to_jsonable_python(value)
            return bool(self._holds(written, self.operand))
        except TypeError:
            return False


_Holds = Callable[[Any, Any], Any]
_COMPARED = (str, int, float), "a string or a number"
_SEVERAL = (list, str), "a list"
_TEXT = str, "a string"
_EQUAL: tuple[_Holds, Any, str] = operator.eq, object, ""
_WITHIN: tuple[_Holds, Any, str] = lambda value, asked: value in asked, *_SEVERAL
# Whether a value passes, which operands are taken, and how an error calls these.
_OPERATORS: dict[FilterOperator, tuple[_Holds, Any, str]] = {
    FilterOperator.EQ: _EQUAL,
    FilterOperator.NE: _EQUAL,
    FilterOperator.GT: (operator.gt, *_COMPARED),
    FilterOperator.GTE: (operator.ge, *_COMPARED),
    FilterOperator.LT: (operator.lt, *_COMPARED),
    FilterOperator.LTE: (operator.le, *_COMPARED),
    FilterOperator.IN: _WITHIN,
    FilterOperator.NIN: _WITHIN,
    FilterOperator.CONTAINS: (operator.contains, object, ""),
    FilterOperator.ANY: (lambda value, asked: any(each in value for each in asked), *_SEVERAL),
    FilterOperator.ALL: (lambda value, asked: all(each in value for each in asked), *_SEVERAL),
    FilterOperator.TEXT_MATCH: (lambda value, asked: type(value) is str and asked in value, *_TEXT),
    FilterOperator.TEXT_MATCH_INSENSITIVE: (
        lambda value, asked: type(value) is str and asked.casefold() in value.casefold(),
        *_TEXT,
    ),
    FilterOperator.IS_EMPTY: (lambda value, asked: value in ("", []), object, ""),
}


def _needs_python(filter: MetadataFilter, index: BM25Index, lasting: bool) -> bool:
    """Whether dates may pass, which were written through the core, or may come to be there."""
    if filter.operator is FilterOperator.IS_EMPTY or filter.key in _SOURCE_KEYS:
        return False
    members = filter.value if isinstance(filter.value, list) else [filter.value]
    texts = [text for text in members if isinstance(text, str)]
    if any(map(_DATE.match, texts)):  # a date inside a list is not looked for: it is no own value
        return True
    if _OPERATORS[filter.operator] in (_EQUAL, _WITHIN):  # no date is equal to another text
        return False
    return lasting or (bool(texts) and _may_hold_dates(filter, index))


def _may_hold_dates(filter: MetadataFilter, index: BM25Index, *others: FilterSpec) -> bool:
    """Whether the index holds dates under the key of a filter, or what others pass."""
    path = escape_key(filter.key)
    dates = {path: {"$gte": date.min}}, {path: {"$gte": datetime.min}}
    return bool(index.count({"$or": [*dates, *others]}))


# --- as the core compares -------------------------------------------------------------------


def _quick(filter: MetadataFilter, path: str, index: BM25Index) -> FilterSpec | None:
    """Return what means the same to the core, ``None`` if nothing does."""
    value: Any = filter.value
    several = isinstance(value, list)
    match filter.operator:
        case FilterOperator.IS_EMPTY:
            return {path: {"$in": [None, "", []]}}
        case FilterOperator.EQ | FilterOperator.NE if not several:
            return _in(path, _equals(value))
        case FilterOperator.IN | FilterOperator.NIN if several:
            return _in(path, [one for each in value for one in _equals(each)])
        case name if name in _ORDER:
            return _ordered(filter, path)
        case FilterOperator.CONTAINS if not several:
            return _contains(value, path)
        case FilterOperator.ANY | FilterOperator.ALL if several and path != SOURCE_PATH:
            if not _may_hold_dates(filter, index, {path: {"$gte": ""}}):  # nor texts
                return _elements(value, path, filter.operator is FilterOperator.ALL)
    return None


def _in(path: str, values: list[Any]) -> FilterSpec:
    return {path: {"$in": values}} if values else set()


def _equals(value: Any) -> list[Any]:
    """Return the metadata values that equal a scalar in Python."""
    if value is None or value != value:  # NaN equals nothing
        return []
    # To the core booleans are not numbers; to Python they are.
    return [value, bool(value)] if not isinstance(value, str) and value in (0, 1) else [value]


_ORDER = {
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
}


def _ordered(filter: MetadataFilter, path: str) -> FilterSpec:
    value, (holds, *_) = filter.value, _OPERATORS[filter.operator]
    if value != value:  # NaN orders with nothing
        return set()
    test: FilterSpec = {path: {_ORDER[filter.operator]: value}}
    flags = [flag for flag in (False, True) if not isinstance(value, str) and holds(flag, value)]
    return {"$or": [test, _in(path, flags)]}


def _contains(value: Any, path: str) -> FilterSpec:
    """Pass lists that contain the value, strings that contain the part, dicts that have the key."""
    values = [None] if value is None else _equals(value)
    specs: list[FilterSpec] = [{path: {"$contains": each}} for each in values] or [set()]
    return {"$or": [*specs, *_keys([value], path)]}


def _elements(members: list[Any], path: str, every: bool) -> FilterSpec | None:
    """Pass lists and dicts that contain one of some values, or every one."""
    equal = [_equals(each) for each in members]
    values, keys = [one for each in equal for one in each], _keys(members, path)
    if not every:
        return {"$or": [{path: {"$containsAny": values}}, *keys]}
    if not equal or any(len(each) != 1 for each in equal):
        return None
    in_dict = [{"$and": keys}] if len(keys) == len(equal) else []
    return {"$or": [{path: {"$containsAll": values}}, *in_dict]}


def _keys(values: list[Any], path: str) -> list[FilterSpec]:
    """Return for each text a filter that passes dicts with that key."""
    texts = [value for value in values if isinstance(value, str)]
    return [{f"{path}.{escape_key(text)}": {"$exists": True}} for text in texts]

"""Haystack's filters to the core's.

A comparison becomes a dict in the core's language wherever that has Haystack's meaning.
Dates it has not: a naive one takes the zone of what it is compared with, and strings are
read by dateutil. There, and for lists and dicts, which compare as Python's do, an operator
of its own asks Haystack's function.
"""

from __future__ import annotations

import operator as python
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any, NamedTuple

from haystack.dataclasses import Document
from haystack.errors import FilterError
from haystack.utils.filters import document_matches_filter

from bm25rag.errors import FilterError as CoreFilterError
from bm25rag.errors import MetadataError
from bm25rag.filters import (
    And,
    Condition,
    Filter,
    IdCondition,
    Not,
    Operator,
    Or,
    escape_key,
    parse_filter,
)
from bm25rag.metadata.codec import decode_metadata, encode_metadata

Fetch = Callable[[str], Document]
"""The document of an id, for the few filters that ask for more than id and meta."""

# What Haystack takes from the document itself; other names without a dot are keys of meta.
_OWN_FIELDS = ("blob", "content", "embedding", "meta", "score", "sparse_embedding")

_ORDERINGS = {
    ">": ("$gt", python.gt),
    ">=": ("$gte", python.ge),
    "<": ("$lt", python.lt),
    "<=": ("$lte", python.le),
}
_COMPLEMENTS = {"!=": "==", "not in": "in"}
_COMPARISONS = ("==", "!=", *_ORDERINGS, "in", "not in")
_LOGIC = ("AND", "OR", "NOT")
_DEEPEST = 100

# Types of which a value is stored as it is.
_PLAIN = frozenset({str, int, float, bool, type(None), date, datetime})

_EVERYTHING, _NOTHING = And(()), Or(())
_LIKE_A_DATE = re.compile(r"\d{4}-\d\d-\d\d").match


def translate(filters: dict[str, Any] | None, fetch: Fetch) -> Filter | None:
    """Turn a filter of Haystack's into one of the core's.

    Parameters
    ----------
    filters
        A comparison or a logical filter; ``None`` and ``{}`` for none.
    fetch
        Called for documents if a condition is about content, blob, embeddings or score.

    Raises
    ------
    TypeError
        If it is no dict.
    FilterError
        Haystack's, if it is malformed; the message points at the place.
    """
    if filters is None:
        return None
    if not isinstance(filters, dict):
        raise TypeError(f"filters must be a dict or None, got {type(filters).__name__}")
    return _condition(filters, "filters", 1, fetch) if filters else None


def check_filters(filters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a filter as it is; raise as ``translate`` if it is malformed."""
    translate(filters, lambda id: Document(id=id))  # which is not called: nothing is searched
    return filters


def _condition(condition: Any, at: str, depth: int, fetch: Fetch) -> Filter:
    if not isinstance(condition, dict):
        raise FilterError(f"{at} must be a dict, got {type(condition).__name__}")
    if depth > _DEEPEST:
        raise FilterError(f"filters are nested more than {_DEEPEST} levels deep")
    if "field" in condition:
        return _comparison(condition, at, fetch)
    name = _choose(condition, at, _LOGIC)
    conditions = _need(condition, "conditions", at)
    if not isinstance(conditions, list | tuple):
        raise FilterError(f"{at}.conditions must be a list, got {type(conditions).__name__}")
    parts = tuple(
        _condition(part, f"{at}.conditions[{number}]", depth + 1, fetch)
        for number, part in enumerate(conditions)
    )
    if name == "NOT":  # not all of them, as Haystack has it
        return Not(And(parts))
    return And(parts) if name == "AND" else Or(parts)


def _need(condition: dict[str, Any], key: str, at: str) -> Any:
    if key not in condition:
        raise FilterError(f"{at} has no {key!r}: {condition!r:.200}")
    return condition[key]


def _choose(condition: dict[str, Any], at: str, known: tuple[str, ...]) -> str:
    name = _need(condition, "operator", at)
    if name not in known:
        expected = ", ".join(map(repr, known))
        raise FilterError(f"{at}.operator must be one of {expected}, got {name!r}")
    return str(name)


@dataclass(frozen=True)
class _Whole(Filter):
    """A comparison with a field of the document itself, for the core to evaluate."""

    condition: dict[str, Any]
    fetch: Fetch

    @property
    def key(self) -> None:
        """None: how a blob or an array prints does not tell it from others."""
        return None

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Ask Haystack."""
        return _passes(self.condition, self.fetch(id))


class _AsHaystack(Operator):
    """Haystack's own comparison of a value; it tells operands apart that the core equates."""

    __slots__ = ("_name",)
    name = "Haystack"

    def __init__(self, name: str, operand: Any) -> None:
        super().__init__(operand, f"{name} {operand!r}")
        self._name = name

    def passes(self, value: Any, present: bool = True) -> bool:
        """Ask Haystack; a missing value is None."""
        condition = {"field": "meta.value", "operator": self._name, "value": self.operand}
        return _passes(condition, Document(id="-", meta={"value": value}))


class _Subject(NamedTuple):
    """What a comparison is about: its name in the core's language, and how a leaf is made."""

    key: str
    make: Callable[[Operator], Filter]

    def is_plain(self, operand: Any) -> bool:
        """Whether the core's equality with ``operand`` is Haystack's."""
        if type(operand) is str:
            return not _LIKE_A_DATE(operand)
        scalar = operand is None or isinstance(operand, bool | int | float)
        return self.key != "$id" and (scalar or type(operand) is date)


def _comparison(condition: dict[str, Any], at: str, fetch: Fetch) -> Filter:
    name = _choose(condition, at, _COMPARISONS)
    operand = _need(condition, "value", at)
    field = condition["field"]
    if not isinstance(field, str):
        raise FilterError(f"{at}.field must be a str, got {type(field).__name__}")
    _check_operand(name, operand, f"{at}.value")
    if name in _COMPLEMENTS:
        return Not(_comparison({**condition, "operator": _COMPLEMENTS[name]}, at, fetch))
    if field in _OWN_FIELDS:
        return _Whole(condition, fetch)
    operand = _as_stored(operand, f"{at}.value")
    if field == "id":
        return _compare(_Subject("$id", IdCondition), name, operand, at)
    root, dot, rest = field.partition(".")
    if dot and root != "meta":  # such a field no document has: it is None in each
        return _EVERYTHING if _passes(condition, Document(id="-")) else _NOTHING
    path = tuple(rest.split(".")) if dot else (field,)
    key = ".".join(map(escape_key, path))
    return _compare(_Subject(key, partial(Condition, path)), name, operand, at)


def _check_operand(name: str, operand: Any, at: str) -> None:
    """Refuse what Haystack refuses once there is a document to compare with."""
    if name in ("in", "not in") and not isinstance(operand, list):
        raise FilterError(f"{at} of {name!r} must be a list, got {type(operand).__name__}")
    if name not in _ORDERINGS:
        return
    if isinstance(operand, list):
        raise FilterError(f"{at} of {name!r} must not be a list")
    if isinstance(operand, str):
        try:
            datetime.fromisoformat(operand)
        except ValueError:
            message = f"{at} of {name!r} must be an ISO date if it is a string, got {operand!r}"
            raise FilterError(message) from None


def _as_stored(operand: Any, at: str) -> Any:
    """Return a value in the form that it has in stored meta: a tuple as a list, say."""
    members = operand if type(operand) is list else [operand]
    if _PLAIN.issuperset(map(type, members)):
        return operand
    try:
        return decode_metadata(encode_metadata({"value": operand}, "-"))["value"]
    except MetadataError as error:
        raise FilterError(f"{at}{error.key.removeprefix('value')}: {error.problem}") from error


def _compare(subject: _Subject, name: str, operand: Any, at: str) -> Filter:
    try:
        if name in _ORDERINGS:
            return _ordering(subject, name, operand)
        return _membership(subject, operand if name == "in" else [operand])
    except CoreFilterError as error:
        problem = str(error).partition(": ")[2]  # without its place, in the core's operators
        raise FilterError(f"{at}.value of {name!r}: {problem}") from error


def _membership(subject: _Subject, members: list[Any]) -> Filter:
    # To Python, and so to Haystack, True is 1; to the core it is not.
    plain = [
        twin
        for member in members
        if subject.is_plain(member)
        for twin in (member, *(one for one in (0, 1, False, True) if one == member))
    ]
    others = [
        _as_haystack(subject, "==", member) for member in members if not subject.is_plain(member)
    ]
    return Or((_parse(subject, "$in", plain), *others))


def _ordering(subject: _Subject, name: str, operand: Any) -> Filter:
    if operand is None:
        return _NOTHING
    if isinstance(operand, str | datetime):
        return _as_haystack(subject, name, operand)
    known, compare = _ORDERINGS[name]
    if not isinstance(operand, bool | int | float):
        return _parse(subject, known, operand)
    bools = [one for one in (False, True) if compare(one, operand)]
    number = int(operand) if isinstance(operand, bool) else operand
    return Or((_parse(subject, known, number), _parse(subject, "$in", bools)))


def _parse(subject: _Subject, name: str, operand: Any) -> Filter:
    return parse_filter({subject.key: {name: operand}}) or _EVERYTHING


def _as_haystack(subject: _Subject, name: str, operand: Any) -> Filter:
    parse_filter({"value": {"$eq": operand}})  # refuses what no document can hold
    return subject.make(_AsHaystack(name, operand))


def _passes(condition: dict[str, Any], document: Document) -> bool:
    """Ask Haystack; a document whose value cannot be compared does not pass."""
    try:
        return bool(document_matches_filter(condition, document))
    except (FilterError, TypeError, ValueError, ArithmeticError, AttributeError):
        return False

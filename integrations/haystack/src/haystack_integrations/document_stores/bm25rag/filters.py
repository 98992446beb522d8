"""Translates Haystack's filters into the core's.

A comparison becomes a dict in the core's language wherever that means the same. It does not for
dates. A date without a time zone takes that of the other side; to order, Haystack reads any string
that dateutil reads, to equate, ISO 8601 only. The core's index of dates is asked accordingly.
Days, which Haystack orders with nothing but days, are ordered as their midnights: YAML reads
``2024-01-01`` as a day. For lists and dicts, which compare as in Python, an operator of its own
calls Haystack's function.
"""

from __future__ import annotations

import operator as python
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from functools import partial
from typing import Any, NamedTuple

import dateutil.parser  # type: ignore[import-untyped]
from haystack.dataclasses import Document
from haystack.document_stores.types import FilterPolicy
from haystack.errors import FilterError
from haystack.utils import filters as haystack_filters

from bm25rag.adapters import decode_metadata, encode_metadata
from bm25rag.errors import FilterError as CoreFilterError
from bm25rag.errors import MetadataError
from bm25rag.filters import (
    And,
    AsMoment,
    CallableFilter,
    Condition,
    Filter,
    IdCondition,
    Not,
    Operator,
    Or,
    escape_key,
    parse_filter,
)

Fetch = Callable[[str], Document]

# Fields of the document itself; other names without a dot are keys of meta.
_OWN_FIELDS = ("blob", "content", "embedding", "meta", "score", "sparse_embedding")

_ORDERINGS = {
    ">": ("$gt", python.gt),
    ">=": ("$gte", python.ge),
    "<": ("$lt", python.lt),
    "<=": ("$lte", python.le),
}
_COMPLEMENTS = {"!=": "==", "not in": "in"}
# The last is the core's: Haystack has none for an element of a list.
_COMPARISONS = ("==", "!=", *_ORDERINGS, "in", "not in", "contains")
_LOGIC = ("AND", "OR", "NOT")
_DEEPEST = 100

# Types whose values are stored unchanged.
_PLAIN = frozenset({str, int, float, bool, type(None), date, datetime})

_UNREADABLE = (ValueError, TypeError, ArithmeticError, AttributeError)

_EVERYTHING, _NOTHING = And(()), Or(())
_LIKE_A_DATE = re.compile(r"\d{4}-\d\d-\d\d").match


def translate(filters: dict[str, Any] | None, fetch: Fetch) -> Filter | None:
    """Translate a Haystack filter into one of the core's; ``None`` and ``{}`` are no filter.

    ``fetch`` returns the document of an id, for conditions on content, blob, embeddings or score.
    Haystack's ``FilterError`` says where a filter is malformed.
    """
    if filters is None:
        return None
    if not isinstance(filters, dict):
        raise TypeError(f"filters must be a dict or None, got {type(filters).__name__}")
    return _condition(filters, "filters", 1, fetch) if filters else None


def check_filters(filters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a filter unchanged; raise as ``translate`` does if it is malformed."""
    translate(filters, lambda id: Document(id=id))  # never called: nothing is searched
    return filters


def dumpable(filters: Any) -> Any:
    """Return a filter whose dates are ISO text where that means the same, so that YAML has it.

    It does not for an element of a list that is compared, for a day that is equated, which equals
    no text, and for a time that a change of clocks repeats or leaves out.
    """
    if not isinstance(filters, dict):
        return filters
    if "field" not in filters:
        parts = filters.get("conditions")
        return {**filters, "conditions": [*map(dumpable, parts)]} if parts else filters
    name, value = filters["operator"], filters["value"]
    if name in ("in", "not in"):
        value = [_as_text(one, orders=False) for one in value]
    elif name != "contains":
        value = _as_text(value, orders=name in _ORDERINGS)
    return {**filters, "value": value}


def _as_text(operand: Any, orders: bool) -> Any:
    """Return a date as ISO text if that means the same, and anything else unchanged."""
    same = isinstance(operand, date) and orders
    if isinstance(operand, datetime):
        same = _indexed(operand) is not None
    return operand.isoformat() if same else operand


def combine(
    own: dict[str, Any] | None, given: dict[str, Any] | None, policy: FilterPolicy
) -> dict[str, Any] | None:
    """Combine a retriever's own filters with those given to a call.

    Not as Haystack's ``apply_filter_policy``, which drops conditions on a field that both have,
    and a whole side where the operators differ.
    """
    if given is None or given == {}:
        return own
    if not own or policy is FilterPolicy.REPLACE:
        return given
    return {"operator": "AND", "conditions": [own, given]}


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
    if name == "NOT":  # in Haystack it means: not all of them
        return Not(And(parts))
    return And(parts) if name == "AND" else Or(parts)


def _need(condition: dict[str, Any], key: str, at: str) -> Any:
    if key not in condition:
        example = "{'field': 'meta.year', 'operator': '>=', 'value': 2020}"
        raise FilterError(f"{at} has no {key!r}: {condition!r:.200}; write it as in {example}")
    return condition[key]


def _choose(condition: dict[str, Any], at: str, known: tuple[str, ...]) -> str:
    name = _need(condition, "operator", at)
    if name not in known:
        expected = ", ".join(map(repr, known))
        raise FilterError(f"{at}.operator must be one of {expected}, got {name!r:.100}")
    return str(name)


class _AsHaystack(Operator):
    """Haystack's own comparison of a value; it tells operands apart that the core equates."""

    __slots__ = ("_name",)
    name = "Haystack"

    def __init__(self, name: str, operand: Any) -> None:
        super().__init__(operand, f"{name} {operand!r}")
        self._name = name

    def passes(self, value: Any, present: bool = True) -> bool:
        """Ask Haystack; a missing value is None."""
        value = _midnight(value) if self._name in _ORDERINGS else value
        condition = {"field": "meta.value", "operator": self._name, "value": self.operand}
        return _passes(condition, Document(id="-", meta={"value": value}))


class _Target(NamedTuple):
    """What a comparison looks at: its name in the core's language, and how a leaf is made."""

    key: str
    make: Callable[[Operator], Filter]

    def is_plain(self, operand: Any) -> bool:
        """Whether equality with ``operand`` means the same in the core and in Haystack."""
        if type(operand) is str:
            return not _LIKE_A_DATE(operand)
        scalar = operand is None or isinstance(operand, bool | int | float)
        return self.key != "$id" and (scalar or type(operand) is date)

    def parse(self, name: str, operand: Any) -> Filter:
        """Compare with an operator of the core's."""
        return parse_filter({self.key: {name: operand}}) or _EVERYTHING

    def ask(self, name: str, operand: Any) -> Filter:
        """Compare with Haystack's own function."""
        parse_filter({"value": {"$eq": operand}})  # refuses what no document can hold
        return self.make(_AsHaystack(name, operand))


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
        if name == "contains":
            raise FilterError(f"{at}.operator 'contains' is for the meta, got the field {field!r}")
        return CallableFilter(partial(_passes, condition), fetch)
    operand = _as_stored(operand, f"{at}.value")
    if field == "id":
        return _compare(_Target("$id", IdCondition), name, operand, at)
    root, dot, rest = field.partition(".")
    if dot and root != "meta":  # no document has such a field: its value is None
        return _EVERYTHING if _passes(condition, Document(id="-")) else _NOTHING
    path = tuple(rest.split(".")) if dot else (field,)
    key = ".".join(map(escape_key, path))
    return _compare(_Target(key, partial(Condition, path)), name, operand, at)


def _check_operand(name: str, operand: Any, at: str) -> None:
    """Refuse what Haystack would refuse only when it compares a document."""
    if name in ("in", "not in") and not isinstance(operand, list):
        raise FilterError(f"{at} of {name!r} must be a list, got {type(operand).__name__}")
    if name not in _ORDERINGS:
        return
    if isinstance(operand, list):
        raise FilterError(f"{at} of {name!r} must not be a list")
    if isinstance(operand, str) and _read_whole(operand) is None:
        raise FilterError(
            f"{at} of {name!r} must be an ISO date if it is a string, got {operand!r:.100}"
        )


def _as_stored(operand: Any, at: str) -> Any:
    """Return a value in its stored form, for example a tuple as a list."""
    members = operand if type(operand) is list else [operand]
    if _PLAIN.issuperset(map(type, members)):
        return operand
    try:
        return decode_metadata(encode_metadata({"value": operand}, "-"))["value"]
    except MetadataError as error:
        raise FilterError(f"{at}{error.key.removeprefix('value')}: {error.problem}") from error


def _compare(target: _Target, name: str, operand: Any, at: str) -> Filter:
    try:
        if name in _ORDERINGS:
            return _ordering(target, name, operand)
        if name == "contains":
            return target.parse("$contains", operand)
        return _membership(target, operand if name == "in" else [operand])
    except CoreFilterError as error:
        # Without the position, which names the core's operators.
        problem = str(error).partition(": ")[2]
        raise FilterError(f"{at}.value of {name!r}: {problem}") from error


def _membership(target: _Target, members: list[Any]) -> Filter:
    plain, dates, others = [], [], []
    for member in members:
        if _holds_nan(member):
            continue  # it equals nothing
        moment = _moment(member, _read_iso)
        if moment is not None:
            dates.append(moment)
        if target.is_plain(member) or (moment is not None and type(member) is str):
            # In Python, and so in Haystack, True equals 1; in the core it does not.
            plain += [member, *(one for one in (0, 1, False, True) if one == member)]
        elif moment is None:
            others.append(target.ask("==", member))
    if dates:
        others.append(target.make(DateEquality(python.eq, dates)))
    return Or((target.parse("$in", plain), *others))


def _moment(operand: Any, read: Callable[[str], datetime | None]) -> datetime | None:
    """Return the datetime that an operand names, if the index compares it as Haystack does."""
    named = read(operand) if type(operand) is str else operand
    return _indexed(named) if type(named) is datetime else None


def _holds_nan(value: Any) -> bool:
    if isinstance(value, list | dict):
        return any(map(_holds_nan, value.values() if isinstance(value, dict) else value))
    return bool(value != value)


def _midnight(value: Any) -> Any:
    """Return a day as the datetime that it is ordered as, and anything else unchanged."""
    return datetime.combine(value, time()) if type(value) is date else value


def _ordering(target: _Target, name: str, operand: Any) -> Filter:
    operand = _midnight(operand)
    if operand is None or operand != operand:
        return _NOTHING
    known, compare = _ORDERINGS[name]
    if isinstance(operand, str | datetime):
        moment = _moment(operand, _read_whole)
        if moment is None:
            return target.ask(name, operand)
        return target.make(DateComparison(compare, [moment]))
    if not isinstance(operand, bool | int | float):
        return target.parse(known, operand)
    bools = [one for one in (False, True) if compare(one, operand)]
    number = int(operand) if isinstance(operand, bool) else operand
    return Or((target.parse(known, number), target.parse("$in", bools)))


def _passes(condition: dict[str, Any], document: Document) -> bool:
    """Ask Haystack; a document whose value cannot be compared does not pass."""
    if condition["operator"] in _ORDERINGS:
        condition = {**condition, "value": _midnight(condition["value"])}
    try:
        return bool(haystack_filters.document_matches_filter(condition, document))
    except (FilterError, TypeError, ValueError, ArithmeticError, AttributeError):
        return False


# --- dates ----------------------------------------------------------------------------------


class DateComparison(AsMoment):
    """An ordering with a date."""

    __slots__ = ()

    def __init__(self, compare: Callable[[Any, Any], Any], moments: Sequence[datetime]) -> None:
        super().__init__(compare, moments, date.today())  # "10:30" is a time of today

    def read(self, text: str) -> datetime | None:
        """Read a string as Haystack does."""
        return _read(text)


class DateEquality(DateComparison):
    """Equality with any of some dates."""

    __slots__ = ()

    def read(self, text: str) -> datetime | None:
        """Read a string as Haystack does."""
        return _read_iso(text)


def _read(text: str, default: datetime | None = None) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    with suppress(*_UNREADABLE):
        named: datetime = dateutil.parser.parse(text, default=default)
        return named
    return None


def _read_iso(text: str) -> datetime | None:
    """Return the date that a string equals; ``None`` if it equals only itself."""
    if not haystack_filters._looks_like_iso_date(text):
        return None
    return haystack_filters._parse_iso_date(text)


def _read_whole(text: str) -> datetime | None:
    """Return the date that a string names; ``None`` if it names a part of one, such as a day."""
    # What is left out is taken from the default.
    first, second = (_read(text, datetime(2000 + n, n, n)) for n in (1, 2))
    return first if first == second else None


def _indexed(operand: datetime) -> datetime | None:
    """Return a datetime if the index compares it as Haystack does."""
    # Python equates no time that a change of clocks repeats or leaves out with one in another zone.
    other = operand.replace(fold=1 - operand.fold)
    clear = (operand.utcoffset() is None) is (operand.tzinfo is None)
    return operand if clear and operand.utcoffset() == other.utcoffset() else None

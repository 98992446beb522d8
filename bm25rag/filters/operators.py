"""The operators: how each reads its operand, and the predicate it makes of it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import cache, partial
from typing import Any, NoReturn, TypeAlias

from bm25rag.errors import FilterError
from bm25rag.filters.nodes import Test
from bm25rag.filters.values import equal, instant, instant_of

OperandReader: TypeAlias = Callable[[Any, str, int], Any]
"""Checks an operand and returns a copy that is ours: ``(operand, place, depth)``."""

MAX_DEPTH = 100

_SCALARS: frozenset[type] = frozenset({str, int, bool, type(None), date, datetime})
_ORDERED = frozenset({str, int, float, date, datetime})
# As values they equal nothing and order with nothing, as NaN; as a bound they are of use.
_INFINITE = (math.inf, -math.inf)
_COLLECTIONS = (list, tuple, set, frozenset)


# --- errors ---------------------------------------------------------------------------------------


def refuse(at: str, complaint: str) -> NoReturn:
    """Raise a FilterError that points at the place."""
    shown = at if len(at) <= 200 else f"{at[:97]}...{at[-100:]}"
    message = f"filter at {shown}: {complaint}" if at else f"filter: {complaint}"
    raise FilterError(message)


def describe(value: Any) -> str:
    """Name the type of what came, with the way out for NumPy's."""
    kind = type(value)
    if kind.__module__.partition(".")[0] != "numpy":
        return kind.__name__
    method = "tolist" if getattr(value, "ndim", 0) else "item"
    return f"numpy.{kind.__name__} (use its .{method}())"


def check_depth(at: str, depth: int) -> None:
    """Refuse what is nested too deeply, a dict that contains itself among it."""
    if depth > MAX_DEPTH:
        refuse(at, f"expected at most {MAX_DEPTH} levels of nesting, got more")


# --- readers --------------------------------------------------------------------------------------


def read_value(operand: Any, at: str, depth: int) -> Any:
    """Read a JSON value, date or datetime, and copy its lists and dicts."""
    kind = type(operand)
    if kind in _SCALARS:
        return operand
    if kind is float:
        return _read_float(operand, at)
    check_depth(at, depth)
    if isinstance(operand, list):
        return [read_value(item, f"{at}[{i}]", depth + 1) for i, item in enumerate(operand)]
    if isinstance(operand, dict):
        return {
            _read_key(key, at): read_value(item, f"{at}.{key}", depth + 1)
            for key, item in operand.items()
        }
    refuse(at, f"expected a JSON value, date or datetime, got {describe(operand)}")


def _read_float(operand: float, at: str) -> float:
    if operand != operand:
        refuse(at, "expected a number, got NaN, which equals and orders with nothing")
    return operand


def _read_key(key: Any, at: str) -> str:
    if type(key) is not str:
        refuse(at, f"expected the keys of a dict as str, got {describe(key)}")
    return key


def _read_ordered(operand: Any, at: str, depth: int) -> Any:
    if type(operand) not in _ORDERED:
        refuse(at, f"expected a number, string, date or datetime, got {describe(operand)}")
    return _read_float(operand, at) if type(operand) is float else operand


def _read_text(operand: Any, at: str, depth: int) -> str:
    if type(operand) is not str:
        refuse(at, f"expected a string, got {describe(operand)}")
    return operand


def _read_folded(operand: Any, at: str, depth: int) -> str:
    return _read_text(operand, at, depth).casefold()


def _read_flag(operand: Any, at: str, depth: int) -> bool:
    if type(operand) is not bool:
        refuse(at, f"expected true or false, got {describe(operand)}")
    return operand


def _read_instant(operand: Any, at: str, depth: int) -> timedelta:
    moment = instant_of(operand)
    if moment is None:
        came = repr(operand[:50]) if type(operand) is str else describe(operand)
        refuse(at, f"expected an ISO 8601 string, a date or a datetime, got {came}")
    return moment


def _read_members(read: OperandReader, operand: Any, at: str, depth: int) -> tuple[Any, ...]:
    if not isinstance(operand, _COLLECTIONS):
        refuse(at, f"expected a list, tuple or set, got {describe(operand)}")
    if _AS_THEY_ARE[read].issuperset(map(type, operand)):  # there may be many
        return tuple(operand)
    return tuple(read(item, f"{at}[{i}]", depth + 1) for i, item in enumerate(operand))


# Types of which a reader returns everything as it is.
_AS_THEY_ARE: dict[OperandReader, frozenset[type]] = {
    read_value: _SCALARS,
    _read_text: frozenset({str}),
    _read_instant: frozenset(),
}


# --- predicates -----------------------------------------------------------------------------------


def _equals(operand: Any) -> Test:
    kind = type(operand)
    if operand is None or kind is bool:
        return lambda value, present: value is operand
    if kind is int or kind is float:
        if operand in _INFINITE:
            return lambda value, present: False
        return lambda value, present: value == operand and type(value) is not bool
    if kind is str:
        return lambda value, present: value == operand
    return lambda value, present: equal(value, operand)


def _among(members: tuple[Any, ...]) -> Test:
    # When it is first asked: mostly the mask is known.
    sort = cache(partial(_by_type, members))

    def test(value: Any, present: bool) -> bool:
        kind, (sets, nested) = type(value), sort()
        if kind is list or kind is dict:
            return any(equal(value, member) for member in nested)
        return kind in sets and _hashed(value) in sets[kind]

    return test


def _by_type(members: tuple[Any, ...]) -> tuple[dict[type, set[Any]], list[Any]]:
    """Return a set per type, because one of everything would take True for 1; and the rest."""
    sets: dict[type, set[Any]] = {}
    sets[int] = sets[float] = set()
    nested = []
    for member in members:
        if isinstance(member, list | dict):
            nested.append(member)
        elif member not in _INFINITE:
            sets.setdefault(type(member), set()).add(_hashed(member))
    return sets, nested


def _hashed(value: Any) -> Any:
    """Return a datetime's instant, since Python never equates a naive with an aware one."""
    return instant(value) if type(value) is datetime else value


def _orders(compare: Callable[[Any, Any], bool], operand: Any) -> Test:
    if type(operand) is datetime:
        limit = instant(operand)
        return lambda value, present: type(value) is datetime and compare(instant(value), limit)
    if type(operand) in (int, float):
        return lambda value, present: (
            type(value) in (int, float) and compare(value, operand) and value not in _INFINITE
        )
    return lambda value, present: type(value) is type(operand) and compare(value, operand)


def _contains(operand: Any) -> Test:
    same = _equals(operand)

    def test(value: Any, present: bool) -> bool:
        if type(value) is list:
            return any(same(item, True) for item in value)
        return type(value) is str and type(operand) is str and operand in value

    return test


def _icontains(folded: str) -> Test:
    def test(value: Any, present: bool) -> bool:
        if type(value) is list:
            return any(type(item) is str and item.casefold() == folded for item in value)
        return type(value) is str and folded in value.casefold()

    return test


def _startswith(prefix: str) -> Test:
    return lambda value, present: type(value) is str and value.startswith(prefix)


def _exists(expected: bool) -> Test:
    return lambda value, present: present is expected


def on_instants(test: Test) -> Test:
    """Let a predicate see the instant that a value names; what names none does not match."""

    def dated(value: Any, present: bool) -> bool:
        moment = instant_of(value)
        return moment is not None and test(moment, present)

    return dated


# --- tables ---------------------------------------------------------------------------------------

TESTS: dict[str, Callable[[Any], Test]] = {
    "$eq": _equals,
    "$lt": partial(_orders, operator.lt),
    "$lte": partial(_orders, operator.le),
    "$gt": partial(_orders, operator.gt),
    "$gte": partial(_orders, operator.ge),
    "$in": _among,
    "$contains": _contains,
    "$icontains": _icontains,
    "$startswith": _startswith,
    "$exists": _exists,
}

# Exact complements by construction: they are parsed as Not of the other.
COMPLEMENTS = {"$ne": "$eq", "$nin": "$in"}


def _comparisons(equality: OperandReader, ordering: OperandReader) -> dict[str, OperandReader]:
    ordered = dict.fromkeys(("$lt", "$lte", "$gt", "$gte"), ordering)
    return {"$eq": equality, **ordered, "$in": partial(_read_members, equality)}


FIELD_READERS: dict[str, OperandReader] = {
    **_comparisons(read_value, _read_ordered),
    "$contains": read_value,
    "$icontains": _read_folded,
    "$startswith": _read_text,
    "$exists": _read_flag,
}
ID_READERS: dict[str, OperandReader] = {
    **_comparisons(_read_text, _read_text),
    "$contains": _read_text,
    "$icontains": _read_folded,
    "$startswith": _read_text,
}
DATE_READERS: dict[str, OperandReader] = _comparisons(_read_instant, _read_instant)

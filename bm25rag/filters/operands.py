"""How the operand of each operator is read, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, NoReturn, TypeAlias

from bm25rag.errors import FilterError
from bm25rag.filters.values import instant_of

OperandReader: TypeAlias = Callable[[Any, str, int], Any]
"""Checks an operand and returns a copy of it: ``(operand, at, depth)``, ``at`` for messages."""

MAX_DEPTH = 100

_SCALARS: frozenset[type] = frozenset({str, int, bool, type(None), date, datetime})
_ORDERED = frozenset({str, int, float, date, datetime})
_COLLECTIONS = (list, tuple, set, frozenset)


# --- errors ---------------------------------------------------------------------------------------


def refuse(at: str, complaint: str) -> NoReturn:
    """Raise a FilterError that names the place in the filter."""
    shown = at if len(at) <= 200 else f"{at[:97]}...{at[-100:]}"
    raise FilterError(f"filter at {shown}: {complaint}" if at else f"filter: {complaint}")


def describe(value: Any) -> str:
    """Name the type of a value; for NumPy's types, say how to convert it."""
    kind = type(value)
    if kind.__module__.partition(".")[0] != "numpy":
        return kind.__name__
    method = "tolist" if getattr(value, "ndim", 0) else "item"
    return f"numpy.{kind.__name__} (use its .{method}())"


def check_depth(at: str, depth: int) -> None:
    """Refuse what is nested too deeply, such as a dict that contains itself."""
    if depth > MAX_DEPTH:
        refuse(at, f"expected at most {MAX_DEPTH} levels of nesting, got more")


# --- readers --------------------------------------------------------------------------------------


def read_value(operand: Any, at: str, depth: int) -> Any:
    """Read a value that metadata can hold, in the form in which they hold it."""
    kind = type(operand)
    if kind in _SCALARS:
        return operand
    if kind is float:
        return _read_float(operand, at)
    check_depth(at, depth)
    if isinstance(operand, (list, tuple)):
        return [read_value(item, f"{at}[{i}]", depth + 1) for i, item in enumerate(operand)]
    if isinstance(operand, dict):
        return {
            read_key(key, at, "the keys of a dict"): read_value(item, f"{at}.{key}", depth + 1)
            for key, item in operand.items()
        }
    stored = _as_stored(operand)
    if stored is operand:
        refuse(at, f"expected a JSON value, date or datetime, got {describe(operand)}")
    return read_value(stored, at, depth + 1)


def _as_stored(operand: Any) -> Any:
    """Return an operand as it comes back from metadata, or itself if these cannot hold it."""
    from bm25rag.common.codec import as_stored  # filters of plain values do without

    try:
        return as_stored(operand)
    except ValueError:
        return operand


def _read_float(operand: float, at: str) -> float:
    if operand != operand:
        refuse(at, "expected a number, got NaN, which equals and orders with nothing")
    return operand


def read_key(key: Any, at: str, what: str) -> str:
    """Read the key of a dict, as those of metadata are read; ``what`` names it for messages."""
    if type(key) is str:
        return key
    from bm25rag.common.storable import plain_key  # as in ``_as_stored``

    try:
        return plain_key(key)
    except ValueError:
        refuse(at, f"expected {what} as str, got {describe(key)}")


def _read_kinds(kinds: frozenset[type], expected: str, operand: Any, at: str, depth: int) -> Any:
    """Read a value that comes back from metadata as one of some types."""
    value = operand if type(operand) in kinds else _as_stored(operand)
    if type(value) not in kinds:
        refuse(at, f"expected {expected}, got {describe(operand)}")
    return value


_read_text = partial(_read_kinds, frozenset({str}), "a string")
_read_flag = partial(_read_kinds, frozenset({bool}), "true or false")


def _read_ordered(operand: Any, at: str, depth: int) -> Any:
    value = _read_kinds(_ORDERED, "a number, string, date or datetime", operand, at, depth)
    return _read_float(value, at) if type(value) is float else value


def _read_folded(operand: Any, at: str, depth: int) -> Any:
    return _read_text(operand, at, depth).casefold()


def _read_instant(operand: Any, at: str, depth: int) -> timedelta:
    moment = instant_of(operand)
    if moment is None:
        moment = instant_of(_as_stored(operand))
    if moment is None:
        came = repr(operand[:50]) if type(operand) is str else describe(operand)
        refuse(at, f"expected an ISO 8601 string, a date or a datetime, got {came}")
    return moment


def _read_members(read: OperandReader, operand: Any, at: str, depth: int) -> tuple[Any, ...]:
    members = operand if isinstance(operand, _COLLECTIONS) else _as_stored(operand)
    if not isinstance(members, _COLLECTIONS):
        refuse(at, f"expected a list, tuple or set, got {describe(operand)}")
    if _UNCHANGED[read].issuperset(map(type, members)):  # there may be many
        return tuple(members)
    return tuple(read(item, f"{at}[{i}]", depth + 1) for i, item in enumerate(members))


# Types whose values a reader returns unchanged.
_UNCHANGED: dict[OperandReader, frozenset[type]] = {
    read_value: _SCALARS,
    _read_text: frozenset({str}),
    _read_instant: frozenset(),
}


# --- tables ---------------------------------------------------------------------------------------

# Exact complements by construction: each is parsed as Not of the other.
COMPLEMENTS = {"$ne": "$eq", "$nin": "$in"}


def _comparisons(equality: OperandReader, ordering: OperandReader) -> dict[str, OperandReader]:
    ordered = dict.fromkeys(("$lt", "$lte", "$gt", "$gte"), ordering)
    return {"$eq": equality, **ordered, "$in": partial(_read_members, equality)}


FIELD_READERS: dict[str, OperandReader] = {
    **_comparisons(read_value, _read_ordered),
    "$contains": read_value,
    "$containsAny": partial(_read_members, read_value),
    "$containsAll": partial(_read_members, read_value),
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

"""What values mean to a filter: typed equality, instants, canonical spelling."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

_YEAR_ONE = datetime(1, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
# Types whose values Python equates exactly where filters do; not bool, which equals a number.
_ALIKE = frozenset({str, int, float, type(None)})


def equal(value: Any, operand: Any) -> bool:
    """Compare two metadata values, typed and exact.

    1 equals 1.0, a bool is not a number, NaN and infinities equal nothing, datetimes compare as
    instants and never equal a date, lists and dicts compare by the same rules inside.
    """
    kind, other = type(value), type(operand)
    if kind is list:
        return other is list and len(value) == len(operand) and all(map(equal, value, operand))
    if kind is dict:
        return (
            other is dict
            and value.keys() == operand.keys()
            and all(equal(value[key], item) for key, item in operand.items())
        )
    if kind is bool or other is bool:
        return value is operand
    if kind is datetime and other is datetime:
        return instant(value) == instant(operand)
    return bool(value == operand) and not (kind is float and math.isinf(value))


def instant(moment: datetime) -> timedelta:
    """Return the time since the year 1 in UTC; a naive datetime counts as UTC.

    It is not a datetime in UTC, which would overflow at both ends of the calendar.
    """
    if moment.tzinfo is None:
        return moment - _YEAR_ONE
    since = moment.replace(tzinfo=None) - _YEAR_ONE
    offset = moment.utcoffset()
    return since if offset is None else since - offset


def ticks(instant: timedelta) -> int:
    """Return a time since the year 1 in microseconds."""
    return instant // _MICROSECOND


class Moment(NamedTuple):
    """A datetime in numbers: what its clock shows, the instant, and whether it has a time zone.

    Both count microseconds since the year 1; without a time zone they are the same.
    """

    clock: int
    instant: int
    aware: bool


def moment_of(value: datetime) -> Moment:
    """Return a datetime in numbers."""
    clock = ticks(value.replace(tzinfo=None) - _YEAR_ONE)
    return Moment(clock, ticks(instant(value)), value.utcoffset() is not None)


def instant_of(value: Any) -> timedelta | None:
    """Return the instant that an ISO string, a date (midnight UTC) or a datetime names, or None."""
    kind = type(value)
    if kind is datetime:
        return instant(value)
    if kind is date:
        return timedelta(days=value.toordinal() - 1)
    if kind is not str:
        return None
    try:
        return instant(datetime.fromisoformat(value))
    except ValueError:
        return None


def value_at(metadata: dict[str, Any], path: tuple[str, ...]) -> Any:
    """Return the value at a path of metadata; ``None`` if there is none."""
    value: Any = metadata
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def canonical(value: Any) -> str:
    """Spell a value so that two spellings are the same if and only if the values are equal.

    Tuples are collections without order, as the operand of ``$in``; timedeltas are instants.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(value)  # not JSON, which spells two lone surrogates like their pair
        case int():
            return hex(value)  # Python limits the length of decimal integers
        case float():
            return hex(int(value)) if value.is_integer() else value.hex()
        case datetime():
            return canonical(instant(value))
        case timedelta():
            return f"@{ticks(value)}"
        case date():
            return value.isoformat()
        case list():
            return f"[{','.join(map(canonical, value))}]"
        case tuple():
            return f"({','.join(sorted(set(map(canonical, value))))})"
        case _:
            items = sorted(f"{key!r}:{canonical(item)}" for key, item in value.items())
            return f"{{{','.join(items)}}}"


class Members:
    """The operands of ``$in`` as a set, for a filter's key: spelling out many takes long.

    Two that were found equal share one set from then on, so comparing them again is fast.
    """

    __slots__ = ("_set",)

    def __init__(self, members: Iterable[Any]) -> None:
        self._set = frozenset(members)

    def __hash__(self) -> int:
        return hash(self._set)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Members):
            return NotImplemented
        if self._set is not other._set:
            if self._set != other._set:
                return False
            other._set = self._set
        return True

    def __sizeof__(self) -> int:
        return sum(map(sys.getsizeof, self._set), sys.getsizeof(self._set))


def key_of(operand: Any) -> Hashable:
    """Return a key that two operands share if and only if they are equal."""
    if type(operand) is tuple and _ALIKE.issuperset(map(type, operand)):
        return Members(operand)
    return canonical(operand)


def fresh(value: Any) -> Any:
    """Copy a JSON value, so that changing the copy never changes the original."""
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    if isinstance(value, list):
        return [fresh(item) for item in value]
    return value

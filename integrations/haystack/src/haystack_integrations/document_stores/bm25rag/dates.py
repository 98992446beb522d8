"""Comparisons of dates as Haystack makes them, by the core's index of dates.

A date without a time zone takes that of the other side. To order, Haystack reads any string that
dateutil reads; to equate, ISO 8601 only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any

import dateutil.parser  # type: ignore[import-untyped]
from haystack.utils import filters as haystack_filters

from bm25rag.filters import AsMoment

_UNREADABLE = (ValueError, TypeError, ArithmeticError, AttributeError)


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
        return read_iso(text)


def _read(text: str, default: datetime | None = None) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    with suppress(*_UNREADABLE):
        named: datetime = dateutil.parser.parse(text, default=default)
        return named
    return None


def read_iso(text: str) -> datetime | None:
    """Return the date that a string equals; ``None`` if it equals only itself."""
    if not haystack_filters._looks_like_iso_date(text):
        return None
    return haystack_filters._parse_iso_date(text)


def read_whole(text: str) -> datetime | None:
    """Return the date that a string names; ``None`` if it names a part of one, such as a day."""
    # What is left out is taken from the default.
    first, second = (_read(text, datetime(2000 + n, n, n)) for n in (1, 2))
    return first if first == second else None


def indexed(operand: datetime) -> datetime | None:
    """Return a datetime if the index compares it as Haystack does."""
    # Python equates no time that a change of clocks repeats or leaves out with one in another zone.
    other = operand.replace(fold=1 - operand.fold)
    clear = (operand.utcoffset() is None) is (operand.tzinfo is None)
    return operand if clear and operand.utcoffset() == other.utcoffset() else None

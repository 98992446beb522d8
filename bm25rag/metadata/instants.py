"""The datetimes that many strings name: the usual spellings all at once, the others one by one.

NumPy's own parser is not used: NumPy 1.24 crashes on a day that is not in the calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from bm25rag.common.arrays import Bool, Int32, Int64, UInt8, as_index
from bm25rag.common.gil import releasing_gil
from bm25rag.common.strings import text_of
from bm25rag.filters.values import moment_of
from bm25rag.metadata import kinds
from bm25rag.metadata.field import Field, StringRange

NO_MOMENT = int(np.iinfo(np.int64).min)

# Strings that are read in one step: their columns stay in the cache.
_BLOCK = 1 << 14
_SECOND = 1_000_000
_MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS = np.array((0, *_MONTHS), np.int32)
_DAYS_BEFORE = np.array((0, 0, *accumulate(_MONTHS[:-1])), np.int32)
# Of each length there is one usual spelling; 0 is any digit, + either sign, T also a space.
_SPELLINGS = {
    len(date + fraction + zone): date + fraction + zone
    for date in ("0000-00-00", "0000-00-00T00:00:00")
    for fraction in ("", ".000", ".000000")
    for zone in ("", "Z", "+00:00")
    if "T" in date or not fraction + zone
}


class Moments(NamedTuple):
    """Datetimes in numbers, as ``Moment`` has them; ``NO_MOMENT`` for both where there is none."""

    clocks: Int64
    instants: Int64
    aware: Bool


Read = Callable[[str], datetime | None]


def read_iso(text: str) -> datetime | None:
    """Read a string in ISO 8601, as Python does."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


class Texts:
    """The datetimes that strings name, kept for the next time."""

    def __init__(self, strings: StringRange) -> None:
        self._strings = strings
        self._usual, self._others = _read_usual(strings)
        self._read: dict[Hashable, tuple[Hashable, Moments]] = {}

    def read(self, read: Read, kind: Hashable = None, reading: Hashable = None) -> Moments:
        """Return the datetimes; ``read`` reads one string of an unusual spelling.

        Strings are read again for another ``kind``, and if ``reading`` is not what it was.
        """
        known = self._read.get(kind)
        if known is None or known[0] != reading:
            known = self._read[kind] = reading, self._read_others(read)
        return known[1]

    def _read_others(self, read: Read) -> Moments:
        if not len(self._others):
            return self._usual
        clocks, instants, aware = self._usual
        moments = Moments(clocks.copy(), instants.copy(), aware.copy())
        for position in releasing_gil(self._others.tolist()):
            named = read(text_of(self._strings[position]))
            if named is not None:
                for array, value in zip(moments, moment_of(named), strict=True):
                    array[position] = value
        return moments


def texts_of(field: Field, kind: int) -> Texts:
    """Return the datetimes that the strings of a kind name."""
    if kind not in field.named:
        field.named[kind] = Texts(field.strings_of(kind))
    texts: Texts = field.named[kind]
    return texts


def instants_of(field: Field) -> Int64:
    """Return the instant that each distinct value names, ``NO_MOMENT`` if it names none."""
    if field.instants is None:
        instants = np.full(len(field), NO_MOMENT)
        for kind in (kinds.DATE, kinds.NAIVE, kinds.UTC):
            instants[field.codes_of(kind)] = field.numbers_of(kind)
        for kind in (kinds.STRING, kinds.ZONED):
            if field.has(kind):
                instants[field.codes_of(kind)] = texts_of(field, kind).read(read_iso).instants
        field.instants = instants
    return field.instants


def _read_usual(strings: StringRange) -> tuple[Moments, Int64]:
    """Read the strings that have a usual spelling; return also the positions of the others."""
    count = len(strings)
    clocks, instants = np.full((2, count), NO_MOMENT)
    aware = np.zeros(count, np.bool_)
    for first in range(0, count, _BLOCK):
        last = min(first + _BLOCK, count)
        block = Moments(clocks[first:last], instants[first:last], aware[first:last])
        _read_block(*strings.arrays(first, last), block)
    return Moments(clocks, instants, aware), np.flatnonzero(clocks == NO_MOMENT)


def _read_block(starts: Int64, data: UInt8, moments: Moments) -> None:
    lengths = np.diff(starts)
    for length, spelling in _SPELLINGS.items():
        positions = np.flatnonzero(lengths == length)
        if len(positions):
            if len(positions) == len(lengths):  # one after the other: no need to gather them
                text = data[starts[0] : starts[-1]].reshape(-1, length).T.copy()
            else:
                text = data[starts[positions] + np.arange(length)[:, None]]
            clocks, instants, valid = _read(text, spelling)
            read = positions[valid]
            moments.clocks[read], moments.instants[read] = clocks[valid], instants[valid]
            moments.aware[read] = spelling.endswith(("Z", "+00:00"))


def _read(text: UInt8, spelling: str) -> tuple[Int64, Int64, Bool]:
    """Read strings of one spelling, (length, n): clocks, instants, and which are valid."""
    valid = np.ones(text.shape[1], np.bool_)
    for sign, column in zip(spelling, text, strict=True):
        valid &= _fits(sign, column)
    clocks = _days(text, valid).astype(np.int64) * 86_400
    if "T" in spelling:
        clocks += _seconds(text[11:19], valid)
    clocks *= _SECOND
    if "." in spelling:
        digits = 6 if ".000000" in spelling else 3
        clocks += _number(text[20 : 20 + digits]) * 10 ** (6 - digits)
    if not spelling.endswith("+00:00"):
        return clocks, clocks, valid
    offset = _seconds(text[-5:], valid).astype(np.int64) * _SECOND
    return clocks, clocks - np.where(text[-6] == ord("+"), offset, -offset), valid


def _fits(sign: str, column: UInt8) -> Bool:
    """Return which characters may stand where a spelling has ``sign``."""
    if sign == "0":
        return column - 48 <= 9  # what is less than 48 wraps
    allowed = {"+": "+-", "T": "T "}.get(sign, sign)
    fits: Bool = np.logical_or.reduce([column == ord(one) for one in allowed])
    return fits


def _number(digits: UInt8) -> Int32:
    """Read decimal numbers, (digits, n); the result for other characters is arbitrary."""
    value = np.zeros(digits.shape[1], np.int32)
    for column in digits:
        value = value * 10 + column - 48
    return value


def _days(text: UInt8, valid: Bool) -> Int32:
    """Return the days since the year 1 of ``YYYY-MM-DD``."""
    year, month, day = _number(text[:4]), _number(text[5:7]), _number(text[8:10])
    valid &= (year >= 1) & (month >= 1) & (month <= 12)
    month[~valid] = 1
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    valid &= (day >= 1) & (day <= _DAYS.take(as_index(month)) + (leap & (month == 2)))
    before = year - 1
    leaps = before // 4 - before // 100 + before // 400
    result: Int32 = (
        before * 365 + leaps + _DAYS_BEFORE.take(as_index(month)) + (leap & (month > 2)) + day - 1
    )
    return result


def _seconds(text: UInt8, valid: Bool) -> Int32:
    """Return the seconds of ``HH:MM`` or ``HH:MM:SS``."""
    hours, minutes, seconds = (_number(text[start : start + 2]) for start in (0, 3, 6))
    valid &= (hours < 24) & (minutes < 60) & (seconds < 60)
    return hours * 3600 + minutes * 60 + seconds

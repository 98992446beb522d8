"""The instants that many strings name: the usual spellings all at once, the others one by one.

NumPy's own parser is not used: NumPy 1.24 crashes on a day that is not in the calendar.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from bm25rag.common.arrays import Bool, Int32, Int64, UInt8
from bm25rag.common.strings import text_of
from bm25rag.filters.values import instant_of
from bm25rag.metadata.field import StringRange, ticks

NO_INSTANT = int(np.iinfo(np.int64).min)

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


def instants_of(strings: StringRange) -> Int64:
    """Return what ``instant_of`` returns for each string, in ticks; ``NO_INSTANT`` for ``None``."""
    instants = np.empty(len(strings), np.int64)
    for first in range(0, len(strings), _BLOCK):
        starts, data = strings.arrays(first, min(first + _BLOCK, len(strings)))
        block = instants[first : first + _BLOCK]
        usual = _read_usual(starts, data, block)
        for position in np.flatnonzero(~usual).tolist():
            instant = instant_of(text_of(strings[first + position]))
            block[position] = NO_INSTANT if instant is None else ticks(instant)
    return instants


def _read_usual(starts: Int64, data: UInt8, instants: Int64) -> Bool:
    """Read the strings that have a usual spelling; return which those are."""
    lengths = np.diff(starts)
    usual = np.zeros(len(lengths), np.bool_)
    for length, spelling in _SPELLINGS.items():
        positions = np.flatnonzero(lengths == length)
        if len(positions):
            if len(positions) == len(lengths):  # one after the other: no need to gather them
                text = data[starts[0] : starts[-1]].reshape(-1, length).T.copy()
            else:
                text = data[starts[positions] + np.arange(length)[:, None]]
            read, valid = _read(text, spelling)
            instants[positions[valid]] = read[valid]
            usual[positions] = valid
    return usual


def _read(text: UInt8, spelling: str) -> tuple[Int64, Bool]:
    """Read strings of one spelling, (length, n): the instants, and which are valid."""
    valid = np.ones(text.shape[1], np.bool_)
    for sign, column in zip(spelling, text, strict=True):
        valid &= _fits(sign, column)
    instants = _days(text, valid).astype(np.int64) * 86_400
    if "T" in spelling:
        instants += _seconds(text[11:19], valid)
    if spelling.endswith("+00:00"):
        offset = _seconds(text[-5:], valid)
        instants -= np.where(text[-6] == ord("+"), offset, -offset)
    instants *= _SECOND
    if "." in spelling:
        digits = 6 if ".000000" in spelling else 3
        instants += _number(text[20 : 20 + digits]) * 10 ** (6 - digits)
    return instants, valid


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
    valid &= (day >= 1) & (day <= _DAYS[month] + (leap & (month == 2)))
    before = year - 1
    leaps = before // 4 - before // 100 + before // 400
    result: Int32 = before * 365 + leaps + _DAYS_BEFORE[month] + (leap & (month > 2)) + day - 1
    return result


def _seconds(text: UInt8, valid: Bool) -> Int32:
    """Return the seconds of ``HH:MM`` or ``HH:MM:SS``."""
    hours, minutes, seconds = (_number(text[start : start + 2]) for start in (0, 3, 6))
    valid &= (hours < 24) & (minutes < 60) & (seconds < 60)
    return hours * 3600 + minutes * 60 + seconds

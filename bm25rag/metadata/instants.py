"""The instants that many strings name: the usual spellings together, all others one by one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bm25rag.common.arrays import Bool, Int64, UInt8
from bm25rag.common.strings import text_of
from bm25rag.filters.values import instant_of
from bm25rag.metadata.field import StringRange, ticks

NO_INSTANT = int(np.iinfo(np.int64).min)

# Strings that are read together.
_BLOCK = 1 << 14
_YEAR_ONE = int(np.datetime64("0001-01-01", "us").astype(np.int64))
# The usual spelling of each length, as _SIGNS writes it: 0 is any digit, - also +, T also a space.
_SPELLINGS = {
    len(date + fraction + zone): date + fraction + zone
    for date in ("0000-00-00", "0000-00-00T00:00:00")
    for fraction in ("", ".000", ".000000")
    for zone in ("", "Z", "-00:00")
    if "T" in date or not fraction + zone
}
_SIGNS = np.arange(256, dtype=np.uint8)
_SIGNS[ord("0") : ord("9") + 1] = ord("0")
_SIGNS[ord("+")], _SIGNS[ord(" ")] = ord("-"), ord("T")


def instants_of(strings: StringRange) -> Int64:
    """Return ``instant_of`` of each string, in ticks; ``NO_INSTANT`` for ``None``."""
    instants = np.full(len(strings), NO_INSTANT)
    for first in range(0, len(strings), _BLOCK):
        starts, data = strings.arrays(first, min(first + _BLOCK, len(strings)))
        block = instants[first : first + _BLOCK]
        unread = _read_usual(starts, data, block)
        for position in np.flatnonzero(unread).tolist():
            instant = instant_of(text_of(strings[first + position]))
            if instant is not None:
                block[position] = ticks(instant)
    return instants


def _read_usual(starts: Int64, data: UInt8, instants: Int64) -> Bool:
    """Read the strings that have a usual spelling; return which are left."""
    lengths = np.diff(starts)
    unread = np.ones(len(lengths), np.bool_)
    for length, spelling in _SPELLINGS.items():
        positions = np.flatnonzero(lengths == length)
        if len(positions) == len(lengths) > 0:  # one after the other: no need to gather them
            text = data[starts[0] : starts[-1]].reshape(-1, length)
        else:
            text = data[starts[positions, None] + np.arange(length)]
        alike = _joined(_SIGNS.take(text)) == spelling.encode()
        if not alike.all():
            positions, text = positions[alike], text[alike]
        try:
            read = _read(text, spelling)
        except ValueError:  # one of them is not in the calendar
            continue
        instants[positions] = read
        unread[positions] = read == NO_INSTANT
    return unread


def _joined(text: UInt8) -> npt.NDArray[np.bytes_]:
    """Return rows of characters, (n, length), as n byte strings."""
    return np.ascontiguousarray(text).view(f"S{text.shape[1]}")[:, 0]


def _read(text: UInt8, spelling: str) -> Int64:
    """Read strings of one spelling, (n, length)."""
    zone = 6 if spelling.endswith("-00:00") else spelling.count("Z")
    local = _joined(text[:, : len(spelling) - zone])
    instants = local.astype("M8[us]").astype(np.int64) - _YEAR_ONE
    valid = instants >= 0  # NumPy knows a year 0, Python does not
    if zone == 6:
        digits = (text[:, [-5, -4, -2, -1]] - np.uint8(ord("0"))).astype(np.int64)
        hours, minutes = digits[:, 0] * 10 + digits[:, 1], digits[:, 2] * 10 + digits[:, 3]
        valid &= (hours < 24) & (minutes < 60)
        offsets = (hours * 60 + minutes) * 60_000_000
        instants -= np.where(text[:, -6] == ord("+"), offsets, -offsets)
    return np.where(valid, instants, NO_INSTANT)

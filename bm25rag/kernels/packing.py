"""Texts as numbers of pieces, which are byte strings that are frequent in them.

A number takes 16 bits, and a piece at most eight bytes: a number, too, whose lowest byte is the
first. The first 256 pieces are single bytes, and no other has a zero. A text is cut greedily, into
the longest pieces that there are. They are found in a sample: two that follow each other often
enough become one more (as in OnPair: Gargiulo, Roselli and Venturini, 2025).
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import view, zeros

if not cython.compiled:

    def load(data: memoryview, place: int) -> int:
        """Return eight bytes as a number, the first of them lowest."""
        return int.from_bytes(data[place : place + 8], "little")


_LONGEST = cython.declare(cython.Py_ssize_t, 8)
_MOST_PIECES = cython.declare(cython.Py_ssize_t, 1 << 16)
# The share of the slots that are taken at most is a half.
_SLOTS = cython.declare(cython.Py_ssize_t, 1 << 17)
_PAIRS = cython.declare(cython.Py_ssize_t, 1 << 21)
_ALL = cython.declare(cython.ulonglong, (1 << 64) - 1)
_MIX = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hash(low: cython.ulonglong, length: cython.Py_ssize_t) -> cython.ulonglong:
    """Hash the first bytes of eight: of 33 bits, the upper 17 are a slot, the others a tag."""
    return ((((low << (64 - 8 * length)) & _ALL) * _MIX) & _ALL) >> 31


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _longest(
    pieces: cython.const[cython.ulonglong][::1],
    slots: cython.const[cython.uint][::1],
    low: cython.ulonglong,
) -> cython.uint:
    """Return the longest piece that eight bytes begin with, and from bit 16 on its length.

    All lengths are looked for, without branches, so that the processor does so at once.
    """
    best: cython.uint = low & 0xFF | 1 << 16
    length: cython.Py_ssize_t
    entry: cython.uint
    mask: cython.int
    hashed: cython.ulonglong
    for length in range(2, 9):
        hashed = _hash(low, length)
        entry = slots[hashed >> 16]
        mask = -(entry >> 16 == hashed & 0xFFFF)
        best ^= (best ^ (entry & 0xFFFF | length << 16)) & mask
    length = best >> 16
    # Another one may have the same hash, or none (then it is 0): shorter ones are looked at.
    while length > 1 and (
        best & 0xFFFF < 256 or pieces[best & 0xFFFF] != low & (_ALL >> (64 - 8 * length))
    ):
        length -= 1
        best = slots[_hash(low, length) >> 16] & 0xFFFF | length << 16
    return best if length > 1 else low & 0xFF | 1 << 16


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _eight(
    source: cython.const[cython.uchar][::1], place: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> cython.ulonglong:
    """Return the next eight bytes, zeros behind the end of a text."""
    if stop - place < _LONGEST:
        return load(source, place) & (_ALL >> (64 - 8 * (stop - place)))
    return load(source, place)


def find_pieces(data, offsets, often: cython.int):
    """Find pieces; see ``Backend.find_pieces``.

    It returns the bytes of each, and a hash table of them, of any size below 2^32: the tag of its
    hash, and its number.
    """
    pieces, slots = np.zeros(_MOST_PIECES, np.uint64), np.zeros(_SLOTS, np.uint32)
    pieces[:256] = np.arange(256)
    source: cython.const[cython.uchar][::1] = view(data)
    bounds: cython.const[cython.longlong][::1] = view(offsets)
    to_pieces: cython.ulonglong[::1] = view(pieces)
    to_slots: cython.uint[::1] = view(slots)
    keys: cython.uint[::1] = zeros(_PAIRS, np.uint32)
    counts: cython.ushort[::1] = zeros(_PAIRS, np.uint16)
    count: cython.Py_ssize_t = 256
    text: cython.Py_ssize_t
    with cython.nogil:
        for text in range(bounds.shape[0] - 1):
            count = _find_in(
                source, bounds[text], bounds[text + 1], to_pieces, to_slots, count, keys, counts,
                often,
            )  # fmt: skip
    return pieces[:count], slots


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_in(
    source: cython.const[cython.uchar][::1],
    place: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    pieces: cython.ulonglong[::1],
    slots: cython.uint[::1],
    count: cython.Py_ssize_t,
    keys: cython.uint[::1],
    counts: cython.ushort[::1],
    often: cython.int,
) -> cython.Py_ssize_t:
    """Add pieces of one text; return how many there are then."""
    piece: cython.uint
    number: cython.uint
    length: cython.Py_ssize_t
    before: cython.uint = 0
    before_length: cython.Py_ssize_t = _LONGEST
    pair: cython.Py_ssize_t
    both: cython.ulonglong
    hashed: cython.ulonglong
    while place < stop and count < _MOST_PIECES:
        piece = _longest(pieces, slots, _eight(source, place, stop))
        number = piece & 0xFFFF
        length = piece >> 16
        place += length
        if before_length + length <= _LONGEST and before and number:
            # What is counted is a hash: two pairs of one cell take turns.
            pair = ((before << 16 | number) * _MIX & _ALL) >> 43
            if keys[pair] != before << 16 | number:
                keys[pair] = before << 16 | number
                counts[pair] = 0
            counts[pair] += 1
            both = pieces[before] | pieces[number] << (8 * before_length)
            hashed = _hash(both, before_length + length)
            # Without a slot of its own, it stays two.
            if counts[pair] >= often and slots[hashed >> 16] == 0:
                slots[hashed >> 16] = (hashed & 0xFFFF) << 16 | count
                pieces[count] = both
                number = count
                length += before_length
                count += 1
        before = number
        before_length = length
    return count


def pack(pieces, slots, data, offsets):
    """Cut texts into pieces; see ``Backend.pack``."""
    known: cython.const[cython.ulonglong][::1] = view(pieces)
    table: cython.const[cython.uint][::1] = view(slots)
    source: cython.const[cython.uchar][::1] = view(data)
    bounds: cython.const[cython.longlong][::1] = view(offsets)
    numbers = np.empty(len(data), np.uint16)
    ends = np.zeros(len(offsets), np.int64)
    to_numbers: cython.ushort[::1] = view(numbers)
    to_ends: cython.longlong[::1] = view(ends)
    done: cython.Py_ssize_t = 0
    text: cython.Py_ssize_t
    with cython.nogil:
        for text in range(bounds.shape[0] - 1):
            done = _pack(known, table, source, bounds[text], bounds[text + 1], to_numbers, done)
            to_ends[text + 1] = done
    return numbers[:done], ends


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _pack(
    pieces: cython.const[cython.ulonglong][::1],
    slots: cython.const[cython.uint][::1],
    source: cython.const[cython.uchar][::1],
    place: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    numbers: cython.ushort[::1],
    done: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Cut one text; return where the numbers end."""
    piece: cython.uint
    while place < stop:
        piece = _longest(pieces, slots, _eight(source, place, stop))
        numbers[done] = piece & 0xFFFF
        done += 1
        place += piece >> 16
    return done

"""Compiled numbering of bigrams: sorted by their first characters, not looked up.

Chinese has so many bigrams that a hash table of them outgrows the cache. Those of one first
character need a table of second characters alone, which does not.
"""

from __future__ import annotations

import numpy as np

from bm25rag.common.arrays import UInt32, UInt64
from bm25rag.kernels.compiling import compiled
from bm25rag.kernels.typed_bits import SIZE

# Code points that may be in a pair.
_POINTS = 1 << 16
_POINT, _PLACE, _BYTE = np.uint64(0xFFFF), np.uint64(0xFFFFFFFF), np.uint64(0xFF)
_ZERO, _ONE, _FIRST, _SECOND = np.uint64(0), np.uint64(1), np.uint64(16), np.uint64(32)
_NONE = np.uint32(0xFFFFFFFF)


@compiled
def with_bigrams(
    pairs: UInt32, total: int, tokens: UInt32, entries: UInt64, table: UInt64
) -> tuple[UInt32, UInt64]:
    """Return tokens and words with bigrams among them.

    A bigram may be there twice, which ``adopt`` mends: where its characters have wide and
    narrow forms, or where one of it was among the words before.

    Parameters
    ----------
    pairs, total
        For each bigram its place among all tokens, that in the source, and its two code
        points, the first above 16 bits; uint32, (n, 3); and how many. They are overwritten.
    tokens, entries
        The others, as ``scan`` returns them.
    table
        See ``fold_table``.
    """
    numbers = np.empty(len(tokens) + total, np.uint32)
    for place in range(len(numbers)):
        numbers[place] = _NONE
    words = len(entries)
    count = _number_bigrams(pairs, total, np.uint64(words), numbers)
    other = 0
    for place in range(len(numbers)):
        if numbers[place] == _NONE:
            numbers[place] = tokens[other]
            other += 1
    # Element by element, as in ``with_room``.
    rows = np.empty((words + count, 4), np.uint64)
    for word in range(words):
        for part in range(4):
            rows[word, part] = entries[word, part]
    for pair in range(count):
        code, row = np.uint64(pairs[pair, 2]), words + pair
        first, second = table[code >> _FIRST], table[code & _POINT]
        width = first >> SIZE & _BYTE
        rows[row, 0] = first & _PLACE | (second & _PLACE) << (width << np.uint64(3))
        rows[row, 1], rows[row, 2] = _ZERO, _ZERO
        rows[row, 3] = width + (second >> SIZE & _BYTE)
    return numbers, rows


@compiled
def _number_bigrams(pairs: UInt32, total: int, known: np.uint64, numbers: UInt32) -> np.int64:
    """Give bigrams numbers from ``known`` on; keep one of each, in order, and return how many."""
    stops = np.zeros(_POINTS, np.int64)
    for pair in range(total):
        stops[np.uint64(pairs[pair, 2]) >> _FIRST] += 1
    stop = np.int64(0)
    for point in range(_POINTS):
        size = stops[point]
        stops[point] = stop
        stop += size
    rows = np.empty(total, np.uint64)
    for pair in range(total):
        code = np.uint64(pairs[pair, 2])
        first = code >> _FIRST
        rows[np.uint64(stops[first])] = code << _SECOND | np.uint64(pairs[pair, 0])
        stops[first] += 1
    # Numbers plus one; those of an earlier first character are less than what is given now.
    given = np.zeros(_POINTS, np.uint32)
    row, count = _ZERO, _ZERO
    for point in range(_POINTS):
        before, end = count, np.uint64(stops[point])
        while row < end:
            second = rows[row] >> _SECOND & _POINT
            if given[second] <= before:
                pairs[count, 2] = rows[row] >> _SECOND
                count += _ONE
                given[second] = count
            numbers[rows[row] & _PLACE] = known + np.uint64(given[second]) - _ONE
            row += _ONE
    return np.int64(count)

"""Compiled numbering of bigrams: sorted by their first characters, not looked up.

Chinese has so many bigrams that a hash table of them outgrows the cache. Those of one first
character need a table of second characters alone, which does not.
"""

from __future__ import annotations

import numpy as np

from bm25rag._types import UInt8, UInt32, UInt64
from bm25rag.folding import SIZE
from bm25rag.kernels.compiling import compiled
from bm25rag.kernels.words import BEYOND, write

# Code points that may be in a pair.
_POINTS = 1 << 16
_POINT, _PLACE, _BYTE = np.uint64(0xFFFF), np.uint64(0xFFFFFFFF), np.uint64(0xFF)
_ZERO, _ONE, _FIRST, _SECOND = np.uint64(0), np.uint64(1), np.uint64(16), np.uint64(32)
_NONE = np.uint32(0xFFFFFFFF)


@compiled
def with_pairs(
    pairs: UInt32, tokens: UInt32, entries: UInt64, pool: UInt8, table: UInt64
) -> tuple[UInt32, UInt64, UInt8]:
    """Return tokens and words with bigrams among them; no bigram is among the words before.

    One is twice there if its characters have wide and narrow forms.

    Parameters
    ----------
    pairs
        For each bigram its place among all tokens, that in the source, and its two code
        points, the first above 16 bits; uint32, (n, 3). They are overwritten.
    tokens, entries, pool
        The others, as ``scan`` returns them.
    table
        See ``fold_table``.
    """
    numbers = np.empty(len(tokens) + len(pairs), np.uint32)
    for place in range(len(numbers)):
        numbers[place] = _NONE
    words, size = len(entries), np.uint64(len(pool))
    count = _number(pairs, np.uint64(words), numbers)
    other = 0
    for place in range(len(numbers)):
        if numbers[place] == _NONE:
            numbers[place] = tokens[other]
            other += 1
    # Element by element, as in ``with_room``.
    rows = np.empty((words + count, 4), np.uint64)
    data = np.empty(len(pool) + 9 * count + BEYOND, np.uint8)
    for word in range(words):
        for part in range(4):
            rows[word, part] = entries[word, part]
    for place in range(len(pool)):
        data[place] = pool[place]
    for pair in range(count):
        code = np.uint64(pairs[pair, 2])
        first, second = table[code >> _FIRST], table[code & _POINT]
        width = first >> SIZE & _BYTE
        low = first & _PLACE | (second & _PLACE) << (width << np.uint64(3))
        width += second >> SIZE & _BYTE
        row = words + pair
        rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3] = low, _ZERO, size, width
        write(low, _ZERO, pool, _ZERO, width, data, size)
        size += width + _ONE
    return numbers, rows, data[:size].copy()


@compiled
def _number(pairs: UInt32, known: np.uint64, numbers: UInt32) -> np.int64:
    """Give bigrams numbers from ``known`` on; keep one of each, in order, and return how many."""
    stops, ranks = np.zeros(_POINTS, np.int64), np.zeros(_POINTS, np.uint64)
    for pair in range(len(pairs)):
        code = np.uint64(pairs[pair, 2])
        stops[code >> _FIRST] += 1
        ranks[code & _POINT] = 1
    # The rank of a character is its place among those that occur: they take few cache lines.
    points = np.empty(_POINTS, np.uint64)
    rank, stop = _ZERO, np.int64(0)
    for point in range(np.uint64(_POINTS)):
        points[rank] = point
        size, own = stops[point], rank
        rank += np.uint64((size > 0) | (ranks[point] > 0))
        ranks[point], stops[point] = own, stop
        stop += size
    rows = np.empty(len(pairs), np.uint64)
    for pair in range(len(pairs)):
        code = np.uint64(pairs[pair, 2])
        first = code >> _FIRST
        rows[np.uint64(stops[first])] = ranks[code & _POINT] << _SECOND | np.uint64(pairs[pair, 0])
        stops[first] += 1
    # Numbers plus one; those of an earlier first character are less than what is given now.
    given = np.zeros(rank, np.uint64)
    begin, count = _ZERO, _ZERO
    for first in points[:rank]:
        before, end = count, np.uint64(stops[first])
        for row in range(begin, end):
            second = rows[row] >> _SECOND
            if given[second] <= before:
                pairs[count, 2] = first << _FIRST | points[second]
                count += _ONE
                given[second] = count
            numbers[rows[row] & _PLACE] = known + given[second] - _ONE
        begin = end
    return np.int64(count)

"""Terms of a segment that are spelt like a given one.

Every term has a signature of 64 bits, which says what characters it has. An edit changes at
most two of them, so a few vector operations rule out most terms of one length, and also those
with another first or last character; only the rest are compared. That takes 16 bytes a term,
and in a million terms 2 ms for one edit and 8 for two.
"""

from __future__ import annotations

import numpy as np

from bm25rag.columns.column import Column
from bm25rag.common.arrays import Int16, Int64, UInt32, UInt64, as_index
from bm25rag.common.gil import release_gil
from bm25rag.errors import CorruptIndexError

# Most characters of a word that is compared, and most edits.
LONGEST, FURTHEST = 40, 2
_LOW = np.uint32(0xFFFF)


class Spelling:
    """Finds the strings of a column, UTF-8 and none missing, that are few edits away from another.

    An edit inserts, deletes or replaces a character, or swaps two neighbours (the optimal string
    alignment distance). Of the column, ``block`` strings are read in one step.
    """

    def __init__(self, column: Column, block: int = 1 << 16) -> None:
        column.check_all()
        self._column = column
        lengths = np.empty(len(column), np.uint32)
        signatures = np.empty(len(column), np.uint64)
        ends = np.empty((2, len(column)), np.uint16)
        for first in range(0, len(column), block):
            last = min(first + block, len(column))
            part = slice(first, last)
            lengths[part], signatures[part], ends[:, part] = _read(column, first, last)
            release_gil()
        self._order = np.argsort(lengths, kind="stable").astype(np.uint32)
        counts = np.bincount(
            as_index(lengths[lengths <= LONGEST + FURTHEST]), minlength=LONGEST + 2 * FURTHEST
        )
        self._edges = np.concatenate(([0], np.cumsum(counts))).tolist()
        self._signatures = signatures[as_index(self._order)]
        self._heads, self._tails = ends[:, as_index(self._order)]

    def near(self, word: str, distance: int) -> list[str]:
        """Return the strings at most ``distance`` edits away, which is 1 or 2.

        The word has at most 40 characters, and three or more. If the distance is 2, only strings
        with the same first character are returned.
        """
        codes = _codes(word)
        signature = np.bitwise_or.reduce(_bits(codes))
        head, tail = codes[0] & _LOW, codes[-1] & _LOW
        similar: list[str] = []
        for length in range(len(codes) - distance, len(codes) + distance + 1):
            first, last = self._edges[length : length + 2]
            different = self._signatures[first:last] ^ signature
            for _ in range(2 * distance):  # each step clears the lowest bit that is set
                different &= different - np.uint64(1)
            ends = self._heads[first:last] == head
            if distance == 1:  # one edit leaves the first or the last character
                ends |= self._tails[first:last] == tail
            alike = self._order[first + np.flatnonzero((different == 0) & ends)].tolist()
            if alike:
                names = [name or "" for name in self._column.texts(alike)]
                edits = _edits(codes, _codes("".join(names)).reshape(-1, length))
                similar += [
                    name for name, near in zip(names, edits <= distance, strict=True) if near
                ]
        return similar


def _read(column: Column, first: int, last: int) -> tuple[Int64, UInt64, UInt32]:
    """Return how many characters strings have, their signatures, and their ends, (2, s)."""
    starts, data = column.span(first, last)
    offsets = np.asarray(starts).astype(np.int64)
    chunk = bytes(data[offsets[0] : offsets[-1]])
    try:
        codes = _codes(str(chunk, "utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise CorruptIndexError(f"a stored string is not UTF-8: {error}") from None
    leads = (np.frombuffer(chunk, np.uint8) & 0xC0) != 0x80
    edges = np.concatenate(([0], np.cumsum(leads)))[offsets - offsets[0]]
    # One more, for an empty string at the end; what is computed for empty strings is not used.
    bits = np.append(_bits(codes), np.uint64(0))
    codes = np.append(codes, np.uint32(0))
    ends = np.stack((codes[edges[:-1]], codes[edges[1:] - 1])) & _LOW
    return np.diff(edges), np.bitwise_or.reduceat(bits, as_index(edges[:-1])), ends


def _codes(text: str) -> UInt32:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _bits(codes: UInt32) -> UInt64:
    """Return one bit for each character; neighbours in an alphabet have different bits."""
    return np.uint64(1) << (codes & np.uint32(63)).astype(np.uint64)


def _edits(word: UInt32, others: UInt32) -> Int16:
    """Return the distances, int16 (s,), from a word to the words of the rows of (s, m)."""
    size = len(word)
    steps = np.arange(size + 1, dtype=np.int16)
    before = row = np.tile(steps, (len(others), 1))
    for column in range(others.shape[1]):
        new = np.empty_like(row)
        new[:, 0] = column + 1
        same = others[:, column, None] == word
        new[:, 1:] = np.minimum(row[:, 1:] + 1, row[:, :-1] + ~same)
        if column:
            swapped = same[:, :-1] & (others[:, column - 1, None] == word[1:])
            turned = np.where(swapped, before[:, :-2] + 1, size + column)
            new[:, 2:] = np.minimum(new[:, 2:], turned)
        # Insertions remain: each entry may come from any before it.
        before, row = row, np.minimum.accumulate(new - steps, axis=1) + steps
    return row[:, -1]

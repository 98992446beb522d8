"""Columns and tables of consecutive segments joined into one, by array operations.

A merge runs beside searches. Loops over documents in Python would let them wait for the
interpreter's lock, 5 ms at a time, so strings are copied many at once, some hundred
kilobytes a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bm25rag.columns.column import Column, arrange
from bm25rag.columns.string_table import StringTable, sort_ties, ties
from bm25rag.common.arrays import Bool, Int64, UInt8, UInt32
from bm25rag.errors import CorruptIndexError

# Bytes that are copied at once, and strings.
_BYTES = 1 << 18
_STRINGS = 1 << 14


class LivingStrings(NamedTuple):
    """Strings, and which of them stay, bool; ``None``: all."""

    column: Column
    living: Bool | None


def join_columns(pieces: Sequence[LivingStrings]) -> Column:
    """Make one column of those strings of several that stay."""
    lengths, null = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
    for column, living in pieces:
        stay = slice(None) if living is None else living
        lengths.append(column.lengths()[stay])
        null.append(column.missing()[stay])
    every = np.concatenate(lengths)
    data, position = np.empty(int(every.sum()), np.uint8), 0
    for (column, living), own in zip(pieces, lengths[1:], strict=True):
        end = position + int(own.sum())
        if end > position:
            _copy(column, living, data[position:end])
        position = end
    return arrange(every, data, np.concatenate(null))


def _copy(column: Column, living: Bool | None, out: UInt8) -> None:
    offsets = column.offsets.astype(np.int64)
    if living is None:
        out[:] = column.data[offsets[0] : offsets[-1]]
        return
    position = 0
    for first, last in _chunks(offsets):
        lengths = np.diff(offsets[first : last + 1])
        kept = column.data[offsets[first] : offsets[last]][np.repeat(living[first:last], lengths)]
        out[position : position + len(kept)] = kept
        position += len(kept)


def _chunks(ends: Int64) -> Iterator[tuple[int, int]]:
    """Cut strings that end at ``ends[1:]`` into spans of ``_BYTES`` and ``_STRINGS`` at most."""
    first, count = 0, len(ends) - 1
    while first < count:
        last = int(np.searchsorted(ends, ends[first] + _BYTES, side="right")) - 1
        last = min(max(last, first + 1), first + _STRINGS, count)
        yield first, last
        first = last


def take_strings(column: Column, numbers: Int64) -> Column:
    """Make the column of some strings, in the order of ``numbers``."""
    null = column.missing()[numbers]
    if null.all():
        return arrange(np.zeros(len(null), np.int64), np.empty(0, np.uint8), null)
    lengths = column.lengths()[numbers]
    starts, ends = column.offsets[numbers].astype(np.int64), np.cumsum(lengths)
    data = np.empty(int(ends[-1]), np.uint8)
    for first, last in _chunks(np.concatenate(([0], ends))):
        own, begin = slice(first, last), ends[first] - lengths[first]
        data[begin : ends[last - 1]] = column.data[_places(starts[own], lengths[own])]
    return arrange(lengths, data, null)


def _places(starts: Int64, lengths: Int64) -> Int64:
    """Return where every byte of strings lies, one string after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def join_tables(pieces: Sequence[tuple[StringTable, Bool | None]]) -> StringTable:
    """Join the tables of strings of which no two that stay are equal.

    Raises
    ------
    CorruptIndexError
        If two are, which only files that somebody has forged can bring about.
    """
    keys, numbers, offset = [np.empty(0, np.uint32)], [np.empty(0, np.int64)], 0
    for table, living in pieces:
        table.check_all()
        own = table.order.astype(np.int64)
        if living is None:
            keys.append(table.keys)
            numbers.append(own + offset)
            offset += len(table)
        else:
            stay = living[own]
            keys.append(table.keys[stay])
            numbers.append((np.cumsum(living) - 1)[own[stay]] + offset)
            offset += int(np.count_nonzero(living))
    column = join_columns([LivingStrings(table.column, living) for table, living in pieces])
    joined = np.concatenate(keys)
    order = np.argsort(joined, kind="stable")
    keys_now, found = joined[order], np.concatenate(numbers)[order]
    sort_ties(keys_now, found, column)
    for place in ties(keys_now):
        if column[found[place]] == column[found[place - 1]]:
            raise CorruptIndexError(
                f"two documents have the id {column[found[place]]!r:.100}; "
                "restore the folder from a copy"
            )
    return StringTable(column, keys_now, found.astype(np.uint32))


class JoinedTerms:
    """The terms of several tables, each once, in a table's order.

    Parameters
    ----------
    tables
        Tables in their own order.

    Attributes
    ----------
    numbers
        For each table, the number here of each of its terms, ascending, uint32.
    """

    def __init__(self, tables: Sequence[StringTable]) -> None:
        self._column = join_columns([LivingStrings(table.column, None) for table in tables])
        keys = np.concatenate([np.empty(0, np.uint32), *(table.keys for table in tables)])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        again = self._bring_together(keys, order)
        self._first, self._keys = order[~again], keys[~again]
        numbers = np.empty(len(keys), np.uint32)
        numbers[order] = np.cumsum(~again) - 1
        edges = np.cumsum([0, *map(len, tables)]).tolist()
        self.numbers: list[UInt32] = [numbers[start:stop] for start, stop in pairwise(edges)]

    def __len__(self) -> int:
        return len(self._first)

    def table(self, used: Int64) -> tuple[StringTable, Int64]:
        """Make the table of some terms, their numbers ascending; see ``build_table``."""
        column = take_strings(self._column, self._first[used])
        table = StringTable(column, self._keys[used], np.empty(0, np.uint32))
        return table, np.arange(len(used))

    def _bring_together(self, keys: UInt32, order: Int64) -> Bool:
        """Make equal terms neighbours in ``order``; return which are equal to the one before."""
        again = self._equal_before(keys, order)
        # Different terms of one key are rare (260 pairs in 1.5 M); their bytes decide.
        same = np.concatenate(([False], keys[1:] == keys[:-1]))[: len(keys)]
        mixed = np.isin(keys, keys[same & ~again])
        if mixed.any():
            tied = order[mixed]
            sort_ties(keys[mixed], tied, self._column)
            order[mixed] = tied
            again = self._equal_before(keys, order)
        return again

    def _equal_before(self, keys: UInt32, order: Int64) -> Bool:
        lengths, starts = self._column.lengths(), self._column.offsets.astype(np.int64)
        again = np.zeros(len(order), np.bool_)
        places = np.flatnonzero(keys[1:] == keys[:-1]) + 1
        places = places[lengths[order[places]] == lengths[order[places - 1]]]
        ends = np.cumsum(np.concatenate(([0], lengths[order[places]])))
        for first, last in _chunks(ends):
            own = places[first:last]
            size = lengths[order[own]]
            here = self._column.data[_places(starts[order[own]], size)]
            before = self._column.data[_places(starts[order[own - 1]], size)]
            differing = np.repeat(np.arange(len(own)), size)[here != before]
            again[own] = True
            again[own[differing]] = False
        return again

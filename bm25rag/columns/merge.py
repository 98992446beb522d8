"""Columns and tables of consecutive segments joined into one, by array operations.

Searches go on during a merge. A Python loop over documents would make them wait for the
interpreter's lock, 5 ms at a time, so strings are copied in steps of a few hundred kilobytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bm25rag.columns.column import Column, arrange, byte_positions, chunks, select_strings
from bm25rag.columns.string_table import StringTable, sort_ties, ties
from bm25rag.common.arrays import Bool, Int64, UInt8, UInt32
from bm25rag.errors import CorruptIndexError


class LivingStrings(NamedTuple):
    """Strings, and which of them to keep, bool; ``None``: all."""

    column: Column
    living: Bool | None


def join_columns(pieces: Sequence[LivingStrings]) -> Column:
    """Make one column of the living strings of several."""
    lengths, null = [np.empty(0, np.int64)], [np.empty(0, np.bool_)]
    for column, living in pieces:
        keep = slice(None) if living is None else living
        lengths.append(column.lengths()[keep])
        null.append(column.missing()[keep])
    all_lengths = np.concatenate(lengths)
    data, position = np.empty(int(all_lengths.sum()), np.uint8), 0
    for (column, living), lengths_here in zip(pieces, lengths[1:], strict=True):
        end = position + int(lengths_here.sum())
        if end > position:
            _copy(column, living, data[position:end])
        position = end
    return arrange(all_lengths, data, np.concatenate(null))


def _copy(column: Column, living: Bool | None, out: UInt8) -> None:
    offsets = column.offsets.astype(np.int64)
    if living is None:
        out[:] = column.data[offsets[0] : offsets[-1]]
        return
    position = 0
    for first, last in chunks(offsets):
        lengths = np.diff(offsets[first : last + 1])
        data = column.data[offsets[first] : offsets[last]][np.repeat(living[first:last], lengths)]
        out[position : position + len(data)] = data
        position += len(data)


def join_tables(pieces: Sequence[tuple[StringTable, Bool | None]]) -> StringTable:
    """Join tables of which no two living strings are equal.

    Raises
    ------
    CorruptIndexError
        If two are equal, which only forged files can bring about.
    """
    keys, numbers, offset = [np.empty(0, np.uint32)], [np.empty(0, np.int64)], 0
    for table, living in pieces:
        table.check_all()
        order = table.order.astype(np.int64)
        if living is None:
            keys.append(table.keys)
            numbers.append(order + offset)
            offset += len(table)
        else:
            keep = living[order]
            keys.append(table.keys[keep])
            numbers.append((np.cumsum(living) - 1)[order[keep]] + offset)
            offset += int(np.count_nonzero(living))
    column = join_columns([LivingStrings(table.column, living) for table, living in pieces])
    all_keys = np.concatenate(keys)
    by_key = np.argsort(all_keys, kind="stable")
    all_keys, order = all_keys[by_key], np.concatenate(numbers)[by_key]
    sort_ties(all_keys, order, column.__getitem__)
    for rank in ties(all_keys):
        if column[order[rank]] == column[order[rank - 1]]:
            raise CorruptIndexError(
                f"two documents have the id {column[order[rank]]!r:.100}; "
                "restore the folder from a copy"
            )
    return StringTable(column, all_keys, order.astype(np.uint32))


class JoinedTerms:
    """The terms of several tables, each once, in the order of a table.

    Parameters
    ----------
    tables
        Tables whose columns are in the order of their keys.

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
        """Make the table of some terms, whose numbers ascend; see ``build_table``."""
        column = select_strings(self._column, self._first[used])
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
            sort_ties(keys[mixed], tied, self._column.__getitem__)
            order[mixed] = tied
            again = self._equal_before(keys, order)
        return again

    def _equal_before(self, keys: UInt32, order: Int64) -> Bool:
        lengths, starts = self._column.lengths(), self._column.offsets.astype(np.int64)
        again = np.zeros(len(order), np.bool_)
        alike = np.flatnonzero(keys[1:] == keys[:-1]) + 1
        alike = alike[lengths[order[alike]] == lengths[order[alike - 1]]]
        ends = np.cumsum(np.concatenate(([0], lengths[order[alike]])))
        for first, last in chunks(ends):
            ranks = alike[first:last]
            sizes = lengths[order[ranks]]
            here = self._column.data[byte_positions(starts[order[ranks]], sizes)]
            before = self._column.data[byte_positions(starts[order[ranks - 1]], sizes)]
            differing = np.repeat(np.arange(len(ranks)), sizes)[here != before]
            again[ranks] = True
            again[ranks[differing]] = False
        return again

"""Columns and tables of consecutive segments joined into one, in memory or on the way to a file.

Searches go on during a merge. A Python loop over documents would make them wait for the
interpreter's lock, 5 ms at a time, so all is done by array operations, in steps of a few hundred
kilobytes. Such steps also bound the memory of what is joined into a file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np

from bm25rag.columns.column import (
    Column,
    arrange,
    byte_positions,
    chunks,
    offset_type,
    select_strings,
)
from bm25rag.columns.string_table import StringTable, key_ranges, sort_ties, ties
from bm25rag.common.arrays import Array, Bool, Int64, UInt8, UInt32, as_index
from bm25rag.common.chunks import Chunks, Growing, Spools
from bm25rag.errors import CorruptIndexError

# Strings that are copied in one step; tests set it small.
STRINGS = 1 << 14
# What the table of one string takes while it is merged.
_STRING_BYTES = 64


LivingStrings: TypeAlias = tuple[Column, Bool | None]
"""Strings, and which of them to keep; ``None``: all."""
LivingTable: TypeAlias = tuple[StringTable, Bool | None]
"""The same for the strings of a table."""


def join_columns(columns: Sequence[LivingStrings]) -> Column:
    """Make one column of the living strings of several."""
    for column, _ in columns:
        column.check_all()
    lengths, null, data = Growing(np.int64), Growing(np.bool_), Growing(np.uint8)
    for piece in living_pieces(columns):
        lengths.append(piece.lengths())
        null.append(piece.missing())
        data.append(data_of(piece))
    return arrange(lengths.chunks(), data.chunks(), null.chunks())


def chunk_columns(name: str, columns: Sequence[LivingStrings]) -> dict[str, Chunks]:
    """Return the three arrays of ``join_columns(columns)``, by their names in a file."""
    count = sum(_count(*column) for column in columns)
    size, missing = map(sum, zip((0, 0), *(_measure(*column) for column in columns), strict=True))
    kind = offset_type(size)
    offsets, null = Chunks(kind, 0), Chunks(np.bool_, 0)
    if not 0 < count == missing:
        offsets = Chunks(kind, count + 1, _offsets(columns, kind))
    if 0 < missing < count:
        null = Chunks(np.bool_, count, (piece.missing() for piece in living_pieces(columns)))
    data = Chunks(np.uint8, size, map(data_of, living_pieces(columns)))
    return {f"{name}.offsets": offsets, f"{name}.data": data, f"{name}.null": null}


def _count(column: Column, living: Bool | None) -> int:
    return len(column) if living is None else int(np.count_nonzero(living))


def _measure(column: Column, living: Bool | None) -> tuple[int, int]:
    """Return the bytes of the living strings, and how many are missing; nothing is checked."""
    if column.strings is None:
        return 0, _count(column, living)
    if living is None:
        size = int(column.offsets[-1]) - int(column.offsets[0])
        return size, int(np.count_nonzero(column.null))
    size = missing = 0
    for first in range(0, len(column), STRINGS):
        lives = living[first : first + STRINGS]
        offsets = column.offsets[first : first + STRINGS + 1].astype(np.int64)
        size += int(np.diff(offsets)[lives].sum())
        null = column.null[first : first + STRINGS]
        missing += int(np.count_nonzero(null & lives[: len(null)]))
    return size, missing


def living_pieces(columns: Sequence[LivingStrings]) -> Iterator[Column]:
    """Yield the living strings, some at a time."""
    for column, living in columns:
        for first, last in column.spans(STRINGS):
            piece = column.between(first, last)
            if living is None:
                yield piece
                continue
            # Copied, so long strings are few at a time.
            offsets = piece.offsets.astype(np.int64)
            spans = chunks(offsets) if len(offsets) else [(0, len(piece))]
            for start, stop in spans:
                yield _keep(piece.between(start, stop), living[first + start : first + stop])


def _keep(column: Column, living: Bool) -> Column:
    lengths = column.lengths()
    data = data_of(column)[np.repeat(living, as_index(lengths))]
    return arrange(lengths[living], data, column.missing()[living])


def _offsets(columns: Sequence[LivingStrings], kind: type[np.generic]) -> Iterator[Array]:
    end = 0
    yield np.zeros(1, kind)
    for piece in living_pieces(columns):
        ends = np.cumsum(piece.lengths()) + end
        end = int(ends[-1]) if len(ends) else end
        yield ends.astype(kind)


def data_of(piece: Column) -> UInt8:
    """Return the strings of a column, one after another."""
    if not len(piece.offsets):
        return piece.data[:0]
    return piece.data[piece.offsets[0] : piece.offsets[-1]]


def join_tables(tables: Sequence[LivingTable]) -> StringTable:
    """Join tables of which no two living strings are equal.

    If two are, which only forged files can bring about, ``CorruptIndexError`` is raised.
    """
    for table, _ in tables:
        table.check_all()
    everything = [slice(0, len(table)) for table, _ in tables]
    keys, order = _merge_ranks(tables, everything, _renumber(tables))
    column = join_columns([(table.column, living) for table, living in tables])
    return StringTable(column, keys, order.astype(np.uint32))


def chunk_tables(tables: Sequence[LivingTable], spools: Spools, room: int) -> tuple[Chunks, Chunks]:
    """Return ``keys`` and ``order`` of ``join_tables(tables)``; raise as that.

    ``spools`` hold the arrays meanwhile; a step may take ``room`` bytes.
    """
    keys, order = spools.new(np.uint32), spools.new(np.uint32)
    for table, _ in tables:
        table.check_keys()
    numbers = _renumber(tables)

    def cost(ranks: Sequence[slice]) -> int:
        strings: int = sum(some.stop - some.start for some in ranks)
        return _STRING_BYTES * strings

    for ranks in key_ranges([table.keys for table, _ in tables], cost, room):
        some_keys, some_numbers = _merge_ranks(tables, ranks, numbers)
        keys.append(some_keys)
        order.append(some_numbers)
    return keys.chunks(), order.chunks()


_Renumber = Callable[[Int64], Int64]


def _renumber(tables: Sequence[LivingTable]) -> list[_Renumber]:
    """Return what gives the living strings of each table their numbers after the join."""
    counts = (_count(table.column, living) for table, living in tables)
    offsets = accumulate(counts, initial=0)
    return [_after(living, offset) for (_, living), offset in zip(tables, offsets, strict=False)]


def _after(living: Bool | None, offset: int) -> _Renumber:
    if living is None:
        return lambda numbers: numbers + offset
    before = np.cumsum(living, dtype=np.uint32)
    return lambda numbers: before[numbers].astype(np.int64) + (offset - 1)


def _merge_ranks(
    tables: Sequence[LivingTable], ranks: Sequence[slice], numbers: Sequence[_Renumber]
) -> tuple[UInt32, Int64]:
    """Return the keys between some ranks of each table, and the new numbers, in order."""
    keys = [np.empty(0, np.uint32)]
    old, new = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for (table, living), some, new_numbers in zip(tables, ranks, numbers, strict=True):
        of_table, keys_here = table.order[some].astype(np.int64), table.keys[some]
        if living is not None:
            lives = living[of_table]
            keys_here, of_table = keys_here[lives], of_table[lives]
        keys.append(keys_here)
        old.append(of_table)
        new.append(new_numbers(of_table))
    edges = list(accumulate(map(len, keys[1:]), initial=0))
    all_keys, all_old = np.concatenate(keys), np.concatenate(old)

    def string_of(position: int) -> bytes:
        table, _ = tables[bisect_right(edges, position) - 1]
        return table.column[int(all_old[position])]

    order = np.argsort(all_keys, kind="stable")
    sorted_keys = all_keys[order]
    sort_ties(sorted_keys, order, string_of)
    for rank in ties(sorted_keys):
        if (one := string_of(int(order[rank]))) == string_of(int(order[rank - 1])):
            raise CorruptIndexError(
                f"two documents have the id {one!r:.100}; restore the folder from a copy"
            )
    return sorted_keys, np.concatenate(new)[order]


class JoinedTerms:
    """The terms of several tables, each once, in the order of a table.

    The columns of the tables are in the order of their keys. ``numbers`` has for each table the
    number here of each of its terms, ascending, uint32.
    """

    def __init__(self, tables: Sequence[StringTable]) -> None:
        self._column = join_columns([(table.column, None) for table in tables])
        keys = np.concatenate([np.empty(0, np.uint32), *(table.keys for table in tables)])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        again = self._bring_together(keys, order)
        self._first, self._keys = order[~again], keys[~again]
        numbers = np.empty(len(keys), np.uint32)
        numbers[order] = np.cumsum(~again, dtype=np.uint32) - np.uint32(1)
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
            differing = np.repeat(np.arange(len(ranks)), as_index(sizes))[here != before]
            again[ranks] = True
            again[ranks[differing]] = False
        return again

"""Columns and tables of consecutive segments joined into one that need not fit into memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from bm25rag.columns.column import Column, chunks, offset_type
from bm25rag.columns.merge import LivingStrings, join_columns
from bm25rag.columns.string_table import StringTable, key_ranges, sort_ties, ties
from bm25rag.common.arrays import Array, Bool, Int64, UInt32
from bm25rag.common.chunks import Chunks, Spools
from bm25rag.errors import CorruptIndexError

# Strings that are copied in one step; tests set it small.
STRINGS = 1 << 14
# What the table of one string takes while it is merged.
_STRING_BYTES = 64


def chunk_columns(name: str, columns: Sequence[LivingStrings]) -> dict[str, Chunks]:
    """Return the three arrays of ``join_columns(columns)``, by their names in a file."""
    count = sum(_count(*column) for column in columns)
    sizes = [_measure(*column) for column in columns]
    size, missing = sum(size for size, _ in sizes), sum(missing for _, missing in sizes)
    kind = offset_type(size)
    offsets, null = Chunks(kind, 0), Chunks(np.bool_, 0)
    if not 0 < count == missing:
        offsets = Chunks(kind, count + 1, _offsets(columns, kind))
    if 0 < missing < count:
        null = Chunks(np.bool_, count, (piece.missing() for piece in _pieces(columns)))
    data = Chunks(np.uint8, size, map(_data, _pieces(columns)))
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


def _pieces(columns: Sequence[LivingStrings]) -> Iterator[Column]:
    """Yield the living strings, some at a time."""
    for column, living in columns:
        for first in range(0, len(column), STRINGS):
            piece = column.between(first, min(first + STRINGS, len(column)))
            if living is None:
                yield piece
                continue
            # Copied, so long strings are few at a time.
            offsets = piece.offsets.astype(np.int64)
            spans = chunks(offsets) if len(offsets) else [(0, len(piece))]
            for start, stop in spans:
                lives = living[first + start : first + stop]
                yield join_columns([LivingStrings(piece.between(start, stop), lives)])


def _offsets(columns: Sequence[LivingStrings], kind: type[np.generic]) -> Iterator[Array]:
    end = 0
    yield np.zeros(1, kind)
    for piece in _pieces(columns):
        ends = np.cumsum(piece.lengths()) + end
        end = int(ends[-1]) if len(ends) else end
        yield ends.astype(kind)


def _data(piece: Column) -> Array:
    if not len(piece.offsets):
        return piece.data[:0]
    return piece.data[piece.offsets[0] : piece.offsets[-1]]


def chunk_tables(
    tables: Sequence[tuple[StringTable, Bool | None]], spools: Spools, room: int
) -> tuple[Chunks, Chunks]:
    """Return ``keys`` and ``order`` of ``join_tables(tables)``; raise as that.

    Parameters
    ----------
    tables
        Tables of which no two living strings are equal.
    spools
        Hold the arrays meanwhile.
    room
        How many bytes one step may take.
    """
    keys, order = spools.new(np.uint32), spools.new(np.uint32)
    numbers, offset = [], 0
    for table, living in tables:
        table.check_keys()
        numbers.append(_new_numbers(living, offset))
        offset += _count(table.column, living)

    def cost(ranks: Sequence[slice]) -> int:
        strings: int = sum(some.stop - some.start for some in ranks)
        return _STRING_BYTES * strings

    for ranks in key_ranges([table.keys for table, _ in tables], cost, room):
        some_keys, some_numbers = _merge_ranks(tables, ranks, numbers)
        keys.append(some_keys)
        order.append(some_numbers)
    return keys.chunks(), order.chunks()


def _new_numbers(living: Bool | None, offset: int) -> Callable[[Int64], Int64]:
    if living is None:
        return lambda numbers: numbers + offset
    before = np.cumsum(living, dtype=np.uint32)
    return lambda numbers: before[numbers].astype(np.int64) + (offset - 1)


def _merge_ranks(
    tables: Sequence[tuple[StringTable, Bool | None]],
    ranks: Sequence[slice],
    numbers: Sequence[Callable[[Int64], Int64]],
) -> tuple[UInt32, Int64]:
    """Return the keys between some ranks of each table, and the new numbers, in order."""
    keys, old, new = [], [], []
    for (table, living), some, new_numbers in zip(tables, ranks, numbers, strict=True):
        of_table, keys_here = table.order[some].astype(np.int64), table.keys[some]
        if living is not None:
            keys_here, of_table = keys_here[living[of_table]], of_table[living[of_table]]
        keys.append(keys_here)
        old.append(of_table)
        new.append(new_numbers(of_table))
    edges = list(accumulate(map(len, keys), initial=0))
    all_keys, all_old = np.concatenate(keys), np.concatenate(old)

    def string_of(position: int) -> bytes:
        place = bisect_right(edges, position) - 1
        table, _ = tables[place]
        return table.column[int(all_old[position])]

    order = np.argsort(all_keys, kind="stable")
    sorted_keys = all_keys[order]
    sort_ties(sorted_keys, order, string_of)
    for rank in ties(sorted_keys):
        if string_of(int(order[rank])) == string_of(int(order[rank - 1])):
            raise CorruptIndexError(
                f"two documents have the id {string_of(int(order[rank]))!r:.100}; "
                "restore the folder from a copy"
            )
    return sorted_keys, np.concatenate(new)[order]

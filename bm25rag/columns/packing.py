"""Packing: texts become numbers of pieces; see ``kernels/packing.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from bm25rag.columns.column import Column, chunks, offset_type
from bm25rag.columns.merge import LivingStrings, chunk_columns, data_of, living_pieces
from bm25rag.columns.packed import PackedColumn
from bm25rag.common.arrays import Array, Bool, Int64, UInt8, UInt16
from bm25rag.common.chunks import Chunks, Growing, Spool
from bm25rag.common.threads import map_in_order
from bm25rag.kernels import backend
from bm25rag.kernels.records import Pieces

# Bytes from which texts are packed: pieces take 50 to 250 KB themselves. Tests set it small.
LEAST = 1 << 20
# Pieces are looked for in so many texts, and so many bytes of each.
_TEXTS, _OF_TEXT = 1 << 14, 1 << 10
# How often two pieces follow each other there that become one.
_OFTEN = 4
# What ``pack`` wants behind the texts.
_BEHIND = np.zeros(8, np.uint8)


def pack_columns(
    name: str,
    columns: Sequence[LivingStrings],
    new: Callable[[Any], Growing | Spool] = Growing,
    threads: int = 1,
) -> dict[str, Array | Chunks]:
    """Return the arrays of a file for the living strings of some columns, packed if that pays.

    ``new`` makes what takes the numbers until they are written; ``threads`` may pack.
    """
    whole = columns[0][0] if len(columns) == 1 and columns[0][1] is None else None
    if isinstance(whole, PackedColumn):
        return whole.arrays(name)
    pieces = _find_pieces(columns) if _are_large(columns) else None
    if pieces is None and whole is not None:
        return whole.arrays(name)
    if pieces is None:
        return {**chunk_columns(name, columns)}
    numbers, ends, null = new(np.uint16), new(np.int64), new(np.bool_)
    ends.append(np.zeros(1))
    missing = 0
    for packed, own, absent in map_in_order(partial(_pack, pieces), _spans(columns), threads):
        ends.append(own[1:] + len(numbers))
        numbers.append(packed)
        null.append(absent)
        missing += int(np.count_nonzero(absent))
    return {
        f"{name}.offsets": ends.chunks(offset_type(len(numbers))),
        f"{name}.pieces": pieces.bytes,
        f"{name}.null": null.chunks() if missing else np.empty(0, np.bool_),
        f"{name}.numbers": numbers.chunks(),
    }


def _spans(columns: Sequence[LivingStrings]) -> Iterator[Column]:
    """Yield the living strings of some columns, so many as are packed at once."""
    for piece in living_pieces(columns):
        if not len(piece.offsets):  # all are missing
            yield piece
        for span in chunks(piece.offsets.astype(np.int64)):
            yield piece.between(*span)


def _pack(pieces: Pieces, some: Column) -> tuple[UInt16, Int64, Bool]:
    """Return the numbers of the pieces of some strings, where each begins, and which are none."""
    if not len(some.offsets):
        return np.empty(0, np.uint16), np.zeros(len(some) + 1, np.int64), some.missing()
    offsets = some.offsets.astype(np.int64) - np.int64(some.offsets[0])
    return *backend.current().pack(pieces, _padded(data_of(some)), offsets), some.missing()


def _padded(data: UInt8) -> UInt8:
    return np.concatenate((data, _BEHIND))


def _are_large(columns: Sequence[LivingStrings]) -> bool:
    size = 0
    for piece in living_pieces(columns):
        size += len(data_of(piece))
        if size >= LEAST:
            return True
    return False


def _find_pieces(columns: Sequence[LivingStrings]) -> Pieces | None:
    """Find pieces in texts that lie evenly among all, however these are divided into columns."""
    each = [
        np.arange(len(column)) if living is None else np.flatnonzero(living)
        for column, living in columns
    ]
    step, before, texts = -(-sum(map(len, each)) // _TEXTS), 0, []
    for (column, _), numbers in zip(columns, each, strict=True):
        views = column.views(numbers[-before % step :: step].tolist())
        texts += [bytes(view[:_OF_TEXT]) for view in views if view]
        before += len(numbers)
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    data = np.frombuffer(b"".join(texts), np.uint8)
    return backend.current().find_pieces(_padded(data), offsets, _OFTEN)

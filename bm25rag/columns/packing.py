"""Packing: texts become numbers of pieces; see ``kernels/packing.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bm25rag.columns.column import chunks, offset_type
from bm25rag.columns.merge import LivingStrings, chunk_columns, data_of, living_pieces
from bm25rag.columns.packed import PackedColumn
from bm25rag.common.arrays import Array, UInt8
from bm25rag.common.chunks import Chunks, Growing, Spool
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
    name: str, columns: Sequence[LivingStrings], new: Callable[[Any], Growing | Spool] = Growing
) -> dict[str, Array | Chunks]:
    """Return the arrays of a file for the living strings of some columns, packed if that pays.

    ``new`` makes what takes the numbers until they are written.
    """
    whole = columns[0].column if len(columns) == 1 and columns[0].living is None else None
    if isinstance(whole, PackedColumn):
        return whole.arrays(name)
    pieces = _find_pieces(columns) if _are_large(columns) else None
    if pieces is None and whole is not None:
        return whole.arrays(name)
    if pieces is None:
        return {**chunk_columns(name, columns)}
    numbers, ends, null = new(np.uint16), new(np.int64), new(np.bool_)
    missing = 0
    ends.append(np.zeros(1))
    for piece in living_pieces(columns):
        if not len(piece.offsets):  # all are missing
            ends.append(np.full(len(piece), len(numbers)))
        for span in chunks(piece.offsets.astype(np.int64)):
            some = piece.between(*span)
            start = np.int64(some.offsets[0]) if len(some.offsets) else 0
            packed, own = backend.current().pack(
                pieces, _padded(data_of(some)), some.offsets.astype(np.int64) - start
            )
            ends.append(own[1:] + len(numbers))
            numbers.append(packed)
        null.append(piece.missing())
        missing += int(np.count_nonzero(piece.missing()))
    return {
        f"{name}.offsets": ends.chunks(offset_type(len(numbers))),
        f"{name}.pieces": pieces.bytes,
        f"{name}.null": null.chunks() if missing else np.empty(0, np.bool_),
        f"{name}.numbers": numbers.chunks(),
    }


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

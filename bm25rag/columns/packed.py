"""Columns of texts in pieces, which take less than half of their bytes; see ``columns.packing``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bm25rag.columns.column import Column, chunks
from bm25rag.common.arrays import Bool, Int64, UInt8, UInt16, UInt64, Unsigned
from bm25rag.errors import CorruptIndexError
from bm25rag.kernels import backend
from bm25rag.kernels.records import StringArrays


class PackedColumn(Column):
    """A column whose strings are ``pieces``, uint64, that ``Backend.find_pieces`` has found.

    ``numbers`` are those of the strings' pieces, uint16, and ``offsets`` where each string begins
    there, and where the last ends, uint32 or uint64.
    """

    def __init__(
        self, offsets: Unsigned, numbers: UInt16, pieces: UInt64, null: Bool, count: int
    ) -> None:
        self.offsets = offsets
        self.numbers = numbers
        self.pieces = pieces
        self.null = null
        self.count = count
        self.strings: StringArrays | None = StringArrays(offsets, numbers, None, pieces)
        self._starts, self._bytes = offsets.data, numbers.data
        self._nulls = null.data if len(null) else None

    def get(self, number: int) -> memoryview | None:
        return self.views((number,))[0]

    def views(self, numbers: Sequence[int]) -> list[memoryview | None]:
        self._pass(numbers)
        starts, nulls = self._starts, self._nulls
        begins = np.array([starts[number] for number in numbers], np.int64)
        ends = np.array([starts[number + 1] for number in numbers], np.int64)
        data, offsets = self._unpack(begins, ends)
        views = [data.data[start:stop] for start, stop in pairwise(offsets.tolist())]
        if nulls is None:
            return [*views]
        return [None if nulls[at] else view for at, view in zip(numbers, views, strict=True)]

    def spans(self, limit: int) -> Iterator[tuple[int, int]]:
        """Cut the column into spans, for ``between``, which copies: long strings are few."""
        for first, last in super().spans(limit):
            for start, stop in chunks(self.offsets[first : last + 1].astype(np.int64)):
                yield first + start, first + stop

    def between(self, first: int, last: int) -> Column:
        starts = np.asarray(self.span(first, last)[0]).astype(np.int64)
        data, offsets = self._unpack(starts[:-1], starts[1:])
        return Column(offsets.astype(np.uint64), data, self.null[first:last], last - first)

    def lengths(self) -> Int64:
        each = [self.between(*span).lengths() for span in self.spans(self.count)]
        return np.concatenate([np.empty(0, np.int64), *each])

    def most_bytes(self, numbers: Int64) -> Int64:
        return self.pieces.itemsize * super().most_bytes(numbers)

    def __iter__(self) -> Iterator[memoryview | None]:
        for span in self.spans(self.count):
            yield from self.between(*span)

    def _unpack(self, starts: Int64, stops: Int64) -> tuple[UInt8, Int64]:
        unpacked = backend.current().unpack(self.pieces, self.numbers, starts, stops)
        if unpacked is None:
            raise self._reject("names pieces that are not there")
        return unpacked

    def _reject(self, problem: str) -> CorruptIndexError:
        return CorruptIndexError(f"a text {problem}")

    def __reduce__(self) -> tuple[type[Column], tuple[object, ...]]:
        self.check_all()
        return PackedColumn, (self.offsets, self.numbers, self.pieces, self.null, self.count)

    @property
    def nbytes(self) -> int:
        held = (self.offsets, self.numbers, self.pieces, self.null)
        return sum(array.nbytes for array in held)

    def arrays(self, name: str) -> dict[str, Any]:
        return {
            f"{name}.offsets": self.offsets,
            f"{name}.pieces": self.pieces,
            f"{name}.null": self.null,
            f"{name}.numbers": self.numbers,
        }

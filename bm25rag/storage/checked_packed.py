"""Columns of texts in pieces, of a file, checked before they are used."""

from __future__ import annotations

from bm25rag.columns.packed import PackedColumn
from bm25rag.common.arrays import Int64, UInt8
from bm25rag.errors import CorruptIndexError
from bm25rag.kernels.records import StringArrays
from bm25rag.storage.checked_columns import CheckedColumn
from bm25rag.storage.checksummed_file import CheckedArray, file_blocks

# Strings that are decoded in one step.
_AT_ONCE = 1024


class CheckedPackedColumn(PackedColumn, CheckedColumn):
    """A packed column of a file; the parameters are those of ``PackedColumn``."""

    def __init__(
        self,
        offsets: CheckedArray,
        numbers: CheckedArray,
        pieces: CheckedArray,
        null: CheckedArray,
        count: int,
    ) -> None:
        PackedColumn.__init__(
            self, offsets.values, numbers.values, pieces.values, null.values, count
        )
        self._check_as_used(offsets, numbers, null)
        self._file_pieces = pieces
        file = file_blocks(offsets, numbers, pieces)
        self.strings = StringArrays(self.offsets, self.numbers, file, self.pieces)

    def _unpack(self, starts: Int64, stops: Int64) -> tuple[UInt8, Int64]:
        self._file_pieces.check(0, len(self.pieces))
        return super()._unpack(starts, stops)

    def _reject(self, problem: str) -> CorruptIndexError:
        return self.file_data.reject(problem)

    def check_text(self) -> None:
        for first in range(0, self.count, _AT_ONCE):
            self.texts(range(first, min(first + _AT_ONCE, self.count)))

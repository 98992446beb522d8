"""Columns and string tables of a file, checked before they are used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bm25rag.columns.column import Column
from bm25rag.columns.string_table import StringTable, keys_of, ties
from bm25rag.common.arrays import Int64, UInt32, as_index
from bm25rag.common.gil import release_gil
from bm25rag.kernels.records import StringArrays
from bm25rag.storage.checksummed_file import CheckedArray, file_blocks

# To check this share of a column string by string takes as long as to check all of it.
_CHECK_ALL = 256
# Strings that are decoded in one step.
_AT_ONCE = 1024


class CheckedColumn(Column):
    """A column of a file; the parameters are those of ``Column``."""

    file_offsets: CheckedArray
    file_data: CheckedArray

    def __init__(
        self, offsets: CheckedArray, data: CheckedArray, null: CheckedArray, count: int
    ) -> None:
        super().__init__(offsets.values, data.values, null.values, count)
        self._check_as_used(offsets, data, null)
        if len(offsets):
            self.strings = StringArrays(self.offsets, self.data, file_blocks(offsets, data))

    def _check_as_used(self, offsets: CheckedArray, data: CheckedArray, null: CheckedArray) -> None:
        self.file_offsets, self.file_data, self._file_null = offsets, data, null
        # Zeros that are touched as they are used, whatever count a file claims.
        self._passed = np.zeros(self.count, np.uint8).data if len(offsets) else None
        self._whole = False

    def get(self, number: int) -> memoryview | None:
        if self._passed is not None and not self._passed[number]:
            self._pass((number,))
        return super().get(number)

    def _pass(self, numbers: Sequence[int]) -> None:
        passed = self._passed
        if passed is None or all(map(passed.__getitem__, numbers)):
            return
        if len(numbers) > 1 and len(numbers) * _CHECK_ALL > self.count:
            self.check_all()
            return
        for number in numbers:
            if not passed[number]:
                self._check_one(number)
                passed[number] = 1

    def span(self, first: int, last: int) -> tuple[memoryview, memoryview]:
        if self._passed is not None and first < last:
            self._check(first, last)
        return super().span(first, last)

    def check_all(self) -> None:
        if self._whole:
            return
        if len(self.offsets):
            self._check(0, self.count)
            if self._starts[0] or self._starts[self.count] != len(self._bytes):
                raise self.file_offsets.reject("does not cover the data")
        elif len(self._bytes):
            raise self.file_data.reject("belongs to no string")
        self._whole, self._passed = True, None

    def _check_one(self, number: int) -> None:
        """Do as ``_check`` for one string, without the arrays that take most of its time."""
        self.file_offsets.check(number, number + 2)
        start, stop = self._starts[number], self._starts[number + 1]
        if not start <= stop <= len(self._bytes):
            raise self.file_offsets.reject("does not ascend within the data")
        self.file_data.check(start, stop)
        if len(self.null):
            self._file_null.check(number, number + 1)
            null = self.null.view(np.uint8)[number]
            if null > 1 or (null and start < stop):
                raise self._file_null.reject("does not agree with the strings")

    def _check(self, first: int, last: int) -> None:
        offsets = self.file_offsets[first : last + 1]
        starts, stops = offsets[:-1], offsets[1:]
        if not np.all(starts <= stops) or self._starts[last] > len(self._bytes):
            raise self.file_offsets.reject("does not ascend within the data")
        self.file_data.check(self._starts[first], self._starts[last])
        if len(self.null):
            null = self._file_null[first:last].view(np.uint8)
            if np.any(null > 1) or np.any((null == 1) & (starts < stops)):
                raise self._file_null.reject("does not agree with the strings")

    def check_text(self) -> None:
        """Check that every string is UTF-8, after ``check_all``."""
        if not len(self.offsets):
            return
        offsets = self.offsets.astype(np.int64)
        try:
            for first in range(0, self.count, _AT_ONCE):
                last = min(first + _AT_ONCE, self.count)
                str(self._bytes[offsets[first] : offsets[last]], "utf-8", "surrogatepass")
                release_gil()
        except UnicodeDecodeError:
            raise self.file_data.reject("is not UTF-8") from None
        # If the whole is UTF-8, so are pieces of it that begin where characters do.
        begins = offsets[offsets < len(self.data)]
        if np.any(self.data[begins] & 0xC0 == 0x80):
            raise self.file_offsets.reject("cuts a character in two")


class CheckedStringTable(StringTable):
    """A table of a file; the parameters are those of ``StringTable``.

    ``order`` is ``None`` if the column is in the keys' order.
    """

    def __init__(
        self, column: CheckedColumn, keys: CheckedArray, order: CheckedArray | None = None
    ) -> None:
        super().__init__(
            column, keys.values, np.empty(0, np.uint32) if order is None else order.values
        )
        self._strings, self._file_keys, self._file_order = column, keys, order
        self._searchable = self._whole = False

    def find(self, value: bytes) -> int:
        self.check_keys()
        return super().find(value)

    def find_all(self, values: Sequence[bytes]) -> Int64:
        self.check_keys()
        return super().find_all(values)

    def check_keys(self) -> None:
        if self._searchable:
            return
        # A damaged key would hide a term, so all are checked before the first look-up.
        keys = self._file_keys[:]
        if not np.all(keys[:-1] <= keys[1:]):
            raise self._file_keys.reject("is not sorted")
        if self._file_order is not None and not _is_permutation(self._file_order[:]):
            raise self._file_order.reject("does not name each string once")
        self._searchable = True

    def check_all(self) -> None:
        if self._whole:
            return
        self.check_keys()
        self.column.check_all()
        keys = keys_of(self.column)
        if not np.array_equal(
            keys.take(as_index(self.order)) if len(self.order) else keys, self.keys
        ):
            raise self._file_keys.reject("is not the CRC-32 of the strings")
        for rank in ties(self.keys):
            if self.string_at(rank - 1) >= self.string_at(rank):
                raise self._strings.file_data.reject("has a string twice or out of order")
        self._whole = True

    @property
    def damaged(self) -> bool:
        """Whether damage was found anywhere in the file."""
        return self._file_keys.place[0].damaged


def is_damaged(table: StringTable) -> bool:
    """Whether a table is of a file in which damage was found."""
    return isinstance(table, CheckedStringTable) and table.damaged


def _is_permutation(order: UInt32) -> bool:
    if int(order.max(initial=0)) >= len(order):
        return not len(order)
    named = np.zeros(len(order), np.bool_)
    named[as_index(order)] = True
    return bool(named.all())

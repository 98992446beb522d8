"""Columns of byte strings.

A column is an array of offsets into one buffer, in memory or mapped from a file.
Whatever comes from a file passes its ``Guard`` before its first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, repeat
from typing import NamedTuple, Protocol

import numpy as np

from bm25rag.common.arrays import Bool, Int64, UInt8, UInt64, Unsigned
from bm25rag.common.gil import release_gil
from bm25rag.errors import CorruptIndexError

# A column is checked whole in the time in which this share of it is checked one by one.
_CHECK_ALL = 256
# Strings that are joined at once, to bound the memory of a build.
_AT_ONCE = 1024


class Guard(Protocol):
    """Checks parts of a file's arrays against their checksums, once."""

    def check(self, name: str, start: int, stop: int) -> None:
        """Check elements ``start`` to ``stop`` of an array; raise ``CorruptIndexError``."""

    def check_all(self) -> None:
        """Check every block of the file; raise ``CorruptIndexError``."""

    def reject(self, name: str, problem: str) -> Exception:
        """Return the ``CorruptIndexError`` for contents that cannot be right."""


class Column:
    """An immutable sequence of byte strings, of which some may be ``None``.

    Parameters
    ----------
    offsets
        ``count + 1`` ascending positions in ``data``, uint64; empty if all are ``None``.
    data
        The strings, one after the other, uint8.
    null
        Which are ``None``, bool; empty if none is (or all are).
    count
        The number of strings.
    guard, name
        Who checks the arrays before their first use, and what it calls them.
    """

    def __init__(
        self,
        offsets: Unsigned,
        data: UInt8,
        null: Bool,
        count: int,
        guard: Guard | None = None,
        name: str = "",
    ) -> None:
        self.offsets = offsets
        self.data = data
        self.null = null
        self.count = count
        self._guard = guard
        self._name = name
        # Zeros that are touched as they are used, whatever count a file claims.
        self._checked = None if guard is None else np.zeros(count, np.uint8).data
        # Indexing a memoryview gives Python ints, in half the time of a NumPy scalar.
        self._starts = offsets.data
        self._bytes = data.data
        self._nulls = null.data if len(null) else None
        self._empty = not len(offsets)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> bytes:
        return bytes(self.get(number) or b"")

    def get(self, number: int) -> memoryview | None:
        """Return one string as a view of the buffer, or ``None``.

        Raises
        ------
        CorruptIndexError
            If the column is read from a file that is damaged there.
        """
        if self._empty:
            return None
        checked = self._checked
        if checked is not None and not checked[number] and (guard := self._guard) is not None:
            self._check(guard, number, number + 1)
            checked[number] = 1
        if self._nulls is not None and self._nulls[number]:
            return None
        return self._bytes[self._starts[number] : self._starts[number + 1]]

    def texts(self, numbers: Sequence[int]) -> list[str | None]:
        """Return some strings, which are UTF-8, as text; raise as ``get``."""
        views = self.views(numbers)
        try:
            return [None if one is None else str(one, "utf-8", "surrogatepass") for one in views]
        except UnicodeDecodeError as error:
            raise CorruptIndexError(f"a stored string is no UTF-8: {error}") from None

    def views(self, numbers: Sequence[int]) -> list[memoryview | None]:
        """Return some strings as ``get`` does, in less time."""
        if self._empty:
            return [None] * len(numbers)
        checked, starts, data = self._checked, self._starts, self._bytes
        new = checked is not None and not all(map(checked.__getitem__, numbers))
        if new and len(numbers) * _CHECK_ALL > self.count:
            self.check_all()
            new = False
        if new or self._nulls is not None:
            return [self.get(number) for number in numbers]
        return [data[starts[number] : starts[number + 1]] for number in numbers]

    def lengths(self) -> Int64:
        """Return the length of each string in bytes, checked, int64; 0 where it is missing."""
        self.check_all()
        if not len(self.offsets):
            return np.zeros(self.count, np.int64)
        return np.diff(self.offsets).astype(np.int64)

    def missing(self) -> Bool:
        """Return which strings are ``None``, checked, bool."""
        self.check_all()
        if not len(self.offsets):
            return np.ones(self.count, np.bool_)
        return self.null if len(self.null) else np.zeros(self.count, np.bool_)

    def span(self, first: int, last: int) -> tuple[memoryview, memoryview]:
        """Return the offsets of consecutive strings, checked now, and the buffer."""
        if self._guard is not None and first < last:
            self._check(self._guard, first, last)
        return self._starts[first : last + 1], self._bytes

    def check_all(self) -> None:
        """Check every string that a guard has not yet passed, and that they are all there is."""
        guard = self._guard
        if guard is not None and len(self._starts):
            self._check(guard, 0, self.count)
            if self._starts[0] or self._starts[self.count] != len(self._bytes):
                raise guard.reject(f"{self._name}.offsets", "does not cover the data")
        elif guard is not None and len(self._bytes):
            raise guard.reject(f"{self._name}.data", "belongs to no string")
        self._guard = self._checked = None

    def _check(self, guard: Guard, first: int, last: int) -> None:
        guard.check(f"{self._name}.offsets", first, last + 1)
        starts, stops = self.offsets[first:last], self.offsets[first + 1 : last + 1]
        if not np.all(starts <= stops) or self._starts[last] > len(self._bytes):
            raise guard.reject(f"{self._name}.offsets", "does not ascend within the data")
        guard.check(f"{self._name}.data", self._starts[first], self._starts[last])
        if len(self.null):
            guard.check(f"{self._name}.null", first, last)
            null = self.null[first:last].view(np.uint8)
            if np.any(null > 1) or np.any((null == 1) & (starts < stops)):
                raise guard.reject(f"{self._name}.null", "does not agree with the strings")

    def check_text(self, guard: Guard) -> None:
        """Check that every string is UTF-8; those of ``check_all`` have been checked."""
        if not len(self.offsets):
            return
        offsets = self.offsets.astype(np.int64)
        try:
            for first in range(0, self.count, _AT_ONCE):
                last = min(first + _AT_ONCE, self.count)
                str(self._bytes[offsets[first] : offsets[last]], "utf-8", "surrogatepass")
                release_gil()
        except UnicodeDecodeError:
            raise guard.reject(f"{self._name}.data", "is no UTF-8") from None
        # What is UTF-8 as a whole is so in pieces that begin where characters do.
        begins = offsets[offsets < len(self.data)]
        if np.any(self.data[begins] & 0xC0 == 0x80):
            raise guard.reject(f"{self._name}.offsets", "cuts a character in two")

    def __iter__(self) -> Iterator[memoryview | None]:
        self.check_all()
        if not len(self._starts):
            yield from repeat(None, self.count)
            return
        if not len(self.null):
            # 0.1 us a string, where the loop below takes 0.5.
            yield from map(self._bytes.__getitem__, map(slice, self._starts, self._starts[1:]))
            return
        for number, (start, stop) in enumerate(pairwise(self._starts)):
            yield None if self.null[number] else self._bytes[start:stop]

    def __reduce__(self) -> tuple[type[Column], tuple[object, ...]]:
        self.check_all()
        return Column, (self.offsets, self.data, self.null, self.count)

    @property
    def nbytes(self) -> int:
        """Bytes held, in memory or on disk."""
        return self.offsets.nbytes + self.data.nbytes + self.null.nbytes


class StringBatch(NamedTuple):
    """Byte strings one after the other, the length of each, and a 1 for each that is ``None``."""

    data: bytes
    lengths: UInt64
    null: bytes


def join(values: Sequence[bytes | memoryview | None]) -> StringBatch:
    """Put byte strings together for a ``ColumnBuilder``."""
    strings = [value for value in values if value is not None]
    null = bytes(len(values))
    if len(strings) < len(values):
        null = bytes([value is None for value in values])
        strings = [b"" if value is None else value for value in values]
    lengths = np.fromiter(map(len, strings), np.uint64, len(strings))
    if len(strings) >= _AT_ONCE:
        release_gil()
    return StringBatch(b"".join(strings), lengths, null)


def join_none(count: int) -> StringBatch:
    """Do the same for so many ``None``."""
    return StringBatch(b"", np.zeros(count, np.uint64), b"\1" * count)


class ColumnBuilder:
    """Collects byte strings into a ``Column``."""

    def __init__(self) -> None:
        self._lengths: list[UInt64] = []
        self._data = bytearray()
        self._null = bytearray()

    def extend(self, strings: StringBatch) -> None:
        """Add strings."""
        self._lengths.append(strings.lengths)
        self._data += strings.data
        self._null += strings.null

    def finish(self) -> Column:
        """Return the column; the builder is used up."""
        lengths = np.concatenate([np.empty(0, np.uint64), *self._lengths])
        null = np.frombuffer(self._null, np.bool_)
        return arrange(lengths, np.frombuffer(self._data, np.uint8), null)


def arrange(lengths: Int64 | UInt64, data: UInt8, null: Bool) -> Column:
    """Make the column of strings of these lengths that lie in ``data`` one after the other."""
    offsets = np.zeros(len(null) + 1, np.uint64)
    np.cumsum(lengths, out=offsets[1:], dtype=np.uint64)
    if len(null) and null.all():
        offsets = offsets[:0]
    if null.all() or not null.any():
        null = null[:0]
    return Column(offsets, data, null, len(lengths))


def build_column(values: Iterable[bytes | memoryview | None]) -> Column:
    """Make a column of ``values``."""
    builder = ColumnBuilder()
    remaining = iter(values)
    while some := list(islice(remaining, _AT_ONCE)):
        builder.extend(join(some))
    return builder.finish()

"""Columns of byte strings.

A column is an array of offsets into one buffer, in memory or mapped from a file. What
comes from a file is checked before its first use: see ``storage/checked_columns.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np

from bm25rag.common.arrays import Bool, Int64, UInt8, UInt64, Unsigned, as_index
from bm25rag.common.gil import release_gil
from bm25rag.common.strings import utf8_each
from bm25rag.errors import CorruptIndexError
from bm25rag.kernels import backend
from bm25rag.kernels.records import StringArrays

# Strings that are joined in one step, which bounds the memory of a build.
_AT_ONCE = 1024
# Bytes and strings that are copied in one step.
_BYTES = 1 << 18
_STRINGS = 1 << 14


class Column:
    """An immutable sequence of ``count`` byte strings, of which some may be ``None``.

    ``offsets`` are ``count + 1`` ascending positions in ``data``, uint32 or uint64, empty if all
    are ``None``; ``data`` the strings, one after another, uint8; ``null`` says which are ``None``,
    bool, empty if none is (or all are). ``strings`` are the first two as the kernels take them;
    ``None`` if all are ``None``.
    """

    def __init__(self, offsets: Unsigned, data: UInt8, null: Bool, count: int) -> None:
        self.offsets = offsets
        self.data = data
        self.null = null
        self.count = count
        # Indexing a memoryview gives Python ints, in half the time of a NumPy scalar.
        self._starts = offsets.data
        self._bytes = data.data
        self._nulls = null.data if len(null) else None
        self.strings: StringArrays | None = StringArrays(offsets, data) if len(offsets) else None
        self._empty = not len(offsets)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> bytes:
        return bytes(self.get(number) or b"")

    def get(self, number: int) -> memoryview | None:
        """Return one string as a view of the buffer, or ``None``.

        If the column is read from a file that is damaged there, ``CorruptIndexError`` is raised.
        """
        if self._empty or (self._nulls is not None and self._nulls[number]):
            return None
        return self._bytes[self._starts[number] : self._starts[number + 1]]

    def texts(self, numbers: Sequence[int]) -> list[str | None]:
        """Return some strings, which are UTF-8, as text; raise as ``get``."""
        if self.strings is None:  # as metadata of documents that have none
            return [None] * len(numbers)
        try:
            if self._nulls is None:
                decoded: Any = backend.current().decode(self.strings, numbers)
                if decoded is not None:
                    texts: list[str | None] = decoded
                    return texts
            views = self.views(numbers)
            return [None if one is None else str(one, "utf-8", "surrogatepass") for one in views]
        except UnicodeDecodeError as error:
            raise CorruptIndexError(f"a stored string is not UTF-8: {error}") from None

    def views(self, numbers: Sequence[int]) -> list[memoryview | None]:
        """Return some strings as ``get`` does, in less time."""
        self._pass(numbers)
        if self._empty:
            return [None] * len(numbers)
        starts, data, nulls = self._starts, self._bytes, self._nulls
        if nulls is None:
            return [data[starts[number] : starts[number + 1]] for number in numbers]
        return [
            None if nulls[number] else data[starts[number] : starts[number + 1]]
            for number in numbers
        ]

    def _pass(self, numbers: Sequence[int]) -> None:
        """Check some strings if they come from a file; raise as ``get``."""

    def lengths(self) -> Int64:
        """Return the length of each string in bytes, int64; 0 where it is missing."""
        self.check_all()
        if self._empty:
            return np.zeros(self.count, np.int64)
        return np.diff(self.offsets).astype(np.int64)

    def most_bytes(self, numbers: Int64) -> Int64:
        """Return how many bytes some strings have at most; of a file, unchecked."""
        if not len(self.offsets):
            return np.zeros(len(numbers), np.int64)
        return (self.offsets[numbers + 1] - self.offsets[numbers]).astype(np.int64)

    def missing(self) -> Bool:
        """Return which strings are ``None``, bool."""
        self.check_all()
        if self._empty:
            return np.ones(self.count, np.bool_)
        return self.null if len(self.null) else np.zeros(self.count, np.bool_)

    def span(self, first: int, last: int) -> tuple[memoryview, memoryview]:
        """Return the offsets of consecutive strings, and the buffer; raise as ``get``."""
        return self._starts[first : last + 1], self._bytes

    def spans(self, limit: int) -> Iterator[tuple[int, int]]:
        """Cut the column into spans of at most so many strings, for ``between``."""
        for first in range(0, self.count, limit):
            yield first, min(first + limit, self.count)

    def between(self, first: int, last: int) -> Column:
        """Return the column of consecutive strings; raise as ``get``."""
        if self._empty:
            return Column(self.offsets, self.data, self.null, last - first)
        starts, data = self.span(first, last)
        return Column(np.asarray(starts), np.asarray(data), self.null[first:last], last - first)

    def arrays(self, name: str) -> dict[str, Any]:
        """Return the arrays of a column by their names in a file."""
        arrays = {"offsets": self.offsets, "data": self.data, "null": self.null}
        return {f"{name}.{part}": array for part, array in arrays.items()}

    def check_all(self) -> None:
        """Check everything that comes from a file; raise ``CorruptIndexError``."""

    def __iter__(self) -> Iterator[memoryview | None]:
        self.check_all()
        if self._empty:
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
    """Byte strings one after another, the length of each, and a 1 for each that is ``None``."""

    data: bytes | memoryview
    lengths: UInt64
    null: bytes


def join(values: Sequence[bytes | memoryview | None]) -> StringBatch:
    """Join byte strings into a batch for a ``ColumnBuilder``."""
    strings = [value for value in values if value is not None]
    null = bytes(len(values))
    if len(strings) < len(values):
        null = bytes([value is None for value in values])
        strings = [b"" if value is None else value for value in values]
    lengths = np.fromiter(map(len, strings), np.uint64, len(strings))
    if len(strings) >= _AT_ONCE:
        release_gil()
    return StringBatch(b"".join(strings), lengths, null)


def join_short(strings: Sequence[str]) -> StringBatch:
    """Join short strings, which are mostly ASCII: in a quarter of the time then."""
    joined = "".join(strings)
    if not joined.isascii():
        return join(utf8_each(strings))
    lengths = np.fromiter(map(len, strings), np.uint64, len(strings))
    return StringBatch(joined.encode(), lengths, bytes(len(strings)))


def join_none(count: int) -> StringBatch:
    """Return a batch of ``count`` times ``None``."""
    return StringBatch(b"", np.broadcast_to(np.uint64(0), count), b"\1" * count)


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

    @property
    def nbytes(self) -> int:
        """Bytes of the strings."""
        return len(self._data)

    def finish(self) -> Column:
        """Return the column; the builder is used up."""
        lengths = np.concatenate([np.empty(0, np.uint64), *self._lengths])
        null = np.frombuffer(self._null, np.bool_)
        return arrange(lengths, np.frombuffer(self._data, np.uint8), null)


def arrange(lengths: Int64 | UInt64, data: UInt8, null: Bool) -> Column:
    """Make the column of strings that lie in ``data`` one after another."""
    offsets = np.zeros(len(null) + 1, offset_type(len(data)))
    np.cumsum(lengths, out=offsets[1:], dtype=offsets.dtype)
    if len(null) and null.all():
        offsets = offsets[:0]
    if null.all() or not null.any():
        null = null[:0]
    return Column(offsets, data, null, len(lengths))


def offset_type(size: int) -> type[np.uint32] | type[np.uint64]:
    """Return the narrowest type for offsets into so many bytes."""
    return np.uint32 if size < 1 << 32 else np.uint64


def build_column(values: Iterable[bytes | memoryview | None]) -> Column:
    """Make a column of byte strings."""
    builder = ColumnBuilder()
    remaining = iter(values)
    while batch := list(islice(remaining, _AT_ONCE)):
        builder.extend(join(batch))
    return builder.finish()


def select_strings(column: Column, numbers: Int64) -> Column:
    """Make the column of some strings, in the order of ``numbers``."""
    null = column.missing()[numbers]
    if null.all():
        return arrange(np.zeros(len(null), np.int64), np.empty(0, np.uint8), null)
    lengths = column.lengths()[numbers]
    starts, ends = column.offsets[numbers].astype(np.int64), np.cumsum(lengths)
    data = np.empty(int(ends[-1]), np.uint8)
    for first, last in chunks(np.concatenate(([0], ends))):
        chunk, begin = slice(first, last), ends[first] - lengths[first]
        data[begin : ends[last - 1]] = column.data[byte_positions(starts[chunk], lengths[chunk])]
    return arrange(lengths, data, null)


def byte_positions(starts: Int64, lengths: Int64) -> Int64:
    """Return the position of every byte of some strings, one string after another."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, as_index(lengths)) + np.arange(int(lengths.sum()))


def chunks(ends: Int64) -> Iterator[tuple[int, int]]:
    """Cut strings that end at ``ends[1:]`` into spans of ``_BYTES`` and ``_STRINGS`` at most."""
    first, count = 0, len(ends) - 1
    while first < count:
        last = int(np.searchsorted(ends, ends[first] + _BYTES, side="right")) - 1
        last = min(max(last, first + 1), first + _STRINGS, count)
        yield first, last
        first = last

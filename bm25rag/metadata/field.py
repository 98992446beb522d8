"""One field: the distinct values at a path, sorted by kind, and the value of each document."""

from __future__ import annotations

import json
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise, starmap
from typing import Any, TypeAlias

import numpy as np

from bm25rag.columns.column import Column
from bm25rag.common.arrays import Bool, Int64, UInt8, UInt32, UInt64, Unsigned, as_index
from bm25rag.common.codec import decode_metadata
from bm25rag.common.gil import in_blocks
from bm25rag.common.strings import text_of
from bm25rag.filters.values import ticks
from bm25rag.metadata import kinds

Path: TypeAlias = tuple[str | None, ...]
"""Keys from the top of the metadata down; behind them None for the elements of lists."""

# Runs of passing values that codes are compared with, and how many at a time, for the caches.
_FEW_RUNS, _BLOCK = 4, 1 << 15

DAY = ticks(timedelta(days=1))
LAST_DAY = (date.max.toordinal() - 1) * DAY


def shape_of(keys: Iterable[str]) -> str:
    """Write the keys of a dict, which stand for it, since each has a field of its own."""
    return json.dumps(sorted(keys), separators=(",", ":"), ensure_ascii=False)


class StringRange(Sequence[bytes]):
    """Consecutive strings of a column, none of them ``None``, checked when they are read."""

    def __init__(self, column: Column, first: int, count: int) -> None:
        self._starts, self._data = column.span(first, first + count)
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, position: Any) -> Any:
        return bytes(self._data[self._starts[position] : self._starts[position + 1]])

    def __iter__(self) -> Iterator[bytes]:
        for some in in_blocks(range(self._count)):
            starts = self._starts[some[0] : some[-1] + 2].tolist()
            data, base = bytes(self._data[starts[0] : starts[-1]]), starts[0]
            yield from [data[start - base : stop - base] for start, stop in pairwise(starts)]

    def arrays(self, first: int, last: int) -> tuple[Int64, UInt8]:
        """Return the starts of some strings and the end of the last, and the buffer they are in."""
        starts = np.asarray(self._starts[first : last + 1]).astype(np.int64)
        return starts, np.asarray(self._data)

    def ascend(self) -> bool:
        """Whether each string is greater than the one before; 0.2 us a string."""
        return all(starmap(operator.lt, pairwise(self)))

    def every(self, step: int) -> list[bytes]:
        """Return the first string, and each that is so many behind the one before."""
        starts, ends = (
            self._starts[first : self._count + first : step].tolist() for first in (0, 1)
        )
        return [bytes(self._data[start:end]) for start, end in zip(starts, ends, strict=True)]

    def containing(self, part: bytes, folded: bool) -> Int64 | None:
        """Return the positions of the strings with a part.

        If ``folded``, the part is case-folded, and so are the strings; ``None`` if one of these is
        not ASCII.
        """
        starts = self._starts.tolist() if self._count else [0]
        data, base = bytes(self._data[starts[0] : starts[-1]]), starts[0]
        if folded:
            if not data.isascii():
                return None
            data = data.lower()
        if not part:
            return np.arange(self._count)
        positions, position = [], -1
        found = data.find(part)
        while found >= 0:
            position = bisect_right(starts, found + base, position + 1) - 1
            end = starts[position + 1] - base
            if found + len(part) <= end:  # and not on in the next string
                positions.append(position)
            found = data.find(part, end)
        return np.array(positions, np.int64)

    def texts(self) -> list[str]:
        """Return the strings, decoded."""
        starts = self._starts.tolist() if self._count else [0]
        data = bytes(self._data[starts[0] : starts[-1]])
        if not data.isascii():
            return list(map(text_of, self))
        text, base = data.decode("ascii"), starts[0]
        return [text[start - base : stop - base] for start, stop in pairwise(starts)]


class Field:
    """The values at one path.

    ``documents`` are those that have one, ascending, uint32, for the elements of lists once for
    each element; ``None``: all have one. ``codes`` has the code of each value, of the narrowest
    unsigned type, ``starts`` where the codes of each kind begin, and where the last one's end.
    ``numbers`` are the distinct values of the kinds that are numbers, sorted within each, 64 bits
    each; those of the kinds that are strings begin at ``first`` in ``column``. ``spans`` is where
    ``documents``, codes and ``numbers`` lie in the arrays of the segment's fields.
    """

    def __init__(
        self,
        documents: UInt32 | None,
        codes: Unsigned,
        starts: tuple[int, ...],
        numbers: UInt64,
        column: Column,
        first: int,
        spans: dict[str, slice],
    ) -> None:
        self.documents = documents
        self.codes = codes
        self.starts = starts
        self.numbers = numbers
        self.column = column
        self.first = first
        self.spans = spans
        self._ranked: dict[int, Sequence[Any]] = {}
        # The datetimes that the strings of a kind name, once a filter has asked for them.
        self.named: dict[int, Any] = {}
        # The instants of all values, once ``decay`` has asked for them.
        self.instants: Int64 | None = None

    def __len__(self) -> int:
        return self.starts[-1]

    def codes_of(self, kind: int) -> slice:
        """Return the codes of a kind."""
        return slice(self.starts[kind], self.starts[kind + 1])

    def has(self, kind: int) -> bool:
        """Whether a value is of this kind."""
        return self.starts[kind] < self.starts[kind + 1]

    def numbers_of(self, kind: int) -> Any:
        """Return the sorted values of a kind that is a number, int64 or float64."""
        start, stop = self.starts[kind] - self.starts[kinds.WHOLE], self.starts[kind + 1]
        numbers = self.numbers[start : stop - self.starts[kinds.WHOLE]]
        return numbers.view(np.float64 if kind == kinds.REAL else np.int64)

    def strings_of(self, kind: int) -> StringRange:
        """Return the sorted values of a kind that is a string."""
        start, stop = self.starts[kind], self.starts[kind + 1]
        first = self.first + start - self.starts[kinds.STRING]
        return StringRange(self.column, first, stop - start)

    def ranked(self, kind: int) -> Sequence[Any]:
        """Return the sorted values of a number or string, as Python objects when indexed."""
        values = self._ranked.get(kind)
        if values is None:
            values = self.numbers_of(kind).data if kind in kinds.NUMBERS else self.strings_of(kind)
            self._ranked[kind] = values
        return values

    def values(self, kind: int) -> list[Any]:
        """Return the values of a kind as metadata have them.

        Not for lists and dicts, of which a field holds only a part.
        """
        if kind == kinds.STRING:
            return self.strings_of(kind).texts()
        decode = _DECODERS[kind]
        if kind in kinds.FLAGS:
            return [decode(None)] * self.has(kind)
        return list(map(decode, self.ranked(kind)))

    def value(self, kind: int, position: int) -> Any:
        """Return one of ``values(kind)``."""
        if kind == kinds.STRING:
            return text_of(self.ranked(kind)[position])
        return _DECODERS[kind](None if kind in kinds.FLAGS else self.ranked(kind)[position])

    def hits(self, passing: Bool) -> Bool:
        """Return for each of ``codes`` whether its value is a passing one.

        These mostly follow each other, as values are sorted: comparing all codes with the first and
        the last takes a third to a fifth of looking each up.
        """
        edges = np.flatnonzero(np.diff(passing, prepend=False, append=False))
        if len(edges) > 2 * _FEW_RUNS:
            return passing.take(as_index(self.codes))
        hits = np.zeros(len(self.codes), np.bool_)
        kind = self.codes.dtype.type
        for begin in range(0, len(hits), _BLOCK):
            codes, own = self.codes[begin : begin + _BLOCK], hits[begin : begin + _BLOCK]
            for first, stop in edges.reshape(-1, 2).tolist():
                # What is less than the first becomes a very large number.
                own |= codes - kind(first) <= kind(stop - 1 - first)
        return hits

    def spread(self, passing: Bool, missing: bool, count: int) -> Bool:
        """Return which of ``count`` documents have a passing value; ``missing`` for no value."""
        hits = self.hits(passing)
        if self.documents is None:
            return hits
        mask = np.full(count, missing)
        mask[as_index(self.documents[hits != missing])] = not missing
        return mask


def _decode_other(data: bytes) -> Any:
    return decode_metadata(b'{"":%b}' % data)[""]


def _decode_naive(clock: int) -> datetime:
    return datetime(1, 1, 1) + timedelta(microseconds=clock)


_DECODERS: dict[int, Callable[[Any], Any]] = {
    kinds.NULL: lambda _: None,
    kinds.FALSE: lambda _: False,
    kinds.TRUE: lambda _: True,
    kinds.WHOLE: int,
    kinds.REAL: float,
    kinds.DATE: lambda day: date.fromordinal(day // DAY + 1),
    kinds.NAIVE: _decode_naive,
    kinds.UTC: lambda instant: _decode_naive(instant).replace(tzinfo=UTC),
    kinds.ZONED: lambda written: _decode_other(b'{"$datetime":"%b"}' % written),
    kinds.OTHER: _decode_other,
}
# The kinds of which a field holds whole values.
KNOWN = (*_DECODERS, kinds.STRING)

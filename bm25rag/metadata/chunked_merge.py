"""Merges the fields of consecutive segments into those of one that need not fit into memory."""

from __future__ import annotations

import heapq
import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bm25rag.columns.column import ColumnBuilder, join, offset_type
from bm25rag.common.arrays import Array, Bool, Int64, UInt32, Unsigned
from bm25rag.common.chunks import Chunks, Spools
from bm25rag.common.strings import utf8
from bm25rag.metadata.field import FLAGS, KINDS, NUMBERS, REAL, Field, Path, StringRange
from bm25rag.metadata.field_merge import kept_paths
from bm25rag.metadata.fields import ARRAYS, Fields, codes_for

Arrays: TypeAlias = dict[str, Array | Chunks]

# Values of documents, and distinct values, that are merged in one step; tests set it small.
VALUES = 1 << 13
# Distinct values so far apart in a segment are candidates for a boundary between steps. So many
# bytes of strings count as one more value.
_STEP, _BYTES = 1 << 8, 1 << 10


class LivingFields(NamedTuple):
    """The fields of a segment, which of its documents live, and the new number of the first."""

    fields: Fields
    living: Bool | None
    offset: int


def chunk_fields(
    sources: Sequence[LivingFields], count: int, spools: Spools
) -> tuple[Arrays, Arrays]:
    """Merge fields.

    It takes 4 bytes of memory for each distinct value of one field, in each segment again,
    and what one step takes.

    Parameters
    ----------
    sources
        The fields of each segment.
    count
        The number of living documents.
    spools
        Hold the arrays meanwhile.

    Returns
    -------
    arrays, columns
        The arrays of the fields, and those of their two columns, as a file has them; both
        empty if there are no fields.
    """

    def surviving(source: int, field: Field) -> int:
        return _Piece(field, *sources[source][1:]).size

    kept, complete = kept_paths([source.fields for source in sources], surviving)
    merge = _FieldsMerge(count, spools)
    for path in kept:
        found = [(source, source.fields.find(path)) for source in sources]
        pieces = [_Piece(field, *source[1:]) for source, field in found if field is not None]
        merge.add(path, pieces)
    return merge.arrays(complete)


class _Piece:
    """The values of one segment at a path.

    Attributes
    ----------
    size
        How many there are of living documents.
    codes
        The new code of each distinct value, once it is known.
    """

    def __init__(self, field: Field, living: Bool | None, offset: int) -> None:
        self.field, self._living, self._offset = field, living, offset
        self.codes: UInt32 = np.empty(len(field), np.uint32)
        self._ranks = None if living is None else np.cumsum(living, dtype=np.int64)
        self._used = None if living is None else np.zeros(len(field), np.bool_)
        self.size = len(field.codes)
        if self._used is not None:
            self.size = 0
            for _, codes in self.values():
                self._used[codes] = True
                self.size += len(codes)

    def values(self) -> Iterator[tuple[Int64, Unsigned]]:
        """Yield the new numbers of living documents, and the codes of their values."""
        field, living = self.field, self._living
        for first in range(0, len(field.codes), VALUES):
            codes = field.codes[first : first + VALUES]
            if field.documents is None:
                documents = np.arange(first, first + len(codes))
            else:
                documents = field.documents[first : first + VALUES].astype(np.int64)
            if living is not None and self._ranks is not None:
                lives = living[documents]
                documents, codes = self._ranks[documents[lives]] - 1, codes[lives]
            yield documents + self._offset, codes

    def codes_of(self, kind: int) -> range | Int64:
        """Return the codes of the values of a kind that living documents have."""
        codes = self.field.codes_of(kind)
        if self._used is None:
            return range(codes.start, codes.stop)
        used: Int64 = np.flatnonzero(self._used[codes])
        used += codes.start
        return used


class _Run(Sequence[Any]):
    """The values of a kind, ascending, that living documents of a segment have."""

    def __init__(self, piece: _Piece, kind: int) -> None:
        self._codes = piece.codes_of(kind)
        self._first = piece.field.codes_of(kind).start
        # Of a flag there is one value, which nothing looks at.
        self._values = (None,) if kind in FLAGS else piece.field.ranked(kind)
        self._new_codes = piece.codes

    def __len__(self) -> int:
        return len(self._codes)

    def samples(self) -> Iterator[Any]:
        """Yield values that are about evenly spaced; one of many bytes repeatedly."""
        most = max(1, VALUES // _STEP)
        before = size = 0
        for first in range(0, len(self), VALUES):
            codes = np.asarray(self._codes[first : first + VALUES], np.int64) - self._first
            sizes = size + np.cumsum(self._sizes(codes))
            size = int(sizes[-1])
            steps = np.diff(sizes // _STEP, prepend=before)
            before = size // _STEP
            for position in np.flatnonzero(steps).tolist():
                yield from repeat(self[first + position], min(int(steps[position]), most))

    def _sizes(self, positions: Int64) -> Int64:
        """Return how many values each value counts for."""
        if not isinstance(self._values, StringRange):
            return np.ones(len(positions), np.int64)
        starts, _ = self._values.arrays(int(positions[0]), int(positions[-1]) + 1)
        places = positions - positions[0]
        sizes: Int64 = 1 + (starts[places + 1] - starts[places]) // _BYTES
        return sizes

    def __getitem__(self, position: Any) -> Any:
        """Return one value, or a list of some."""
        if isinstance(position, slice):
            return [self._values[int(code) - self._first] for code in self._codes[position]]
        return self._values[int(self._codes[position]) - self._first]

    def number(self, some: slice, codes: Sequence[int]) -> None:
        """Note the new codes of some of the values."""
        self._new_codes[np.asarray(self._codes[some], np.int64)] = codes


class _FieldsMerge:
    """The arrays of the merged fields, as they grow."""

    def __init__(self, count: int, spools: Spools) -> None:
        self._count = count
        self._arrays = {name: spools.new(kind) for name, kind in ARRAYS.items()}
        self._paths = ColumnBuilder()
        self._starts, self._data = spools.new(np.int64), spools.new(np.uint8)
        self._starts.append(np.zeros(1))

    def add(self, path: Path, pieces: Sequence[_Piece]) -> None:
        """Add a field."""
        size = sum(piece.size for piece in pieces)
        counts: list[int] = []
        for kind in range(KINDS):
            counts.append(self._add_kind(kind, pieces, sum(counts)))
        arrays = self._arrays
        self._paths.extend(join([utf8(json.dumps(path, ensure_ascii=False))]))
        arrays["counts"].append(np.array(counts))
        arrays["entries"].append(np.array([size]))
        everywhere = size == self._count and path[-1] is not None
        for piece in pieces:
            for documents, codes in piece.values():
                if not everywhere:
                    arrays["documents"].append(documents)
                arrays[codes_for(sum(counts))].append(piece.codes[codes])

    def _add_kind(self, kind: int, pieces: Sequence[_Piece], start: int) -> int:
        """Give the distinct values of a kind codes from ``start`` on; return how many there are."""
        runs = [run for piece in pieces if len(run := _Run(piece, kind))]
        if kind in FLAGS:
            for run in runs:
                run.number(slice(None), [start])
            return min(1, len(runs))
        count = 0
        for parts in _aligned(runs):
            values = [run[some] for run, some in zip(runs, parts, strict=True)]
            distinct = sorted(set().union(*values))
            first = start + count
            code_of = dict(zip(distinct, range(first, first + len(distinct)), strict=True))
            for run, some, of_run in zip(runs, parts, values, strict=True):
                run.number(some, list(map(code_of.__getitem__, of_run)))
            self._add_values(kind, distinct)
            count += len(distinct)
        return count

    def _add_values(self, kind: int, values: Sequence[Any]) -> None:
        if kind in NUMBERS:
            numbers = np.array(values, np.float64 if kind == REAL else np.int64)
            self._arrays["numbers"].append(numbers.view(np.uint64))
            return
        strings = join(values)
        self._starts.append(np.cumsum(strings.lengths).astype(np.int64) + len(self._data))
        self._data.append(np.frombuffer(strings.data, np.uint8))

    def arrays(self, complete: bool) -> tuple[Arrays, Arrays]:
        """Return everything; see ``chunk_fields``."""
        paths = self._paths.finish()
        if not len(paths):
            return {}, {}
        self._arrays["complete"].append(np.array([complete]))
        return {f"fields.{name}": spool.chunks() for name, spool in self._arrays.items()}, {
            "fields.paths.offsets": paths.offsets,
            "fields.paths.data": paths.data,
            "fields.paths.null": paths.null,
            "fields.strings.offsets": self._starts.chunks(offset_type(len(self._data))),
            "fields.strings.data": self._data.chunks(),
            "fields.strings.null": np.empty(0, np.bool_),
        }


def _aligned(runs: Sequence[_Run]) -> Iterator[list[slice]]:
    """Split all runs at the same values, into about ``VALUES`` values in total at a time.

    There are fewer if they are long.
    """
    candidates = heapq.merge(*(run.samples() for run in runs))
    starts = [0] * len(runs)
    for boundary in islice(candidates, 0, None, max(1, VALUES // _STEP)):
        stops = [bisect_left(run, boundary, start) for run, start in zip(runs, starts, strict=True)]
        yield list(map(slice, starts, stops))
        starts = stops
    yield list(map(slice, starts, map(len, runs)))

"""Merges the fields of several segments into those of one, in memory or on the way to a file."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, islice, repeat
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bm25rag.common.arrays import Bool, Int64, UInt32, Unsigned, as_index
from bm25rag.common.gil import BLOCK, releasing_gil
from bm25rag.metadata import kinds
from bm25rag.metadata.field import Field, Path, StringRange
from bm25rag.metadata.fields import MAX_FIELDS, Assembler, Fields

# Every string so far apart in a sorted run is a candidate for a boundary between blocks.
_STEP = 64
# Values of documents, and distinct values, that are merged in one step; tests set it small.
VALUES = 1 << 13
# Distinct values so far apart in a segment are candidates for a boundary between steps. So many
# bytes of strings count as one more value.
_FAR, _BYTES = 1 << 8, 1 << 10

_Text = TypeVar("_Text", str, bytes)


class Source(NamedTuple):
    """Fields to merge, and the new numbers of some of their documents: -1 for the deleted ones.

    ``whole`` says that none is deleted.
    """

    fields: Fields
    renumber: Callable[[Int64], Int64]
    whole: bool


def living_source(fields: Fields, living: Bool | None, offset: int) -> Source:
    """Return the source whose living documents are numbered from ``offset``."""
    if living is None:
        return Source(fields, lambda numbers: numbers + offset, True)
    lives, ranks = living, np.cumsum(living, dtype=np.int64)
    return Source(fields, lambda n: np.where(lives[n], ranks[n] + (offset - 1), -1), False)


def merge_fields(sources: Sequence[Source], merged: Assembler, ordered: bool = True) -> None:
    """Merge fields into ``merged``.

    It takes 5 bytes of memory for each distinct value of one field, in each source again, and what
    one step takes. ``ordered`` says that the documents of each source come after those of the one
    before.
    """
    kept, merged.complete = _kept_paths(sources)
    for path in kept:
        fields = [(source, source.fields.find(path)) for source in sources]
        pieces = [_Piece(source, field) for source, field in fields if field is not None]
        counts: list[int] = []
        for kind in range(kinds.KINDS):
            runs = [run for piece in pieces if len(run := _Run(piece, kind))]
            counts.append(_merge_kind(kind, runs, sum(counts), merged))
        size = sum(piece.size for piece in pieces)
        entries = chain.from_iterable(piece.new_entries() for piece in pieces)
        merged.add(path, counts, size, entries if ordered else _in_order(entries))


def _kept_paths(sources: Sequence[Source]) -> tuple[list[Path], bool]:
    """Return which paths get a field when sources are merged, and whether these are all."""
    each = [source.fields for source in sources]
    paths = set(chain.from_iterable(each))
    # A path that one source has and did not keep cannot be completed by the others.
    known = {p for p in paths if all(one.complete or one.get(p) is not None for one in each)}
    sizes: dict[Path, int] = {}
    for path in known:
        fields = ((source, source.fields.find(path)) for source in sources)
        sizes[path] = sum(_Piece(source, one).size for source, one in fields if one is not None)
    left = [path for path in known if sizes[path]]
    kept = sorted(left, key=lambda path: (-sizes[path], repr(path)))[:MAX_FIELDS]
    complete = len(kept) == len(left) and known == paths and all(one.complete for one in each)
    return kept, complete


def _in_order(entries: Iterable[tuple[Int64, UInt32]]) -> list[tuple[Int64, UInt32]]:
    numbers, codes = map(np.concatenate, zip(*entries, strict=True))
    order = np.argsort(numbers, kind="stable")
    return [(numbers[order], codes[order])]


class _Piece:
    """The values of one source at a path, so many of living documents.

    ``used`` says which distinct values are among them (``None``: all); ``codes`` are the new ones
    of these, once they are known.
    """

    def __init__(self, source: Source, field: Field) -> None:
        self.field, self._renumber = field, source.renumber
        self.codes: UInt32 = np.empty(len(field), np.uint32)
        self.size, self.used = len(field.codes), None
        if not source.whole:
            self.size, self.used = 0, np.zeros(len(field), np.bool_)
            for _, codes in self._entries():
                self.used[as_index(codes)] = True
                self.size += len(codes)

    def new_entries(self) -> Iterator[tuple[Int64, UInt32]]:
        """Yield the new numbers of living documents, and the new codes of their values."""
        for numbers, codes in self._entries():
            yield numbers, self.codes.take(as_index(codes))

    def _entries(self) -> Iterator[tuple[Int64, Unsigned]]:
        field = self.field
        for first in range(0, len(field.codes), VALUES):
            codes = field.codes[first : first + VALUES]
            if field.documents is None:
                documents = np.arange(first, first + len(codes))
            else:
                documents = field.documents[first : first + VALUES].astype(np.int64)
            numbers = self._renumber(documents)
            if self.used is not None:
                lives = numbers >= 0
                numbers, codes = numbers[lives], codes[lives]
            yield numbers, codes


class _Run(Sequence[Any]):
    """The values of a kind, ascending, that living documents of a source have."""

    def __init__(self, piece: _Piece, kind: int) -> None:
        self._piece, self._kind = piece, kind
        of_kind = piece.field.codes_of(kind)
        self._first = of_kind.start
        self._codes: range | Int64 = range(of_kind.start, of_kind.stop)
        if piece.used is not None:
            self._codes = np.flatnonzero(piece.used[of_kind]) + of_kind.start
        # Of a flag there is one value, which nothing looks at.
        self._values = (None,) if kind in kinds.FLAGS else piece.field.ranked(kind)

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, position: Any) -> Any:
        return self._values[int(self._codes[position]) - self._first]

    def samples(self) -> Iterator[Any]:
        """Yield values that are about evenly spaced; one of many bytes repeatedly."""
        limit = max(1, VALUES // _FAR)
        before = size = 0
        for first in range(0, len(self), VALUES):
            codes = np.asarray(self._codes[first : first + VALUES], np.int64) - self._first
            sizes = size + np.cumsum(self._sizes(codes))
            size = int(sizes[-1])
            steps = np.diff(sizes // _FAR, prepend=before)
            before = size // _FAR
            for position in np.flatnonzero(steps).tolist():
                yield from repeat(self[first + position], min(int(steps[position]), limit))

    def _sizes(self, positions: Int64) -> Int64:
        """Return how many values each value counts for."""
        if not isinstance(self._values, StringRange):
            return np.ones(len(positions), np.int64)
        starts, _ = self._values.arrays(int(positions[0]), int(positions[-1]) + 1)
        places = positions - positions[0]
        sizes: Int64 = 1 + (starts[places + 1] - starts[places]) // _BYTES
        return sizes

    def part(self, some: slice) -> Any:
        """Return some of the values: an array of numbers, or a list of strings."""
        codes, field = np.asarray(self._codes[some], np.int64), self._piece.field
        if self._kind in kinds.NUMBERS:
            return field.numbers_of(self._kind)[codes - self._first]
        if not len(codes):
            return []
        first, last = int(codes[0]), int(codes[-1]) + 1
        if last - first > 2 * len(codes):  # what lies between may be long
            return [self._values[code - self._first] for code in codes.tolist()]
        place = field.first + first - field.starts[kinds.STRING]
        strings = StringRange(field.column, place, last - first)
        if last - first == len(codes):
            return list(strings)
        used: Any = self._piece.used
        return list(compress(strings, used[first:last].tolist()))

    def number(self, some: slice, codes: Any) -> None:
        """Note the new codes of some of the values."""
        self._piece.codes[np.asarray(self._codes[some], np.int64)] = np.asarray(codes, np.uint32)


def _merge_kind(kind: int, runs: Sequence[_Run], start: int, merged: Assembler) -> int:
    """Give the distinct values of a kind codes from ``start`` on; return how many there are."""
    if kind in kinds.FLAGS:
        for run in runs:
            run.number(slice(None), start)
        return min(1, len(runs))
    count = 0
    for parts in _aligned_parts(runs) if runs else ():
        values = [run.part(some) for run, some in zip(runs, parts, strict=True)]
        distinct, ranks = _unite_numbers(values) if kind in kinds.NUMBERS else unite(values)
        for run, some, own in zip(runs, parts, ranks, strict=True):
            run.number(some, own + (start + count))
        merged.add_values(kind, distinct)
        count += len(distinct)
    return count


def _unite_numbers(values: Sequence[Any]) -> tuple[Any, list[Int64]]:
    union = np.unique(np.concatenate(values))
    return union, [np.searchsorted(union, of_source) for of_source in values]


def unite(
    runs: Sequence[list[_Text]], block: int = BLOCK, step: int = _STEP
) -> tuple[list[_Text], list[Int64]]:
    """Return the union of sorted strings, sorted, and the rank in it of each run's strings.

    Each run is strictly ascending. They are split at the same strings, some of those that are
    ``step`` apart in a run, and about ``block`` strings are united at a time.
    """
    union: list[_Text] = []
    ranks = [np.empty(len(run), np.int64) for run in runs]
    candidates = sorted(chain.from_iterable(run[step::step] for run in runs))
    for parts in releasing_gil(_split(runs, candidates[:: block // step])):
        pieces = [run[part] for run, part in zip(runs, parts, strict=True)]
        # Sorting runs and dropping duplicates is faster than sorting a set.
        distinct = dict.fromkeys(sorted(chain.from_iterable(pieces)))
        rank_of = dict(zip(distinct, range(len(union), len(union) + len(distinct)), strict=True))
        for of_run, part, piece in zip(ranks, parts, pieces, strict=True):
            of_run[part] = list(map(rank_of.__getitem__, piece))
        union += distinct
    return union, ranks


def _aligned_parts(runs: Sequence[_Run]) -> Iterator[list[slice]]:
    """Split all runs at the same values, into about ``VALUES`` in total; fewer if they are long."""
    candidates = heapq.merge(*(run.samples() for run in runs))
    yield from _split(runs, islice(candidates, 0, None, max(1, VALUES // _FAR)))


def _split(runs: Sequence[Sequence[Any]], boundaries: Iterable[Any]) -> Iterator[list[slice]]:
    starts = [0] * len(runs)
    for boundary in boundaries:
        stops = [bisect_left(run, boundary, start) for run, start in zip(runs, starts, strict=True)]
        yield list(map(slice, starts, stops))
        starts = stops
    yield list(map(slice, starts, map(len, runs)))

"""Postings made from runs of them: those of new documents, or of segments that are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from bm25rag.columns.column import Column, select_strings
from bm25rag.columns.string_table import StringTable, build_table
from bm25rag.common.arrays import Int64, UInt8, UInt16, UInt32, Unsigned, as_index
from bm25rag.common.pages import empty_apart
from bm25rag.common.threads import share
from bm25rag.kernels import backend
from bm25rag.kernels.records import PostingsTarget, Run
from bm25rag.segments import doc_blocks
from bm25rag.segments.doc_blocks import DocBlockBuilder, DocBlocks, pointer_type
from bm25rag.segments.postings import Postings, StripRows

if TYPE_CHECKING:
    from bm25rag.columns.merge import JoinedTerms
    from bm25rag.segments.text_fields import TextFields

# Most codes that 16-bit arrays hold; tests set it small.
NARROW = 65_536
# Cells (tf, |d|) of the largest grid in which pairs are numbered; beyond it they are sorted.
_LARGEST_GRID = 1 << 24
# Postings whose pairs are looked at together: in three fifths of the time of all of a run.
_PAIRS = 1 << 15
# Groups of terms whose postings are put into their places together, bytes that are worth one, and
# the most pieces of runs. Tests set the second small; a quarter of it takes a fiftieth of a build
# more, and as much memory at the peak.
_GROUPS, LEAST_GROUP, _MOST_RUNS = 8, 1 << 24, 1 << 13


class TermColumn:
    """Distinct terms in any order."""

    def __init__(self, column: Column) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def table(self, used: Int64) -> tuple[StringTable, UInt32]:
        """Return the table of some terms, and where in it each of ``used`` is."""
        if len(used) < len(self):
            return build_table(select_strings(self._column, used))
        return build_table(self._column)


class Coded(Protocol):
    """The distinct pairs (tf, |d|) of postings, in ascending order, and the code of each posting.

    ``type`` is the type of codes.
    """

    type: Any

    def codes(self, run: Run) -> Unsigned:
        """Return the code of every posting of a run."""


class Placed(NamedTuple):
    """The postings of some terms; the names are those of ``Postings``, but ``indptr`` is int64."""

    terms: StringTable
    indptr: Int64
    documents: UInt16
    doc_blocks: DocBlocks
    codes: Unsigned

    def postings(
        self,
        code_tf: UInt32,
        code_length: UInt32,
        lengths: UInt32,
        bounds: tuple[float, float] | None = None,
        text_fields: TextFields | None = None,
        rows: StripRows | None = None,
    ) -> Postings:
        """Return them as ``Postings``, given the rest of it."""
        pointers: Unsigned = self.indptr.astype(pointer_type(int(self.indptr[-1])))
        own = (self.documents, self.doc_blocks, self.codes)
        of_codes = (code_tf, code_length, lengths)
        return Postings(self.terms, pointers, *own, *of_codes, bounds, text_fields, rows)


def build_postings(
    terms: TermColumn | JoinedTerms,
    runs: list[Run],
    lengths: UInt32,
    text_fields: TextFields | None = None,
    of_analyses: Sequence[UInt32] = (),
    threads: int = 1,
) -> Postings:
    """Make the postings of some documents.

    Terms without postings are left out. The runs are used up; later ones have only later documents
    of a term. ``lengths`` holds |d| of every document, uint32; with ``text_fields``, it and the
    runs have numbers of rows. Of several analyses, each run is of one, and ``of_analyses`` has the
    numbers of the lengths by each, (A, n). ``threads`` may work on this. Peak memory
    beyond the result is a few arrays of the size of the longest run.
    """
    divided, lengths_of = text_fields is None, None
    if text_fields is not None and len(of_analyses):
        lengths_of = partial(_of_analysis, text_fields, of_analyses)
    pairs = _Pairs(runs, lengths, lengths_of)
    placed = place_postings(terms, runs, len(lengths), pairs, divided, threads)
    return placed.postings(pairs.tf, pairs.lengths, lengths, text_fields=text_fields)


def place_postings(
    terms: TermColumn | JoinedTerms,
    runs: list[Run],
    size: int,
    pairs: Coded,
    divided: bool = False,
    threads: int = 1,
) -> Placed:
    """Put the postings of ``size`` documents into their places; ``pairs`` codes them.

    Terms and runs are as for ``build_postings``. If ``divided``, this takes hardly more memory than
    the result, if the runs are those of ``Backend.count``, and ``threads`` may work on this.
    """
    hot = backend.current()
    frequencies = np.zeros(len(terms), np.int64)
    for run in runs:
        frequencies[as_index(run.terms)] += run.sizes
    used = np.flatnonzero(frequencies)
    table, places = terms.table(used)
    ranks = as_index(places)
    ordered = np.zeros(len(table), np.int64)
    ordered[ranks] = frequencies[used]
    indptr = np.concatenate(([0], np.cumsum(ordered)))

    blocks = DocBlockBuilder(indptr, size)
    cursors = np.zeros(len(terms), np.int64)
    cursors[used] = indptr[ranks]
    targets = blocks.targets
    if len(targets):
        targets = np.zeros(len(terms), np.int64)
        targets[used] = blocks.targets[ranks]
    target = PostingsTarget(
        cursors,
        np.empty(indptr[-1], np.uint16),
        np.empty(indptr[-1], pairs.type),
        doc_blocks.DOC_BLOCK,
        targets,
        blocks.cells,
        blocks.high,
    )

    def fill(some: list[Run]) -> None:
        for run in _drained(some):
            hot.fill(run, pairs.codes(run), target)

    count = min(_GROUPS, sum(map(_size_of, runs)) // LEAST_GROUP) if divided else 0
    parts = [runs]
    if 1 < count <= _MOST_RUNS // len(runs):
        groups = np.zeros(len(terms), np.uint8)
        groups[used] = (indptr[ranks] * count // indptr[-1]).astype(np.uint8)
        parts = _divided(runs, groups, count)
    share(parts, fill, min(threads, len(parts)))  # no two parts have postings of the same term
    return Placed(table, indptr, target.documents, blocks.finish(), target.codes)


def _size_of(run: Run) -> int:
    return sum(array.nbytes for array in run[:4])


def _drained(runs: list[Run]) -> Iterator[Run]:
    """Yield runs, which are forgotten."""
    runs.reverse()
    while runs:
        yield runs.pop()


def _divided(runs: list[Run], groups: UInt8, count: int) -> list[list[Run]]:
    """Return runs for each group of terms, whose postings lie side by side in the end.

    So the memory of runs is given back while that of the postings is first used.
    """
    parts: list[list[Run]] = [[] for _ in range(count)]
    for run in _drained(runs):
        whole, edges = backend.current().divide(run, groups, count)
        ends = map(pairwise, edges.tolist())
        for part, (first, last), (start, stop) in zip(parts, *ends, strict=True):
            some = whole.terms[first:last], whole.sizes[first:last]
            own = Run(*some, whole.documents[start:stop], whole.tf[start:stop], run.first)
            part.append(_apart(own))
    return parts


def _apart(run: Run) -> Run:
    """Return a copy whose memory goes back to the system when it is forgotten."""
    arrays = run.terms, run.sizes, run.documents, run.tf
    copies = empty_apart(*((len(array), array.dtype.type) for array in arrays))
    for copy, array in zip(copies, arrays, strict=True):
        copy[:] = array
    terms, sizes, documents, tf = copies
    return Run(terms, sizes, documents, tf, run.first)


def _of_analysis(text_fields: TextFields, of_analyses: Sequence[UInt32], run: Run) -> UInt32:
    """Return the lengths of all documents by the analysis of a run."""
    return of_analyses[int(text_fields.analyses_of(run.tf[:1]).sum())]  # 0 if it is empty


class _Pairs:
    """The distinct pairs (tf, |d|) of postings, numbered in ascending order.

    ``tf`` and ``lengths`` are the pair of each code, uint32. ``lengths_of`` returns the lengths of
    all documents for a run, if these depend on it.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        lengths: UInt32,
        lengths_of: Callable[[Run], UInt32] | None,
    ) -> None:
        self._all_lengths, self._lengths_of = lengths, lengths_of
        tallest = max([int(run.tf.max(initial=0)) for run in runs], default=0)
        each = [lengths] if lengths_of is None else map(lengths_of, runs)
        width = max([int(own.max(initial=0)) for own in each], default=0) + 1
        self._is_grid = (tallest + 1) * width <= _LARGEST_GRID
        # A pair is tf * width + |d|: the number of a cell, or what is sorted.
        self._width: Any = np.uint32(width) if self._is_grid else np.uint64(1 << 32)
        if self._is_grid:
            present = np.zeros((tallest + 1) * width, np.bool_)
            for run in runs:
                for pairs in self._pairs(run):
                    present[as_index(pairs)] = True
            self._distinct: Unsigned = np.flatnonzero(present).astype(np.uint32)
        else:
            of_runs = [_distinct(pairs) for run in runs for pairs in self._pairs(run)]
            self._distinct = _distinct(np.concatenate([np.empty(0, np.uint64), *of_runs]))
        self.type: Any = np.uint16 if len(self._distinct) <= NARROW else np.uint32
        self.tf = (self._distinct // self._width).astype(np.uint32)
        self.lengths = (self._distinct % self._width).astype(np.uint32)
        if self._is_grid:
            self._code_of: Unsigned = np.empty(len(present), self.type)
            places = as_index(self._distinct)
            self._code_of[places] = np.arange(len(places), dtype=self.type)

    def codes(self, run: Run) -> Unsigned:
        """Return the code of every posting."""
        codes, done = np.empty(len(run.tf), self.type), 0
        for pairs in self._pairs(run):
            some = codes[done : done + len(pairs)]
            if self._is_grid:
                some[:] = self._code_of.take(as_index(pairs))  # in half the time of an index
            else:
                some[:] = np.searchsorted(self._distinct, pairs)
            done += len(pairs)
        return codes

    def _pairs(self, run: Run) -> Iterator[Unsigned]:
        """Yield the pairs of postings, so many as stay in the cache."""
        lengths = self._all_lengths if self._lengths_of is None else self._lengths_of(run)
        lengths = lengths[run.first :]
        for first in range(0, len(run.tf), _PAIRS):
            some = slice(first, first + _PAIRS)
            pairs: Unsigned = run.tf[some].astype(self._width.dtype)
            pairs *= self._width
            pairs += lengths.take(as_index(run.documents[some]))
            yield pairs


def _distinct(values: Unsigned) -> Unsigned:
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))[: ordered.size]]

"""Blocks of documents: document numbers in 16 bits, and where the postings of each begin."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np

from bm25rag.common.arrays import Array, Int64, UInt16, UInt32, Unsigned, as_index

# Documents of a block; tests set it small.
DOC_BLOCK = 65_536
# Postings of one step: `np.repeat` lets no other thread run, 4 ms a million.
_AT_ONCE = 1 << 17


class DocBlocks:
    """The block, of s, that each posting is in; all arrays are empty if s is 1.

    They are stored in the smaller of two ways: for a term with many postings, how many of
    them come before each block; for other terms, the block of every posting.

    ``count`` is s, ``terms`` are the numbers of the m terms with many postings, ascending, uint32
    (m,), ``edges`` how many of their postings lie before blocks 1 to s - 1, uint32 (m, s - 1),
    ``before`` how many postings of all other terms come before those of each, unsigned (m,), and
    ``high`` the block of every posting of the other terms, uint16.
    """

    def __init__(
        self, count: int, terms: UInt32, edges: UInt32, before: Unsigned, high: UInt16
    ) -> None:
        self.count = count
        self.size: int = DOC_BLOCK
        self.firsts: Int64 = np.arange(0, count * DOC_BLOCK, DOC_BLOCK)
        self.terms = terms
        self.edges = edges
        self.before = before
        self.high = high
        self._terms, self._before = terms.data, before.data

    def __reduce__(self) -> tuple[type[DocBlocks], tuple[object, ...]]:
        return DocBlocks, (self.count, self.terms, self.edges, self.before, self.high)

    def starts(self, number: int, bounds: memoryview) -> Int64:
        """Return where the postings of a term begin in each block, and where they end, (s + 1,).

        ``bounds`` says where the postings of each term begin.
        """
        start, stop = bounds[number], bounds[number + 1]
        if self.count == 1:
            return np.array((start, stop), np.int64)
        starts = np.empty(self.count + 1, np.int64)
        starts[0], starts[-1] = start, stop
        row = self._row_of(number)
        if row >= 0:
            starts[1:-1] = self.edges[row]
        else:
            first = self._first_high(number, bounds)
            high = self.high[first : first + stop - start]
            starts[1:-1] = np.searchsorted(high, np.arange(1, self.count))
        starts[1:-1] += start
        return starts

    def _row_of(self, number: int) -> int:
        """Return the row of a term in ``edges``, or -1."""
        row = bisect_left(self._terms, number)
        return row if row < len(self._terms) and self._terms[row] == number else -1

    def _first_high(self, number: int, bounds: memoryview) -> int:
        """Return where in ``high`` the blocks of a term begin."""
        row = bisect_left(self._terms, number) - 1
        start = int(bounds[number])
        if row < 0:
            return start
        # Less the postings before it whose blocks ``edges`` has.
        return start - (int(bounds[self._terms[row] + 1]) - int(self._before[row]))

    def between(self, first: int, last: int, indptr: Unsigned | Int64) -> UInt32:
        """Return the block of every posting of the terms from ``first`` to before ``last``."""
        bounds: Int64 = indptr[first : last + 1].astype(np.int64)
        counts = np.diff(bounds)
        rows = slice(*np.searchsorted(self.terms, (first, last)))
        frequent = self.terms[rows].astype(np.int64) - first
        by_edges = np.zeros(len(counts), np.bool_)
        by_edges[frequent] = True
        by_edges = np.repeat(by_edges, as_index(counts))
        result = np.empty(len(by_edges), np.uint32)
        start = self._first_high(first, indptr.data)
        result[~by_edges] = self.high[start : start + np.count_nonzero(~by_edges)]
        ends = np.column_stack((self.edges[rows], counts[frequent])).astype(np.int64)
        blocks = np.tile(np.arange(self.count, dtype=np.uint32), len(frequent))
        result[by_edges] = np.repeat(blocks, as_index(np.diff(ends, axis=1, prepend=0).ravel()))
        return result

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in (self.terms, self.edges, self.before, self.high))


def doc_block_count(documents: int) -> int:
    """Return the number of blocks of so many documents."""
    return max(1, -(-documents // DOC_BLOCK))


class DocBlockBuilder:
    """Notes the block of every posting of ``size`` documents, as ``Backend.fill`` places postings.

    ``indptr`` says where those of each term begin, int64 (V + 1,). For ``targets`` (by the numbers
    of the table), ``cells`` and ``high`` see ``PostingsTarget``.
    """

    high: UInt16
    targets: Array

    def __init__(self, indptr: Int64, size: int) -> None:
        self._indptr = indptr
        self._count = doc_block_count(size)
        frequencies = np.diff(indptr)
        # Edges take 4 bytes a block and two numbers, ``high`` 2 bytes a posting.
        frequent = frequencies > 2 * self._count + 2
        self._terms = np.flatnonzero(frequent) if self._count > 1 else np.empty(0, np.int64)
        counts = frequencies[self._terms]
        self._before = indptr[self._terms] - (np.cumsum(counts) - counts)
        self.cells: UInt32 = np.zeros((len(self._terms), self._count), np.uint32)
        self.targets, self.high = np.empty(0, np.int64), np.empty(0, np.uint16)
        if self._count > 1:
            self.targets: Int64 = np.cumsum(np.where(frequent, frequencies, 0))
            self.targets[self._terms] = -1 - np.arange(len(self._terms))
            self.high = np.empty(indptr[-1] - counts.sum(), np.uint16)

    def finish(self) -> DocBlocks:
        """Return the blocks, once all postings are in their places."""
        terms = self._terms.astype(np.uint32)
        if self._count == 1:
            return DocBlocks(1, terms, np.empty((0, 0), np.uint32), terms, self.high)
        edges = np.cumsum(self.cells[:, :-1], axis=1, dtype=np.uint32)
        before = self._before.astype(pointer_type(int(self._indptr[-1])))
        return DocBlocks(self._count, terms, edges, before, self.high)


def pointer_type(postings: int) -> type[np.uint32] | type[np.uint64]:
    """Return the narrowest type for pointers to so many postings."""
    return np.uint32 if postings < 1 << 32 else np.uint64


def spans(indptr: Unsigned | Int64) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms with about ``_AT_ONCE`` postings each."""
    first = 0
    while first < len(indptr) - 1:
        end = int(indptr[first]) + _AT_ONCE
        last = bisect_right(indptr.data, end, first) - 1
        last = max(last, first + 1)
        yield first, last
        first = last

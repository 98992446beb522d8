"""Rows of bounds for vectors: the largest weight of each frequent term in every 32 documents.

They are made with the postings of a large segment, and stored with them; ``kernels/strips.py``
says what searches do with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bm25rag.common.arrays import Int64, UInt8, UInt32, Unsigned
from bm25rag.common.chunks import Growing
from bm25rag.kernels import backend
from bm25rag.kernels.records import strip_cells, strip_levels
from bm25rag.segments.doc_blocks import pointer_type
from bm25rag.segments.postings import Postings, StripRows

if TYPE_CHECKING:
    from bm25rag.segments.postings_builder import Placed

# From how many documents on a segment of vectors has rows; how many postings for each strip, on
# average, a term with a row must have; and in how many of the strips a term must be to have a level
# for each. Measured at 2 million vectors; see ``docs/sparse-vectors.md``.
STRIPS_FROM, LEAST_IN_STRIP, DENSE = 1 << 18, 1 / 16, 0.25


class RowMaker:
    """Makes the rows of postings of vectors, of so many ``documents``, ``block_size`` in a block.

    ``weights`` has that of each code, as bits; ``None`` if each posting has its own code;
    ``bounds`` are the least and the largest. There can be rows if that ``fits``: the weights are
    known to be positive.
    """

    def __init__(
        self, weights: UInt32 | None, bounds: tuple[float, float], documents: int, block_size: int
    ) -> None:
        self._in_block, self._cells = strip_cells(documents, block_size)
        self._pays = documents >= STRIPS_FROM
        self.fits: bool = weights is not None and 0 < bounds[0] <= bounds[1]
        self._levels = np.empty(0, np.uint8)
        if weights is not None and self.fits:
            self._levels = strip_levels(weights.view(np.float32), bounds[1])

    def frequent(self, indptr: Unsigned | Int64) -> UInt32:
        """Return the numbers of the terms that get rows, given where postings begin."""
        if not (self.fits and self._pays):
            return np.empty(0, np.uint32)
        least = max(1, int(self._cells * LEAST_IN_STRIP))
        return np.flatnonzero(np.diff(indptr.astype(np.int64)) >= least).astype(np.uint32)

    def each(self, postings: Postings | Placed, terms: UInt32) -> Iterator[UInt8]:
        """Yield the rows of some of these terms."""
        limit = int(self._cells * DENSE)
        return (self._row(postings, number, limit) for number in terms.tolist())

    def like(self, postings: Postings | Placed, number: int, size: int) -> UInt8:
        """Return the row of a term in the form that its size in a file shows: levels, or pairs.

        The writer of a file decides which form pays, and which terms have rows.
        """
        return self._row(postings, number, -1 if size == self._cells else self._cells)

    def _row(self, postings: Postings | Placed, number: int, limit: int) -> UInt8:
        """Return a term's row: pairs, if it is in at most so many strips."""
        starts = postings.doc_blocks.starts(number, postings.indptr.data)
        some = postings.documents, postings.codes, starts
        return backend.current().strip_row(*some, self._levels, self._in_block, limit)

    def rows(self, postings: Postings | Placed) -> StripRows | None:
        """Return the rows of all frequent terms; ``None`` if there are none."""
        terms = self.frequent(postings.indptr)
        if not len(terms):
            return None
        levels, sizes = Growing(np.uint8), []
        for row in self.each(postings, terms):
            levels.append(row)
            sizes.append(len(row))
        return StripRows(terms, levels.chunks(), offsets_of(sizes))


def offsets_of(sizes: Sequence[int]) -> Unsigned:
    """Return where rows of these sizes begin, and where the last ends."""
    offsets = np.cumsum([0, *sizes], dtype=np.int64)
    return offsets.astype(pointer_type(int(offsets[-1])))

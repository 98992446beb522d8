"""Postings of sparse vectors: an impact code stands for a weight, and not for a pair (tf, |d|).

The weight is the score of a posting: idf is 1, and f is the weight, rounded once to float32. Its
32 bits stand where the term frequency of a text would, beside a length of 0. So vectors are
merged, searched and filtered by what does so for texts.

Weights of 16 bits, as many encoders compute them, have at most 65,536 values, which codes number.
Of more values, each posting has its own code, in the order of the postings: so a search reads
the weights one after another, in a quarter of the time that it takes to look them up in a large
table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from bm25rag.columns.column import build_column
from bm25rag.common.arrays import UInt32, Unsigned
from bm25rag.common.strings import utf8_each
from bm25rag.kernels.records import Run
from bm25rag.segments import doc_blocks, postings_builder
from bm25rag.segments.postings import STRIP_ARRAYS, VECTORS, Postings
from bm25rag.segments.postings_builder import Placed, TermColumn, place_postings
from bm25rag.segments.strip_rows import RowMaker

# About how many bytes a posting and a term take until the postings are made.
_POSTING_BYTES, _TERM_BYTES = 24, 300
# Weights that are compared in one step.
_AT_ONCE = 1 << 17
# Codes have 32 bits.
_MOST_CODES = 1 << 32


class VectorsBuilder:
    """Makes the postings of vectors, which are added in batches of at most 65,536."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__
        self._runs: list[Run] = []
        self._documents = self._postings = 0

    def add(self, vectors: Sequence[dict[str, float] | None]) -> None:
        """Add the vectors of the next documents, as ``read_vector`` returns them."""
        given = [vector or {} for vector in vectors]
        sizes = list(map(len, given))
        terms = np.fromiter(map(self._numbers.__getitem__, chain(*given)), np.uint32, sum(sizes))
        each = chain.from_iterable(vector.values() for vector in given)
        weights = np.fromiter(each, np.float64, len(terms)).astype(np.float32)
        documents = np.repeat(np.arange(len(given)), sizes).astype(np.uint16)
        present = np.flatnonzero(weights)  # a weight of 0 is none
        order = present[np.argsort(terms[present], kind="stable")]
        distinct, counts = np.unique(terms[order], return_counts=True)
        bits = weights[order].view(np.uint32)
        run = Run(distinct, counts.astype(np.uint32), documents[order], bits, self._documents)
        self._runs.append(run)
        self._postings += len(order)
        self.skip(len(given))

    def skip(self, count: int) -> None:
        """Note that the next documents have no vectors."""
        self._documents += count

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes to make the postings of what was added."""
        return _POSTING_BYTES * self._postings + _TERM_BYTES * len(self._numbers)

    def finish(self, merged: bool = False) -> Postings | None:
        """Return the postings, ``None`` if there are none; the builder is used up.

        If they are only to be ``merged`` with others, they have no rows.
        """
        self._numbers.default_factory = None  # or it refers to itself, and is not freed at once
        if not self._postings:
            return None
        terms = TermColumn(build_column(utf8_each(list(self._numbers))))
        return build_vectors(terms, self._runs, self._documents, merged)


class Weights:
    """The distinct weights of postings, as bits, ascending, and the code of each posting.

    ``some`` are weights, as bits, that together are those of all postings. ``distinct`` has the
    weight of each code; it is ``None`` if each posting has its own code, and its weight stands for
    it. ``bounds`` are the least weight and the largest, which is at least 0.
    """

    def __init__(self, some: Iterable[UInt32]) -> None:
        self.distinct: UInt32 | None = np.empty(0, np.uint32)
        self.type: Any = np.uint16
        smallest, largest = np.inf, 0.0
        for bits in some:
            weights = bits.view(np.float32)
            smallest = min(smallest, float(weights.min(initial=np.inf)))
            largest = max(largest, float(weights.max(initial=0.0)))
            for first in range(0, len(bits), _AT_ONCE):
                if (known := self.distinct) is not None:
                    self._note(np.concatenate((known, bits[first : first + _AT_ONCE])))
        self.bounds: tuple[float, float] = smallest, largest

    def _note(self, bits: UInt32) -> None:
        ordered = np.sort(bits)  # np.unique makes a hash table, which takes 4 s for three million
        self.distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
        if len(self.distinct) > postings_builder.NARROW:
            self.distinct, self.type = None, np.uint32

    def codes(self, run: Run) -> Unsigned:
        """Return the code of every posting of a run."""
        return self.codes_of(run.tf)

    def codes_of(self, bits: Unsigned) -> Unsigned:
        """Return the codes of weights."""
        if self.distinct is None:
            return bits
        return np.searchsorted(self.distinct, bits).astype(self.type)

    def postings(self, placed: Placed, documents: int, merged: bool = False) -> Postings:
        """Return the postings of so many documents, given where they are placed."""
        rows = None if merged else self.rows(documents).rows(placed)
        bits = self.distinct
        if bits is None:
            bits, placed = placed.codes, placed._replace(codes=own_codes(0, len(placed.codes)))
        lengths = np.zeros(len(bits), np.uint32), np.zeros(documents, np.uint32)
        return placed.postings(bits, *lengths, self.bounds, rows=rows)

    def rows(self, documents: int) -> RowMaker:
        """Return what makes the rows of postings of so many documents."""
        return RowMaker(self.distinct, self.bounds, documents, doc_blocks.DOC_BLOCK)


def build_vectors(
    terms: TermColumn, runs: list[Run], documents: int, merged: bool = False
) -> Postings:
    """Make the postings of vectors; terms and runs are as for ``build_postings``.

    The runs have the bits of weights where others have tf. ``merged`` is as for
    ``VectorsBuilder.finish``.
    """
    weights = Weights(run.tf for run in runs)
    placed = place_postings(terms, runs, documents, weights)
    return weights.postings(placed, documents, merged)


def own_codes(first: int, last: int) -> UInt32:
    """Return the codes of the postings from ``first`` to before ``last``, if each has its own.

    It raises ``ValueError`` if there are too many.
    """
    if last > _MOST_CODES:
        raise ValueError(
            f"the vectors have more than {_MOST_CODES:,} entries with more than "
            f"{postings_builder.NARROW:,} different weights: round the weights to 16 bits "
            "(numpy.float16), or divide the documents among several indexes"
        )
    return np.arange(first, last, dtype=np.uint32)


def no_vectors(documents: int) -> Postings:
    """Return the postings of documents without vectors."""
    return build_vectors(TermColumn(build_column(())), [], documents)


def vector_arrays(
    arrays: Mapping[str, Any],
    bounds: tuple[float, float] | None,
    rows: tuple[Any, Any, Any] | None = None,
) -> dict[str, Any]:
    """Return the arrays of a file for the postings of vectors, given those of a text's.

    ``rows`` are those of ``StripRows``.
    """
    renamed = {
        VECTORS + ("code_weight" if name == "code_tf" else name): array
        for name, array in arrays.items()
        if name != "code_length"  # all are 0
    }
    renamed[f"{VECTORS}bounds"] = np.array(bounds, np.float32).view(np.uint32)
    if rows is not None:
        renamed |= zip(STRIP_ARRAYS, rows, strict=True)
    return renamed

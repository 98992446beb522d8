"""Postings of sparse vectors: an impact code stands for a weight, and not for a pair (tf, |d|).

The weight is the score of a posting: idf is 1, and f is the weight, rounded once to float32. Its
32 bits stand where the term frequency of a text would, beside a length of 0. So vectors are
merged, searched and filtered by what does so for texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

import numpy as np

from bm25rag.columns.column import build_column
from bm25rag.columns.string_table import build_table
from bm25rag.common.arrays import UInt16
from bm25rag.common.strings import utf8_each
from bm25rag.kernels.records import Run
from bm25rag.segments.doc_blocks import DocBlockBuilder
from bm25rag.segments.postings import Postings
from bm25rag.segments.postings_builder import TermColumn, build_postings

# About how many bytes a posting and a term take until the postings are made.
_POSTING_BYTES, _TERM_BYTES = 24, 300
# What the names of their arrays begin with in a file.
VECTORS = "vectors."

_Arrays = TypeVar("_Arrays")


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

    def finish(self) -> Postings | None:
        """Return the postings, ``None`` if there are none; the builder is used up."""
        if not self._postings:
            return None
        terms = TermColumn(build_column(utf8_each(list(self._numbers))))
        return build_postings(terms, self._runs, np.zeros(self._documents, np.uint32))


def no_vectors(documents: int) -> Postings:
    """Return the postings of documents without vectors."""
    none = np.empty(0, np.uint32)
    documents_of: UInt16 = np.empty(0, np.uint16)
    starts = np.zeros(1, np.uint32)
    blocks = DocBlockBuilder(np.zeros(1, np.int64), documents).finish()
    lengths = np.zeros(documents, np.uint32)
    codes = np.empty(0, np.uint16)
    table, _ = build_table(build_column(()))
    return Postings(table, starts, documents_of, blocks, codes, none, none, lengths)


def vector_arrays(arrays: dict[str, _Arrays]) -> dict[str, _Arrays]:
    """Return the arrays of a file for the postings of vectors, given those for a text's."""
    names = {"code_tf": "code_weight"}
    return {
        VECTORS + names.get(name, name): array
        for name, array in arrays.items()
        if name != "code_length"  # all are 0
    }

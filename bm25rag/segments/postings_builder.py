"""Postings made from runs of them: those of new documents, or of segments that are merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from bm25rag.columns.string_table import StringTable, build_table
from bm25rag.common.arrays import Int64, UInt32, Unsigned
from bm25rag.common.gil import releasing_gil
from bm25rag.kernels import backend
from bm25rag.kernels.boundary import CodedRun, Run
from bm25rag.segments.doc_blocks import doc_block_count, pointer_type, split_into_blocks
from bm25rag.segments.postings import Postings

# Most codes that 16-bit arrays hold; tests set it small.
NARROW = 65_536
# Cells (tf, |d|) of the largest grid in which pairs are numbered; beyond it they are sorted.
_LARGEST_GRID = 1 << 24


class Terms(Protocol):
    """The terms, as some runs number them."""

    def __len__(self) -> int: ...

    def table(self, used: Int64) -> tuple[StringTable, Int64 | UInt32]:
        """Return the table of some terms, and where in it each of ``used`` is."""


class TermList(list[bytes]):
    """Distinct terms in any order."""

    def table(self, used: Int64) -> tuple[StringTable, UInt32]:
        """Return the table of some terms, and where in it each of ``used`` is."""
        return build_table([self[number] for number in releasing_gil(used.tolist())])


def build_postings(terms: Terms, runs: Sequence[Run], lengths: UInt32) -> Postings:
    """Make the postings of some documents.

    Peak memory beyond the result is 4 bytes a posting and a few arrays of the size of the
    longest run.

    Parameters
    ----------
    terms
        The terms in the numbering of the runs; those without postings are left out.
    runs
        The postings; later runs have only later documents of a term.
    lengths
        |d| of every document, uint32.
    """
    hot = backend.current()
    frequencies = np.zeros(len(terms), np.int64)
    for run in runs:
        hot.tally(run.terms, frequencies)
    used = np.flatnonzero(frequencies)
    table, ranks = terms.table(used)
    ordered = np.zeros(len(table), np.int64)
    ordered[ranks] = frequencies[used]
    indptr = np.concatenate(([0], np.cumsum(ordered)))

    pairs, run_codes = _encode_pairs(runs, lengths)
    documents = np.empty(indptr[-1], np.uint16 if doc_block_count(len(lengths)) == 1 else np.uint32)
    codes = np.empty(indptr[-1], np.uint16 if len(pairs) <= NARROW else np.uint32)
    cursors = np.zeros(len(terms), np.int64)
    cursors[used] = indptr[ranks]
    for run, coded in zip(runs, run_codes, strict=True):
        hot.fill(CodedRun(run.terms, run.documents, coded), cursors, documents, codes)
    low, doc_blocks = split_into_blocks(documents, indptr, len(lengths))
    return Postings(
        table,
        indptr.astype(pointer_type(indptr)),
        low,
        doc_blocks,
        codes,
        (pairs >> np.uint64(32)).astype(np.uint32),
        pairs.astype(np.uint32),
        lengths,
    )


def _encode_pairs(runs: Sequence[Run], lengths: UInt32) -> tuple[Unsigned, Iterable[UInt32]]:
    """Give the pairs (tf, |d|) numbers in ascending order.

    Returns
    -------
    pairs
        ``tf << 32 | |d|`` of every code, uint64.
    codes
        The codes of each run, uint32, made as they are iterated.
    """
    tallest = max([int(run.tf.max(initial=0)) for run in runs], default=0)
    longest = int(lengths.max(initial=0))
    if (tallest + 1) * (longest + 1) > _LARGEST_GRID:
        keys = [run.tf.astype(np.uint64) << np.uint64(32) | lengths[run.documents] for run in runs]
        pairs = _distinct(np.concatenate([_distinct(some) for some in keys]))
        return pairs, (np.searchsorted(pairs, some).astype(np.uint32) for some in keys)
    width = np.uint32(longest + 1)
    cells = [run.tf * width + lengths[run.documents] for run in runs]
    present = np.zeros((tallest + 1) * (longest + 1), np.bool_)
    for some in cells:
        present[some] = True
    used = np.flatnonzero(present).astype(np.uint64)
    code_of = np.empty(len(present), np.uint32)
    code_of[used] = np.arange(len(used), dtype=np.uint32)
    pairs = (used // width << np.uint64(32)) | used % width
    return pairs, (code_of[some] for some in cells)


def _distinct(values: Unsigned) -> Unsigned:
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))[: ordered.size]]

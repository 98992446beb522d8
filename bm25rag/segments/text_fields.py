"""Texts in fields, whose counts and lengths are added with weights.

In an index with fields, a code stands for a pair of numbers: of how often the term occurs in each
field, and of how long each field of the document is. Both number the distinct rows of a table, in
ascending order. So postings are coded, merged and searched as if the numbers were tf and |d|, and
weights matter only where the table of scores is computed.

(Of SciFact's 5,183 titles and abstracts there are 114 distinct rows of counts, 2,467 of lengths
and 31,917 pairs of them, for 517,000 postings: codes of 16 bits. Joined texts have 4,528 pairs.)

Where an index has several analyses instead, each counts in a column of its own. A term is of one
analysis, so its row of counts has one number that is not 0, and the lengths of its code are a row
with that of the same analysis alone. Documents have rows with all of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from bm25rag.columns.column import build_column
from bm25rag.common.arrays import Array, Float64, Int64, UInt32, Unsigned, as_index
from bm25rag.common.strings import utf8_each
from bm25rag.kernels.records import Run

# Cells of the largest grid in which values are numbered; beyond it they are sorted.
_LARGEST_GRID = 1 << 22


class TextFields:
    """The distinct rows of a segment's postings and documents.

    ``names`` are the F fields; the first of several analyses has the name "". ``counts`` are how
    often a term occurs in each, for each number that stands for tf, uint32 (K, F), ``lengths`` how
    long each is, for each number that stands for |d|, uint32 (L, F).
    """

    def __init__(self, names: tuple[str, ...], counts: UInt32, lengths: UInt32) -> None:
        self.names = names
        self.counts = counts
        self.lengths = lengths

    @property
    def are_analyses(self) -> bool:
        """Whether columns are of analyses, and not of fields."""
        return not self.names[0]

    def analyses_of(self, tf: UInt32) -> Int64:
        """Return of which analysis postings are, given the numbers they have in place of tf."""
        analyses: Int64 = self.counts.argmax(axis=1)
        return analyses.take(as_index(tf))

    def weigh(
        self, tf: UInt32, lengths: UInt32, weights: Sequence[float]
    ) -> tuple[Float64, Float64]:
        """Return the weighted tf and |d| of pairs of numbers; of analyses, their own."""
        if self.are_analyses:
            weights = [1.0] * len(self.names)
        return _weigh(self.counts, weights).take(as_index(tf)), _weigh(self.lengths, weights).take(
            as_index(lengths)
        )

    def tokens(self, lengths: Unsigned | Int64) -> tuple[int, ...]:
        """Return the sum of the lengths that numbers stand for, by field."""
        return tuple(self.lengths[as_index(lengths)].sum(axis=0, dtype=np.int64).tolist())

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays of a file."""
        names = build_column(utf8_each(self.names))
        return {
            "text_fields.counts": self.counts.ravel(),
            "text_fields.lengths": self.lengths.ravel(),
            **names.arrays("text_fields.names"),
        }

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return self.counts.nbytes + self.lengths.nbytes


def _weigh(rows: UInt32, weights: Sequence[float]) -> Float64:
    """Return the weighted sum of each row, added field by field."""
    total = np.zeros(len(rows))
    for field, weight in enumerate(weights):
        total += weight * rows[:, field].astype(np.float64)
    return total


def number_rows(rows: UInt32, largest_grid: int = _LARGEST_GRID) -> tuple[UInt32, UInt32]:
    """Return the distinct rows, ascending, and the number of each row, both uint32."""
    firsts, numbers = np.zeros(min(len(rows), 1), np.int64), np.zeros(len(rows), np.int64)
    for field in range(rows.shape[1]):
        column = rows[:, field].astype(np.uint64)
        width = np.uint64(int(column.max(initial=0)) + 1)
        keys = numbers.astype(np.uint64) * width + column
        if len(firsts) * int(width) <= largest_grid:
            first_at = np.full(len(firsts) * int(width), -1, np.int64)
            first_at[as_index(keys)] = np.arange(len(keys))
            present = np.flatnonzero(first_at >= 0)
            firsts = first_at[present]
            first_at[present] = np.arange(len(present))
            numbers = first_at.take(as_index(keys))
        else:
            _, firsts, numbers = np.unique(keys, return_index=True, return_inverse=True)
    return rows[firsts], numbers.astype(np.uint32)


def join_rows(tables: Sequence[UInt32]) -> tuple[UInt32, list[UInt32]]:
    """Return the distinct rows of tables, and for each table the new number of each row."""
    joined, numbers = number_rows(np.concatenate(tables))
    edges = accumulate(map(len, tables), initial=0)
    return joined, [numbers[first:last] for first, last in pairwise(edges)]


def join_fields(run: Run, fields: int) -> tuple[Run, UInt32]:
    """Make the postings of documents from those of their fields, which are numbered in turn.

    They have numbers of rows in place of tf; the distinct rows, (K, fields), are returned too.
    """
    documents, columns = np.divmod(run.documents, run.documents.dtype.type(fields))
    is_first = np.ones(len(documents), np.bool_)
    is_first[1:] = documents[1:] != documents[:-1]
    starts = np.cumsum(run.sizes, dtype=np.int64) - run.sizes
    is_first[starts] = True
    rows = np.zeros((int(np.count_nonzero(is_first)), fields), np.uint32)
    tf = run.tf.astype(np.uint32, copy=False)
    rows[np.cumsum(is_first) - 1, as_index(columns)] = tf
    sizes = (
        np.add.reduceat(is_first, as_index(starts), dtype=np.uint32) if len(starts) else run.sizes
    )
    distinct, numbers = number_rows(rows)
    return Run(run.terms, sizes, documents[is_first], numbers, run.first // fields), distinct


def count_analysis(run: Run, analysis: int, analyses: int) -> tuple[Run, UInt32]:
    """Return the postings of one of several analyses, as ``join_fields`` does those of fields."""
    distinct, numbers = number_rows(run.tf.astype(np.uint32)[:, None])
    rows = np.zeros((len(distinct), analyses), np.uint32)
    rows[:, analysis] = distinct[:, 0]
    return run._replace(tf=numbers), rows


def number_lengths(lengths: UInt32) -> tuple[UInt32, UInt32]:
    """Return numbers for the lengths of documents by each of several analyses, (n, A).

    These are the distinct rows, of documents and of codes, and, uint32 (A + 1, n), the row of each
    document, then for each analysis the row of that length alone, 0 where it is 0.
    """
    count, analyses = lengths.shape
    rows = np.zeros((analyses + 1, count, analyses), np.uint32)
    rows[0] = lengths
    is_used = np.ones((analyses + 1, count), np.bool_)
    for analysis in range(analyses):
        rows[analysis + 1, :, analysis] = lengths[:, analysis]
        is_used[analysis + 1] = lengths[:, analysis] > 0
    numbers = np.zeros(is_used.shape, np.uint32)
    distinct, numbers[is_used] = number_rows(rows[is_used])
    return distinct, numbers


def number_runs(runs: list[Run], tables: Sequence[UInt32], fields: int) -> UInt32:
    """Give the rows of all runs the same numbers, in place; return the distinct rows."""
    rows, numbers = join_rows([np.empty((0, fields), np.uint32), *tables])
    for place, of_run in enumerate(numbers[1:]):
        runs[place] = runs[place]._replace(tf=of_run.take(as_index(runs[place].tf)))
    return rows


def join_used(
    tables: Sequence[UInt32], used: Iterable[Iterable[Unsigned]]
) -> tuple[UInt32, list[UInt32]]:
    """Join tables as ``join_rows`` does, without the rows that no number of ``used`` names."""
    places = []
    for rows, numbers_of in zip(tables, used, strict=True):
        is_used = np.zeros(len(rows), np.bool_)
        for numbers in numbers_of:
            is_used[as_index(numbers)] = True
        places.append(np.flatnonzero(is_used))
    joined, new = join_rows([rows[those] for rows, those in zip(tables, places, strict=True)])
    numbers_of_each = []
    for rows, those, numbers in zip(tables, places, new, strict=True):
        of_all = np.zeros(len(rows), np.uint32)
        of_all[those] = numbers
        numbers_of_each.append(of_all)
    return joined, numbers_of_each

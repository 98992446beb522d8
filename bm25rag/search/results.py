"""What a batch search returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np

from bm25rag.common.arrays import Float64, Int64
from bm25rag.documents import Hit
from bm25rag.kernels.records import Matches
from bm25rag.search.finding import Wanted, cut_of, totals_of
from bm25rag.search.query_terms import Terms
from bm25rag.search.snapshot import Snapshot


@dataclass(eq=False)
class BatchResult:
    """The matches of a batch of q queries, in w = min(k, N - offset) columns, or none.

    ``BM25Index.search_batch`` makes it.

    Parameters
    ----------
    rows
        Rows of the documents, int64 (q, w); -1 in unused cells.
    scores
        Their scores, float64 (q, w); -inf in unused cells.
    counts
        How many cells each query uses, int64 (q,).
    corrections
        What was replaced in each query; empty if the search did not correct queries.
    cut
        The numbers of the queries whose ``timeout`` was over, so that matches may be missing.
    """

    rows: Int64
    scores: Float64
    counts: Int64
    corrections: list[dict[str, str]] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    # The state of the index that was searched, the terms of each query by which words are marked,
    # those by which it was searched, and what was wanted.
    _snapshot: Snapshot = field(init=False)
    _terms: Sequence[Terms] = field(init=False)
    _asked: Sequence[Terms] = field(init=False)
    _wanted: Wanted = field(init=False)

    def ids(self) -> list[list[str]]:
        """Return the ids of the matches of each query."""
        # Most of a thousand hits are other queries' too.
        distinct = np.unique(self.rows[self.rows >= 0])
        id_of = dict(zip(distinct.tolist(), self._snapshot.ids_at(distinct), strict=True))
        used = zip(self.rows.tolist(), self.counts.tolist(), strict=True)
        return [[id_of[row] for row in rows[:count]] for rows, count in used]

    def hits(self) -> list[list[Hit]]:
        """Return the matches of each query as fresh hits."""
        snapshot, wanted = self._snapshot, self._wanted
        hits, totals = snapshot.hits, (totals_of(snapshot, one, wanted) for one in self._asked)
        corrections = self.corrections or repeat(None, len(self.counts))
        rows, scores = self.rows.tolist(), self.scores.tolist()
        used = zip(rows, scores, self.counts.tolist(), corrections, strict=True)
        each = zip(used, self._terms, totals, strict=True)
        return [
            hits(row[:n], row_scores[:n], fixed, terms, own)
            for (row, row_scores, n, fixed), terms, own in each
        ]

    def totals(self) -> Int64:
        """Count all matches of each query, those that are not returned too, int64 (q,).

        In a search with ``group``, count groups. Of a phrase all texts are looked at that have its
        words, and of a callable as a filter all matches.
        """
        from bm25rag.search.totals import Totals  # most searches do without

        totals = (Totals(self._snapshot, terms, self._wanted).total for terms in self._asked)
        return np.fromiter(totals, np.int64, len(self.counts))

    def _repr_html_(self) -> str:
        from bm25rag.common.tables import table

        id_at = self._snapshot.id_at
        rows = (
            (query, int(count), ", ".join(map(id_at, row[: min(count, 5)].tolist())))
            for query, (row, count) in enumerate(zip(self.rows, self.counts, strict=True))
        )
        return table(repr(self), ("query", "matches", "first ids"), rows, len(self.counts))

    def __repr__(self) -> str:
        queries, width = self.rows.shape
        return f"BatchResult({queries} queries, up to {width} matches each)"


def batch_result(
    snapshot: Snapshot,
    matches: Matches,
    terms: Sequence[Terms],
    wanted: Wanted,
    corrections: list[dict[str, str]] | None = None,
    asked: Sequence[Terms] | None = None,
) -> BatchResult:
    """Return what was found in a snapshot as users get it.

    ``asked`` are the queries, if their terms are no words: those of vectors.
    """
    result = BatchResult(*matches, [] if corrections is None else corrections, cut_of(terms))
    result._snapshot, result._terms, result._wanted = snapshot, terms, wanted
    result._asked = terms if asked is None else asked
    return result

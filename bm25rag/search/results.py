"""What a batch search returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat

from bm25rag.common.arrays import Float64, Int64
from bm25rag.documents import Hit
from bm25rag.kernels.records import Matches
from bm25rag.search.queries import RestrictedTerms, Terms
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
    # The state of the index that was searched, and the terms of each query.
    _snapshot: Snapshot = field(init=False)
    _terms: Sequence[Terms] = field(init=False)

    def ids(self) -> list[list[str]]:
        """Return the ids of the matches of each query."""
        id_at = self._snapshot.id_at
        used = zip(self.rows.tolist(), self.counts.tolist(), strict=True)
        return [[id_at(row) for row in rows[:count]] for rows, count in used]

    def hits(self) -> list[list[Hit]]:
        """Return the matches of each query as fresh hits."""
        hits = self._snapshot.hits
        corrections = self.corrections or repeat(None, len(self.counts))
        rows, scores = self.rows.tolist(), self.scores.tolist()
        used = zip(rows, scores, self.counts.tolist(), corrections, self._terms, strict=True)
        return [
            hits(row[:n], row_scores[:n], fixed, terms) for row, row_scores, n, fixed, terms in used
        ]

    def __repr__(self) -> str:
        queries, width = self.rows.shape
        return f"BatchResult({queries} queries, up to {width} matches each)"


def batch_result(
    snapshot: Snapshot,
    matches: Matches,
    terms: Sequence[Terms],
    corrections: list[dict[str, str]] | None = None,
) -> BatchResult:
    """Return what was found in a snapshot as users get it."""
    cut = [n for n, one in enumerate(terms) if type(one) is RestrictedTerms and one.cut]
    result = BatchResult(*matches, [] if corrections is None else corrections, cut)
    result._snapshot, result._terms = snapshot, terms
    return result

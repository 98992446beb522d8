"""What a batch search returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from bm25rag.common.arrays import Float64, Int64
from bm25rag.documents import Hit
from bm25rag.search.snapshot import Snapshot


@dataclass(eq=False)
class BatchResult:
    """The matches of a batch of q queries, in w = min(k, N) columns.

    Parameters
    ----------
    rows
        Rows of the documents, int64 (q, w); -1 in unused cells.
    scores
        Their scores, float64 (q, w); -inf in unused cells.
    counts
        How many cells each query uses, int64 (q,).
    snapshot
        The state of the index that was searched.
    corrections
        What was replaced in each query; empty if the search did not correct queries.
    """

    rows: Int64
    scores: Float64
    counts: Int64
    snapshot: Snapshot
    corrections: list[dict[str, str]] = field(default_factory=list)

    def ids(self) -> list[list[str]]:
        """Return the ids of the matches of each query."""
        id_at = self.snapshot.id_at
        used = zip(self.rows.tolist(), self.counts.tolist(), strict=True)
        return [[id_at(row) for row in rows[:count]] for rows, count in used]

    def hits(self) -> list[list[Hit]]:
        """Return the matches of each query as fresh hits."""
        hits = self.snapshot.hits
        used = zip(self.rows.tolist(), self.scores.tolist(), self.counts.tolist(), strict=True)
        found = [hits(rows[:count], scores[:count]) for rows, scores, count in used]
        for query_hits, corrections in zip(found, self.corrections, strict=False):
            for hit in query_hits if corrections else ():
                hit.corrections = dict(corrections)
        return found

    def __repr__(self) -> str:
        queries, width = self.rows.shape
        return f"BatchResult({queries} queries, up to {width} matches each)"

"""What a search of a served index returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from bm25rag.common.arrays import Float64, Int64
from bm25rag.documents import Hit

__all__ = ["RayBatch"]


@dataclass(eq=False)
class RayBatch:
    """The matches of a batch of q queries, as in ``BatchResult``, in w columns.

    Parameters
    ----------
    rows
        Rows of the documents, int64 (q, w); -1 in unused cells.
    scores
        Their scores, float64 (q, w); -inf in unused cells.
    counts
        How many cells each query uses, int64 (q,).
    commit
        The commit of the index that all of it is from.
    missing
        The number of each shard that is not in it, with the reason; empty without ``partial``.
    cut
        As in ``BatchResult``, of any shard.
    """

    rows: Int64
    scores: Float64
    counts: Int64
    commit: int
    missing: dict[int, str]
    cut: list[int]
    _items: Sequence[list[Hit]] | Sequence[list[str]]

    def ids(self) -> list[list[str]]:
        """Return the ids of the matches of each query."""
        return [[one if isinstance(one, str) else one.id for one in row] for row in self._items]

    def hits(self) -> list[list[Hit]]:
        """Return the matches of each query.

        Raises
        ------
        ValueError
            If the batch was asked for with ``contents=False``.
        """
        if any(isinstance(row[0], str) for row in self._items if row):
            raise ValueError("the batch has ids only: search with contents=True for hits")
        return cast("list[list[Hit]]", list(self._items))

    def __repr__(self) -> str:
        queries, width = self.rows.shape
        return f"RayBatch({queries} queries, up to {width} matches each)"

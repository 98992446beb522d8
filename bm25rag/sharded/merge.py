"""The answers of shards merged into that of the index."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple

import numpy as np

from bm25rag.common.arrays import Float64, Int64
from bm25rag.common.checks import check_count
from bm25rag.documents import Hit


class Ranking(NamedTuple):
    """Rows, scores and counts as in ``BatchResult``: int64 and float64 (q, w), int64 (q,)."""

    rows: Int64
    scores: Float64
    counts: Int64


def merge_hits(found: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """Return the best k hits of all shards, as a search of the whole index would.

    Parameters
    ----------
    found
        The best k hits of each shard, the shards in order.
    k
        How many at most, >= 0.
    """
    # Of equal scores, ``merge`` takes those of the earlier shard first, which is document order.
    return list(islice(merge(*found, key=lambda hit: -hit.score), check_count("k", k)))


def merge_rankings(found: Sequence[Ranking], first_rows: Sequence[int], k: int) -> Ranking:
    """Return the best k matches of each query in all shards, by their rows in the whole index.

    Parameters
    ----------
    found
        The best k matches in each shard, the shards in order.
    first_rows
        The row of each shard's first document.
    k
        How many at most, >= 0.
    """
    width = min(check_count("k", k), sum(one.rows.shape[1] for one in found))
    rows = np.concatenate(
        [
            np.where(one.rows < 0, -1, one.rows + first)
            for one, first in zip(found, first_rows, strict=True)
        ],
        axis=1,
    )
    scores = np.concatenate([one.scores for one in found], axis=1)
    # Rows of a shard are in order of their scores, so a stable sort keeps document order.
    order = np.argsort(-scores, axis=1, kind="stable")[:, :width]
    counts = np.minimum(sum(one.counts for one in found), width)
    rows, scores = np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)
    return Ranking(rows, scores, counts)

"""Search with a filter: a mask for what can be looked up; matches are asked about the rest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from bm25rag.search import ranking
from bm25rag.search.queries import Terms
from bm25rag.search.results import BatchResult
from bm25rag.search.snapshot import Snapshot

if TYPE_CHECKING:
    from bm25rag.filters import Filter

# How many times more matches are looked at if too few of those before have passed.
_GROWTH = 4
# The most matches that are held at once when there are many queries.
_CELLS = 1 << 22


def search_filtered(
    snapshot: Snapshot,
    queries: Sequence[Terms],
    k: int,
    filter: Filter | None,
    min_score: float | None,
    offset: int,
    threads: int | None,
) -> BatchResult:
    """Find the best k matches of each query that pass a filter, after the first ``offset``.

    Callables are asked about the matches that pass the rest of the filter, best first, until k
    have passed. They are asked once about each document, however many queries match it.

    Parameters
    ----------
    snapshot
        Where to search.
    queries
        The terms of each query, or their weights.
    k
        How many matches at most, >= 0.
    filter
        The filter that matches must pass; ``None``: no filter.
    min_score
        The least score returned; ``None``: any.
    offset
        How many of the best matches are left out, >= 0.
    threads
        How many to use at most; ``None``: as many as there are cores for this process.
    """
    if offset:
        most = k + offset if k else 0
        best = search_filtered(snapshot, queries, most, filter, min_score, 0, threads)
        rows, scores = best.rows[:, offset:].copy(), best.scores[:, offset:].copy()
        return BatchResult._of(snapshot, rows, scores, np.maximum(best.counts - offset, 0))
    known, asked = _split(filter)
    masks = snapshot.masks(known)
    if asked is None or not k:
        return ranking.search(snapshot, queries, k, masks, min_score, threads)
    answers = _Answers(snapshot, asked)
    shape = (len(queries), min(k, snapshot.count))
    result = BatchResult._of(
        snapshot,
        np.full(shape, -1, np.int64),
        np.full(shape, -np.inf),
        np.zeros(len(queries), np.int64),
    )
    pending, width = list(range(len(queries))), k
    while pending:
        unfinished: list[int] = []
        step = max(1, _CELLS // width)
        for first in range(0, len(pending), step):
            numbers = pending[first : first + step]
            asked_now = [queries[number] for number in numbers]
            found = ranking.search(snapshot, asked_now, width, masks, min_score, threads)
            for found_row, number in enumerate(numbers):
                if not _fill(result, number, found, found_row, answers):
                    unfinished.append(number)
        pending, width = unfinished, min(_GROWTH * width, max(snapshot.count, 1))
    return result


def search_one(
    snapshot: Snapshot,
    terms: Terms,
    k: int,
    filter: Filter | None,
    min_score: float | None,
    offset: int,
) -> tuple[list[int], list[float]]:
    """Find the best k matches of one query that pass a filter, as ``search_filtered`` does.

    Parameters
    ----------
    snapshot, k, filter, min_score, offset
        As for ``search_filtered``.
    terms
        The terms of the query, or their weights.

    Returns
    -------
    rows
        The rows of the matches, by score descending, then ascending.
    scores
        Their scores.
    """
    if offset:
        most = k + offset if k else 0
        rows, scores = search_one(snapshot, terms, most, filter, min_score, 0)
        return rows[offset:], scores[offset:]
    known, asked = _split(filter)
    if asked is None:
        return ranking.search_one(snapshot, terms, k, snapshot.masks(known), min_score)
    result = search_filtered(snapshot, [terms], k, filter, min_score, 0, 1)
    count = int(result.counts[0])
    return result.rows[0, :count].tolist(), result.scores[0, :count].tolist()


def _split(filter: Filter | None) -> tuple[Filter | None, Filter | None]:
    if filter is None:
        return None, None
    from bm25rag.filters import split  # as in ``Snapshot.masks``

    return split(filter)


class _Answers(dict[int, bool]):
    """Maps a row to whether its document passes a filter, which is asked once."""

    def __init__(self, snapshot: Snapshot, filter: Filter) -> None:
        self._snapshot, self._filter = snapshot, filter

    def __missing__(self, row: int) -> bool:
        self[row] = self._snapshot.passes(*self._snapshot.locate(row), self._filter)
        return self[row]


def _fill(
    result: BatchResult, number: int, found: BatchResult, found_row: int, answers: _Answers
) -> bool:
    """Copy the matches of a query that pass; return whether these are all that is needed."""
    count, width = int(found.counts[found_row]), result.rows.shape[1]
    rows = found.rows[found_row, :count].tolist()
    passing = list(islice((cell for cell, row in enumerate(rows) if answers[row]), width))
    result.rows[number, : len(passing)] = found.rows[found_row, passing]
    result.scores[number, : len(passing)] = found.scores[found_row, passing]
    result.counts[number] = len(passing)
    found_all = count < found.rows.shape[1] or count == found._snapshot.count
    return found_all or len(passing) == width

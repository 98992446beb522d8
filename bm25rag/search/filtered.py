"""Searching under a filter: what can be looked up is a mask, the rest is asked of matches only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from bm25rag.filters import Filter, split
from bm25rag.search.queries import Terms
from bm25rag.search.ranking import search
from bm25rag.search.results import BatchResult
from bm25rag.search.snapshot import Snapshot

# By how much more matches are looked at when too few of those before passed.
_GROWTH = 4
# Matches that are held at once, at most, where queries are many.
_CELLS = 1 << 22


def search_filtered(
    snapshot: Snapshot,
    queries: Sequence[Terms],
    k: int,
    filter: Filter | None,
    min_score: float | None,
    threads: int | None,
) -> BatchResult:
    """Find the best k matches of each query that pass a filter.

    Callables are asked about matches that pass the rest of the filter, best first, until k
    have passed; about each document once, however many queries match it.

    Parameters
    ----------
    snapshot
        Where to search.
    queries
        The terms of each query, or their weights.
    k
        How many matches at most, >= 0.
    filter
        What the matches must pass; ``None``: nothing.
    min_score
        The least score returned; ``None``: any.
    threads
        How many to use at most; ``None``: as many as there are cores for this process.
    """
    known, asked = split(filter)
    masks = snapshot.masks(known)
    if asked is None or not k:
        return search(snapshot, queries, k, masks, min_score, threads)
    answers = _Answers(snapshot, asked)
    shape = (len(queries), min(k, snapshot.count))
    result = BatchResult(
        np.full(shape, -1, np.int64),
        np.full(shape, -np.inf),
        np.zeros(len(queries), np.int64),
        snapshot,
    )
    left, width = list(range(len(queries))), k
    while left:
        wanting: list[int] = []
        step = max(1, _CELLS // width)
        for first in range(0, len(left), step):
            numbers = left[first : first + step]
            some = [queries[number] for number in numbers]
            found = search(snapshot, some, width, masks, min_score, threads)
            for place, number in enumerate(numbers):
                if not _fill(result, number, found, place, answers):
                    wanting.append(number)
        left, width = wanting, min(_GROWTH * width, max(snapshot.count, 1))
    return result


class _Answers(dict[int, bool]):
    """Maps a row to what a filter says of its document; asked once."""

    def __init__(self, snapshot: Snapshot, filter: Filter) -> None:
        self._snapshot, self._filter = snapshot, filter

    def __missing__(self, row: int) -> bool:
        self[row] = self._snapshot.passes(*self._snapshot.locate(row), self._filter)
        return self[row]


def _fill(
    result: BatchResult, number: int, found: BatchResult, place: int, answers: _Answers
) -> bool:
    """Take the matches of a query that pass; return whether no others need be looked at."""
    count, width = int(found.counts[place]), result.rows.shape[1]
    rows = found.rows[place, :count].tolist()
    passing = list(islice((cell for cell, row in enumerate(rows) if answers[row]), width))
    result.rows[number, : len(passing)] = found.rows[place, passing]
    result.scores[number, : len(passing)] = found.scores[place, passing]
    result.counts[number] = len(passing)
    every = count < found.rows.shape[1] or count == found.snapshot.count
    return every or len(passing) == width

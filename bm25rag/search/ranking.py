"""The search itself: from analysed queries to the rows and scores of their best k matches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from bm25rag.common.arrays import Float64, Int64
from bm25rag.common.threads import share
from bm25rag.kernels import backend
from bm25rag.kernels.records import Allowed, Matches, SearchPlan
from bm25rag.search.plain_terms import Terms
from bm25rag.search.query_terms import resolve_queries
from bm25rag.search.snapshot import Snapshot, by_row

Masks: TypeAlias = Sequence[Allowed | None]
"""Which documents of each segment may be returned; ``None``: all."""

# With fewer queries for each thread, another thread costs more than it saves.
_QUERIES_PER_THREAD = 32
_BLOCKS_PER_THREAD = 16
# Documents that the compiled kernel walks at a time: 128 KiB of float64 sums, which the
# second-level cache of any processor holds.
WINDOW = 16384

# With at most this many documents for each posting, and all documents in one window, the kernel
# looks at the sums of all documents, instead of those that can be among the best alone.
SPARSE = 4
# With this many postings for each term and each document wanted, the kernel adds up 16 bits a
# posting, and then scores the few documents that can be among the best. Measured at 20,000 to a
# million passages: k = 10 takes an eighth to a fifth less, k = 100 and 1000 up to a tenth less.
# With 40, both took a twentieth more than with 100 where they gain little.
COARSE = 80
# If so many times fewer documents may be returned than there are, the kernel looks at these first.
# Measured at 150,000 and a million passages: of 1 %, k = 10 and 100 then take a sixth to a half of
# the time, of 10 % half to all of it; from 12 % on, k = 10 takes longer.
FILTERED_FIRST = 10

# Searches without a filter whose plans are kept, by their k.
_MOST_PLANS = 64
# How many times more matches are found where those before were too few.
_GROWTH = 4


class Ranked(NamedTuple):
    """Matches, best first: rows int64, scores float64; and whether there are no others."""

    rows: Int64
    scores: Float64
    complete: bool


def rank(
    snapshot: Snapshot,
    queries: Sequence[Terms],
    k: int,
    masks: Masks,
    min_score: float | None,
    threads: int,
) -> Matches:
    """Find the best k matches of each query, of its terms or their weights.

    ``masks`` say which documents of each segment may be returned, ``threads`` how many there are
    at most.
    """
    width = min(k, snapshot.count)
    shape = (len(queries), width)
    counts = np.zeros(len(queries), np.int64)
    result = Matches(np.empty(shape, np.int64), np.empty(shape), counts)
    if not width or not queries:
        return result
    cache, resolved = resolve_queries(snapshot, queries)
    arrays = snapshot.arrays, cache.arrays, snapshot.rows
    floor, plans = _floor(min_score), _plans(snapshot, width, masks)
    hot = backend.current()

    def fill(first: int, last: int) -> None:
        part = slice(first, last)
        matches = Matches(result.rows[part], result.scores[part], result.counts[part])
        hot.search(*arrays, resolved.between(first, last), floor, plans, matches)

    workers = min(threads, len(queries) // _QUERIES_PER_THREAD)
    if workers < 2:
        fill(0, len(queries))
        return result
    # Several blocks for each thread, since some take longer than others.
    blocks = min(_BLOCKS_PER_THREAD * workers, len(queries) // _QUERIES_PER_THREAD)
    edges = [len(queries) * block // blocks for block in range(blocks + 1)]
    share(pairwise(edges), lambda span: fill(*span), workers)
    return result


def rank_one(
    snapshot: Snapshot, terms: Terms, k: int, masks: Masks, min_score: float | None
) -> tuple[list[int], list[float]]:
    """Find the best k matches of one query: ``rank`` without arrays, in half the time.

    It returns rows, by score descending, then ascending, and scores.
    """
    width = min(k, snapshot.count)
    if not width:
        return [], []
    cache, numbers = snapshot.term_numbers(terms)
    weights = list(terms.values()) if isinstance(terms, dict) else []
    plans = _plans(snapshot, width, masks)
    floor = -math.inf if min_score is None else _floor(min_score)
    return backend.current().search_one(
        snapshot.arrays, cache.arrays, snapshot.rows, numbers, weights, floor, plans, width
    )


def best_first(
    snapshot: Snapshot, terms: Terms, masks: Masks, min_score: float | None, width: int
) -> Iterator[tuple[int, float]]:
    """Yield rows and scores of all matches of one query; so many are found at first."""
    seen = 0
    while True:
        rows, scores = rank_one(snapshot, terms, width, masks, min_score)
        yield from islice(zip(rows, scores, strict=True), seen, None)
        if len(rows) < width or width >= snapshot.count:
            return
        seen, width = width, _GROWTH * width


def _floor(min_score: float | None) -> float:
    """Return what scores must exceed."""
    return -math.inf if min_score is None else math.nextafter(min_score, -math.inf)


def _plans(snapshot: Snapshot, k: int, masks: Masks) -> Sequence[SearchPlan | None]:
    """Return how to search each segment; ``None`` where no document may be returned.

    Without a filter they are the same each time: the kernels prepare each once.
    """
    if masks is not snapshot.living:
        return _new_plans(snapshot, k, masks)
    key = k, WINDOW, SPARSE, COARSE, FILTERED_FIRST
    plans = snapshot.plans.get(key)
    if plans is None:
        if len(snapshot.plans) == _MOST_PLANS:
            snapshot.plans.clear()
        plans = snapshot.plans[key] = _new_plans(snapshot, k, masks)
    return plans


def _new_plans(snapshot: Snapshot, k: int, masks: Masks) -> list[SearchPlan | None]:
    return [
        SearchPlan(min(k, segment.size), mask, WINDOW, SPARSE, COARSE, FILTERED_FIRST)
        if mask is None or mask.count
        else None
        for segment, mask in zip(snapshot.arrays, masks, strict=True)
    ]


def score_all(snapshot: Snapshot, terms: Terms) -> Float64:
    """Score every living document for one query, (N,), shift included."""
    from bm25rag.kernels.numpy_twin import distinct, shift_of, sum_parts  # searches do without

    cache, queries = resolve_queries(snapshot, [terms])
    numbers, counts = distinct(queries.terms.tolist(), queries.weights.tolist())
    idf = cache.idf[numbers]
    sums = []
    for segment, starts in zip(snapshot.arrays, cache.starts, strict=True):
        scores, _ = sum_parts(segment, starts[numbers], idf, counts)
        sums.append(scores)
    return by_row(sums, snapshot) + shift_of(idf, snapshot.absent_weight, counts)

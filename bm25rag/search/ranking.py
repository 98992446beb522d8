"""The search itself: from analysed queries to the rows and scores of their best k matches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from bm25rag.common.arrays import Float64, Int64
from bm25rag.common.threads import share
from bm25rag.kernels import backend
from bm25rag.kernels.boundary import Backend
from bm25rag.kernels.records import Allowed, Matches, Queries, SearchPlan
from bm25rag.search.plain_terms import Terms
from bm25rag.search.query_terms import resolve_queries
from bm25rag.search.snapshot import Snapshot, by_row

if TYPE_CHECKING:
    from bm25rag.search.term_numbers import TermCache

Masks: TypeAlias = Sequence[Allowed | None]
"""Which documents of each segment may be returned; ``None``: all."""

# With fewer queries for each thread, another thread costs more than it saves.
_QUERIES_PER_THREAD = 32
_BLOCKS_PER_THREAD = 16
# Documents that the compiled kernel walks at a time: 128 KiB of float64 sums, which the
# second-level cache of any processor holds.
WINDOW = 16384

# If the frequent terms of a query have this many postings, at least and for each document wanted,
# and its sums are not coarse, the kernel tries to look documents up in them instead of walking
# them. Measured at 150,000 and 1 M passages: with fewer postings that costs as much as it saves;
# with stop words kept, k = 10 takes a half to a third of the time.
HEAVY = 1 << 16
_HEAVY_BY_K = 1 << 10
# With at most this many documents for each posting, and all documents in one window, the kernel
# looks at the sums of all documents, instead of those that can be among the best alone.
SPARSE = 4
# With this many postings for each term and each document wanted, the kernel adds up 16 bits a
# posting, and then scores the few documents that can be among the best. Measured at 20,000 to a
# million passages: k = 10 takes an eighth to a fifth less, k = 100 and 1000 up to a tenth less.
# With 40, both took a twentieth more than with 100 where they gain little.
COARSE = 80
# If so many times fewer documents may be returned than there are, the kernel looks at these first.
# Measured at 5,000 to a million passages: of 1 %, k = 10 and 100 then take a quarter to three
# quarters of the time; from 4 to 7 % on, k = 10 takes longer.
FILTERED_FIRST = 20


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
    if len(snapshot.views) > 1 or masks[0] is not None:  # segments may be skipped
        result.numbers.fill(-1)
        result.scores.fill(-np.inf)
    resolved = resolve_queries(snapshot, queries)
    floor = _floor(min_score)
    hot = backend.current()

    def fill(first: int, last: int) -> None:
        part, floors = slice(first, last), np.empty(last - first)
        floors.fill(floor)
        queries = resolved.queries.between(first, last)
        rows, scores, counts = result.numbers[part], result.scores[part], result.counts[part]
        batch = QueryBatch(snapshot, resolved.cache, queries, floors, rows, scores, counts)
        for segment, mask in enumerate(masks):
            if mask is None or mask.count:
                _search_segment(batch, segment, mask, hot)

    workers = min(threads, len(queries) // _QUERIES_PER_THREAD)
    if workers < 2:
        fill(0, len(queries))
        return result
    # Several blocks for each thread, since some take longer than others.
    blocks = min(_BLOCKS_PER_THREAD * workers, len(queries) // _QUERIES_PER_THREAD)
    edges = [len(queries) * block // blocks for block in range(blocks + 1)]
    share(pairwise(edges), lambda span: fill(*span), workers)
    return result


class QueryBatch(NamedTuple):
    """The consecutive queries that one thread answers, segment by segment."""

    snapshot: Snapshot
    cache: TermCache
    queries: Queries
    floors: Float64
    rows: Int64
    scores: Float64
    counts: Int64

    def merge(self, rows: Int64, scores: Float64, counts: Int64) -> None:
        """Merge the matches in a later segment; equal scores keep the order of the segments."""
        width = self.rows.shape[1]
        rows = np.concatenate((self.rows, rows), axis=1)
        scores = np.concatenate((self.scores, scores), axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :width]
        order += rows.shape[1] * np.arange(len(rows))[:, None]
        self.rows[:], self.scores[:] = rows.take(order), scores.take(order)
        self.counts[:] = np.minimum(self.counts + counts, width)


def _search_segment(batch: QueryBatch, index: int, mask: Allowed | None, hot: Backend) -> None:
    """Search the segment at ``index``, and merge its matches into those of the batch."""
    snapshot = batch.snapshot
    view, segment, base = snapshot.views[index], snapshot.arrays[index], snapshot.bases[index]
    width = batch.rows.shape[1]
    direct = index == 0 and width <= segment.size  # the matches of the first need no merging
    if direct:
        rows, scores, counts = batch.rows, batch.scores, batch.counts
    else:
        shape = (len(batch.rows), min(width, segment.size))
        rows, scores = np.empty(shape, np.int64), np.empty(shape)
        counts = np.empty(shape[0], np.int64)
    plan, matches = _plan(rows.shape[1], mask), Matches(rows, scores, counts)
    terms = batch.cache.arrays[index]
    hot.search(segment, terms, batch.queries, batch.floors, plan, matches)
    if not direct and not counts.any():
        return  # no match of a small segment beats those found before
    if base or not view.is_whole:
        used = rows >= 0
        rows[used] = view.ranks(rows[used]) + base
    if not direct:
        batch.merge(rows, scores, counts)
    if index + 1 < len(snapshot.views):
        # From now on, a match must beat the last one of a full row.
        np.maximum(batch.floors, batch.scores[:, -1], out=batch.floors)


def rank_one(
    snapshot: Snapshot, terms: Terms, k: int, masks: Masks, min_score: float | None
) -> tuple[list[int], list[float]]:
    """Find the best k matches of one query: ``rank`` without arrays, in half the time.

    It returns rows, by score descending, then ascending, and scores.
    """
    rows: list[int] = []
    scores: list[float] = []
    width = min(k, snapshot.count)
    if not width:
        return rows, scores
    cache, numbers = snapshot.term_numbers(terms)
    weights = list(terms.values()) if isinstance(terms, dict) else []
    floor = -math.inf if min_score is None else _floor(min_score)
    hot = backend.current()
    if snapshot.is_plain and masks[0] is None:  # as in most searches
        plan = _unmasked_plan(width, WINDOW, HEAVY, SPARSE, COARSE, FILTERED_FIRST)
        return hot.search_one(snapshot.arrays[0], cache.arrays[0], numbers, weights, floor, plan)
    for index, mask in enumerate(masks):
        if mask is not None and not mask.count:
            continue
        view, segment, base = snapshot.views[index], snapshot.arrays[index], snapshot.bases[index]
        plan = _plan(min(width, segment.size), mask)
        new_rows, new_scores = hot.search_one(
            segment, cache.arrays[index], numbers, weights, floor, plan
        )
        if new_rows and (base or not view.is_whole):
            new_rows = (view.ranks(np.array(new_rows)) + base).tolist()
        if rows and new_rows:  # equal scores keep the order of the segments
            new_rows, new_scores = rows + new_rows, scores + new_scores
            order = sorted(range(len(new_scores)), key=new_scores.__getitem__, reverse=True)[:width]
            new_rows, new_scores = (
                [new_rows[cell] for cell in order],
                [new_scores[cell] for cell in order],
            )
        if new_rows:
            rows, scores = new_rows, new_scores
        if len(scores) == width:  # from now on, a match must beat the last one
            floor = max(floor, scores[-1])
    return rows, scores


def _floor(min_score: float | None) -> float:
    """Return what scores must exceed."""
    return -math.inf if min_score is None else math.nextafter(min_score, -math.inf)


def _plan(k: int, mask: Allowed | None) -> SearchPlan:
    """Choose when to look terms up."""
    settings = WINDOW, HEAVY, SPARSE, COARSE, FILTERED_FIRST
    return _unmasked_plan(k, *settings) if mask is None else _new_plan(k, mask, *settings)


@lru_cache(maxsize=64)
def _unmasked_plan(
    k: int, window: int, heavy: int, sparse: int, coarse: int, filtered_first: int
) -> SearchPlan:
    """Return the same plan for the same settings: the kernels prepare each once."""
    return _new_plan(k, None, window, heavy, sparse, coarse, filtered_first)


def _new_plan(k: int, mask: Allowed | None, window: int, heavy: int, *settings: int) -> SearchPlan:
    return SearchPlan(k, mask, window, max(heavy, k * _HEAVY_BY_K), *settings)


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

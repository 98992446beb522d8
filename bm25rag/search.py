"""From analysed queries to the rows and scores of the best k matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise, repeat
from typing import NamedTuple

import numpy as np

from bm25rag._types import Bool, Float64, Int64
from bm25rag.documents import Hit
from bm25rag.kernels import backend
from bm25rag.kernels.boundary import Backend, Limits, Matches, Queries
from bm25rag.kernels.numpy_twin import distinct, shift_of, sum_parts
from bm25rag.lexicon import Lexicon
from bm25rag.queries import Terms
from bm25rag.snapshot import Snapshot, by_row

# Queries below which a second thread costs more than it brings.
_QUERIES_PER_THREAD = 32
_BLOCKS_PER_THREAD = 16
# Documents that the compiled kernel walks at a time, at least: 64 KiB of float64 sums.
WINDOW = 8192
_WINDOW_BY_K = 256

# Postings of frequent terms in a query from which the kernel tries to look them up instead, at
# least and for each document wanted. Measured at 150,000 and 1 M passages: below, it costs as
# much as it saves; with stop words kept, k = 10 takes a half to a third of the time.
HEAVY = 1 << 16
_HEAVY_BY_K = 1 << 10
# Documents for each posting from which the kernel lists what postings touch: queries of one
# term take two thirds of the time then, k = 10 at a million passages nine tenths.
SPARSE = 10

_ALL = np.empty(0, np.bool_)
_UNWEIGHTED = np.empty(0)


class Batch(NamedTuple):
    """The queries of a batch, and the lexicon in which their terms are numbered."""

    lexicon: Lexicon
    queries: Queries


@dataclass(eq=False)
class BatchResult:
    """The matches of a batch of q queries, w = min(k, N) columns.

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
        What was replaced in each query; empty if nothing was to be corrected.
    """

    rows: Int64
    scores: Float64
    counts: Int64
    snapshot: Snapshot
    corrections: list[dict[str, str]] = field(default_factory=list)

    def ids(self) -> list[list[str]]:
        """Return the ids of the matches of each query."""
        name = self.snapshot.id_at
        used = zip(self.rows.tolist(), self.counts.tolist(), strict=True)
        return [[name(row) for row in rows[:count]] for rows, count in used]

    def hits(self) -> list[list[Hit]]:
        """Return the matches of each query as fresh hits."""
        hits = self.snapshot.hits
        used = zip(self.rows.tolist(), self.scores.tolist(), self.counts.tolist(), strict=True)
        found = [hits(rows[:count], scores[:count]) for rows, scores, count in used]
        for own, corrections in zip(found, self.corrections, strict=False):
            for hit in own if corrections else ():
                hit.corrections = dict(corrections)
        return found

    def __repr__(self) -> str:
        queries, width = self.rows.shape
        return f"BatchResult({queries} queries, up to {width} matches each)"


def resolve(snapshot: Snapshot, queries: Sequence[Terms]) -> Batch:
    """Look the terms of queries up.

    Parameters
    ----------
    snapshot
        Where to search.
    queries
        The terms of each query, or their weights.
    """
    lexicon, terms = snapshot.number(list(chain.from_iterable(queries)))
    ends = accumulate(map(len, queries), initial=0)
    pointers = np.fromiter(ends, np.int64, len(queries) + 1)
    return Batch(lexicon, Queries(pointers, terms, _weights(queries)))


def _weights(queries: Sequence[Terms]) -> Float64:
    """Return the weight of every term of every query; nothing if they all count once."""
    if dict not in set(map(type, queries)):
        return _UNWEIGHTED
    each = (one.values() if isinstance(one, dict) else repeat(1.0, len(one)) for one in queries)
    return np.fromiter(chain.from_iterable(each), np.float64)


def search(
    snapshot: Snapshot,
    queries: Sequence[Terms],
    k: int,
    masks: Sequence[Bool | None],
    min_score: float | None,
    threads: int | None,
) -> BatchResult:
    """Find the best k matches of each query.

    Parameters
    ----------
    snapshot
        Where to search.
    queries
        The terms of each query, or their weights.
    k
        How many matches at most, >= 0.
    masks
        Which documents of each part may be returned; ``None``: all.
    min_score
        The least score returned; ``None``: any.
    threads
        How many to use at most; ``None``: as many as there are cores for this process.
    """
    width = min(k, snapshot.count)
    shape = (len(queries), width)
    counts = np.zeros(len(queries), np.int64)
    result = BatchResult(np.empty(shape, np.int64), np.empty(shape), counts, snapshot)
    if not width or not queries:
        return result
    if len(snapshot.parts) > 1 or masks[0] is not None:  # parts may be passed over
        result.rows.fill(-1)
        result.scores.fill(-np.inf)
    batch = resolve(snapshot, queries)
    floor = -np.inf if min_score is None else float(np.nextafter(min_score, -np.inf))
    hot = backend.current()

    def fill(first: int, last: int) -> None:
        block = _Block(result, batch, first, last, floor)
        for place, mask in enumerate(masks):
            if mask is None or mask.any():
                _search_part(block, place, mask, hot)

    most = backend.cores() if threads is None else threads
    workers = min(most, len(queries) // _QUERIES_PER_THREAD)
    if workers < 2:
        fill(0, len(queries))
        return result
    from concurrent.futures import ThreadPoolExecutor  # with logging: a sixth of our import

    # Several blocks for each thread, since some take longer than others. The calling thread
    # takes its share: the first of the others needs a millisecond to begin.
    blocks = min(_BLOCKS_PER_THREAD * workers, len(queries) // _QUERIES_PER_THREAD)
    edges = [len(queries) * block // blocks for block in range(blocks + 1)]
    spans = iter(list(pairwise(edges)))

    def work() -> None:
        for span in spans:
            fill(*span)

    with ThreadPoolExecutor(workers - 1) as pool:
        others = [pool.submit(work) for _ in range(workers - 1)]
        try:
            work()
        finally:
            list(spans)  # after Ctrl-C, nothing is left for the others
        for other in others:
            other.result()
    return result


class _Block:
    """The consecutive queries that one thread answers, part after part."""

    def __init__(
        self, result: BatchResult, batch: Batch, first: int, last: int, floor: float
    ) -> None:
        self.snapshot, self.lexicon = result.snapshot, batch.lexicon
        self.queries = batch.queries.between(first, last)
        self.rows, self.scores = result.rows[first:last], result.scores[first:last]
        self.counts = result.counts[first:last]
        self.floors = np.empty(last - first)
        self.floors.fill(floor)

    def take(self, rows: Int64, scores: Float64, counts: Int64) -> None:
        """Take the matches in a later part; of equal scores the earlier stay first."""
        width = self.rows.shape[1]
        rows = np.concatenate((self.rows, rows), axis=1)
        scores = np.concatenate((self.scores, scores), axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :width]
        each = np.arange(len(rows))[:, None]
        self.rows[:], self.scores[:] = rows[each, order], scores[each, order]
        self.counts[:] = np.minimum(self.counts + counts, width)


def _search_part(block: _Block, place: int, mask: Bool | None, hot: Backend) -> None:
    snapshot, segment = block.snapshot, block.snapshot.arrays[place]
    part = snapshot.parts[place]
    size, width = segment.size, block.rows.shape[1]
    direct = place == 0 and width <= size  # the matches of the first part need no merging
    if direct:
        rows, scores, counts = block.rows, block.scores, block.counts
    else:
        shape = (len(block.rows), min(width, size))
        rows, scores = np.empty(shape, np.int64), np.empty(shape)
        counts = np.empty(shape[0], np.int64)
    k = rows.shape[1]
    heavy = max(HEAVY, k * _HEAVY_BY_K)
    allowed = _ALL if mask is None else mask
    limits = Limits(k, block.floors, allowed, _window(k), heavy, SPARSE)
    matches = Matches(rows, scores, counts)
    hot.search(segment, block.lexicon.arrays[place], block.queries, limits, matches)
    if not direct and not counts.any():
        return  # no match of a small part beats those found before
    if len(part.dead) or snapshot.bases[place]:
        used = rows >= 0
        rows[used] = part.ranks(rows[used]) + snapshot.bases[place]
    if not direct:
        block.take(rows, scores, counts)
    if place + 1 < len(snapshot.parts):
        # From now on only what beats the last of a full row can still come in.
        np.maximum(block.floors, block.scores[:, -1], out=block.floors)


def _window(k: int) -> int:
    """Choose how many documents to walk at a time.

    As few as keep the sums in the first-level cache, but so many that among them are
    several times k: the k-th best of the first window is what the later ones must exceed.
    """
    return WINDOW << max(0, (k * _WINDOW_BY_K // WINDOW).bit_length())


def score_all(snapshot: Snapshot, terms: Terms) -> Float64:
    """Score every living document for one query, (N,), shift included.

    Parameters
    ----------
    snapshot
        Where to search.
    terms
        The terms of the query, or their weights.
    """
    lexicon, queries = resolve(snapshot, [terms])
    numbers, counts = distinct(queries.terms, queries.weights)
    idf = lexicon.idf[numbers]
    sums = []
    for segment, starts in zip(snapshot.arrays, lexicon.starts, strict=True):
        scores, _ = sum_parts(segment, starts[numbers], idf, counts)
        sums.append(scores)
    return by_row(sums, snapshot) + shift_of(idf, snapshot.absent_weight, counts)

"""From analysed queries to the rows and scores of the best k matches."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bm25rag._types import Bool, Float32, Float64, Int64
from bm25rag.backend import kernels
from bm25rag.documents import Hit
from bm25rag.snapshot import Snapshot, by_row

# Queries below which a second thread costs more than it brings.
_QUERIES_PER_THREAD = 32


class Query(NamedTuple):
    """A query in a snapshot: its terms with df >= 1, in order of first occurrence.

    ``starts`` and ``stops`` are (parts, t), ``idf`` and ``counts`` (t,).
    """

    starts: Int64
    stops: Int64
    idf: Float32
    counts: Int64
    shift: float


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
    """

    rows: Int64
    scores: Float64
    counts: Int64
    snapshot: Snapshot

    def ids(self) -> list[list[str]]:
        """Return the ids of the matches of each query."""
        name = self.snapshot.id_at
        used = zip(self.rows.tolist(), self.counts.tolist(), strict=True)
        return [[name(row) for row in rows[:count]] for rows, count in used]

    def hits(self) -> list[list[Hit]]:
        """Return the matches of each query as fresh hits."""
        hit = self.snapshot.hit
        used = zip(self.rows.tolist(), self.scores.tolist(), self.counts.tolist(), strict=True)
        return [
            [hit(row, score) for row, score in zip(rows[:count], scores[:count], strict=True)]
            for rows, scores, count in used
        ]

    def __repr__(self) -> str:
        queries, width = self.rows.shape
        return f"BatchResult({queries} queries, up to {width} matches each)"


def plan(snapshot: Snapshot, terms: Sequence[str]) -> Query:
    """Resolve the terms of a query."""
    counted = Counter(terms)
    found = [(term, count) for name, count in counted.items() if (term := snapshot.term(name))]
    bounds = np.array([term.bounds for term, _ in found], np.int64)
    bounds = bounds.reshape(len(found), len(snapshot.parts), 2)
    idf = np.array([term.idf for term, _ in found], np.float32)
    counts = np.array([count for _, count in found], np.int64)
    return Query(bounds[:, :, 0].T, bounds[:, :, 1].T, idf, counts, _shift(snapshot, idf, counts))


def _shift(snapshot: Snapshot, idf: Float32, counts: Int64) -> float:
    absent = snapshot.parameters.absent_weight
    if not absent:
        return 0.0
    shift = 0.0
    for weight, count in zip(idf, counts.tolist(), strict=True):
        shift += float(weight * absent) * count
    return shift


def search(
    snapshot: Snapshot,
    queries: Sequence[Sequence[str]],
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
        The terms of each query.
    k
        How many matches at most, >= 0.
    masks
        Which documents of each part may be returned.
    min_score
        The least score returned; ``None``: any.
    threads
        How many to use at most; ``None``: as many as there are cores for this process.
    """
    width = min(k, snapshot.count)
    result = BatchResult(
        np.full((len(queries), width), -1, np.int64),
        np.full((len(queries), width), -np.inf),
        np.zeros(len(queries), np.int64),
        snapshot,
    )
    if not width:
        return result
    floor = -np.inf if min_score is None else min_score

    def fill(first: int, last: int) -> None:
        for number in range(first, last):
            rows, scores = _search_one(snapshot, queries[number], width, masks, floor)
            result.counts[number] = len(rows)
            result.rows[number, : len(rows)] = rows
            result.scores[number, : len(rows)] = scores

    most = _cores() if threads is None else threads
    workers = min(most, len(queries) // _QUERIES_PER_THREAD)
    if workers < 2:
        fill(0, len(queries))
        return result
    edges = [len(queries) * worker // workers for worker in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(copy_context().run, fill, first, last) for first, last in pairwise(edges)
        ]
        for job in jobs:
            job.result()
    return result


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


def _search_one(
    snapshot: Snapshot,
    terms: Sequence[str],
    k: int,
    masks: Sequence[Bool | None],
    floor: float,
) -> tuple[Int64, Float64]:
    query = plan(snapshot, terms)
    rank = kernels().search
    rows, scores = [], []
    for place, part in enumerate(snapshot.parts):
        postings = part.segment.postings
        numbers, found = rank(
            postings.documents,
            postings.codes,
            snapshot.tables[place],
            query.starts[place],
            query.stops[place],
            query.idf,
            query.counts,
            len(part.segment),
            query.shift,
            masks[place],
            k,
            floor,
        )
        rows.append(part.ranks(numbers) + snapshot.bases[place])
        scores.append(found)
    if len(rows) == 1:
        return rows[0], scores[0]
    # The parts come in document order, so a stable sort keeps it among equal scores.
    all_rows, all_scores = np.concatenate(rows), np.concatenate(scores)
    order = np.argsort(-all_scores, kind="stable")[:k]
    return all_rows[order], all_scores[order]


def score_all(snapshot: Snapshot, terms: Sequence[str]) -> Float64:
    """Score every living document for one query, (N,), shift included."""
    query = plan(snapshot, terms)
    sums = []
    for place, part in enumerate(snapshot.parts):
        postings = part.segment.postings
        scores, _ = kernels().accumulate(
            postings.documents,
            postings.codes,
            snapshot.tables[place],
            query.starts[place],
            query.stops[place],
            query.idf,
            query.counts,
            len(part.segment),
        )
        sums.append(scores)
    return by_row(sums, snapshot) + query.shift

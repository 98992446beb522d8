"""From analysed queries to the rows and scores of the best k matches."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bm25rag._types import Bool, Float32, Float64, Int64
from bm25rag.backend import kernels
from bm25rag.documents import Hit
from bm25rag.kernels_numpy import accumulate
from bm25rag.snapshot import Snapshot, Term, by_row

# Queries below which a second thread costs more than it brings.
_QUERIES_PER_THREAD = 32
# Documents that the compiled kernel walks at a time: 32 KiB of float64 sums.
WINDOW = 4096
# Documents of a part from which it looks up the terms that can decide little, where that is
# cheaper than walking their postings: at 150,000 it costs as much as it saves.
WORTH_PRUNING = 1 << 19

_ALL = np.empty(0, np.bool_)


class Batch(NamedTuple):
    """The queries of a batch, resolved; see ``kernels_numpy.search`` for the arrays.

    ``bounds`` are those of each part, (parts, u, 4); ``work`` is the number of postings.
    """

    bounds: Int64
    idf: Float32
    pointers: Int64
    terms: Int64
    counts: Int64
    shifts: Float64
    work: int


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


class _Places(dict[str, int]):
    """Where each term of a batch is among those ``found``; -1 for one of no document."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.found: list[Term] = []

    def __missing__(self, name: str) -> int:
        term = self._snapshot.term(name)
        place = self[name] = -1 if term is None else len(self.found)
        if term is not None:
            self.found.append(term)
        return place


def shift_of(snapshot: Snapshot, counts: Mapping[str, int]) -> float:
    """Return what the lower bounds of a query's terms add to every score.

    Parameters
    ----------
    snapshot
        Where to search.
    counts
        How often each term occurs in the query, in order of first occurrence.
    """
    absent = snapshot.parameters.absent_weight
    shift = 0.0
    for name, count in counts.items():
        if (term := snapshot.term(name)) is not None:
            shift += float(term.idf * absent) * count
    return shift


def resolve(snapshot: Snapshot, queries: Sequence[Sequence[str]]) -> Batch:
    """Look the terms of queries up; those of no document are left out.

    Parameters
    ----------
    snapshot
        Where to search.
    queries
        The terms of each query.
    """
    places = _Places(snapshot)
    shifted = bool(snapshot.parameters.absent_weight)
    pointers, own, counts, shifts = array("q", [0]), array("q"), array("q"), array("d")
    for query in queries:
        counted = dict.fromkeys(query, 1)
        if len(counted) < len(query):
            counted = dict.fromkeys(query, 0)
            for name in query:
                counted[name] += 1
        found = [places[name] for name in counted]
        if -1 in found:
            own.extend([place for place in found if place >= 0])
            known = zip(found, counted.values(), strict=True)
            counts.extend([count for place, count in known if place >= 0])
        else:
            own.extend(found)
            counts.extend(counted.values())
        pointers.append(len(own))
        shifts.append(shift_of(snapshot, counted) if shifted else 0.0)
    packed = np.frombuffer(b"".join([term.packed for term in places.found]), np.int64)
    bounds = packed.reshape(len(places.found), len(snapshot.parts), 4).transpose(1, 0, 2)
    frequencies = [term.document_frequency for term in places.found]
    return Batch(
        np.ascontiguousarray(bounds),
        np.array([term.idf for term in places.found], np.float32),
        np.frombuffer(pointers, np.int64),
        np.frombuffer(own, np.int64),
        np.frombuffer(counts, np.int64),
        np.frombuffer(shifts, np.float64),
        sum(map(frequencies.__getitem__, own)),
    )


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
        Which documents of each part may be returned; ``None``: all.
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
    if not width or not queries:
        return result
    batch = resolve(snapshot, queries)
    floor = -np.inf if min_score is None else float(np.nextafter(min_score, -np.inf))
    rank = kernels(batch.work + len(queries) * snapshot.count).search

    def fill(first: int, last: int) -> None:
        block = _Block(result, first, last, floor)
        for place, mask in enumerate(masks):
            _search_part(block, place, batch, mask, rank)

    most = _cores() if threads is None else threads
    workers = min(most, len(queries) // _QUERIES_PER_THREAD)
    if workers < 2:
        fill(0, len(queries))
        return result
    edges = [len(queries) * worker // workers for worker in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        for job in [pool.submit(fill, *span) for span in pairwise(edges)]:
            job.result()
    return result


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


class _Block:
    """The consecutive queries that one thread answers, part after part."""

    def __init__(self, result: BatchResult, first: int, last: int, floor: float) -> None:
        self.snapshot = result.snapshot
        self.first, self.last = first, last
        self.rows, self.scores = result.rows[first:last], result.scores[first:last]
        self.counts = result.counts[first:last]
        self.floors = np.full(last - first, floor)

    def take(self, rows: Int64, scores: Float64, counts: Int64) -> None:
        """Take the matches in a later part; of equal scores the earlier stay first."""
        width = self.rows.shape[1]
        rows = np.concatenate((self.rows, rows), axis=1)
        scores = np.concatenate((self.scores, scores), axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :width]
        self.rows[:] = np.take_along_axis(rows, order, axis=1)
        self.scores[:] = np.take_along_axis(scores, order, axis=1)
        self.counts[:] = np.minimum(self.counts + counts, width)


def _search_part(
    block: _Block, place: int, batch: Batch, mask: Bool | None, rank: Callable[..., None]
) -> None:
    snapshot = block.snapshot
    part = snapshot.parts[place]
    postings = part.segment.postings
    size, width = len(part.segment), block.rows.shape[1]
    direct = place == 0 and width <= size  # the matches of the first part need no merging
    if direct:
        rows, scores, counts = block.rows, block.scores, block.counts
    else:
        shape = (block.last - block.first, min(width, size))
        rows, scores = np.full(shape, -1, np.int64), np.full(shape, -np.inf)
        counts = np.zeros(shape[0], np.int64)
    rank(
        postings.documents,
        postings.codes,
        snapshot.tables[place],
        postings.fronts.codes,
        batch.bounds[place],
        batch.idf,
        batch.pointers[block.first : block.last + 1],
        batch.terms,
        batch.counts,
        batch.shifts[block.first : block.last],
        size,
        _ALL if mask is None else mask,
        rows.shape[1],
        block.floors,
        WINDOW,
        size >= WORTH_PRUNING,
        rows,
        scores,
        counts,
    )
    if len(part.dead) or snapshot.bases[place]:
        used = rows >= 0
        rows[used] = part.ranks(rows[used]) + snapshot.bases[place]
    if not direct:
        block.take(rows, scores, counts)
    if place + 1 < len(snapshot.parts):
        # From now on only what beats the last of a full row can still come in.
        np.maximum(block.floors, block.scores[:, -1], out=block.floors)


def score_all(snapshot: Snapshot, terms: Sequence[str]) -> Float64:
    """Score every living document for one query, (N,), shift included.

    Parameters
    ----------
    snapshot
        Where to search.
    terms
        The terms of the query.
    """
    batch = resolve(snapshot, [terms])
    sums = []
    for place, part in enumerate(snapshot.parts):
        postings, bounds = part.segment.postings, batch.bounds[place]
        scores, _ = accumulate(
            postings.documents,
            postings.codes,
            snapshot.tables[place],
            bounds[:, 0],
            bounds[:, 1],
            batch.idf,
            batch.counts,
            len(part.segment),
        )
        sums.append(scores)
    return by_row(sums, snapshot) + float(batch.shifts[0])

"""Searches of many sparse vectors by bounds of strips, beside the walk of all postings.

``python -m benchmarks.strips 1000000 8800000`` measures, and writes the table of
``docs/sparse-vectors.md``. The vectors are those of ``topics``, with weights of 16 bits. Postings
are made chunk by chunk, as an index would have them in one segment, because adding 8.8 million
vectors takes a quarter of an hour; they take four bytes each, and twice that while they are made.

Both searches run in one process, in turns, over the same arrays, on one thread; times are those of
the processor, the best of three rounds for each question. The first passes over the questions make
the bounds, as in a new process; what the very first one takes is in the table, too, and how many
times as fast questions are that were never asked, once each, after others.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import put_into, table
from benchmarks.topics import TERMS, Array, Topics
from bm25rag.kernels import backend
from bm25rag.kernels.records import SearchPlan, SegmentArrays, StripBounds, TermArrays
from bm25rag.search import ranking
from bm25rag.segments.doc_blocks import DOC_BLOCK
from bm25rag.segments.postings import STRIP_COST, STRIPS_WORTH

# How many others are asked before new questions.
_OTHERS = 300
PAGE = Path(__file__).parents[1] / "docs" / "sparse-vectors.md"


class Postings:
    """Postings of vectors, made chunk by chunk: a block of documents at a time."""

    def __init__(self, topics: Topics) -> None:
        from scipy import sparse

        blocks, held, waiting = -(-topics.count // DOC_BLOCK), [], []
        for chunk in topics.passages():
            waiting.append(chunk)
            if sum(one.shape[0] for one in waiting) == DOC_BLOCK:
                held.append(_block(sparse.vstack(waiting)))
                waiting = []
        if waiting:
            held.append(_block(sparse.vstack(waiting)))
        counts = np.stack([sizes for sizes, _, _ in held])
        ends = np.cumsum(counts.sum(0))
        self.starts: Array = np.empty((TERMS, blocks + 1), np.int64)
        self.starts[:, 0] = ends - counts.sum(0)
        self.starts[:, 1:] = self.starts[:, :1] + np.cumsum(counts, 0).T
        self.documents: Array = np.empty(ends[-1], np.uint16)
        self.codes: Array = np.empty(ends[-1], np.uint16)
        for block in range(blocks):
            sizes, documents, codes = held[block]
            held[block] = (sizes, np.empty(0, np.uint16), np.empty(0, np.uint16))
            own = np.cumsum(sizes) - sizes
            places = np.repeat(self.starts[:, block] - own, sizes) + np.arange(len(documents))
            self.documents[places], self.codes[places] = documents, codes
        # Every number of 16 bits is a code; those of no weight stand for the least one.
        weights = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
        least = float(np.float16(2.0**-24))
        self.weights = np.where(weights > 0, np.minimum(weights, 4.0), least).astype(np.float32)
        self.bounds = least, float(self.weights[self.codes].max())


def _block(vectors: Any) -> tuple[Array, Array, Array]:
    """Return how many postings each term has, their documents, and their weights as codes."""
    columns = vectors.tocsc()
    columns.sort_indices()
    weights = np.maximum(columns.data.astype(np.float16), np.float16(2.0**-24))
    return np.diff(columns.indptr), columns.indices.astype(np.uint16), weights.view(np.uint16)


def measure(count: int, correlated: bool, k: int, number: int = 100) -> list[str]:
    """Return a row of the table."""
    topics = Topics(count, correlated)
    postings = Postings(topics)
    arrays = postings.documents, postings.codes, postings.weights, count, DOC_BLOCK, postings.bounds
    size = len(postings.documents)
    strips, later = (
        StripBounds(count, DOC_BLOCK, size, STRIP_COST, STRIPS_WORTH) for _ in range(2)
    )
    hot = backend.current()
    settings = ranking.WINDOW, ranking.HEAVY, ranking.SPARSE, ranking.COARSE
    plan = SearchPlan(k, None, *settings, ranking.FILTERED_FIRST)
    questions = [(list(map(int, q)), list(q.values())) for q in topics.questions(number + _OTHERS)]
    asked, others = range(number), range(number, number + _OTHERS)

    def searched(bounds: StripBounds | None) -> Callable[[int], Any]:
        segment = SegmentArrays(*arrays, bounds)
        terms = TermArrays(postings.starts, np.ones(TERMS, np.float32), np.float32(0))
        return lambda row: hot.search_one(segment, terms, *questions[row], -np.inf, plan)

    walk, pruned = searched(None), searched(strips)
    first, found = times(pruned, asked)
    known = -1
    while known < len(strips.rows):  # a question makes some rows
        known = len(strips.rows)
        found += times(pruned, asked)[1]
    if found != times(walk, asked)[1] * (len(found) // number):
        raise AssertionError("the strips found something else")
    rounds = [(times(walk, asked)[0], times(pruned, asked)[0]) for _ in range(3)]
    walked, took = np.min(rounds, axis=0) * 1000
    new = searched(later)
    times(new, others)
    once = [times(search, asked)[0].sum() for search in (searched(None), new)]
    rows = len(strips.rows)
    mebibytes = rows * strips.cells / (1 << 20)
    return [
        f"{count:,}" + ("" if correlated else ", without topics"),
        str(k),
        f"{walked.mean():.2f} ms",
        f"{took.mean():.2f} ms",
        f"{walked.sum() / took.sum():.1f}",
        f"{once[0] / once[1]:.1f}",
        f"{1000 * first[0]:.1f} ms",
        f"{first.sum():.2f} s",
        f"{mebibytes:.0f} MiB",
    ]


def times(search: Callable[[int], Any], rows: Iterable[int]) -> tuple[Array, list[Any]]:
    """Return the processor's time of each question, and what was found."""
    each, found = [], []
    for row in rows:
        start = time.thread_time()
        found.append(search(row))
        each.append(time.thread_time() - start)
    return np.array(each), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", type=int, nargs="+", help="numbers of vectors")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--without-topics", action="store_true", help="the worst case as well")
    parser.add_argument("--print", action="store_true", help="print, not write")
    given = parser.parse_args()
    heads = ["vectors", "k", "walk", "strips", "times as fast", "new ones"]
    heads += ["the first", "the first 100", "bounds"]
    lines = []
    for count in given.counts:
        for correlated in (True, False)[: 1 + given.without_topics]:
            lines.append(measure(count, correlated, given.k))
            print(*lines[-1], sep=" | ", flush=True)
    if not given.print:
        put_into(PAGE, "strips", [table(heads, lines)])


if __name__ == "__main__":
    main()

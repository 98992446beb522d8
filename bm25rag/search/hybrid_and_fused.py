"""Rankings of one index fused: of a query and a vector, or of several queries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from bm25rag.common.checks import check_count
from bm25rag.documents import Hit
from bm25rag.fusion import FusionMethod, Ranking, check_fusion, fuse
from bm25rag.search.finding import Finder, Wanted, check_threads, find, find_one
from bm25rag.search.plain_terms import RestrictedTerms, Terms
from bm25rag.search.results import Totals
from bm25rag.search.snapshot import Snapshot


def search_both(
    snapshot: Snapshot,
    terms: Terms,
    vector: Terms,
    wanted: Wanted,
    fetch_k: int,
    method: FusionMethod,
    weights: Sequence[float] | None,
    rank_constant: int,
) -> list[Hit]:
    """Find the best by a query and a vector; see ``BM25Index.search_hybrid``."""
    fetched = _fetched(wanted, fetch_k)
    rankings = [_by_row(*one) for one in find_both(snapshot, terms, vector, fetched)]
    depth = wanted.depth if wanted.shaping is None else 2 * fetched.k
    fused = fuse(rankings, method, weights, depth, rank_constant)
    return _hits(snapshot, wanted, fused, terms)


def search_each(
    snapshot: Snapshot,
    queries: Sequence[Terms],
    wanted: Wanted,
    fetch_k: int,
    weights: Sequence[float] | None,
    rank_constant: int,
) -> list[Hit]:
    """Find the best by their ranks for several queries; see ``BM25Index.search_fused``."""
    check_fusion("rrf", weights, rank_constant, len(queries))
    matches = find(snapshot, queries, _fetched(wanted, fetch_k), check_threads(None))
    cells = zip(matches.rows.tolist(), matches.scores.tolist(), matches.counts, strict=True)
    rankings = [_by_row(rows[:count], scores) for rows, scores, count in cells]
    fused = fuse(rankings, "rrf", weights, None, rank_constant)
    return _hits(snapshot, wanted, fused, [*dict.fromkeys(chain.from_iterable(queries))])


def find_both(
    snapshot: Snapshot, terms: Terms, vector: Terms, wanted: Wanted
) -> tuple[tuple[list[int], list[float]], tuple[list[int], list[float]]]:
    """Find the matches of a query and those of a vector, each as ``find_one`` does.

    What the query restricts its matches to holds for those of the vector, too.
    """
    by_words, other = find_one(snapshot, terms, wanted), snapshot.by_vectors
    if type(terms) is not RestrictedTerms:
        return by_words, find_one(other, vector, wanted)
    return by_words, Finder(snapshot, wanted).find(terms, other, vector)


def page_of(
    snapshot: Snapshot, wanted: Wanted, fused: Sequence[tuple[int, float]]
) -> tuple[list[int], list[float], Totals | None]:
    """Return what is wanted of all rows that were fused, best first: rows, scores and totals."""
    rows, scores = [row for row, _ in fused], [score for _, score in fused]
    if wanted.shaping is None or not wanted.k:
        page = slice(wanted.offset, wanted.depth)
        return rows[page], scores[page], None
    totals = Totals(snapshot, (), wanted, np.array(rows, np.int64))
    return *wanted.shaping.of_all(rows, scores, wanted.k, wanted.offset), totals


def _fetched(wanted: Wanted, fetch_k: int) -> Wanted:
    """Return what is wanted of each ranking: all that may be among the best."""
    return Wanted(max(wanted.k, check_count("fetch_k", fetch_k)), wanted.filter)


def _by_row(rows: Sequence[int], scores: Sequence[float]) -> Ranking:
    """Return a ranking to fuse, with rows as ids."""
    return [*zip(map(str, rows), scores, strict=False)]


def _hits(snapshot: Snapshot, wanted: Wanted, fused: Ranking, terms: Terms) -> list[Hit]:
    by_row = [(int(row), score) for row, score in fused]
    rows, scores, totals = page_of(snapshot, wanted, by_row)
    return snapshot.hits(rows, scores, terms=terms, totals=totals)

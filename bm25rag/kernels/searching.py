"""Compiled search: a batch of queries, each resolved and ranked."""

from __future__ import annotations

import numpy as np

from bm25rag.common.arrays import Bool, Float32, Float64, Int64, UInt16, Unsigned
from bm25rag.kernels.compiling import compiled
from bm25rag.kernels.ranking import Query, Scratch, Source, rank, rank_any
from bm25rag.kernels.selecting import keep_best, sort

# A term is frequent if it is in one of so many documents.
_FREQUENT = 8
# Bounds are raised by this much, beyond any rounding of theirs.
_SLACK = 1.0 + 1e-6


@compiled
def _distinct(
    terms: Int64,
    weights: Float64,
    start: int,
    stop: int,
    places: Int64,
    found: Int64,
    counts: Float64,
) -> int:
    """List the distinct known terms of a query in order of first occurrence, and count them.

    With ``weights``, one for each of ``terms``, these are added up instead.

    ``places`` says where a term is in ``found``; it may hold anything before, since only
    what ``found`` confirms is believed (Briggs and Torczon, 1993).
    """
    many = 0
    for number in range(start, stop):
        term, weight = terms[number], 1.0
        if len(weights):
            weight = weights[number]
        if term < 0:
            continue
        place = places[term]
        if 0 <= place < many and found[place] == term:
            counts[place] += weight
        else:
            places[term], found[many], counts[many] = many, term, weight
            many += 1
    return many


@compiled
def _bound(query: Query, lowest: float, highest: float, size: int, heavy: int) -> tuple[bool, bool]:
    """Whether all parts of a query are positive; and whether to look frequent terms up.

    The latter asks for enough postings of such terms, and for sums that are exact in any
    order: parts are float32, so their float64 sum is if it is less than 2^29 times the
    smallest of them, and each is taken a whole number of times.
    """
    total, smallest, weighted, whole, frequent = 0.0, np.inf, np.inf, True, 0
    for term in range(len(query.idf)):
        count = query.counts[term]
        total += highest * np.float64(query.idf[term]) * count
        part = np.float64(np.float32(lowest) * query.idf[term])
        # A part times a tiny weight may be 0.
        smallest, weighted = min(smallest, part), min(weighted, part * count)
        whole &= count == np.floor(count)
        postings = query.starts[term, -1] - query.starts[term, 0]
        if postings * _FREQUENT >= size:
            frequent += postings
    exact = whole and total * _SLACK < smallest * 2.0**29
    positive = smallest > 0.0 and weighted > 0.0
    return positive, exact and len(query.idf) > 1 and frequent >= heavy


@compiled
def _by_bound(query: Query, highest: float) -> Query:
    """Sort the terms of a query by what they can add at most, and say what the rest can.

    A term's bound is its idf times the largest f of the segment, which a term that is in
    many documents nearly reaches.
    """
    many, stripes = query.starts.shape
    order, bounds = np.arange(many), np.empty(many)
    for place in range(many):
        bounds[place] = np.float64(query.idf[place]) * query.counts[place]
    sort(order, bounds, many, np.empty(many, np.int64), np.empty(many))
    starts, rest = np.empty((many, stripes), np.int64), np.empty(many)
    idf, counts = np.empty(many, np.float32), np.empty(many)
    total = 0.0
    for place in range(many - 1, -1, -1):
        term = order[place]
        idf[place], counts[place] = query.idf[term], query.counts[term]
        for stripe in range(stripes):
            starts[place, stripe] = query.starts[term, stripe]
        total += highest * np.float64(idf[place]) * counts[place] * _SLACK
        rest[place] = total
    return Query(starts, idf, counts, rest, query.shift)


@compiled
def search(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    lowest: float,
    highest: float,
    starts: Int64,
    idf: Float32,
    absent: np.float32,
    pointers: Int64,
    terms: Int64,
    weights: Float64,
    size: int,
    stripe: int,
    allowed: Bool,
    k: int,
    floors: Float64,
    window: int,
    heavy: int,
    sparse: int,
    out_numbers: Int64,
    out_scores: Float64,
    out_counts: Int64,
) -> None:
    """Find the best k matches of each query in one segment; see ``numpy_twin.search``."""
    source = Source(documents, codes, table, size, stripe, allowed, sparse)
    longest = 0
    for query in range(len(pointers) - 1):
        longest = max(longest, pointers[query + 1] - pointers[query])
    room, width = k + max(k, 512), -(-min(window, stripe, size) // 64) * 64
    scratch = Scratch(
        np.zeros(width), np.empty(width + 1, np.int64), np.empty(width),
        np.zeros(width // 64, np.uint64), np.empty(width // 8),
        np.empty(room, np.int64), np.empty(room), np.empty(max(room, width // 8)),
        np.empty(longest, np.int64), np.empty(longest), np.empty(longest + 1),
    )  # fmt: skip
    numbers, scores = scratch.numbers, scratch.scores
    spare_numbers = np.empty(room, np.int64)
    places, distinct = np.empty(len(idf), np.int64), np.empty(longest, np.int64)
    spans, own_idf = np.empty((longest, starts.shape[1]), np.int64), np.empty(longest, np.float32)
    counts, rest = np.empty(longest), np.empty(longest)
    for place in range(longest):
        rest[place] = np.inf
    for query in range(len(pointers) - 1):
        start, stop = pointers[query], pointers[query + 1]
        many, shift = _distinct(terms, weights, start, stop, places, distinct, counts), 0.0
        for place in range(many):
            own_idf[place] = idf[distinct[place]]
            shift += np.float64(own_idf[place] * absent) * counts[place]
            for stripe_place in range(starts.shape[1]):
                spans[place, stripe_place] = starts[distinct[place], stripe_place]
        resolved = Query(spans[:many], own_idf[:many], counts[:many], rest[:many], shift)
        positive, prune = _bound(resolved, lowest, highest, size, heavy)
        if not positive:
            found = rank_any(source, resolved, k, floors[query], scratch)
        else:
            chosen = _by_bound(resolved, highest) if prune else resolved
            found = rank(source, chosen, k, floors[query], window, scratch)
        if found > k:
            keep_best(numbers, scores, scratch.spare, found, k)
            found = k
        sort(numbers, scores, found, spare_numbers, scratch.spare)
        for place in range(found):
            out_numbers[query, place], out_scores[query, place] = numbers[place], scores[place]
        for place in range(found, k):
            out_numbers[query, place], out_scores[query, place] = -1, -np.inf
        out_counts[query] = found

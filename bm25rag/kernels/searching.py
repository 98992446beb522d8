"""Compiled search.

Documents are walked in windows whose sums stay in the cache; terms come in the order of
the query, so every sum is that of the score's definition.
"""

from __future__ import annotations

import numpy as np

from bm25rag._types import Bool, Float32, Float64, Int64, UInt16, Unsigned
from bm25rag.kernels.compiling import compiled
from bm25rag.kernels.selecting import above, keep_best, kth_of_maxima, sort

# What subtracting a shift from a floor can be off by, for their size, and more.
_ROUNDING = 1e-15


@compiled
def _add(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    weight: np.float32,
    count: float,
    place: int,
    stop: int,
    base: int,
    end: int,
    whole: bool,
    sums: Float64,
) -> int:
    """Add a term's parts to the sums of a window; return its first posting behind the window.

    ``whole`` says that all postings up to ``stop`` are in the window. Places are unsigned:
    a test for negative ones would cost as much as the addition.
    """
    first = np.uint64(base)
    posting, last = np.uint64(place), np.uint64(stop)
    if whole:
        for own in range(posting, last):
            part = np.float64(table[codes[own]] * weight) * count
            sums[np.uint64(documents[own]) - first] += part
        return stop
    while posting < last:
        document = documents[posting]
        if document >= end:
            break
        part = np.float64(table[codes[posting]] * weight) * count
        sums[np.uint64(document) - first] += part
        posting += np.uint64(1)
    return int(posting)


@compiled
def _rank(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    starts: Int64,
    idf: Float32,
    counts: Float64,
    size: int,
    stripe: int,
    shift: float,
    allowed: Bool,
    k: int,
    floor: float,
    window: int,
    sums: Float64,
    waiting: Int64,
    maxima: Float64,
    numbers: Int64,
    scores: Float64,
    spare: Float64,
) -> int:
    """Collect the best k where every part is positive, so that a sum of 0 is no match."""
    found = 0
    cursors = np.empty(len(idf), np.int64)
    for first in range(0, size, stripe):
        own = first // stripe
        cursors[:] = starts[:, own]
        in_stripe = min(stripe, size - first)
        for base in range(0, in_stripe, window):
            end = min(base + window, in_stripe)
            for term in range(len(idf)):
                cursors[term] = _add(
                    documents, codes, table, idf[term], counts[term],
                    cursors[term], starts[term, own + 1], base, end, end == in_stripe, sums,
                )  # fmt: skip
            width = end - base
            if len(allowed):
                offset = np.uint64(first + base)
                for place in range(width):
                    if not allowed[offset + np.uint64(place)]:
                        sums[np.uint64(place)] = 0.0
            least = max(floor - shift - (abs(floor) + abs(shift)) * _ROUNDING, 0.0)
            if least == 0.0:
                reached = kth_of_maxima(sums, width, k, maxima, spare)
                if reached > 0.0:
                    floor = max(floor, np.nextafter(reached + shift, -np.inf))
                    least = max(floor - shift - (abs(floor) + abs(shift)) * _ROUNDING, 0.0)
            for number in range(above(sums, width, least, waiting)):
                place = waiting[number]
                numbers[found], scores[found] = first + base + place, sums[place] + shift
                found += scores[found] > floor
                if found == len(numbers):
                    floor = keep_best(numbers, scores, spare, found, k)
                    found = k
            sums[:width] = 0.0
            if found > k + (k >> 1):
                floor = keep_best(numbers, scores, spare, found, k)
                found = k
    return found


@compiled
def _rank_any(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    starts: Int64,
    idf: Float32,
    counts: Float64,
    size: int,
    stripe: int,
    shift: float,
    allowed: Bool,
    k: int,
    floor: float,
    numbers: Int64,
    scores: Float64,
    spare: Float64,
) -> int:
    """Collect the best k whatever the parts' signs, and so keep account of who matches."""
    found = 0
    sums, touched = np.empty(min(stripe, size)), np.empty(min(stripe, size), np.bool_)
    for first in range(0, size, stripe):
        sums[:], touched[:] = 0.0, False
        for term in range(len(idf)):
            for posting in range(starts[term, first // stripe], starts[term, first // stripe + 1]):
                document = documents[posting]
                sums[document] += np.float64(table[codes[posting]] * idf[term]) * counts[term]
                touched[document] = True
        for place in range(min(stripe, size - first)):
            if touched[place] and (len(allowed) == 0 or allowed[first + place]):
                numbers[found], scores[found] = first + place, sums[place] + shift
                found += scores[found] > floor
                if found == len(numbers):
                    floor = keep_best(numbers, scores, spare, found, k)
                    found = k
    return found


@compiled
def search(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    starts: Int64,
    idf: Float32,
    absent: np.float32,
    pointers: Int64,
    terms: Int64,
    counts: Float64,
    size: int,
    stripe: int,
    allowed: Bool,
    k: int,
    floors: Float64,
    window: int,
    out_numbers: Int64,
    out_scores: Float64,
    out_counts: Int64,
) -> None:
    """Find the best k matches of each query in one segment; see ``kernels_numpy.search``."""
    room = k + max(k, 512)
    width = -(-min(window, stripe, size) // 64) * 64
    sums, waiting = np.zeros(width), np.empty(width, np.int64)
    maxima, spare = np.empty(width // 8), np.empty(max(room, width // 8))
    numbers, spare_numbers, scores = (
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room),
    )
    lowest = np.float32(np.inf)
    for code in range(len(table)):
        lowest = min(lowest, table[code])
    for query in range(len(pointers) - 1):
        own = terms[pointers[query] : pointers[query + 1]]
        times = counts[pointers[query] : pointers[query + 1]]
        weights, spans = idf[own], starts[own]
        shift, positive = 0.0, True
        for place in range(len(own)):
            shift += np.float64(weights[place] * absent) * times[place]
            positive &= lowest * weights[place] > 0.0
        if positive:
            found = _rank(
                documents, codes, table, spans, weights, times, size, stripe, shift, allowed, k,
                floors[query], window, sums, waiting, maxima, numbers, scores, spare,
            )  # fmt: skip
        else:
            found = _rank_any(
                documents, codes, table, spans, weights, times, size, stripe, shift, allowed, k,
                floors[query], numbers, scores, spare,
            )  # fmt: skip
        if found > k:
            keep_best(numbers, scores, spare, found, k)
            found = k
        sort(numbers, scores, found, spare_numbers, spare)
        out_numbers[query, :found], out_numbers[query, found:] = numbers[:found], -1
        out_scores[query, :found], out_scores[query, found:] = scores[:found], -np.inf
        out_counts[query] = found

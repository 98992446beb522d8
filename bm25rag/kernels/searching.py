"""Compiled search.

Documents are walked in windows whose sums stay in the cache, terms in the order of the
query, so every sum is that of the score's definition. A query with terms that are in very
many documents has its terms sorted by what they can add at most, if sums are exact in any
order: once the k-th best score is known, terms whose bounds together cannot reach it are
not walked any more but looked up for the documents that still can (MaxScore: Turtle and
Flood, 1995). A term's bound is its idf times the largest f of the segment, which a term
that is in many documents nearly reaches; it follows the parameters by itself.
"""

from __future__ import annotations

import numpy as np

from bm25rag._types import Bool, Float32, Float64, Int64, UInt16, Unsigned
from bm25rag.kernels.compiling import compiled
from bm25rag.kernels.selecting import above, keep_best, kth_of_maxima, sort

# A term is frequent if it is in one of so many documents.
_FREQUENT = 8
# Postings that are walked in the time of one look-up.
_LOOK_UP = 40.0
# How much of its estimate a cut keeps from window to window.
_FADING = 0.95
# Bounds are raised by this much, beyond any rounding of theirs.
_SLACK = 1.0 + 1e-6
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
def _first_at_least(documents: UInt16, start: int, stop: int, wanted: int) -> int:
    """Return where the first document >= ``wanted`` is in ``start`` to ``stop``, by galloping."""
    if start >= stop or documents[start] >= wanted:
        return start
    low, step = start, 1
    while low + step < stop and documents[low + step] < wanted:
        low += step
        step <<= 1
    high = min(low + step, stop)
    while high - low > 1:
        middle = (low + high) >> 1
        if documents[middle] < wanted:
            low = middle
        else:
            high = middle
    return high


@compiled
def _cut(essential: int, postings: Float64, waited: Float64) -> int:
    """Choose how many terms to walk: the rest is looked up for the documents still waiting.

    ``postings`` are those of each term in a window, ``waited`` how many documents waited
    when the terms were last cut there; it fades, so that every cut is tried again.
    """
    terms = len(postings)
    walked = 0.0
    for term in range(essential):
        walked += postings[term]
    best, least = terms, np.inf
    for cut in range(essential, terms + 1):
        waited[cut] *= _FADING
        cost = walked + waited[cut] * _LOOK_UP * (terms - cut)
        if cost < least:
            best, least = cut, cost
        if cut < terms:
            walked += postings[cut]
    return best


@compiled
def _look_up(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    weight: np.float32,
    count: float,
    place: int,
    stop: int,
    base: int,
    least: float,
    sums: Float64,
    waiting: Int64,
    many: int,
) -> tuple[int, int]:
    """Add a term's parts to the documents that wait, and let go of those not above ``least``.

    Return how many still wait, and where the term's cursor is.
    """
    kept = 0
    for number in range(many):
        offset = waiting[number]
        place = _first_at_least(documents, place, stop, base + offset)
        if place < stop and np.int64(documents[place]) == base + offset:
            sums[offset] += np.float64(table[codes[place]] * weight) * count
        waiting[kept] = offset
        kept += sums[offset] > least
    return kept, place


@compiled
def _rank(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    starts: Int64,
    idf: Float32,
    counts: Float64,
    rest: Float64,
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
    """Collect the best k where every part is positive, so that a sum of 0 is no match.

    ``rest[j]`` is what terms j and later can add together at most, if terms may be looked
    up instead of walked; they come by bound descending. Otherwise it is infinite.
    """
    terms = essential = len(idf)
    found = 0
    cursors = np.empty(terms, np.int64)
    share = min(window, stripe, size) / size
    postings = (starts[:, -1] - starts[:, 0]).astype(np.float64) * share
    waited = np.zeros(terms + 1)
    for first in range(0, size, stripe):
        stops = starts[:, first // stripe + 1]
        cursors[:] = starts[:, first // stripe]
        in_stripe = min(stripe, size - first)
        for base in range(0, in_stripe, window):
            while essential > 0 and rest[essential - 1] + shift <= floor:
                essential -= 1
            if essential == 0:
                return found
            cut = terms
            if rest[0] < np.inf:
                cut = _cut(essential, postings, waited)
                for term in range(terms):
                    cursors[term] = _first_at_least(documents, cursors[term], stops[term], base)
            end = min(base + window, in_stripe)
            for term in range(cut):
                cursors[term] = _add(
                    documents, codes, table, idf[term], counts[term],
                    cursors[term], stops[term], base, end, end == in_stripe, sums,
                )  # fmt: skip
            width = end - base
            if len(allowed):
                offset = np.uint64(first + base)
                for place in range(width):
                    if not allowed[offset + np.uint64(place)]:
                        sums[np.uint64(place)] = 0.0
            slack = (abs(floor) + abs(shift)) * _ROUNDING
            least = floor - shift - slack
            if least <= 0.0 and cut == terms:
                reached = kth_of_maxima(sums, width, k, maxima, spare)
                if reached > 0.0:
                    floor = max(floor, np.nextafter(reached + shift, -np.inf))
                    slack = (abs(floor) + abs(shift)) * _ROUNDING
                    least = floor - shift - slack
            missing = rest[cut] if cut < terms else 0.0
            many = waited[cut] = above(sums, width, max(least - missing, 0.0), waiting)
            for term in range(cut, terms):
                missing = rest[term + 1] if term + 1 < terms else 0.0
                many, cursors[term] = _look_up(
                    documents, codes, table, idf[term], counts[term],
                    cursors[term], stops[term], base, least - missing, sums, waiting, many,
                )  # fmt: skip
            for number in range(many):
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
def _can_prune(
    starts: Int64,
    idf: Float32,
    counts: Float64,
    lowest: float,
    highest: float,
    size: int,
    heavy: int,
) -> bool:
    """Whether looking frequent terms up may pay, and sums are exact in any order.

    Parts are float32, so their float64 sum is exact if it is less than 2^29 times the
    smallest of them.
    """
    total, smallest, frequent = 0.0, np.inf, 0
    for term in range(len(idf)):
        total += highest * np.float64(idf[term]) * counts[term]
        smallest = min(smallest, np.float64(np.float32(lowest) * idf[term]))
        postings = starts[term, -1] - starts[term, 0]
        if postings * _FREQUENT >= size:
            frequent += postings
    return frequent >= heavy and len(idf) > 1 and total * _SLACK < smallest * 2.0**29


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
    heavy: int,
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
    lowest, highest = np.inf, 0.0
    for code in range(len(table)):
        lowest = min(lowest, np.float64(table[code]))
        highest = max(highest, np.float64(table[code]))
    for query in range(len(pointers) - 1):
        own = terms[pointers[query] : pointers[query + 1]]
        times = counts[pointers[query] : pointers[query + 1]]
        weights, spans = idf[own], starts[own]
        shift, positive = 0.0, True
        for place in range(len(own)):
            shift += np.float64(weights[place] * absent) * times[place]
            positive &= np.float32(lowest) * weights[place] > 0.0
        if positive:
            rest = np.full(len(own), np.inf)
            if _can_prune(spans, weights, times, lowest, highest, size, heavy):
                order = np.argsort(-(weights * times))
                spans, weights, times = spans[order], weights[order], times[order]
                total = 0.0
                for place in range(len(own) - 1, -1, -1):
                    total += highest * np.float64(weights[place]) * times[place] * _SLACK
                    rest[place] = total
            found = _rank(
                documents, codes, table, spans, weights, times, rest, size, stripe, shift,
                allowed, k, floors[query], window, sums, waiting, maxima, numbers, scores, spare,
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

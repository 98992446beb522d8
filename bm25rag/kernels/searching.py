"""Compiled search.

Documents are walked in windows whose sums stay in the first-level cache. Terms are
sorted by what they can add at most; in a segment large enough, once the k-th best
score is known, terms whose bounds together cannot reach it are not walked any more
but looked up for the documents that still can (MaxScore: Turtle and Flood, 1995).
Parts are float32, so their float64 sum is exact in any order unless they
differ by a factor of 2^29 or more; such a query, and one with parts that are not
positive, is walked whole and in the order of its terms.
"""

from __future__ import annotations

import numpy as np

from bm25rag._types import Bool, Float32, Float64, Int64, Unsigned
from bm25rag.kernels.compiling import compiled
from bm25rag.kernels.selecting import above, keep_best, kth_of_maxima, sort

# Postings that are walked in the time of one look-up.
_LOOK_UP = 16.0
# How much of its estimate a cut keeps from window to window.
_FADING = 0.95
# Bounds are raised by this much, beyond any rounding of theirs.
_SLACK = 1.0 + 1e-6
# What subtracting a shift from a floor can be off by, for its size, and more.
_ROUNDING = 1e-15


@compiled
def _first_at_least(documents: Unsigned, start: int, stop: int, wanted: int) -> int:
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
def _peak(table: Float32, codes: Unsigned, bounds: Int64, front: Unsigned) -> np.float32:
    """Return the largest f among the postings of a term, from its front if it has one."""
    peak = np.float32(0.0)
    if bounds[2] < bounds[3]:
        for place in range(bounds[2], bounds[3]):
            peak = max(peak, table[front[place]])
    else:
        for place in range(bounds[0], bounds[1]):
            peak = max(peak, table[codes[place]])
    return peak


@compiled
def _whole(
    documents: Unsigned,
    codes: Unsigned,
    table: Float32,
    starts: Int64,
    stops: Int64,
    idf: Float32,
    counts: Float64,
    size: int,
    shift: float,
    allowed: Bool,
    k: int,
    floor: float,
    numbers: Int64,
    scores: Float64,
    spare: Float64,
) -> int:
    """Walk all postings term by term, as the score is defined; any sign, any range."""
    sums = np.zeros(size)
    touched = np.zeros(size, np.uint8)
    for term in range(len(starts)):
        for place in range(starts[term], stops[term]):
            document = documents[place]
            sums[document] += np.float64(table[codes[place]] * idf[term]) * counts[term]
            touched[document] = 1
    found = 0
    for document in range(size):
        if touched[document] and (len(allowed) == 0 or allowed[document]):
            score = sums[document] + shift
            if score > floor:
                numbers[found], scores[found] = document, score
                found += 1
                if found == len(numbers):
                    floor = keep_best(numbers, scores, spare, found, k)
                    found = k
    return found


@compiled
def _add(
    documents: Unsigned,
    codes: Unsigned,
    table: Float32,
    weight: np.float32,
    count: float,
    place: int,
    stop: int,
    base: int,
    end: int,
    sums: Float64,
) -> int:
    """Add a term's parts to the sums of a window; return its first posting behind the window."""
    while place < stop:
        document = np.int64(documents[place])
        if document >= end:
            break
        sums[np.uint64(document - base)] += np.float64(table[codes[place]] * weight) * count
        place += 1
    return place


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
def _pruned(
    documents: Unsigned,
    codes: Unsigned,
    table: Float32,
    cursors: Int64,
    stops: Int64,
    idf: Float32,
    counts: Float64,
    rest: Float64,
    size: int,
    shift: float,
    allowed: Bool,
    k: int,
    floor: float,
    numbers: Int64,
    scores: Float64,
    spare: Float64,
    window: int,
    prune: bool,
    sums: Float64,
    waiting: Int64,
) -> int:
    """Walk windows of documents, the essential terms whole, the others where they can matter.

    ``rest[j]`` is what terms j and later can add together at most; terms come by bound
    descending, and all parts are positive.
    """
    terms = len(cursors)
    essential = terms
    found = 0
    postings = (stops - cursors).astype(np.float64) * (window / size)
    waited = np.zeros(terms + 1)
    base = 0
    while base < size:
        while essential > 0 and rest[essential - 1] + shift <= floor:
            essential -= 1
        if essential == 0:
            break
        cut = _cut(essential, postings, waited) if prune else terms
        end = min(base + window, size)
        for term in range(cut):
            place = _first_at_least(documents, cursors[term], stops[term], base)
            cursors[term] = _add(
                documents, codes, table, idf[term], counts[term],
                place, stops[term], base, end, sums,
            )  # fmt: skip
        if base == 0 and cut == terms and len(allowed) == 0:
            reached = kth_of_maxima(sums, end, k, spare)
            if reached > 0.0:
                floor = max(floor, np.nextafter(reached + shift, -np.inf))
        count = above(sums, end - base, max(floor - shift - rest[cut], 0.0), waiting)
        waited[cut] = count
        if len(allowed):
            kept = 0
            for number in range(count):
                waiting[kept] = waiting[number]
                kept += allowed[base + waiting[number]]
            count = kept
        for term in range(cut, terms):
            if count == 0:
                break
            place, stop = _first_at_least(documents, cursors[term], stops[term], base), stops[term]
            least = floor - shift - rest[term + 1]
            kept = 0
            for number in range(count):
                offset = waiting[number]
                place = _first_at_least(documents, place, stop, base + offset)
                if place < stop and np.int64(documents[place]) == base + offset:
                    part = np.float64(table[codes[place]] * idf[term])
                    sums[offset] += part * counts[term]
                waiting[kept] = offset
                kept += sums[offset] > least
            cursors[term] = place
            count = kept
        for number in range(count):
            score = sums[waiting[number]] + shift
            if score > floor:
                numbers[found], scores[found] = base + waiting[number], score
                found += 1
                if found == len(numbers):
                    floor = keep_best(numbers, scores, spare, found, k)
                    found = k
        sums[: end - base] = 0.0
        if found > k + (k >> 1):
            floor = keep_best(numbers, scores, spare, found, k)
            found = k
        base = end
    return found


@compiled
def search(
    documents: Unsigned,
    codes: Unsigned,
    table: Float32,
    front: Unsigned,
    bounds: Int64,
    idf: Float32,
    pointers: Int64,
    terms: Int64,
    counts: Int64,
    shifts: Float64,
    size: int,
    allowed: Bool,
    k: int,
    floors: Float64,
    window: int,
    prune: bool,
    out_numbers: Int64,
    out_scores: Float64,
    out_counts: Int64,
) -> None:
    """Find the best k matches of each query in one segment; see ``kernels_numpy.search``."""
    room = k + max(k, 512)
    numbers, spare_numbers = np.empty(room, np.int64), np.empty(room, np.int64)
    scores, spare = np.empty(room), np.empty(room)
    width = -(-min(window, size) // 64) * 64
    sums = np.zeros(width)
    waiting = np.empty(width, np.int64)
    lowest = np.inf
    for code in range(len(table)):
        lowest = min(lowest, np.float64(table[code]))
    for query in range(len(pointers) - 1):
        own = terms[pointers[query] : pointers[query + 1]]
        many = len(own)
        weights = counts[pointers[query] : pointers[query + 1]].astype(np.float64)
        peaks = np.empty(many)
        smallest = np.inf
        for place in range(many):
            term = own[place]
            peak = _peak(table, codes, bounds[term], front)
            peaks[place] = np.float64(peak) * np.float64(idf[term]) * weights[place]
            smallest = min(smallest, np.float64(np.float32(lowest) * idf[term]))
        total = peaks.sum() * _SLACK
        floor, shift = floors[query], shifts[query]
        if smallest > 0.0 and total < smallest * 2.0**29:
            order = np.argsort(-peaks)
            rest = np.empty(many + 1)
            rest[many] = (total + abs(shift)) * _ROUNDING
            for place in range(many - 1, -1, -1):
                rest[place] = rest[place + 1] + peaks[order[place]] * _SLACK
            chosen = own[order]
            found = _pruned(
                documents, codes, table, bounds[chosen, 0], bounds[chosen, 1], idf[chosen],
                weights[order], rest, size, shift, allowed, k, floor,
                numbers, scores, spare, window, prune, sums, waiting,
            )  # fmt: skip
        else:
            found = _whole(
                documents, codes, table, bounds[own, 0], bounds[own, 1], idf[own],
                weights, size, shift, allowed, k, floor, numbers, scores, spare,
            )  # fmt: skip
        if found > k:
            keep_best(numbers, scores, spare, found, k)
            found = k
        sort(numbers, scores, found, spare_numbers, spare)
        out_numbers[query, :found] = numbers[:found]
        out_scores[query, :found] = scores[:found]
        out_counts[query] = found

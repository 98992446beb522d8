"""Compiled search.

Documents are walked in windows whose accumulators stay in
the first-level cache. Terms are sorted by what they can add at most; as soon as the
k-th best score is known, terms whose bounds together cannot reach it are not walked
any more but looked up for the documents that still can (MaxScore: Turtle and Flood,
1995). Parts are float32, so their float64 sum is exact in any order unless they
differ by a factor of 2^29 or more; such a query, and one with parts that are not
positive, is walked whole and in the order of its terms.
"""

from __future__ import annotations

import numpy as np

from bm25rag._types import Bool, Float32, Float64, Int64, Unsigned
from bm25rag.kernels.compiling import compiled

_CHUNK = 64
# Bounds are raised by this much, beyond any rounding of theirs.
_SLACK = 1.0 + 1e-6


@compiled
def _select(scores: Float64, count: int, k: int) -> float:
    """Return the k-th largest of the first ``count`` scores, which are reordered."""
    low, high, wanted = 0, count - 1, k - 1
    while low < high:
        pivot = scores[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while scores[left] > pivot:
                left += 1
            while scores[right] < pivot:
                right -= 1
            if left <= right:
                scores[left], scores[right] = scores[right], scores[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return float(scores[wanted])


@compiled
def _keep_best(numbers: Int64, scores: Float64, spare: Float64, count: int, k: int) -> float:
    """Keep the best k of ``count`` collected documents, in document order; return the k-th score.

    Of equal scores the earlier documents stay.
    """
    spare[:count] = scores[:count]
    least = _select(spare, count, k)
    equal = k
    for place in range(count):
        if scores[place] > least:
            equal -= 1
    kept = 0
    for place in range(count):
        score = scores[place]
        if score > least or (score == least and equal > 0):
            if score == least:
                equal -= 1
            numbers[kept] = numbers[place]
            scores[kept] = score
            kept += 1
    return least


@compiled
def _sort(
    numbers: Int64, scores: Float64, count: int, out_numbers: Int64, out_scores: Float64
) -> None:
    """Write documents by score descending, keeping the order of equals."""
    order = np.argsort(-scores[:count], kind="mergesort")
    for place in range(count):
        out_numbers[place] = numbers[order[place]]
        out_scores[place] = scores[order[place]]


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
                    floor = _keep_best(numbers, scores, spare, found, k)
                    found = k
    return found


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
    sums: Float64,
    candidates: Int64,
) -> int:
    """Walk windows of documents, the essential terms whole, the others where they can matter.

    ``rest[j]`` is what terms j and later can add together at most; terms come by bound
    descending, and all parts are positive.
    """
    terms = len(cursors)
    essential = terms
    found = 0
    for base in range(0, size, window):
        while essential > 0 and rest[essential - 1] + shift <= floor:
            essential -= 1
        if essential == 0:
            break
        end = min(base + window, size)
        walked = 0
        for term in range(essential):
            place, stop = cursors[term], stops[term]
            weight, count = idf[term], counts[term]
            first = place
            while place < stop:
                document = np.int64(documents[place])
                if document >= end:
                    break
                sums[document - base] += np.float64(table[codes[place]] * weight) * count
                place += 1
            cursors[term] = place
            walked += place - first
        if walked == 0:
            continue
        # Which documents of the window can still be among the best?
        least = max(floor - shift - rest[essential], 0.0)
        waiting = 0
        for chunk in range(0, end - base, _CHUNK):
            edge = min(chunk + _CHUNK, end - base)
            hits = 0
            for place in range(chunk, edge):
                hits += sums[place] > least
            if hits:
                for place in range(chunk, edge):
                    if sums[place] > least and (len(allowed) == 0 or allowed[base + place]):
                        candidates[waiting] = place
                        waiting += 1
        for term in range(essential, terms):
            if waiting == 0:
                break
            stop = stops[term]
            first = _first_at_least(documents, cursors[term], stop, base)
            weight, count = idf[term], counts[term]
            kept = 0
            least = floor - shift - rest[term + 1]
            place = first
            for number in range(waiting):
                candidate = candidates[number]
                place = _first_at_least(documents, place, stop, base + candidate)
                if place < stop and np.int64(documents[place]) == base + candidate:
                    sums[candidate] += np.float64(table[codes[place]] * weight) * count
                if sums[candidate] > least:
                    candidates[kept] = candidate
                    kept += 1
            cursors[term] = place
            waiting = kept
        for number in range(waiting):
            candidate = candidates[number]
            score = sums[candidate] + shift
            if score > floor:
                numbers[found], scores[found] = base + candidate, score
                found += 1
                if found == len(numbers):
                    floor = _keep_best(numbers, scores, spare, found, k)
                    found = k
        sums[: end - base] = 0.0
        if found > k + (k >> 1):
            floor = _keep_best(numbers, scores, spare, found, k)
            found = k
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
    out_numbers: Int64,
    out_scores: Float64,
    out_counts: Int64,
) -> None:
    """Find the best k matches of each query in one segment; see ``kernels_numpy.search``."""
    room = k + max(k, 64)
    numbers = np.empty(room, np.int64)
    scores = np.empty(room)
    spare = np.empty(room)
    sums = np.zeros(min(window, size))
    candidates = np.empty(min(window, size), np.int64)
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
            rest = np.zeros(many + 1)
            for place in range(many - 1, -1, -1):
                rest[place] = rest[place + 1] + peaks[order[place]] * _SLACK
            chosen = own[order]
            found = _pruned(
                documents, codes, table, bounds[chosen, 0], bounds[chosen, 1], idf[chosen],
                weights[order], rest, size, shift, allowed, k, floor,
                numbers, scores, spare, window, sums, candidates,
            )  # fmt: skip
        else:
            found = _whole(
                documents, codes, table, bounds[own, 0], bounds[own, 1], idf[own],
                weights, size, shift, allowed, k, floor, numbers, scores, spare,
            )  # fmt: skip
        if found > k:
            _keep_best(numbers, scores, spare, found, k)
            found = k
        _sort(numbers, scores, found, out_numbers[query], out_scores[query])
        out_counts[query] = found

"""Compiled selection: the best k of many scores.

Branches that depend on the data are mispredicted half of the time, at some five
nanoseconds each, so everything here counts, compares and moves without them.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from bm25rag.common.arrays import Float64, Int64, UInt64
from bm25rag.kernels.compiling import compiled

_Numbers = TypeVar("_Numbers", Int64, Float64)

# The number of a power of two, by multiplication: Leiserson, Prokop, Randall 1998.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT_OF = np.zeros(64, np.int64)
for _bit in range(64):
    _BIT_OF[((1 << _bit) * 0x03F79D71B4CB0A89 & (1 << 64) - 1) >> 58] = _bit
# Scores of which the k-th is found by quickselect alone, and by a histogram of few bins.
_FEW, _SOME = 12, 192
_FEW_BINS, _BINS = 64, 256
# Scores that are sorted by counting, for each, those that come before it.
_RUN = 16
# The bits of a negative float but its sign, which order it once they are flipped.
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)


@compiled
def copy(source: _Numbers, target: _Numbers, start: int, stop: int) -> None:
    """Copy a stretch. Numba takes seconds to compile assignments of slices, but not loops."""
    for place in range(start, stop):
        target[place] = source[place]


@compiled
def _quickselect(scores: Float64, count: int, k: int) -> float:
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
def _range(scores: Float64, count: int) -> tuple[float, float]:
    """Return the least and the largest score.

    Compared as integers of the same order, which become vector instructions where floats
    would not.
    """
    bits = scores.view(np.int64)
    least = most = bits[0] ^ (bits[0] >> 63 & _MAGNITUDE)
    for place in range(count):
        own = bits[np.uint64(place)]
        own ^= own >> 63 & _MAGNITUDE
        least, most = min(least, own), max(most, own)
    ends = np.empty(2, np.int64)
    ends[0], ends[1] = least ^ (least >> 63 & _MAGNITUDE), most ^ (most >> 63 & _MAGNITUDE)
    both = ends.view(np.float64)
    return both[0], both[1]


@compiled
def kth(scores: Float64, count: int, k: int, spare: Float64) -> float:
    """Return the k-th largest of the first ``count`` scores; ``spare`` has as much room.

    A histogram over the scores' range says in which bin it is, and only that is searched.
    """
    if count > _FEW:
        least, most = _range(scores, count)
        many = _FEW_BINS if count <= _SOME else _BINS
        scale = (many - 1) / (most - least)
    if count <= _FEW or not 0.0 < scale < np.inf:  # the range is 0, or beyond a float's
        copy(scores, spare, 0, count)
        return _quickselect(spare, count, k)
    bins = np.zeros(many, np.int64)
    for place in range(count):
        bins[np.uint64((most - scores[place]) * scale)] += 1
    own, better = 0, 0
    while better + bins[own] < k:
        better += bins[own]
        own += 1
    found = 0
    for place in range(count):
        spare[found] = scores[place]
        found += np.uint64((most - scores[place]) * scale) == np.uint64(own)
    return _quickselect(spare, found, k - better)


@compiled
def keep_best(numbers: Int64, scores: Float64, spare: Float64, count: int, k: int) -> float:
    """Keep the best k of ``count`` collected documents, in document order; return the k-th score.

    Of equal scores the earlier documents stay.
    """
    least = kth(scores, count, k, spare)
    equal = k
    for place in range(count):
        equal -= scores[place] > least
    kept = 0
    for place in range(count):
        score = scores[place]
        tie = score == least
        numbers[kept], scores[kept] = numbers[place], score
        kept += (score > least) | (tie & (equal > 0))
        equal -= tie
    return float(least)


@compiled
def _place(
    from_numbers: Int64,
    from_scores: Float64,
    start: int,
    stop: int,
    numbers: Int64,
    scores: Float64,
) -> None:
    """Put a few documents where they belong by score: behind as many as come before them."""
    first, last = np.uint64(start), np.uint64(stop)
    for place in range(first, last):
        own, before = from_scores[place], np.int64(0)
        for other in range(first, place):
            before += np.int64(from_scores[other] >= own)
        for other in range(place + np.uint64(1), last):
            before += np.int64(from_scores[other] > own)
        numbers[start + before], scores[start + before] = from_numbers[place], own


@compiled
def _merge_sort(
    numbers: Int64,
    scores: Float64,
    start: int,
    stop: int,
    spare_numbers: Int64,
    spare_scores: Float64,
) -> None:
    """Sort documents by score descending, whatever their scores."""
    width = _RUN
    for first in range(start, stop, width):
        _place(numbers, scores, first, min(first + width, stop), spare_numbers, spare_scores)
    copy(spare_numbers, numbers, start, stop)
    copy(spare_scores, scores, start, stop)
    while width < stop - start:
        for first in range(start, stop, 2 * width):
            middle, last = min(first + width, stop), min(first + 2 * width, stop)
            left, right = first, middle
            for place in range(first, last):
                ahead = right == last or (left < middle and scores[left] >= scores[right])
                source = left if ahead else right
                spare_numbers[place], spare_scores[place] = numbers[source], scores[source]
                left += ahead
                right += not ahead
        copy(spare_numbers, numbers, start, stop)
        copy(spare_scores, scores, start, stop)
        width *= 2


@compiled
def sort(
    numbers: Int64, scores: Float64, count: int, spare_numbers: Int64, spare_scores: Float64
) -> None:
    """Sort a collection by score descending; of equal ones the order stays.

    A histogram of as many bins as there are scores says roughly where each belongs; the few
    that share a bin are sorted then.
    """
    scale = 0.0
    if count > _RUN:
        least, most = _range(scores, count)
        scale = (count - 1) / (most - least)
    if not 0.0 < scale < np.inf:
        _merge_sort(numbers, scores, 0, count, spare_numbers, spare_scores)
        return
    ends = np.zeros(count + 1, np.int64)
    for place in range(count):
        ends[np.uint64((most - scores[place]) * scale) + np.uint64(1)] += 1
    for place in range(count):
        ends[place + 1] += ends[place]
    for place in range(count):
        own = np.uint64((most - scores[place]) * scale)
        spare_numbers[ends[own]], spare_scores[ends[own]] = numbers[place], scores[place]
        ends[own] += 1
    copy(spare_numbers, numbers, 0, count)
    copy(spare_scores, scores, 0, count)
    start = 0
    for place in range(count):
        if ends[place] - start > _RUN:
            _merge_sort(numbers, scores, start, ends[place], spare_numbers, spare_scores)
        start = ends[place]
    for place in range(1, count):
        number, score, hole = numbers[place], scores[place], place
        while hole > 0 and scores[hole - 1] < score:
            numbers[hole], scores[hole] = numbers[hole - 1], scores[hole - 1]
            hole -= 1
        numbers[hole], scores[hole] = number, score


@compiled
def drain(sums: Float64, count: int, least: float, places: Int64, drained: Float64) -> int:
    """Move sums greater than ``least`` out, with their places; leave zeros; return how many.

    To clear a chunk while it is in the cache takes half the time of doing so later.
    """
    found = 0
    for chunk in range(0, count, 64):
        mask = np.uint64(0)
        first = np.uint64(chunk)  # unsigned, or a test for negative places would forbid vectors
        for bit in range(64):
            mask |= np.uint64(sums[first + np.uint64(bit)] > least) << np.uint64(bit)
        while mask:
            lowest = mask & (np.uint64(0) - mask)
            place = chunk + _BIT_OF[(lowest * _DE_BRUIJN) >> np.uint64(58)]
            places[found], drained[found] = place, sums[place]
            found += 1
            mask ^= lowest
        for bit in range(64):
            sums[first + np.uint64(bit)] = 0.0
    return found


@compiled
def collect(
    sums: Float64,
    places: Int64,
    drained: Float64,
    bits: UInt64,
    many: int,
    count: int,
    least: float,
) -> int:
    """Do as ``drain`` where only ``many`` listed places are not 0, in any order."""
    for number in range(many):
        place = np.uint64(places[np.uint64(number)])
        own = sums[place]
        keep = own > least
        bits[place >> np.uint64(6)] |= np.uint64(keep) << (place & np.uint64(63))
        sums[place] = own if keep else 0.0
    found = 0
    for word in range(-(-count // 64)):
        mask = bits[np.uint64(word)]
        bits[np.uint64(word)] = np.uint64(0)
        while mask:
            lowest = mask & (np.uint64(0) - mask)
            place = word * 64 + _BIT_OF[(lowest * _DE_BRUIJN) >> np.uint64(58)]
            places[found], drained[found] = place, sums[place]
            sums[place] = 0.0
            found += 1
            mask ^= lowest
    return found


@compiled
def kth_of_maxima(sums: Float64, count: int, k: int, maxima: Float64, spare: Float64) -> float:
    """Return a sum that at least k documents of a window reach, or 0: cheap, and near the best.

    The k-th largest of the maxima of chunks is one. Sums are not negative, so their bits
    compare as integers, which become vector instructions where floats would not.
    """
    length = 64
    while length > 8 and count < 4 * k * length:
        length >>= 1
    chunks = count // length
    if chunks < k:
        return 0.0
    bits, largest_bits = sums.view(np.int64), maxima.view(np.int64)
    for chunk in range(chunks):
        first, largest = np.uint64(chunk * length), np.int64(0)
        for place in range(length):
            largest = max(largest, bits[first + np.uint64(place)])
        largest_bits[chunk] = largest
    return kth(maxima, chunks, k, spare)

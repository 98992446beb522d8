"""Compiled selection: the best k of many scores.

Branches that depend on the data are mispredicted half of the time, at some five
nanoseconds each, so everything here counts, compares and moves without them.
"""

from __future__ import annotations

import numpy as np

from bm25rag._types import Float64, Int64
from bm25rag.kernels.compiling import compiled

# The number of a power of two, by multiplication: Leiserson, Prokop, Randall 1998.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT_OF = np.zeros(64, np.int64)
for _bit in range(64):
    _BIT_OF[((1 << _bit) * 0x03F79D71B4CB0A89 & (1 << 64) - 1) >> 58] = _bit
# Scores of which the k-th is found by quickselect alone.
_FEW = 64
_BINS = 256


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
def kth(scores: Float64, count: int, k: int, spare: Float64) -> float:
    """Return the k-th largest of the first ``count`` scores; ``spare`` has as much room.

    A histogram over the scores' range says in which bin it is, and only that is searched.
    """
    least, most = scores[0], scores[0]
    for place in range(count):
        least, most = min(least, scores[place]), max(most, scores[place])
    scale = (_BINS - 1) / (most - least)
    if count <= _FEW or not 0.0 < scale < np.inf:  # the range is 0, or beyond a float's
        spare[:count] = scores[:count]
        return _quickselect(spare, count, k)
    bins = np.zeros(_BINS, np.int64)
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
def sort(
    numbers: Int64, scores: Float64, count: int, spare_numbers: Int64, spare_scores: Float64
) -> None:
    """Sort a collection by score descending; of equal ones the order stays. Merge sort."""
    for first in range(0, count, 8):
        for place in range(first + 1, min(first + 8, count)):
            number, score, hole = numbers[place], scores[place], place
            while hole > first and scores[hole - 1] < score:
                numbers[hole], scores[hole] = numbers[hole - 1], scores[hole - 1]
                hole -= 1
            numbers[hole], scores[hole] = number, score
    width = 8
    while width < count:
        for first in range(0, count, 2 * width):
            middle, stop = min(first + width, count), min(first + 2 * width, count)
            left, right, place = first, middle, first
            while left < middle and right < stop:
                ahead = scores[left] >= scores[right]
                spare_scores[place] = scores[left] if ahead else scores[right]
                spare_numbers[place] = numbers[left] if ahead else numbers[right]
                left += ahead
                right += not ahead
                place += 1
            while left < middle:
                spare_numbers[place], spare_scores[place] = numbers[left], scores[left]
                left += 1
                place += 1
            while right < stop:
                spare_numbers[place], spare_scores[place] = numbers[right], scores[right]
                right += 1
                place += 1
        numbers[:count] = spare_numbers[:count]
        scores[:count] = spare_scores[:count]
        width *= 2


@compiled
def above(sums: Float64, count: int, least: float, out: Int64) -> int:
    """List the places of sums greater than ``least``; return how many there are."""
    found = 0
    for chunk in range(0, count, 64):
        mask = np.uint64(0)
        first = np.uint64(chunk)  # unsigned, or a test for negative places would forbid vectors
        for bit in range(64):
            mask |= np.uint64(sums[first + np.uint64(bit)] > least) << np.uint64(bit)
        while mask:
            lowest = mask & (np.uint64(0) - mask)
            out[found] = chunk + _BIT_OF[(lowest * _DE_BRUIJN) >> np.uint64(58)]
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

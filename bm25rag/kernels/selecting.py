"""Compiled selection: the best k of many scores."""

from __future__ import annotations

import numpy as np

from bm25rag._types import Float64, Int64
from bm25rag.kernels.compiling import compiled

# The number of a power of two, by multiplication: Leiserson, Prokop, Randall 1998.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT_OF = np.zeros(64, np.int64)
for _bit in range(64):
    _BIT_OF[((1 << _bit) * 0x03F79D71B4CB0A89 & (1 << 64) - 1) >> 58] = _bit


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
def keep_best(numbers: Int64, scores: Float64, spare: Float64, count: int, k: int) -> float:
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
            left, right = first, middle
            for place in range(first, stop):
                if left < middle and (right >= stop or scores[left] >= scores[right]):
                    spare_numbers[place], spare_scores[place] = numbers[left], scores[left]
                    left += 1
                else:
                    spare_numbers[place], spare_scores[place] = numbers[right], scores[right]
                    right += 1
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
def kth_of_maxima(sums: Float64, count: int, k: int, spare: Float64) -> float:
    """Return a sum that at least k documents of a window reach, or 0: cheap, and near the best.

    The k-th largest of the maxima of chunks is one. Sums are not negative, so their bits
    compare as integers, which become vector instructions where floats would not.
    """
    length = 64
    while length > 8 and count < 4 * k * length:
        length >>= 1
    chunks = count // length
    if chunks < k or chunks > len(spare):
        return 0.0
    bits = sums.view(np.int64)
    maxima = spare.view(np.int64)
    for chunk in range(chunks):
        first, largest = np.uint64(chunk * length), np.int64(0)
        for place in range(length):
            largest = max(largest, bits[first + np.uint64(place)])
        maxima[chunk] = largest
    return _select(spare, chunks, k)

"""Selection: the best k of many scores.

Branches that depend on the data are mispredicted half of the time, at some five
nanoseconds each, so everything here counts, compares and moves without them.

Arrays that are there to work with come from the caller: ``spare`` has as much room as there
are scores, and ``work`` room for one number more, and for ``WORK`` at least.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    # Scores, or coarse sums.
    Sums = cython.fused_type(cython.double, cython.short)

    def sum_if(allowed: int, sum_: float) -> float:
        """Return a sum, or 0."""
        return sum_ if allowed else 0.0

    def lowest_bit(mask: int) -> int:
        """Return the number of the lowest bit that is set."""
        return (mask & -mask).bit_length() - 1


# Scores of which the k-th is found by quickselect alone, and by a histogram of few bins.
_FEW = cython.declare(cython.Py_ssize_t, 12)
_SOME = cython.declare(cython.Py_ssize_t, 192)
_FEW_BINS = cython.declare(cython.Py_ssize_t, 64)
_BINS = cython.declare(cython.Py_ssize_t, 256)
WORK = 256
# Scores that are sorted by counting, for each, those that come before it.
_RUN = cython.declare(cython.Py_ssize_t, 16)
# Bins for each score that is sorted.
_SPREAD = cython.declare(cython.Py_ssize_t, 2)
_MOST_UNITS = cython.declare(cython.double, 32767.0)
_LARGEST = cython.declare(cython.double, 1.7976931348623157e308)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    source_numbers: cython.longlong[::1],
    source_scores: cython.double[::1],
    numbers: cython.longlong[::1],
    scores: cython.double[::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.void:
    i: cython.Py_ssize_t
    for i in range(start, stop):
        numbers[i] = source_numbers[i]
        scores[i] = source_scores[i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _quickselect(
    scores: cython.double[::1], count: cython.Py_ssize_t, k: cython.Py_ssize_t
) -> cython.double:
    """Return the k-th largest of the first ``count`` scores, which are reordered."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = count - 1
    wanted: cython.Py_ssize_t = k - 1
    left: cython.Py_ssize_t
    right: cython.Py_ssize_t
    pivot: cython.double
    swapped: cython.double
    while low < high:
        pivot = scores[(low + high) >> 1]
        left = low
        right = high
        while left <= right:
            while scores[left] > pivot:
                left += 1
            while scores[right] < pivot:
                right -= 1
            if left <= right:
                swapped = scores[left]
                scores[left] = scores[right]
                scores[right] = swapped
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return scores[wanted]


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def largest(
    scores: cython.double[::1], start: cython.Py_ssize_t, stop: cython.Py_ssize_t
) -> cython.double:
    """Return the largest of some scores."""
    highest: cython.double = scores[start]
    i: cython.Py_ssize_t = start
    if cython.compiled and stop - start >= 8:
        i = stop - ((stop - start) & 7)
        highest = largest_of_eights(cython.address(scores[start]), i - start)  # noqa: F821 - of .pxd
    while i < stop:
        highest = max(highest, scores[i])
        i += 1
    return highest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _least(scores: cython.double[::1], stop: cython.Py_ssize_t) -> cython.double:
    """Return the least of the first scores.

    Four at a time, since a comparison takes as long as four that do not wait for each other.
    """
    a: cython.double = scores[0]
    b: cython.double = a
    c: cython.double = a
    d: cython.double = a
    i: cython.Py_ssize_t = 0
    while i + 4 <= stop:
        a = min(a, scores[i])
        b = min(b, scores[i + 1])
        c = min(c, scores[i + 2])
        d = min(d, scores[i + 3])
        i += 4
    while i < stop:
        a = min(a, scores[i])
        i += 1
    return min(min(a, b), min(c, d))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scale(bins: cython.Py_ssize_t, least: cython.double, highest: cython.double) -> cython.double:
    """Return the factor that makes a bin of a difference of scores; 0 if there is none."""
    scale: cython.double
    if not least < highest:
        return 0.0
    scale = (bins - 1) / (highest - least)
    return scale if scale <= _LARGEST else 0.0


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def kth(
    scores: cython.double[::1],
    count: cython.Py_ssize_t,
    k: cython.Py_ssize_t,
    spare: cython.double[::1],
    work: cython.longlong[::1],
) -> cython.double:
    """Return the k-th largest of the first ``count`` scores.

    A histogram over the scores' range says in which bin it is, and only that is searched.
    """
    i: cython.Py_ssize_t
    bins: cython.Py_ssize_t
    wanted: cython.Py_ssize_t = 0
    better: cython.Py_ssize_t = 0
    in_bin: cython.Py_ssize_t = 0
    highest: cython.double = 0.0
    scale: cython.double = 0.0
    if count > _FEW:
        highest = largest(scores, 0, count)
        bins = _FEW_BINS if count <= _SOME else _BINS
        scale = _scale(bins, _least(scores, count), highest)
    if not scale > 0.0:
        for i in range(count):
            spare[i] = scores[i]
        return _quickselect(spare, count, k)
    for i in range(bins):
        work[i] = 0
    for i in range(count):
        work[cython.cast(cython.Py_ssize_t, (highest - scores[i]) * scale)] += 1
    while better + work[wanted] < k:
        better += work[wanted]
        wanted += 1
    for i in range(count):
        spare[in_bin] = scores[i]
        in_bin += cython.cast(cython.Py_ssize_t, (highest - scores[i]) * scale) == wanted
    return _quickselect(spare, in_bin, k - better)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sort_run(
    from_numbers: cython.longlong[::1],
    from_scores: cython.double[::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    numbers: cython.longlong[::1],
    scores: cython.double[::1],
) -> cython.void:
    """Put a few documents where they belong: behind as many as come before them."""
    i: cython.Py_ssize_t
    other: cython.Py_ssize_t
    before: cython.longlong
    equal: cython.longlong
    score: cython.double
    for i in range(start, stop):
        score = from_scores[i]
        before = start
        equal = 0
        for other in range(start, stop):  # of scores alone, for vectors
            before += from_scores[other] > score
            equal += from_scores[other] == score
        if equal > 1:
            for other in range(start, stop):
                before += (from_scores[other] == score) & (from_numbers[other] < from_numbers[i])
        numbers[before] = from_numbers[i]
        scores[before] = score


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _merge_sort(
    numbers: cython.longlong[::1],
    scores: cython.double[::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    spare_numbers: cython.longlong[::1],
    spare_scores: cython.double[::1],
) -> cython.void:
    """Do as ``sort``, whatever the scores."""
    width: cython.Py_ssize_t = _RUN
    first: cython.Py_ssize_t = start
    middle: cython.Py_ssize_t
    last: cython.Py_ssize_t
    left: cython.Py_ssize_t
    right: cython.Py_ssize_t
    source: cython.Py_ssize_t
    i: cython.Py_ssize_t
    ahead: cython.bint
    while first < stop:
        last = min(first + width, stop)
        _sort_run(numbers, scores, first, last, spare_numbers, spare_scores)
        first += width
    _copy(spare_numbers, spare_scores, numbers, scores, start, stop)
    while width < stop - start:
        first = start
        while first < stop:
            middle = min(first + width, stop)
            last = min(first + 2 * width, stop)
            left = first
            right = middle
            for i in range(first, last):
                ahead = right == last or (
                    left < middle
                    and (
                        scores[left] > scores[right]
                        or (scores[left] == scores[right] and numbers[left] < numbers[right])
                    )
                )
                source = left if ahead else right
                spare_numbers[i] = numbers[source]
                spare_scores[i] = scores[source]
                left += ahead
                right += not ahead
            first += 2 * width
        _copy(spare_numbers, spare_scores, numbers, scores, start, stop)
        width *= 2


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def sort(
    numbers: cython.longlong[::1],
    scores: cython.double[::1],
    count: cython.Py_ssize_t,
    spare_numbers: cython.longlong[::1],
    spare_scores: cython.double[::1],
    work: cython.longlong[::1],
) -> cython.void:
    """Sort a collection by score descending, and equal scores by number.

    A histogram of as many bins as there are scores says roughly where each belongs; the few
    that share a bin are sorted then.
    """
    i: cython.Py_ssize_t
    bin_: cython.Py_ssize_t
    hole: cython.Py_ssize_t
    bins: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t = 0
    end: cython.longlong = 0
    fullest: cython.longlong = 0
    number: cython.longlong
    score: cython.double
    highest: cython.double = 0.0
    scale: cython.double = 0.0
    if count > _RUN:
        highest = largest(scores, 0, count)
        bins = min(_SPREAD * count, work.shape[0] - 1)
        scale = _scale(bins, _least(scores, count), highest)
    if not scale > 0.0:
        _merge_sort(numbers, scores, 0, count, spare_numbers, spare_scores)
        return
    # Where each bin ends; before the documents are moved, where it begins.
    for i in range(bins + 1):
        work[i] = 0
    for i in range(count):
        work[cython.cast(cython.Py_ssize_t, (highest - scores[i]) * scale) + 1] += 1
    for i in range(bins):
        fullest = max(fullest, work[i + 1])
        end += work[i + 1]
        work[i + 1] = end
    for i in range(count):
        bin_ = cython.cast(cython.Py_ssize_t, (highest - scores[i]) * scale)
        spare_numbers[work[bin_]] = numbers[i]
        spare_scores[work[bin_]] = scores[i]
        work[bin_] += 1
    if fullest > _RUN:
        for i in range(bins):
            if work[i] - start > _RUN:
                _merge_sort(spare_numbers, spare_scores, start, work[i], numbers, scores)
            start = work[i]
    for i in range(count):
        number = spare_numbers[i]
        score = spare_scores[i]
        hole = i
        while hole > 0 and (
            scores[hole - 1] < score or (scores[hole - 1] == score and numbers[hole - 1] > number)
        ):
            numbers[hole] = numbers[hole - 1]
            scores[hole] = scores[hole - 1]
            hole -= 1
        numbers[hole] = number
        scores[hole] = score


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def drain(
    sums: Sums[::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    least: cython.double,
    unit: cython.double,
    maxima: cython.double[::1],
    known: cython.Py_ssize_t,
    places: cython.longlong[::1],
    drained: cython.double[::1],
) -> cython.Py_ssize_t:
    """Move the sums of a window that are greater than ``least`` and 0 out; return how many.

    ``places`` takes where they are in the window, ``drained`` what they are times ``unit``; zeros
    are left. Of the first ``known`` chunks of 64, ``maxima`` say which need not be looked at. To
    clear a chunk while it is in the cache takes half the time of doing so later.
    """
    count: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t = start
    chunk: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t
    i: cython.Py_ssize_t
    mask: cython.ulonglong
    units: cython.short = 0
    least = max(least, 0.0)
    if Sums is cython.short:
        units = cython.cast(cython.short, min(least, _MOST_UNITS))
    while first < end:
        mask = 0
        if chunk >= known or maxima[chunk] > least:
            if not cython.compiled:
                for i in range(64):
                    mask |= (sums[first + i] > least) << i
            elif Sums is cython.short:
                mask = units_above(cython.address(sums[first]), units)  # noqa: F821 - of the .pxd
            else:
                mask = above(cython.address(sums[first]), least)  # noqa: F821 - of the .pxd
        while mask:
            place = first + lowest_bit(mask)
            places[count] = place - start
            drained[count] = sums[place] * unit
            count += 1
            mask &= mask - 1
        for i in range(64):
            sums[first + i] = 0
        first += 64
        chunk += 1
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def mask(
    sums: Sums[::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    allowed: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
) -> cython.void:
    """Leave zeros for documents that may not be returned; ``first`` is that of place 0."""
    i: cython.Py_ssize_t
    for i in range(start, end):
        if not cython.compiled:  # which knows no fused types
            sums[i] = sums[i] if allowed[first + i] else 0
        elif Sums is cython.short:
            sums[i] &= -cython.cast(cython.short, allowed[first + i] != 0)
        else:
            sums[i] = sum_if(allowed[first + i], sums[i])


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def chunk_length(count: cython.Py_ssize_t, k: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return how long the chunks of a window are: there should be four for each wanted document."""
    length: cython.Py_ssize_t = 64
    while length > 8 and count < 4 * k * length:
        length >>= 1
    return length


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def kth_lower_bound(
    sums: Sums[::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    k: cython.Py_ssize_t,
    maxima: cython.double[::1],
    spare: cython.double[::1],
    work: cython.longlong[::1],
) -> cython.double:
    """Return a sum that at least k documents of a window reach, or 0: cheap, and near the best.

    The k-th largest of the maxima of chunks is one.
    """
    length: cython.Py_ssize_t = chunk_length(end - start, k)
    chunks: cython.Py_ssize_t = (end - start) // length
    chunk: cython.Py_ssize_t
    i: cython.Py_ssize_t
    highest: cython.short
    if chunks < k:
        return 0.0
    for chunk in range(chunks):
        if Sums is cython.double:
            maxima[chunk] = largest(sums, start + chunk * length, start + (chunk + 1) * length)
        else:
            highest = 0
            for i in range(start + chunk * length, start + (chunk + 1) * length):
                highest = max(highest, sums[i])
            maxima[chunk] = highest
    return kth(maxima, chunks, k, spare, work)

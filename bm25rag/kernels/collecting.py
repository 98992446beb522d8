"""What every way to search does in each window: look terms up, and collect what may be the best.

A histogram of the sums collected so far says what the k-th best of them reaches at least, and that
becomes the floor.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from math import nextafter

    from bm25rag.kernels.scratch import Query, Scratch, Segment, part
    from bm25rag.kernels.selecting import largest, sort

    def size_if(taken: bool, size: int) -> int:
        """Return ``size``, or 0."""
        return size if taken else 0


Codes = cython.fused_type(cython.ushort, cython.uint)

# How many times the largest sum of the first window the histogram reaches up to.
_RANGE = cython.declare(cython.double, 3.0)
# So few documents are looked for one after another, from where each should be.
_FEW = cython.declare(cython.Py_ssize_t, 24)
# Postings that are skipped first from there: they are as near as that in most blocks.
_NEAR = cython.declare(cython.Py_ssize_t, 32)
# A sum times a scale may be rounded up into a bin, by less than this.
_BELOW = cython.declare(cython.double, 1.0 - 1e-12)
_INFINITY = cython.declare(cython.double, float("inf"))


# --- where a search is -----------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def start(scratch: Scratch, floor: cython.double) -> cython.void:
    """Begin with nothing collected; the histogram's scale depends on the first sums."""
    i: cython.Py_ssize_t
    for i in range(scratch.tallies.shape[0]):
        scratch.tallies[i] = 0
    scratch.scale = -1.0
    scratch.cut = 0
    scratch.tallied = 0
    scratch.collected = 0
    scratch.floor = floor


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def enter_block(
    segment: Segment, query: Query, scratch: Scratch, block: cython.Py_ssize_t
) -> cython.void:
    """Put the cursor of each term at its first posting in a block."""
    term: cython.Py_ssize_t
    scratch.block = block
    scratch.first = block * segment.block_size
    scratch.in_block = min(segment.block_size, segment.size - scratch.first)
    scratch.base = 0
    for term in range(query.length):
        scratch.cursors[term] = query.starts[term, block]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def first_at_least(
    documents: cython.const[cython.ushort][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    wanted: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Return where the first document >= ``wanted`` is in ``start`` to ``stop``, by galloping."""
    low: cython.Py_ssize_t = start
    step: cython.Py_ssize_t = 1
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    if start >= stop or documents[start] >= wanted:
        return start
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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def find(
    documents: cython.const[cython.ushort][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    wanted: cython.longlong[::1],
    count: cython.Py_ssize_t,
    postings: cython.longlong[::1],
) -> cython.void:
    """Say for each wanted document where the last one <= it is in ``start`` to ``stop``, or start.

    Eight at a time, without branches, so that the processor looks for several at once; there is
    room for seven more than are wanted, which are numbers of documents, too.
    """
    half: cython.Py_ssize_t
    size: cython.Py_ssize_t
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    c: cython.Py_ssize_t
    d: cython.Py_ssize_t
    e: cython.Py_ssize_t
    f: cython.Py_ssize_t
    g: cython.Py_ssize_t
    h: cython.Py_ssize_t
    i: cython.Py_ssize_t = 0
    while i < count:
        a = b = c = d = e = f = g = h = start
        size = stop - start
        while size > 1:
            half = size >> 1
            a += size_if(documents[a + half] <= wanted[i], half)
            b += size_if(documents[b + half] <= wanted[i + 1], half)
            c += size_if(documents[c + half] <= wanted[i + 2], half)
            d += size_if(documents[d + half] <= wanted[i + 3], half)
            e += size_if(documents[e + half] <= wanted[i + 4], half)
            f += size_if(documents[f + half] <= wanted[i + 5], half)
            g += size_if(documents[g + half] <= wanted[i + 6], half)
            h += size_if(documents[h + half] <= wanted[i + 7], half)
            size -= half
        postings[i] = a
        postings[i + 1] = b
        postings[i + 2] = c
        postings[i + 3] = d
        postings[i + 4] = e
        postings[i + 5] = f
        postings[i + 6] = g
        postings[i + 7] = h
        i += 8


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_near(
    documents: cython.const[cython.ushort][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    wanted: cython.Py_ssize_t,
    guess: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Do as ``find`` for one document, by galloping from a guess: it reads few lines of memory.

    That is where the posting would be if they were spread evenly.
    """
    low: cython.Py_ssize_t = guess
    high: cython.Py_ssize_t = guess
    step: cython.Py_ssize_t = _NEAR
    size: cython.Py_ssize_t
    half: cython.Py_ssize_t
    if documents[guess] <= wanted:
        high = min(guess + step, stop)
        while high < stop and documents[high] <= wanted:
            low = high
            step <<= 1
            high = min(high + step, stop)
    else:
        low = max(guess - step, start)
        while low > start and documents[low] > wanted:
            high = low
            step <<= 1
            low = max(low - step, start)
    size = high - low
    while size > 1:
        half = size >> 1
        low += size_if(documents[low + half] <= wanted, half)
        size -= half
    return low


# --- documents that wait, and those that are collected ---------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def look_up(
    segment: Segment,
    query: Query,
    scratch: Scratch,
    walked: cython.Py_ssize_t,
    least: cython.double,
    waiting: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add the parts of the terms that were not walked to the documents that wait, in any order.

    Those that can not exceed ``least`` any more are dropped. Return how many still wait.
    """
    term: cython.Py_ssize_t
    for term in range(walked, query.length):
        if waiting == 0:
            return 0
        if segment.is_narrow:
            waiting = _look_up(
                segment, segment.narrow, query, scratch, term, least - query.rest[term + 1], waiting
            )
        else:
            waiting = _look_up(
                segment, segment.wide, query, scratch, term, least - query.rest[term + 1], waiting
            )
    return waiting


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _look_up(
    segment: Segment,
    codes: cython.const[Codes][::1],
    query: Query,
    scratch: Scratch,
    term: cython.Py_ssize_t,
    least: cython.double,
    waiting: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Do so for one term."""
    start: cython.Py_ssize_t = query.starts[term, scratch.block]
    stop: cython.Py_ssize_t = query.starts[term, scratch.block + 1]
    kept: cython.Py_ssize_t = 0
    wanted: cython.Py_ssize_t
    posting: cython.longlong
    added: cython.double
    matches: cython.bint
    i: cython.Py_ssize_t
    if start < stop:
        for i in range(waiting):
            scratch.spare_numbers[i] = scratch.base + scratch.waiting[i]
        if waiting <= _FEW:
            for i in range(waiting):
                wanted = scratch.spare_numbers[i]
                scratch.work[i] = _find_near(
                    segment.documents, start, stop, wanted,
                    start + (stop - start) * wanted // scratch.in_block,
                )  # fmt: skip
        else:
            for i in range(waiting, waiting + 7):
                scratch.spare_numbers[i] = 0
            find(segment.documents, start, stop, scratch.spare_numbers, waiting, scratch.work)
        for i in range(waiting):
            posting = scratch.work[i]
            added = part(segment.weights[codes[posting]], query.idf[term], query.counts[term])
            matches = segment.documents[posting] == scratch.spare_numbers[i]
            scratch.waiting_sums[i] += added if matches else 0.0
    for i in range(waiting):
        scratch.waiting[kept] = scratch.waiting[i]
        scratch.waiting_sums[kept] = scratch.waiting_sums[i]
        kept += scratch.waiting_sums[i] > least
    return kept


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def collect(
    scratch: Scratch,
    waiting: cython.Py_ssize_t,
    k: cython.Py_ssize_t,
    shift: cython.double,
    slack: cython.double,
) -> cython.void:
    """Collect the documents that wait, count their sums, and raise the floor.

    What does not exceed the floor less ``slack`` is left out.
    """
    least: cython.double = scratch.floor - slack
    first: cython.Py_ssize_t = scratch.first + scratch.base
    last_bin: cython.double = scratch.tallies.shape[0] - 1
    scale: cython.double
    collected: cython.Py_ssize_t = scratch.collected
    cut: cython.Py_ssize_t = scratch.cut
    tallied: cython.Py_ssize_t = scratch.tallied
    position: cython.double
    score: cython.double
    bin_: cython.Py_ssize_t
    i: cython.Py_ssize_t
    kept: cython.bint
    if waiting == 0:
        return
    if scratch.scale < 0.0:
        scratch.scale = last_bin / (_RANGE * largest(scratch.waiting_sums, 0, waiting))
    scale = scratch.scale
    for i in range(waiting):
        score = scratch.waiting_sums[i] + shift
        scratch.numbers[collected] = first + scratch.waiting[i]
        scratch.scores[collected] = score
        position = scratch.waiting_sums[i] * scale
        # Also if it is not a number: a sum may be infinite, and the scale 0.
        bin_ = cython.cast(cython.Py_ssize_t, position if position < last_bin else last_bin)
        kept = score > least
        scratch.tallies[bin_] += kept
        tallied += kept & (bin_ >= cut)
        collected += kept
    while tallied - scratch.tallies[cut] >= k:
        tallied -= scratch.tallies[cut]
        cut += 1
    scratch.collected = collected
    scratch.cut = cut
    scratch.tallied = tallied
    scratch.floor = _raised_floor(scratch, shift)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _raised_floor(scratch: Scratch, shift: cython.double) -> cython.double:
    """Return the floor, or one that the best k exceed that are collected."""
    if scratch.cut == 0:
        return scratch.floor
    return max(scratch.floor, nextafter(scratch.cut / scratch.scale * _BELOW + shift, -_INFINITY))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def collect_signed(
    scratch: Scratch, waiting: cython.Py_ssize_t, shift: cython.double
) -> cython.void:
    """Collect the documents that wait and exceed the floor, whatever the signs of their sums."""
    first: cython.Py_ssize_t = scratch.first + scratch.base
    collected: cython.Py_ssize_t = scratch.collected
    i: cython.Py_ssize_t
    for i in range(waiting):
        scratch.numbers[collected] = first + scratch.waiting[i]
        scratch.scores[collected] = scratch.waiting_sums[i] + shift
        collected += scratch.scores[collected] > scratch.floor
    scratch.collected = collected


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def has_room(scratch: Scratch, slack: cython.double) -> cython.bint:
    """Whether there is room for a window more, after dropping what is below the floor by now."""
    room: cython.Py_ssize_t = scratch.numbers.shape[0] - scratch.width
    if scratch.collected > room:
        sift(scratch, scratch.floor - slack)
    return scratch.collected <= room


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sift(scratch: Scratch, least: cython.double) -> cython.void:
    """Drop what has been collected and is less than ``least``."""
    kept: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    score: cython.double
    for i in range(scratch.collected):
        score = scratch.scores[i]
        scratch.numbers[kept] = scratch.numbers[i]
        scratch.scores[kept] = score
        kept += score >= least
    scratch.collected = kept


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def keep_best(scratch: Scratch, k: cython.Py_ssize_t) -> cython.void:
    """Sort what has been collected, and keep the best k."""
    sort(
        scratch.numbers, scratch.scores, scratch.collected,
        scratch.spare_numbers, scratch.spare, scratch.work,
    )  # fmt: skip
    scratch.collected = min(scratch.collected, k)

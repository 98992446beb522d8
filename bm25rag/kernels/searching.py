"""Search: the best k documents of each query of a batch.

Documents are walked in windows whose sums stay in the cache, terms in the order of the
query, so every sum is that of the score's definition.

Parts are positive, so a sum only grows: a document that can be among the best is listed by the
posting that takes its sum beyond what it must exceed, and the sums of all others are never
looked at. A histogram of the sums found so far says what that is; windows are small at first, so
that it soon says something. Where a window has very many postings, or many and all documents, all
its sums are looked at instead, which is less work for every posting.

A query with many postings for each document wanted is answered in two steps: sums of 16 bits,
which take two thirds of the time, say which few documents can be among the best, and these are
looked up and scored as defined. Where that cannot be, a query with terms that are in very many
documents has its terms sorted by what they can add at most, if sums are exact in any order. In
both cases, once the k-th best score is known, terms whose bounds together cannot reach it, or a
share of it, are not walked any more for themselves, but looked up for the documents that still
can (MaxScore: Turtle and Flood, 1995).

A window's sums begin at 0 with its first document. ``_add``, ``_list`` and ``_list_few`` are one
loop written three times, since a choice inside it would be made for every posting.
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import empty, view, zeros
from bm25rag.kernels.selecting import WORK

if not cython.compiled:
    from math import floor, nextafter

    from bm25rag.kernels.selecting import (
        chunk_length,
        collect,
        drain,
        drain_units,
        kth_of_maxima,
        kth_of_units,
        largest,
        lowest_bit,
        sort,
    )

    def size_if(taken: bool, size: int) -> int:
        """Return ``size``, or 0."""
        return size if taken else 0


Codes = cython.fused_type(cython.ushort, cython.uint)

# The documents of the first window, at least and for each document wanted.
_FIRST_WINDOW = cython.declare(cython.Py_ssize_t, 512)
_FIRST_BY_K = cython.declare(cython.Py_ssize_t, 16)
# If so many times fewer documents are listed than there are postings, few are.
_LISTED = cython.declare(cython.Py_ssize_t, 24)
# Postings for each document from which on all sums of a window are looked at.
_FULL = cython.declare(cython.Py_ssize_t, 1)
# Documents for each posting from which on every posting's sum is cleared, instead of a window's.
_CLEARED = cython.declare(cython.Py_ssize_t, 16)
# The histogram of sums, and how many times the largest of the first window it reaches up to.
_BINS = cython.declare(cython.Py_ssize_t, 512)
_LAST_BIN = cython.declare(cython.double, 511.0)
_RANGE = cython.declare(cython.double, 3.0)
# A sum times a scale may be rounded up into a bin, by less than this.
_BELOW = cython.declare(cython.double, 1.0 - 1e-12)
# Postings that are walked in the time of one look-up.
_LOOK_UP = cython.declare(cython.double, 40.0)
# How much of its estimate of waiting documents a window keeps of those before.
_FADING = cython.declare(cython.double, 0.95)
# What subtracting a shift from a floor can be off by, for their size, and more.
_ROUNDING = cython.declare(cython.double, 1e-15)
# A term is frequent if it is in one of so many documents. With 8, queries of 20 to 60 terms
# without stop words looked up what they had better walked, and took a fifth longer.
_FREQUENT = cython.declare(cython.Py_ssize_t, 3)
# Bounds are raised by this much, beyond any rounding of theirs.
_SLACK = cython.declare(cython.double, 1.0 + 1e-6)
_INFINITY = cython.declare(cython.double, float("inf"))
# In coarse sums, the largest f has so many levels, and all terms can add so many units.
_LEVELS = 65535.0
_UNITS = cython.declare(cython.double, 32000.0)
# They are for several windows, queries with a posting for so many documents at least, and no more
# terms than these.
_DENSE = cython.declare(cython.Py_ssize_t, 12)
_MOST_TERMS = cython.declare(cython.Py_ssize_t, 512)
# Postings of the next term that are fetched; the processor finds the others.
_FETCHED = cython.declare(cython.Py_ssize_t, 128)
# The share of what a sum must exceed that the terms which are looked up may add.
_LEFT = cython.declare(cython.double, 0.25)
# From the least normal float32 on, what a part is off by is a share of it.
_NORMAL = cython.declare(cython.double, 2.0**-126)
_HUGE = cython.declare(cython.double, 1e300)
# Room for queries of so many terms is made at once. Memory to work in is kept for so many
# threads, if it is for no more matches and terms than these.
_USUAL = 64
_KEPT = 4
_MUCH = 1 << 14
_NO_MASK = empty(0, np.uint8)


@cython.final
@cython.cclass
class _Segment:
    """A segment's postings, and f of every code; of the two arrays of codes one is empty.

    ``scratches`` holds memory to work in that no thread uses now.
    """

    documents: cython.const[cython.ushort][::1]
    narrow: cython.const[cython.ushort][::1]
    wide: cython.const[cython.uint][::1]
    is_narrow: cython.bint
    weights: cython.const[cython.float][::1]
    levels: cython.const[cython.ushort][::1]
    lowest: cython.double
    highest: cython.double
    size: cython.Py_ssize_t
    block_size: cython.Py_ssize_t
    blocks: cython.Py_ssize_t
    scratches: list


@cython.final
@cython.cclass
class _Terms:
    """Where the postings of terms begin in each block, and their idf."""

    starts: cython.const[cython.longlong][:, ::1]
    idf: cython.const[cython.float][::1]
    absent: cython.float


@cython.final
@cython.cclass
class _Limits:
    """What is wanted, and how to look for it: see ``Limits``."""

    k: cython.Py_ssize_t
    allowed: cython.const[cython.uchar][::1]
    window: cython.Py_ssize_t
    heavy: cython.Py_ssize_t
    sparse: cython.Py_ssize_t
    coarse: cython.Py_ssize_t


@cython.final
@cython.cclass
class _Query:
    """Distinct terms: where their postings begin in each block, their idf and multiplicity.

    ``rest[j]`` is what terms j and later can add together at most, if terms may be looked
    up instead of walked, ``prune``; they come by bound descending then.
    """

    length: cython.Py_ssize_t
    starts: cython.longlong[:, ::1]
    idf: cython.double[::1]
    counts: cython.double[::1]
    rest: cython.double[::1]
    shift: cython.double
    prune: cython.bint
    coarse: cython.bint


@cython.final
@cython.cclass
class _Scratch:
    """Memory to work in, for one query after another.

    ``sums`` and ``units``, which share their memory, and ``bits`` are zero between queries;
    ``numbers`` and ``scores`` collect documents. There is room for windows of ``width``
    documents, units of a block, and queries of ``longest`` terms.
    ``tallies`` count the sums of collected documents by size, times ``scale``: at least k of
    them, ``tallied``, are in bin ``cut`` or above, if k are collected.
    """

    width: cython.Py_ssize_t
    room: cython.Py_ssize_t
    longest: cython.Py_ssize_t
    query: _Query
    ordered: _Query
    scale: cython.double
    cut: cython.Py_ssize_t
    tallied: cython.Py_ssize_t
    tallies: cython.longlong[::1]
    terms: cython.longlong[::1]
    weights: cython.double[::1]
    sums: cython.double[::1]
    units: cython.short[::1]
    bits: cython.ulonglong[::1]
    waiting: cython.longlong[::1]
    waiting_sums: cython.double[::1]
    maxima: cython.double[::1]
    numbers: cython.longlong[::1]
    scores: cython.double[::1]
    spare_numbers: cython.longlong[::1]
    spare: cython.double[::1]
    work: cython.longlong[::1]
    slots: cython.longlong[::1]
    distinct: cython.longlong[::1]
    begins: cython.longlong[::1]
    cursors: cython.longlong[::1]
    postings: cython.double[::1]
    waited: cython.double[::1]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _part(weight: cython.float, idf: cython.float, count: cython.double) -> cython.double:
    """Return what a posting adds to a score: a product of float32, times a count in float64."""
    part: cython.float
    if not cython.compiled:
        return float(np.float32(weight) * np.float32(idf)) * count
    part = weight * idf
    return part * count


# --- walking the postings of one term in one window -----------------------------------------


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _add(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    weights: cython.const[cython.float][::1],
    idf: cython.float,
    count: cython.double,
    cursors: cython.longlong[::1],
    term: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    sums: cython.double[::1],
) -> cython.void:
    """Add a term's parts to the sums of a window.

    The term's cursor is at its first posting in the window, and then behind it.
    """
    posting: cython.Py_ssize_t = cursors[term]
    i: cython.Py_ssize_t
    # Four at a time take three quarters of the time.
    if posting < stop and documents[stop - 1] < end:
        while posting + 4 <= stop:
            for i in range(posting, posting + 4):
                sums[documents[i] - base] += _part(weights[codes[i]], idf, count)
            posting += 4
    while posting + 4 <= stop and documents[posting + 3] < end:
        for i in range(posting, posting + 4):
            sums[documents[i] - base] += _part(weights[codes[i]], idf, count)
        posting += 4
    while posting < stop and documents[posting] < end:
        sums[documents[posting] - base] += _part(weights[codes[posting]], idf, count)
        posting += 1
    cursors[term] = posting


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _list(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    weights: cython.const[cython.float][::1],
    idf: cython.float,
    count: cython.double,
    cursors: cython.longlong[::1],
    term: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    least: cython.double,
    sums: cython.double[::1],
    listed: cython.longlong[::1],
    total: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Do as ``_add``, and list the places whose sums exceed ``least`` now, and did not before.

    Return how many are listed then; ``total`` are before, and there is room for one more than
    there are places.
    """
    posting: cython.Py_ssize_t = cursors[term]
    i: cython.Py_ssize_t
    place: cython.Py_ssize_t
    before: cython.double
    after: cython.double
    while posting + 4 <= stop and documents[posting + 3] < end:
        for i in range(posting, posting + 4):
            place = documents[i] - base
            before = sums[place]
            after = before + _part(weights[codes[i]], idf, count)
            sums[place] = after
            listed[total] = place
            total += (after > least) & (before <= least)
        posting += 4
    while posting < stop and documents[posting] < end:
        place = documents[posting] - base
        before = sums[place]
        after = before + _part(weights[codes[posting]], idf, count)
        sums[place] = after
        listed[total] = place
        total += (after > least) & (before <= least)
        posting += 1
    cursors[term] = posting
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _list_few(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    weights: cython.const[cython.float][::1],
    idf: cython.float,
    count: cython.double,
    cursors: cython.longlong[::1],
    term: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    least: cython.double,
    sums: cython.double[::1],
    listed: cython.longlong[::1],
    total: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Do as ``_list``, in less time if few places are listed: a branch is predicted then."""
    posting: cython.Py_ssize_t = cursors[term]
    i: cython.Py_ssize_t
    place: cython.Py_ssize_t
    before: cython.double
    after: cython.double
    while posting + 4 <= stop and documents[posting + 3] < end:
        for i in range(posting, posting + 4):
            place = documents[i] - base
            before = sums[place]
            after = before + _part(weights[codes[i]], idf, count)
            sums[place] = after
            if after > least:
                listed[total] = place
                total += before <= least
        posting += 4
    while posting < stop and documents[posting] < end:
        place = documents[posting] - base
        before = sums[place]
        after = before + _part(weights[codes[posting]], idf, count)
        sums[place] = after
        if after > least:
            listed[total] = place
            total += before <= least
        posting += 1
    cursors[term] = posting
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_units(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    levels: cython.const[cython.ushort][::1],
    multiplier: cython.ulonglong,
    posting: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    units: cython.short[::1],
) -> cython.void:
    """Add a term's parts to the coarse sums of a block: a level is ``multiplier`` 2^-32 units."""
    i: cython.Py_ssize_t
    while posting + 4 <= stop:
        for i in range(posting, posting + 4):
            units[documents[i]] += cython.cast(cython.short, (levels[codes[i]] * multiplier) >> 32)
        posting += 4
    while posting < stop:
        units[documents[posting]] += cython.cast(
            cython.short, (levels[codes[posting]] * multiplier) >> 32
        )
        posting += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fetch(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    posting: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.void:
    """Have a term's first postings fetched while another is walked: a sixth of a query's time."""
    stop = min(stop, posting + _FETCHED)
    while posting < stop:
        prefetch(cython.address(documents[posting]))  # noqa: F821 - of the .pxd
        prefetch(cython.address(codes[posting]))  # noqa: F821
        posting += 32


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _first_at_least(
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
def _look_up(
    segment: _Segment,
    codes: cython.const[Codes][::1],
    query: _Query,
    scratch: _Scratch,
    term: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    least: cython.double,
    waiting: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add a term's parts to the documents that wait, and let go of those not above ``least``.

    Return how many still wait. The term's cursor moves on.
    """
    kept: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    document: cython.Py_ssize_t
    posting: cython.Py_ssize_t = scratch.cursors[term]
    sum_: cython.double
    for i in range(waiting):
        document = base + scratch.waiting[i]
        sum_ = scratch.waiting_sums[i]
        posting = _first_at_least(segment.documents, posting, stop, document)
        if posting < stop and segment.documents[posting] == document:
            sum_ += _part(segment.weights[codes[posting]], query.idf[term], query.counts[term])
        scratch.waiting[kept] = scratch.waiting[i]
        scratch.waiting_sums[kept] = sum_
        kept += sum_ > least
    scratch.cursors[term] = posting
    return kept


# --- ranking the documents of one query ------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _choose_walked(
    scratch: _Scratch, essential: cython.Py_ssize_t, terms: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Choose how many terms to walk: the rest is looked up for the documents still waiting.

    ``postings`` are those of each term in a window, ``waited`` how many documents waited
    when so many terms were last walked; it fades, so that every number is tried again.
    """
    expected: cython.double = _expected(scratch, essential)
    cost: cython.double
    least: cython.double = _INFINITY
    best: cython.Py_ssize_t = terms
    walked: cython.Py_ssize_t
    for walked in range(essential, terms + 1):
        scratch.waited[walked] *= _FADING
        cost = expected + scratch.waited[walked] * _LOOK_UP * (terms - walked)
        if cost < least:
            best = walked
            least = cost
        if walked < terms:
            expected += scratch.postings[walked]
    return best


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _expected(scratch: _Scratch, terms: cython.Py_ssize_t) -> cython.double:
    """Return how many postings the first terms have in a window, on average."""
    total: cython.double = 0.0
    term: cython.Py_ssize_t
    for term in range(terms):
        total += scratch.postings[term]
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _least(bound: cython.double, shift: cython.double) -> cython.double:
    """Return what a sum must exceed if its score may exceed the floor ``bound``."""
    return bound - shift - (abs(bound) + abs(shift)) * _ROUNDING


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _walk(
    segment: _Segment,
    codes: cython.const[Codes][::1],
    query: _Query,
    scratch: _Scratch,
    terms: cython.Py_ssize_t,
    block: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    least: cython.double,
    full: cython.bint,
    few: cython.bint,
) -> cython.Py_ssize_t:
    """Walk the first terms in a window; return how many places are listed: none if ``full``."""
    listed: cython.Py_ssize_t = 0
    term: cython.Py_ssize_t
    for term in range(terms):
        scratch.begins[term] = scratch.cursors[term]
        if full:
            _add(
                segment.documents, codes, segment.weights, query.idf[term], query.counts[term],
                scratch.cursors, term, query.starts[term, block + 1], base, end, scratch.sums,
            )  # fmt: skip
        elif few:
            listed = _list_few(
                segment.documents, codes, segment.weights, query.idf[term], query.counts[term],
                scratch.cursors, term, query.starts[term, block + 1], base, end, least,
                scratch.sums, scratch.waiting, listed,
            )  # fmt: skip
        else:
            listed = _list(
                segment.documents, codes, segment.weights, query.idf[term], query.counts[term],
                scratch.cursors, term, query.starts[term, block + 1], base, end, least,
                scratch.sums, scratch.waiting, listed,
            )  # fmt: skip
    return listed


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walked(scratch: _Scratch, terms: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return how many postings of the first terms were in the window walked last."""
    total: cython.Py_ssize_t = 0
    term: cython.Py_ssize_t
    for term in range(terms):
        total += scratch.cursors[term] - scratch.begins[term]
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _reached(scratch: _Scratch, width: cython.Py_ssize_t, k: cython.Py_ssize_t) -> cython.double:
    """Return a sum that at least k documents of a window reach, or 0."""
    return kth_of_maxima(scratch.sums, width, k, scratch.maxima, scratch.spare, scratch.work)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _take(scratch: _Scratch, listed: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Move the sums of listed places out, but zeros; leave zeros; return how many wait."""
    waiting: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    place: cython.Py_ssize_t
    for i in range(listed):
        place = scratch.waiting[i]
        scratch.waiting[waiting] = place
        scratch.waiting_sums[waiting] = scratch.sums[place]
        waiting += scratch.sums[place] > 0.0
        scratch.sums[place] = 0.0
    return waiting


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _reset(scratch: _Scratch) -> cython.void:
    """Begin another histogram; its scale depends on the first sums."""
    i: cython.Py_ssize_t
    for i in range(_BINS):
        scratch.tallies[i] = 0
    scratch.scale = -1.0
    scratch.cut = 0
    scratch.tallied = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _append(
    scratch: _Scratch,
    waiting: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    found: cython.Py_ssize_t,
    k: cython.Py_ssize_t,
    shift: cython.double,
    bound: cython.double,
) -> cython.Py_ssize_t:
    """Collect the documents that wait, and count their sums; return how many are collected.

    ``first`` is the document at place 0. What does not exceed ``bound`` is left out.
    """
    scale: cython.double
    position: cython.double
    score: cython.double
    bin_: cython.Py_ssize_t
    cut: cython.Py_ssize_t = scratch.cut
    tallied: cython.Py_ssize_t = scratch.tallied
    i: cython.Py_ssize_t
    kept: cython.bint
    if waiting == 0:
        return found
    if scratch.scale < 0.0:
        scale = _RANGE * largest(scratch.waiting_sums, 0, waiting)
        scratch.scale = _LAST_BIN / scale
    scale = scratch.scale
    for i in range(waiting):
        score = scratch.waiting_sums[i] + shift
        scratch.numbers[found] = first + scratch.waiting[i]
        scratch.scores[found] = score
        position = scratch.waiting_sums[i] * scale
        # Also if it is not a number: a sum may be infinite, and the scale 0.
        bin_ = cython.cast(cython.Py_ssize_t, position if position < _LAST_BIN else _LAST_BIN)
        kept = score > bound
        scratch.tallies[bin_] += kept
        tallied += kept & (bin_ >= cut)
        found += kept
    while tallied - scratch.tallies[cut] >= k:
        tallied -= scratch.tallies[cut]
        cut += 1
    scratch.cut = cut
    scratch.tallied = tallied
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _raised(scratch: _Scratch, bound: cython.double, shift: cython.double) -> cython.double:
    """Return the floor, or one that the best k exceed that are collected."""
    if scratch.cut == 0:
        return bound
    return max(bound, nextafter(scratch.cut / scratch.scale * _BELOW + shift, -_INFINITY))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sift(scratch: _Scratch, found: cython.Py_ssize_t, bound: cython.double) -> cython.Py_ssize_t:
    """Drop what has been collected and is below a floor by now; return how many are left."""
    kept: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    score: cython.double
    for i in range(found):
        score = scratch.scores[i]
        scratch.numbers[kept] = scratch.numbers[i]
        scratch.scores[kept] = score
        kept += score >= bound
    return kept


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sort_best(
    scratch: _Scratch, found: cython.Py_ssize_t, k: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Sort what has been collected, and keep the best k; return how many these are."""
    sort(
        scratch.numbers, scratch.scores, found,
        scratch.spare_numbers, scratch.spare, scratch.work,
    )  # fmt: skip
    return min(found, k)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _clear(
    segment: _Segment,
    scratch: _Scratch,
    walked: cython.Py_ssize_t,
    postings: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.void:
    """Leave zeros in a window where the first terms have been walked."""
    term: cython.Py_ssize_t
    i: cython.Py_ssize_t
    if postings * _CLEARED < end - base:
        for term in range(walked):
            for i in range(scratch.begins[term], scratch.cursors[term]):
                scratch.sums[segment.documents[i] - base] = 0.0
    else:
        for i in range(end - base):
            scratch.sums[i] = 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rank(
    segment: _Segment,
    limits: _Limits,
    codes: cython.const[Codes][::1],
    query: _Query,
    bound: cython.double,
    scratch: _Scratch,
) -> cython.Py_ssize_t:
    """Collect the best k above a floor, and some more, where every part is positive.

    Return how many these are. A sum of 0 is no match, then. ``bound`` is the floor.
    """
    size: cython.Py_ssize_t = segment.size
    k: cython.Py_ssize_t = limits.k
    terms: cython.Py_ssize_t = query.length
    essential: cython.Py_ssize_t = terms
    shift: cython.double = query.shift
    widest: cython.Py_ssize_t = min(min(limits.window, segment.block_size), size)
    window: cython.Py_ssize_t = min(widest, max(_FIRST_WINDOW, k * _FIRST_BY_K))
    share: cython.double = cython.cast(cython.double, widest) / size
    few: cython.bint = False
    found: cython.Py_ssize_t = 0
    room: cython.Py_ssize_t = scratch.numbers.shape[0] - widest
    full: cython.bint
    known: cython.Py_ssize_t
    total: cython.Py_ssize_t = 0
    waiting: cython.Py_ssize_t
    first: cython.Py_ssize_t
    block: cython.Py_ssize_t
    in_block: cython.Py_ssize_t
    base: cython.Py_ssize_t
    end: cython.Py_ssize_t
    term: cython.Py_ssize_t
    walked: cython.Py_ssize_t
    place: cython.Py_ssize_t
    i: cython.Py_ssize_t
    least: cython.double
    missing: cython.double
    _reset(scratch)
    for term in range(terms):
        total += query.starts[term, segment.blocks] - query.starts[term, 0]
        scratch.postings[term] = (
            query.starts[term, segment.blocks] - query.starts[term, 0]
        ) * share
    if total == 0:
        return 0
    full = not query.prune and (
        total >= _FULL * size or (size <= widest and total * limits.sparse >= size)
    )
    if full:
        window = widest
    for term in range(terms + 1):
        scratch.waited[term] = 0.0
    for block in range(segment.blocks):
        first = block * segment.block_size
        in_block = min(segment.block_size, size - first)
        for term in range(terms):
            scratch.cursors[term] = query.starts[term, block]
        base = 0
        while base < in_block:
            walked = terms
            if query.prune:
                while essential > 0 and query.rest[essential - 1] + shift <= bound:
                    essential -= 1
                if essential == 0:
                    break
                walked = _choose_walked(scratch, essential, terms)
                for term in range(terms):
                    scratch.cursors[term] = _first_at_least(
                        segment.documents,
                        scratch.cursors[term],
                        query.starts[term, block + 1],
                        base,
                    )
            end = min(base + window, in_block)
            least = _least(bound, shift)
            missing = query.rest[walked] if walked < terms else 0.0
            missing = max(least - missing, 0.0)
            waiting = _walk(
                segment, codes, query, scratch, walked, block, base, end, missing, full, few
            )
            if limits.allowed.shape[0]:
                for i in range(end - base if full else waiting):
                    place = i if full else scratch.waiting[i]
                    if not limits.allowed[first + base + place]:
                        scratch.sums[place] = 0.0
            total = _walked(scratch, walked)
            if full:
                known = 0
                if missing == 0.0 and walked == terms:
                    missing = nextafter(_reached(scratch, end - base, k), 0.0)
                    known = (end - base) // 64 if chunk_length(end - base, k) == 64 else 0
                waiting = drain(
                    scratch.sums, end - base, missing, scratch.maxima, known,
                    scratch.waiting, scratch.waiting_sums,
                )  # fmt: skip
            elif walked < terms:
                waiting = collect(
                    scratch.sums, scratch.waiting, scratch.waiting_sums, scratch.bits,
                    waiting, end - base, missing,
                )  # fmt: skip
            else:
                waiting = _take(scratch, waiting)
            if missing > 0.0 and not full:
                _clear(segment, scratch, walked, total, base, end)
            few = missing > 0.0 and waiting * _LISTED < total
            full = total >= _FULL * (end - base)
            if query.prune:
                scratch.waited[walked] = waiting
            for term in range(walked, terms):
                missing = query.rest[term + 1] if term + 1 < terms else 0.0
                waiting = _look_up(
                    segment, codes, query, scratch, term, query.starts[term, block + 1],
                    base, least - missing, waiting,
                )  # fmt: skip
            found = _append(scratch, waiting, first + base, found, k, shift, bound)
            bound = _raised(scratch, bound, shift)
            if found > room:
                found = _sift(scratch, found, bound)
                if found > room:
                    found = _sort_best(scratch, found, k)
                    bound = max(bound, scratch.scores[k - 1])
            base = end
            window = min(2 * window, widest)
        if essential == 0:
            break
    return _sift(scratch, found, bound)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rank_coarsely(
    segment: _Segment,
    limits: _Limits,
    codes: cython.const[Codes][::1],
    query: _Query,
    ordered: _Query,
    bound: cython.double,
    scratch: _Scratch,
) -> cython.Py_ssize_t:
    """Do as ``_rank`` with sums of 16 bits first; return -1 if these cannot tell what it can.

    Terms are walked by bound descending, until those that are left can add so little that few
    documents must be looked up in them.

    A part is at least as much as its units, which are rounded down, and exceeds them by less
    than 1 + 2^-15 of its bound in units: by the unit lost and by what level and multiplier lose.
    So a sum exceeds its units by less than one for each term and 1 more. The rest of ``slack``
    is far more than any rounding of float64.
    """
    k: cython.Py_ssize_t = limits.k
    terms: cython.Py_ssize_t = query.length
    shift: cython.double = query.shift
    unit: cython.double = ordered.rest[0] / _UNITS
    scale: cython.double = segment.highest * 65536.0 / unit
    slack: cython.double = (terms + 2) * unit
    room: cython.Py_ssize_t = scratch.numbers.shape[0] - scratch.width
    walked: cython.Py_ssize_t = terms
    found: cython.Py_ssize_t = 0
    waiting: cython.Py_ssize_t
    first: cython.Py_ssize_t
    block: cython.Py_ssize_t
    in_block: cython.Py_ssize_t
    base: cython.Py_ssize_t
    end: cython.Py_ssize_t
    term: cython.Py_ssize_t
    least: cython.double
    missing: cython.double
    _reset(scratch)
    # The last block may be a small one; what the best of it exceed is known in the others.
    for block in range(segment.blocks - 1, -1, -1):
        first = block * segment.block_size
        in_block = min(segment.block_size, segment.size - first)
        least = _least(bound, shift)
        while walked > 0 and ordered.rest[walked - 1] <= least * _LEFT:
            walked -= 1
        for term in range(terms):
            scratch.cursors[term] = ordered.starts[term, block]
            if term < walked:
                if cython.compiled and term + 1 < walked:
                    _fetch(
                        segment.documents, codes,
                        ordered.starts[term + 1, block], ordered.starts[term + 1, block + 1],
                    )  # fmt: skip
                _add_units(
                    segment.documents, codes, segment.levels,
                    cython.cast(cython.ulonglong, ordered.idf[term] * ordered.counts[term] * scale),
                    ordered.starts[term, block], ordered.starts[term, block + 1], scratch.units,
                )  # fmt: skip
        base = 0
        while base < in_block:
            end = min(base + scratch.width, in_block)
            least = _least(bound, shift)
            if limits.allowed.shape[0]:
                _clear_forbidden(scratch.units, base, end, limits.allowed, first)
            if scratch.cut == 0:
                missing = kth_of_units(
                    scratch.units, base, end, k, scratch.maxima, scratch.spare, scratch.work
                )
                least = max(least, missing * unit)
            least -= slack
            missing = ordered.rest[walked] if walked < terms else 0.0
            waiting = drain_units(
                scratch.units, base, end, (least - missing) / unit, unit,
                scratch.waiting, scratch.waiting_sums,
            )  # fmt: skip
            if least < missing:  # a document may be among the best that has no units
                return _give_up(scratch, in_block)
            for term in range(walked, terms):
                missing = ordered.rest[term + 1] if term + 1 < terms else 0.0
                waiting = _look_up(
                    segment, codes, ordered, scratch, term, ordered.starts[term, block + 1],
                    base, least - missing, waiting,
                )  # fmt: skip
            found = _append(scratch, waiting, first + base, found, k, shift, bound - slack)
            bound = _raised(scratch, bound, shift)
            if found > room:
                found = _sift(scratch, found, bound - slack)
                if found > room:
                    return _give_up(scratch, in_block)
            base = end
    found = _sift(scratch, found, bound - slack)
    _score(segment, codes, query, scratch, found)
    return _sift(scratch, found, nextafter(bound, _INFINITY))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _clear_forbidden(
    units: cython.short[::1],
    base: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    allowed: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
) -> cython.void:
    """Leave zeros for the documents of a window that may not be returned.

    ``first`` is the document at place 0.
    """
    i: cython.Py_ssize_t
    for i in range(base, end):
        units[i] &= -cython.cast(cython.short, allowed[first + i] != 0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _give_up(scratch: _Scratch, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Leave zeros in a block of so many documents; return -1."""
    i: cython.Py_ssize_t
    for i in range(size):
        scratch.units[i] = 0
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find(
    documents: cython.const[cython.ushort][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    wanted: cython.longlong[::1],
    count: cython.Py_ssize_t,
    postings: cython.longlong[::1],
) -> cython.void:
    """Say for each wanted document where the last one <= it is in ``start`` to ``stop``, or start.

    Four at a time, without branches, so that the processor looks for several at once; there is
    room for three more than are wanted.
    """
    half: cython.Py_ssize_t
    size: cython.Py_ssize_t
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    c: cython.Py_ssize_t
    d: cython.Py_ssize_t
    i: cython.Py_ssize_t = 0
    while i < count:
        a = b = c = d = start
        size = stop - start
        while size > 1:
            half = size >> 1
            a += size_if(documents[a + half] <= wanted[i], half)
            b += size_if(documents[b + half] <= wanted[i + 1], half)
            c += size_if(documents[c + half] <= wanted[i + 2], half)
            d += size_if(documents[d + half] <= wanted[i + 3], half)
            size -= half
        postings[i] = a
        postings[i + 1] = b
        postings[i + 2] = c
        postings[i + 3] = d
        i += 4


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _score(
    segment: _Segment,
    codes: cython.const[Codes][::1],
    query: _Query,
    scratch: _Scratch,
    found: cython.Py_ssize_t,
) -> cython.void:
    """Compute the scores of what has been collected, block by block, as they are defined."""
    begin: cython.Py_ssize_t = 0
    block: cython.Py_ssize_t
    first: cython.Py_ssize_t
    term: cython.Py_ssize_t
    some: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    postings: cython.longlong[::1] = scratch.spare_numbers
    part: cython.double
    matches: cython.bint
    i: cython.Py_ssize_t
    while begin < found:
        block = scratch.numbers[begin] // segment.block_size
        first = block * segment.block_size
        some = 0
        while (
            some + 4 < scratch.width
            and begin + some < found
            and scratch.numbers[begin + some] // segment.block_size == block
        ):
            scratch.waiting[some] = scratch.numbers[begin + some] - first
            scratch.waiting_sums[some] = 0.0
            some += 1
        for i in range(some, some + 3):
            scratch.waiting[i] = 0
        for term in range(query.length):
            start = query.starts[term, block]
            stop = query.starts[term, block + 1]
            if start == stop:
                continue
            _find(segment.documents, start, stop, scratch.waiting, some, postings)
            for i in range(some):
                part = _part(
                    segment.weights[codes[postings[i]]], query.idf[term], query.counts[term]
                )
                matches = segment.documents[postings[i]] == scratch.waiting[i]
                scratch.waiting_sums[i] += part if matches else 0.0
        for i in range(some):
            scratch.scores[begin + i] = scratch.waiting_sums[i] + query.shift
        begin += some


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rank_any(
    segment: _Segment,
    limits: _Limits,
    codes: cython.const[Codes][::1],
    query: _Query,
    bound: cython.double,
    scratch: _Scratch,
) -> cython.Py_ssize_t:
    """Collect the best k above a floor whatever the signs; who matches is kept account of."""
    found: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t
    block: cython.Py_ssize_t
    in_block: cython.Py_ssize_t
    term: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    place: cython.Py_ssize_t
    base: cython.Py_ssize_t
    end: cython.Py_ssize_t
    word: cython.Py_ssize_t
    mask: cython.ulonglong
    for block in range(segment.blocks):
        first = block * segment.block_size
        in_block = min(segment.block_size, segment.size - first)
        for term in range(query.length):
            scratch.cursors[term] = query.starts[term, block]
        base = 0
        while base < in_block:
            end = min(base + limits.window, in_block)
            for term in range(query.length):
                posting = scratch.cursors[term]
                stop = query.starts[term, block + 1]
                while posting < stop and segment.documents[posting] < end:
                    place = segment.documents[posting] - base
                    scratch.sums[place] += _part(
                        segment.weights[codes[posting]], query.idf[term], query.counts[term]
                    )
                    scratch.bits[place >> 6] |= cython.cast(cython.ulonglong, 1) << (place & 63)
                    posting += 1
                scratch.cursors[term] = posting
            for word in range((end - base + 63) >> 6):
                mask = scratch.bits[word]
                scratch.bits[word] = 0
                while mask:
                    place = word * 64 + lowest_bit(mask)
                    mask &= mask - 1
                    if limits.allowed.shape[0] == 0 or limits.allowed[first + base + place]:
                        scratch.numbers[found] = first + base + place
                        scratch.scores[found] = scratch.sums[place] + query.shift
                        found += scratch.scores[found] > bound
                        if found == scratch.numbers.shape[0]:
                            found = _sort_best(scratch, found, limits.k)
                            bound = scratch.scores[found - 1]
                    scratch.sums[place] = 0.0
            base += limits.window
    return found


# --- resolving queries ----------------------------------------------------------------------


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _slots(terms: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return of how many slots a hash table for some terms is: a power of two."""
    slots: cython.Py_ssize_t = 4
    while slots < 2 * terms:
        slots <<= 1
    return slots


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _distinct(
    terms: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    scratch: _Scratch,
    query: _Query,
) -> cython.Py_ssize_t:
    """List the distinct known terms of a query in order of first occurrence, and count them.

    With ``weights``, one for each of ``terms``, these are added up instead. A hash table,
    ``slots``, says where a term is in ``distinct``.
    """
    slots: cython.longlong[::1] = scratch.slots
    found: cython.longlong[::1] = scratch.distinct
    counts: cython.double[::1] = query.counts
    total: cython.Py_ssize_t = 0
    mask: cython.Py_ssize_t = _slots(stop - start) - 1
    i: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    term: cython.longlong
    weight: cython.double
    for i in range(mask + 1):
        slots[i] = -1
    for i in range(start, stop):
        term = terms[i]
        weight = weights[i] if weights.shape[0] else 1.0
        if term < 0:
            continue
        slot = term & mask
        while slots[slot] >= 0 and found[slots[slot]] != term:
            slot = (slot + 1) & mask
        if slots[slot] >= 0:
            counts[slots[slot]] += weight
        else:
            slots[slot] = total
            found[total] = term
            counts[total] = weight
            total += 1
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _plan(segment: _Segment, limits: _Limits, query: _Query) -> cython.bint:
    """Say whether all parts of a query are positive; and in it, how to look for the best.

    Looking terms up asks for enough postings of frequent terms, at least half of all, and for sums
    that are exact in any order: parts are float32, so their float64 sum is if it is less than
    2^29 times the smallest of them, and each is taken a whole number of times. Coarse sums ask
    for enough postings to pay for scoring documents again, several windows, and ordinary numbers.
    """
    total: cython.double = 0.0
    smallest: cython.double = _INFINITY
    weighted: cython.double = _INFINITY
    whole: cython.bint = True
    frequent: cython.Py_ssize_t = 0
    walked: cython.Py_ssize_t = 0
    postings: cython.Py_ssize_t
    term: cython.Py_ssize_t
    count: cython.double
    part: cython.double
    for term in range(query.length):
        count = query.counts[term]
        total += segment.highest * query.idf[term] * count
        part = _part(segment.lowest, query.idf[term], 1.0)
        # A part times a tiny weight may be 0.
        smallest = min(smallest, part)
        weighted = min(weighted, part * count)
        whole = whole and count == floor(count)
        postings = query.starts[term, segment.blocks] - query.starts[term, 0]
        walked += postings
        if postings * _FREQUENT >= segment.size:
            frequent += postings
    query.coarse = (
        segment.levels.shape[0] > 0
        and segment.size > limits.window
        and query.length <= _MOST_TERMS
        and walked * _DENSE >= segment.size
        and walked >= limits.k * query.length * limits.coarse
        and smallest >= _NORMAL
        and weighted >= _NORMAL
        and abs(query.shift) <= total < _HUGE
    )
    query.prune = (
        not query.coarse
        and whole
        and total * _SLACK < smallest * 536870912.0
        and query.length > 1
        and frequent >= limits.heavy
        and 2 * frequent >= walked
    )
    return smallest > 0.0 and weighted > 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _by_bound(segment: _Segment, query: _Query, ordered: _Query, scratch: _Scratch) -> cython.void:
    """Sort the terms of a query by what they can add at most, and say what the rest can.

    A term's bound is its idf times the largest f of the segment, which a term that is in
    many documents nearly reaches.
    """
    place: cython.Py_ssize_t
    term: cython.Py_ssize_t
    block: cython.Py_ssize_t
    total: cython.double = 0.0
    for term in range(query.length):
        scratch.numbers[term] = term
        scratch.scores[term] = query.idf[term] * query.counts[term]
    sort(
        scratch.numbers, scratch.scores, query.length,
        scratch.spare_numbers, scratch.spare, scratch.work,
    )  # fmt: skip
    for place in range(query.length - 1, -1, -1):
        term = scratch.numbers[place]
        ordered.idf[place] = query.idf[term]
        ordered.counts[place] = query.counts[term]
        for block in range(segment.blocks + 1):
            ordered.starts[place, block] = query.starts[term, block]
        total += segment.highest * query.idf[term] * query.counts[term] * _SLACK
        ordered.rest[place] = total
    ordered.length = query.length
    ordered.shift = query.shift
    ordered.prune = True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _answer(
    segment: _Segment,
    codes: cython.const[Codes][::1],
    known: _Terms,
    terms: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    limits: _Limits,
    floor: cython.double,
    query: _Query,
    ordered: _Query,
    scratch: _Scratch,
) -> cython.Py_ssize_t:
    """Answer one query; return how many matches ``scratch`` has, in order."""
    term: cython.Py_ssize_t
    block: cython.Py_ssize_t
    found: cython.Py_ssize_t = -1
    i: cython.Py_ssize_t
    query.length = _distinct(terms, weights, start, stop, scratch, query)
    query.shift = 0.0
    for i in range(query.length):
        term = scratch.distinct[i]
        query.idf[i] = known.idf[term]
        query.shift += _part(known.absent, known.idf[term], query.counts[i])
        for block in range(segment.blocks + 1):
            query.starts[i, block] = known.starts[term, block]
    if not _plan(segment, limits, query):
        found = _rank_any(segment, limits, codes, query, floor, scratch)
    elif query.prune:
        _by_bound(segment, query, ordered, scratch)
        found = _rank(segment, limits, codes, ordered, floor, scratch)
    else:
        if query.coarse:
            _by_bound(segment, query, ordered, scratch)
            found = _rank_coarsely(segment, limits, codes, query, ordered, floor, scratch)
        if found < 0:
            found = _rank(segment, limits, codes, query, floor, scratch)
    return _sort_best(scratch, found, limits.k)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _answer_all(
    segment: _Segment,
    codes: cython.const[Codes][::1],
    known: _Terms,
    pointers: cython.const[cython.longlong][::1],
    terms: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    limits: _Limits,
    floors: cython.const[cython.double][::1],
    query: _Query,
    ordered: _Query,
    scratch: _Scratch,
    numbers: cython.longlong[:, ::1],
    scores: cython.double[:, ::1],
    counts: cython.longlong[::1],
) -> cython.void:
    """Answer query after query."""
    number: cython.Py_ssize_t
    found: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for number in range(pointers.shape[0] - 1):
        found = _answer(
            segment, codes, known, terms, weights, pointers[number], pointers[number + 1],
            limits, floors[number], query, ordered, scratch,
        )  # fmt: skip
        for i in range(found):
            numbers[number, i] = scratch.numbers[i]
            scores[number, i] = scratch.scores[i]
        for i in range(found, limits.k):
            numbers[number, i] = -1
            scores[number, i] = -_INFINITY
        counts[number] = found


# --- what Python calls ------------------------------------------------------------------------


def prepare_segment(segment):
    """Return ``SegmentArrays`` as ``search`` takes them."""
    prepared: _Segment = _Segment()
    prepared.documents = view(segment.documents)
    prepared.is_narrow = segment.codes.itemsize == 2
    if prepared.is_narrow:
        prepared.narrow = view(segment.codes)
        prepared.wide = empty(0, np.uint32)
    else:
        prepared.narrow = empty(0, np.uint16)
        prepared.wide = view(segment.codes)
    prepared.weights = view(segment.weights)
    prepared.levels = view(_levels(segment))
    prepared.lowest = segment.lowest
    prepared.highest = segment.highest
    prepared.size = segment.size
    prepared.block_size = segment.block_size
    prepared.blocks = segment.blocks
    prepared.scratches = []
    return prepared


@cython.cfunc
def _levels(segment):
    """Return f of every code as a share of the largest, rounded down; none if codes are wide."""
    if segment.codes.itemsize > 2 or not 0 < segment.highest < _INFINITY:
        return np.empty(0, np.uint16)
    weights = np.maximum(segment.weights, 0).astype(np.float64)
    return (weights * (_LEVELS / segment.highest)).astype(np.uint16)


def prepare_terms(terms):
    """Return ``TermArrays`` as ``search`` takes them."""
    prepared: _Terms = _Terms()
    prepared.starts = view(terms.starts)
    prepared.idf = view(terms.idf)
    prepared.absent = terms.absent
    return prepared


def number_terms(queries, numbers):
    """Look up the terms of queries; see ``Backend.number_terms``."""
    total: cython.Py_ssize_t = 0
    for query in queries:
        if not isinstance(query, (list, tuple)):
            return None
        total += len(query)
    pointers = np.empty(len(queries) + 1, np.int64)
    terms = np.empty(total, np.int64)
    out_pointers: cython.longlong[::1] = view(pointers)
    out_terms: cython.longlong[::1] = view(terms)
    place: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t = 0
    for query in queries:
        out_pointers[i] = place
        i += 1
        for term in query:
            if place == total:  # another thread has changed a list
                return None
            out_terms[place] = _number_of(numbers, term)
            place += 1
    out_pointers[i] = place
    return pointers, terms[:place]


@cython.cfunc
@cython.inline
def _number_of(numbers, term) -> cython.longlong:
    if cython.compiled:
        found = PyDict_GetItemWithError(numbers, term)  # noqa: F821 - of the .pxd
        if found != cython.NULL:
            return cython.cast(object, found)
    return numbers[term]


def search(segment: _Segment, terms: _Terms, queries, floors, limits, matches):
    """Find the best k matches of each query in one segment; see ``Backend.search``."""
    pointers: cython.const[cython.longlong][::1] = view(queries.pointers)
    numbers: cython.const[cython.longlong][::1] = view(queries.terms)
    weights: cython.const[cython.double][::1] = view(queries.weights)
    least: cython.const[cython.double][::1] = view(floors)
    out_numbers: cython.longlong[:, ::1] = view(matches.numbers)
    out_scores: cython.double[:, ::1] = view(matches.scores)
    out_counts: cython.longlong[::1] = view(matches.counts)
    wanted: _Limits = _prepare_limits(limits)
    longest: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    for i in range(pointers.shape[0] - 1):
        longest = max(longest, pointers[i + 1] - pointers[i])
    scratch: _Scratch = _scratch_for(segment, wanted, longest)
    query: _Query = scratch.query
    ordered: _Query = scratch.ordered
    with cython.nogil:
        if segment.is_narrow:
            _answer_all(
                segment, segment.narrow, terms, pointers, numbers, weights, wanted, least,
                query, ordered, scratch, out_numbers, out_scores, out_counts,
            )  # fmt: skip
        else:
            _answer_all(
                segment, segment.wide, terms, pointers, numbers, weights, wanted, least,
                query, ordered, scratch, out_numbers, out_scores, out_counts,
            )  # fmt: skip
    _keep(segment, scratch)


def search_one(
    segment: _Segment, terms: _Terms, numbers: list, weights: list, floor: cython.double, limits
):
    """Find the best k matches of one query in one segment; see ``Backend.search_one``."""
    wanted: _Limits = _prepare_limits(limits)
    length: cython.Py_ssize_t = len(numbers)
    scratch: _Scratch = _scratch_for(segment, wanted, length)
    query: _Query = scratch.query
    ordered: _Query = scratch.ordered
    own_weights: cython.double[::1] = scratch.weights[: len(weights)]
    found: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for i in range(length):
        scratch.terms[i] = numbers[i]
    for i in range(len(weights)):
        own_weights[i] = weights[i]
    with cython.nogil:
        if segment.is_narrow:
            found = _answer(
                segment, segment.narrow, terms, scratch.terms, own_weights, 0, length,
                wanted, floor, query, ordered, scratch,
            )  # fmt: skip
        else:
            found = _answer(
                segment, segment.wide, terms, scratch.terms, own_weights, 0, length,
                wanted, floor, query, ordered, scratch,
            )  # fmt: skip
    best = [scratch.numbers[i] for i in range(found)]
    scores = [scratch.scores[i] for i in range(found)]
    _keep(segment, scratch)
    return best, scores


@cython.cfunc
def _prepare_limits(limits) -> _Limits:
    wanted: _Limits = _Limits()
    k, allowed, window, heavy, sparse, coarse = limits
    wanted.k = k
    wanted.allowed = _NO_MASK if allowed is None else view(allowed.view(np.uint8))
    wanted.window = window
    wanted.heavy = heavy
    wanted.sparse = sparse
    wanted.coarse = coarse
    return wanted


@cython.cfunc
def _scratch_for(segment: _Segment, limits: _Limits, longest: cython.Py_ssize_t) -> _Scratch:
    """Return memory that no other thread uses, of an earlier call if that fits."""
    width: cython.Py_ssize_t = min(min(limits.window, segment.block_size), segment.size)
    room: cython.Py_ssize_t = limits.k + max(limits.k, 512)
    scratch: _Scratch
    try:
        scratch = segment.scratches.pop()
    except IndexError:  # of other threads, or this is the first call
        return _allot(segment, (width + 63) // 64 * 64, room, max(longest, _USUAL))
    if scratch.width < width or scratch.longest < longest or scratch.room != room:
        return _allot(segment, (width + 63) // 64 * 64, room, max(longest, _USUAL))
    return scratch


@cython.cfunc
def _keep(segment: _Segment, scratch: _Scratch) -> cython.void:
    """Keep the memory of a call for the next ones, unless it is much."""
    if len(segment.scratches) < _KEPT and scratch.room + scratch.longest <= _MUCH:
        segment.scratches.append(scratch)


@cython.cfunc
def _allot(
    segment: _Segment,
    width: cython.Py_ssize_t,
    room: cython.Py_ssize_t,
    longest: cython.Py_ssize_t,
) -> _Scratch:
    """Cut all that a query is answered in out of a few arrays.

    Parameters
    ----------
    segment
        The segment.
    width
        Documents of a window, a multiple of 64.
    room
        For matches that are collected, beside those of a window; terms are sorted there, too.
    longest
        Terms of a query.
    """
    scratch: _Scratch = _Scratch()
    query: _Query = _Query()
    ordered: _Query = _Query()
    scratch.query = query
    scratch.ordered = ordered
    scratch.width = width
    scratch.room = room
    scratch.longest = longest
    chunks: cython.Py_ssize_t = width // 8
    # What is collected is cut down when there is no room for a window more.
    cells: cython.Py_ssize_t = max(room + width, longest)
    spare: cython.Py_ssize_t = max(cells, chunks)
    slots: cython.Py_ssize_t = _slots(longest)
    at: cython.Py_ssize_t = 0
    floats: cython.double[::1] = empty(width + chunks + cells + spare + 9 * longest + 1)
    # No query has both: sums are zero between queries, and so are units.
    units: cython.Py_ssize_t = (min(segment.block_size, segment.size) + 63) // 64 * 64
    shared = np.zeros(max(width, units // 4))
    scratch.sums = view(shared[:width])
    scratch.units = view(shared.view(np.int16))
    scratch.bits = zeros(width // 64, np.uint64)
    scratch.waiting_sums = floats[:width]
    at = width
    scratch.maxima = floats[at : at + chunks]
    at += chunks
    scratch.scores = floats[at : at + cells]
    at += cells
    scratch.spare = floats[at : at + spare]
    at += spare
    scratch.weights = floats[at : at + longest]
    at += longest
    scratch.postings = floats[at : at + longest]
    at += longest
    scratch.waited = floats[at : at + longest + 1]
    at += longest + 1
    query.idf = floats[at : at + longest]
    at += longest
    query.counts = floats[at : at + longest]
    at += longest
    query.rest = floats[at : at + longest]
    at += longest
    ordered.idf = floats[at : at + longest]
    at += longest
    ordered.counts = floats[at : at + longest]
    at += longest
    ordered.rest = floats[at : at + longest]
    work: cython.Py_ssize_t = spare + 1 + WORK
    ints: cython.longlong[::1] = empty(
        width + 1 + 2 * cells + work + 4 * longest + _BINS + slots, np.int64
    )
    scratch.waiting = ints[: width + 1]
    at = width + 1
    scratch.numbers = ints[at : at + cells]
    at += cells
    scratch.spare_numbers = ints[at : at + cells]
    at += cells
    scratch.work = ints[at : at + work]
    at += work
    scratch.terms = ints[at : at + longest]
    at += longest
    scratch.distinct = ints[at : at + longest]
    at += longest
    scratch.begins = ints[at : at + longest]
    at += longest
    scratch.cursors = ints[at : at + longest]
    at += longest
    scratch.tallies = ints[at : at + _BINS]
    at += _BINS
    scratch.slots = ints[at : at + slots]
    starts: cython.longlong[:, ::1] = view(np.empty((2 * longest, segment.blocks + 1), np.int64))
    query.starts = starts[:longest]
    ordered.starts = starts[longest:]
    query.prune = False
    return scratch

"""Search: the best k documents of each query of a batch.

Documents are walked in windows whose sums stay in the cache, terms in the order of the
query, so every sum is that of the score's definition. A query with terms that are in very
many documents has its terms sorted by what they can add at most, if sums are exact in any
order: once the k-th best score is known, terms whose bounds together cannot reach it are
not walked any more for themselves, but added to the documents that still can, or looked up
for those (MaxScore: Turtle and Flood, 1995). Where few documents can, they are listed while
their sums are made, and the sums of the others are not looked at.

A window's sums begin at 0 with its first document. ``_add``, ``_touch`` and ``_add_to_touched``
are one loop written three times, since a choice inside it would be made for every posting.
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import empty, view, zeros
from bm25rag.kernels.selecting import WORK

if not cython.compiled:
    from math import floor, nextafter

    from bm25rag.kernels.selecting import collect, drain, keep_best, kth_of_maxima, sort

Codes = cython.fused_type(cython.ushort, cython.uint)

# Postings that are walked in the time of one look-up.
_LOOK_UP = cython.declare(cython.double, 40.0)
# How much of its estimate of waiting documents a window keeps of those before.
_FADING = cython.declare(cython.double, 0.95)
# What subtracting a shift from a floor can be off by, for their size, and more.
_ROUNDING = cython.declare(cython.double, 1e-15)
# A term is frequent if it is in one of so many documents.
_FREQUENT = cython.declare(cython.Py_ssize_t, 8)
# Bounds are raised by this much, beyond any rounding of theirs.
_SLACK = cython.declare(cython.double, 1.0 + 1e-6)
_INFINITY = cython.declare(cython.double, float("inf"))


@cython.final
@cython.cclass
class _Source:
    """Where to search: postings but for their codes, f of every code, and who may be returned.

    ``allowed`` is empty if all may. Of postings so many times fewer than documents the
    kernel lists what they touch, instead of looking through all sums: ``sparse``.
    """

    documents: cython.const[cython.ushort][::1]
    weights: cython.const[cython.float][::1]
    lowest: cython.double
    highest: cython.double
    size: cython.Py_ssize_t
    block_size: cython.Py_ssize_t
    blocks: cython.Py_ssize_t
    allowed: cython.const[cython.uchar][::1]
    k: cython.Py_ssize_t
    window: cython.Py_ssize_t
    heavy: cython.Py_ssize_t
    sparse: cython.Py_ssize_t


@cython.final
@cython.cclass
class _Query:
    """Distinct terms: where their postings begin in each block, their idf and multiplicity.

    ``rest[j]`` is what terms j and later can add together at most, if terms may be looked
    up instead of walked, ``prune``; they come by bound descending then.
    """

    length: cython.Py_ssize_t
    starts: cython.longlong[:, ::1]
    idf: cython.float[::1]
    counts: cython.double[::1]
    rest: cython.double[::1]
    shift: cython.double
    prune: cython.bint


@cython.final
@cython.cclass
class _Scratch:
    """Memory that all queries of a call use.

    ``sums`` are zero between queries; ``numbers`` and ``scores`` collect documents; the last
    three have room for every term of the longest query, and one more.
    """

    sums: cython.double[::1]
    waiting: cython.longlong[::1]
    waiting_sums: cython.double[::1]
    bits: cython.ulonglong[::1]
    maxima: cython.double[::1]
    numbers: cython.longlong[::1]
    scores: cython.double[::1]
    spare_numbers: cython.longlong[::1]
    spare: cython.double[::1]
    work: cython.longlong[::1]
    touched: cython.uchar[::1]
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
@cython.nogil
@cython.exceptval(check=False)
def _add(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    weights: cython.const[cython.float][::1],
    idf: cython.float,
    count: cython.double,
    posting: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    whole: cython.bint,
    sums: cython.double[::1],
) -> cython.Py_ssize_t:
    """Add a term's parts to the sums of a window; return its first posting behind the window.

    ``whole`` says that all postings up to ``stop`` are in the window.
    """
    i: cython.Py_ssize_t
    document: cython.Py_ssize_t
    if whole:
        for i in range(posting, stop):
            sums[documents[i] - base] += _part(weights[codes[i]], idf, count)
        return stop
    while posting < stop:
        document = documents[posting]
        if document >= end:
            break
        sums[document - base] += _part(weights[codes[posting]], idf, count)
        posting += 1
    return posting


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _touch(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    weights: cython.const[cython.float][::1],
    idf: cython.float,
    count: cython.double,
    posting: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    sums: cython.double[::1],
    listed: cython.longlong[::1],
    total: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Do as ``_add``, and list the places whose sums were 0; return how many are listed then.

    ``total`` are listed before, and there is room for one more than there are places.
    """
    document: cython.Py_ssize_t
    place: cython.Py_ssize_t
    before: cython.double
    while posting < stop:
        document = documents[posting]
        if document >= end:
            break
        place = document - base
        before = sums[place]
        listed[total] = place
        total += before == 0.0
        sums[place] = before + _part(weights[codes[posting]], idf, count)
        posting += 1
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_to_touched(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    weights: cython.const[cython.float][::1],
    idf: cython.float,
    count: cython.double,
    posting: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    base: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    sums: cython.double[::1],
) -> cython.Py_ssize_t:
    """Do as ``_add``, but only where a sum is not 0."""
    document: cython.Py_ssize_t
    before: cython.double
    part: cython.double
    while posting < stop:
        document = documents[posting]
        if document >= end:
            break
        before = sums[document - base]
        part = _part(weights[codes[posting]], idf, count)
        sums[document - base] = before + (part if before > 0.0 else 0.0)
        posting += 1
    return posting


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
    source: _Source,
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
        posting = _first_at_least(source.documents, posting, stop, document)
        if posting < stop and source.documents[posting] == document:
            sum_ += _part(source.weights[codes[posting]], query.idf[term], query.counts[term])
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
@cython.nogil
@cython.exceptval(check=False)
def _rank(
    source: _Source,
    codes: cython.const[Codes][::1],
    query: _Query,
    bound: cython.double,
    scratch: _Scratch,
) -> cython.Py_ssize_t:
    """Collect the best k above a floor where every part is positive; return how many.

    A sum of 0 is no match, then. ``bound`` is the floor.
    """
    size: cython.Py_ssize_t = source.size
    k: cython.Py_ssize_t = source.k
    terms: cython.Py_ssize_t = query.length
    essential: cython.Py_ssize_t = terms
    shift: cython.double = query.shift
    share: cython.double = (
        cython.cast(cython.double, min(min(source.window, source.block_size), size)) / size
    )
    found: cython.Py_ssize_t = 0
    waiting: cython.Py_ssize_t
    first: cython.Py_ssize_t
    block: cython.Py_ssize_t
    in_block: cython.Py_ssize_t
    base: cython.Py_ssize_t
    end: cython.Py_ssize_t
    width: cython.Py_ssize_t
    term: cython.Py_ssize_t
    walked: cython.Py_ssize_t
    place: cython.Py_ssize_t
    i: cython.Py_ssize_t
    least: cython.double
    missing: cython.double
    reached: cython.double
    for term in range(terms):
        scratch.postings[term] = (query.starts[term, source.blocks] - query.starts[term, 0]) * share
    for term in range(terms + 1):
        scratch.waited[term] = 0.0
    for block in range(source.blocks):
        first = block * source.block_size
        in_block = min(source.block_size, size - first)
        for term in range(terms):
            scratch.cursors[term] = query.starts[term, block]
        base = 0
        while base < in_block:
            walked = terms
            if query.prune:
                while essential > 0 and query.rest[essential - 1] + shift <= bound:
                    essential -= 1
                if essential == 0:
                    return found
                walked = _choose_walked(scratch, essential, terms)
                for term in range(terms):
                    scratch.cursors[term] = _first_at_least(
                        source.documents,
                        scratch.cursors[term],
                        query.starts[term, block + 1],
                        base,
                    )
            end = min(base + source.window, in_block)
            width = end - base
            least = _least(bound, shift)
            missing = query.rest[walked] if walked < terms else 0.0
            if least - missing > 0.0 and _expected(scratch, essential) * source.sparse < width:
                waiting = 0
                for term in range(essential):
                    waiting = _touch(
                        source.documents, codes, source.weights,
                        query.idf[term], query.counts[term],
                        scratch.cursors[term], query.starts[term, block + 1],
                        base, end, scratch.sums, scratch.waiting, waiting,
                    )  # fmt: skip
                    scratch.cursors[term] = _first_at_least(
                        source.documents,
                        scratch.cursors[term],
                        query.starts[term, block + 1],
                        end,
                    )
                for term in range(essential, walked):
                    scratch.cursors[term] = _add_to_touched(
                        source.documents, codes, source.weights,
                        query.idf[term], query.counts[term],
                        scratch.cursors[term], query.starts[term, block + 1],
                        base, end, scratch.sums,
                    )  # fmt: skip
                if source.allowed.shape[0]:
                    for i in range(waiting):
                        place = scratch.waiting[i]
                        if not source.allowed[first + base + place]:
                            scratch.sums[place] = 0.0
                waiting = collect(
                    scratch.sums, scratch.waiting, scratch.waiting_sums, scratch.bits,
                    waiting, width, least - missing,
                )  # fmt: skip
            else:
                for term in range(walked):
                    scratch.cursors[term] = _add(
                        source.documents, codes, source.weights,
                        query.idf[term], query.counts[term],
                        scratch.cursors[term], query.starts[term, block + 1],
                        base, end, end == in_block, scratch.sums,
                    )  # fmt: skip
                if source.allowed.shape[0]:
                    for place in range(width):
                        if not source.allowed[first + base + place]:
                            scratch.sums[place] = 0.0
                if least <= 0.0 and walked == terms:
                    reached = kth_of_maxima(
                        scratch.sums, width, k, scratch.maxima, scratch.spare, scratch.work
                    )
                    if reached > 0.0:
                        bound = max(bound, nextafter(reached + shift, -_INFINITY))
                        least = _least(bound, shift)
                waiting = drain(
                    scratch.sums, width, max(least - missing, 0.0),
                    scratch.waiting, scratch.waiting_sums,
                )  # fmt: skip
            if query.prune:
                scratch.waited[walked] = waiting
            for term in range(walked, terms):
                missing = query.rest[term + 1] if term + 1 < terms else 0.0
                waiting = _look_up(
                    source, codes, query, scratch, term, query.starts[term, block + 1],
                    base, least - missing, waiting,
                )  # fmt: skip
            for i in range(waiting):
                scratch.numbers[found] = first + base + scratch.waiting[i]
                scratch.scores[found] = scratch.waiting_sums[i] + shift
                found += scratch.scores[found] > bound
                if found == scratch.numbers.shape[0]:
                    bound = keep_best(
                        scratch.numbers, scratch.scores, found, k, scratch.spare, scratch.work
                    )
                    found = k
            if found > k + (k >> 1):
                bound = keep_best(
                    scratch.numbers, scratch.scores, found, k, scratch.spare, scratch.work
                )
                found = k
            base += source.window
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rank_any(
    source: _Source,
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
    place: cython.Py_ssize_t
    base: cython.Py_ssize_t
    end: cython.Py_ssize_t
    for term in range(query.length):
        scratch.cursors[term] = query.starts[term, 0]
    for block in range(source.blocks):
        first = block * source.block_size
        in_block = min(source.block_size, source.size - first)
        for term in range(query.length):
            scratch.cursors[term] = query.starts[term, block]
        base = 0
        while base < in_block:
            end = min(base + source.window, in_block)
            for term in range(query.length):
                posting = scratch.cursors[term]
                while posting < query.starts[term, block + 1] and source.documents[posting] < end:
                    place = source.documents[posting] - base
                    scratch.sums[place] += _part(
                        source.weights[codes[posting]], query.idf[term], query.counts[term]
                    )
                    scratch.touched[place] = 1
                    posting += 1
                scratch.cursors[term] = posting
            for place in range(end - base):
                if scratch.touched[place] and (
                    source.allowed.shape[0] == 0 or source.allowed[first + base + place]
                ):
                    scratch.numbers[found] = first + base + place
                    scratch.scores[found] = scratch.sums[place] + query.shift
                    found += scratch.scores[found] > bound
                    if found == scratch.numbers.shape[0]:
                        bound = keep_best(
                            scratch.numbers, scratch.scores, found, source.k,
                            scratch.spare, scratch.work,
                        )  # fmt: skip
                        found = source.k
                scratch.sums[place] = 0.0
                scratch.touched[place] = 0
            base += source.window
    return found


# --- resolving queries ----------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _distinct(
    terms: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    places: cython.longlong[::1],
    found: cython.longlong[::1],
    counts: cython.double[::1],
) -> cython.Py_ssize_t:
    """List the distinct known terms of a query in order of first occurrence, and count them.

    With ``weights``, one for each of ``terms``, these are added up instead.

    ``places`` says where a term is in ``found``; it may hold anything before, since only
    what ``found`` confirms is believed (Briggs and Torczon, 1993).
    """
    total: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    term: cython.Py_ssize_t
    place: cython.Py_ssize_t
    weight: cython.double
    for i in range(start, stop):
        term = terms[i]
        weight = weights[i] if weights.shape[0] else 1.0
        if term < 0:
            continue
        place = places[term]
        if 0 <= place < total and found[place] == term:
            counts[place] += weight
        else:
            places[term] = total
            found[total] = term
            counts[total] = weight
            total += 1
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _plan(source: _Source, query: _Query) -> cython.bint:
    """Say whether all parts of a query are positive; and in it, whether to look terms up.

    The latter asks for enough postings of frequent terms, and for sums that are exact in any
    order: parts are float32, so their float64 sum is if it is less than 2^29 times the
    smallest of them, and each is taken a whole number of times.
    """
    total: cython.double = 0.0
    smallest: cython.double = _INFINITY
    weighted: cython.double = _INFINITY
    whole: cython.bint = True
    frequent: cython.Py_ssize_t = 0
    postings: cython.Py_ssize_t
    term: cython.Py_ssize_t
    count: cython.double
    part: cython.double
    for term in range(query.length):
        count = query.counts[term]
        total += source.highest * query.idf[term] * count
        part = _part(source.lowest, query.idf[term], 1.0)
        # A part times a tiny weight may be 0.
        smallest = min(smallest, part)
        weighted = min(weighted, part * count)
        whole = whole and count == floor(count)
        postings = query.starts[term, source.blocks] - query.starts[term, 0]
        if postings * _FREQUENT >= source.size:
            frequent += postings
    query.prune = (
        whole
        and total * _SLACK < smallest * 536870912.0
        and query.length > 1
        and frequent >= source.heavy
    )
    return smallest > 0.0 and weighted > 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _by_bound(source: _Source, query: _Query, ordered: _Query, scratch: _Scratch) -> cython.void:
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
        for block in range(source.blocks + 1):
            ordered.starts[place, block] = query.starts[term, block]
        total += source.highest * query.idf[term] * query.counts[term] * _SLACK
        ordered.rest[place] = total
    ordered.length = query.length
    ordered.shift = query.shift
    ordered.prune = True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _answer(
    source: _Source,
    codes: cython.const[Codes][::1],
    starts: cython.const[cython.longlong][:, ::1],
    idf: cython.const[cython.float][::1],
    absent: cython.float,
    pointers: cython.const[cython.longlong][::1],
    terms: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    floors: cython.const[cython.double][::1],
    places: cython.longlong[::1],
    distinct: cython.longlong[::1],
    query: _Query,
    ordered: _Query,
    scratch: _Scratch,
    numbers: cython.longlong[:, ::1],
    scores: cython.double[:, ::1],
    counts: cython.longlong[::1],
) -> cython.void:
    """Answer query after query."""
    k: cython.Py_ssize_t = source.k
    number: cython.Py_ssize_t
    term: cython.Py_ssize_t
    block: cython.Py_ssize_t
    found: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for number in range(pointers.shape[0] - 1):
        query.length = _distinct(
            terms, weights, pointers[number], pointers[number + 1], places, distinct, query.counts
        )
        query.shift = 0.0
        for i in range(query.length):
            term = distinct[i]
            query.idf[i] = idf[term]
            query.shift += _part(absent, idf[term], query.counts[i])
            for block in range(source.blocks + 1):
                query.starts[i, block] = starts[term, block]
        if not _plan(source, query):
            found = _rank_any(source, codes, query, floors[number], scratch)
        elif query.prune:
            _by_bound(source, query, ordered, scratch)
            found = _rank(source, codes, ordered, floors[number], scratch)
        else:
            found = _rank(source, codes, query, floors[number], scratch)
        if found > k:
            keep_best(scratch.numbers, scratch.scores, found, k, scratch.spare, scratch.work)
            found = k
        sort(
            scratch.numbers, scratch.scores, found,
            scratch.spare_numbers, scratch.spare, scratch.work,
        )  # fmt: skip
        for i in range(found):
            numbers[number, i] = scratch.numbers[i]
            scores[number, i] = scratch.scores[i]
        for i in range(found, k):
            numbers[number, i] = -1
            scores[number, i] = -_INFINITY
        counts[number] = found


@cython.cfunc
def _new_query(longest: cython.Py_ssize_t, width: cython.Py_ssize_t) -> _Query:
    query: _Query = _Query()
    query.starts = view(np.empty((longest, width), np.int64))
    query.idf = empty(longest, np.float32)
    query.counts = empty(longest)
    query.rest = empty(longest)
    query.prune = False
    return query


@cython.cfunc
def _new_scratch(
    width: cython.Py_ssize_t, room: cython.Py_ssize_t, longest: cython.Py_ssize_t
) -> _Scratch:
    scratch: _Scratch = _Scratch()
    scratch.sums = zeros(width)
    scratch.waiting = empty(width + 1, np.int64)
    scratch.waiting_sums = empty(width + 1)
    scratch.bits = zeros(width // 64, np.uint64)
    scratch.maxima = empty(width // 8)
    scratch.numbers = empty(room, np.int64)
    scratch.scores = empty(room)
    scratch.spare_numbers = empty(room, np.int64)
    scratch.spare = empty(max(room, width // 8))
    scratch.work = empty(max(room + 1, WORK), np.int64)
    scratch.touched = zeros(width, np.uint8)
    scratch.cursors = empty(longest, np.int64)
    scratch.postings = empty(longest)
    scratch.waited = empty(longest + 1)
    return scratch


def search(segment, terms, queries, limits, matches):
    """Find the best k matches of each query in one segment; see ``Backend.search``."""
    source: _Source = _Source()
    source.documents = view(segment.documents)
    source.weights = view(segment.weights)
    source.lowest = segment.lowest
    source.highest = segment.highest
    source.size = segment.size
    source.block_size = segment.block_size
    source.blocks = segment.blocks
    source.allowed = view(limits.allowed.view(np.uint8))
    source.k = limits.k
    source.window = limits.window
    source.heavy = limits.heavy
    source.sparse = limits.sparse
    starts: cython.const[cython.longlong][:, ::1] = view(terms.starts)
    idf: cython.const[cython.float][::1] = view(terms.idf)
    absent: cython.float = terms.absent
    pointers: cython.const[cython.longlong][::1] = view(queries.pointers)
    numbers: cython.const[cython.longlong][::1] = view(queries.terms)
    weights: cython.const[cython.double][::1] = view(queries.weights)
    floors: cython.const[cython.double][::1] = view(limits.floors)
    out_numbers: cython.longlong[:, ::1] = view(matches.numbers)
    out_scores: cython.double[:, ::1] = view(matches.scores)
    out_counts: cython.longlong[::1] = view(matches.counts)
    narrow: cython.const[cython.ushort][::1]
    wide: cython.const[cython.uint][::1]
    longest: cython.Py_ssize_t = 0
    width: cython.Py_ssize_t = min(min(source.window, source.block_size), source.size)
    room: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for i in range(pointers.shape[0] - 1):
        longest = max(longest, pointers[i + 1] - pointers[i])
    room = max(source.k + max(source.k, 512), longest)
    scratch: _Scratch = _new_scratch((width + 63) // 64 * 64, room, longest)
    query: _Query = _new_query(longest, source.blocks + 1)
    ordered: _Query = _new_query(longest, source.blocks + 1)
    places: cython.longlong[::1] = empty(idf.shape[0], np.int64)
    distinct: cython.longlong[::1] = empty(longest, np.int64)
    if segment.codes.itemsize == 2:
        narrow = view(segment.codes)
        with cython.nogil:
            _answer(
                source, narrow, starts, idf, absent, pointers, numbers, weights, floors,
                places, distinct, query, ordered, scratch, out_numbers, out_scores, out_counts,
            )  # fmt: skip
    else:
        wide = view(segment.codes)
        with cython.nogil:
            _answer(
                source, wide, starts, idf, absent, pointers, numbers, weights, floors,
                places, distinct, query, ordered, scratch, out_numbers, out_scores, out_counts,
            )  # fmt: skip

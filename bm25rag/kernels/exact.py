"""Search by the scores themselves.

Parts are positive, so a sum only grows: a document that can be among the best is listed by the
posting that takes its sum beyond what it must exceed, and the sums of all others are never
looked at. Windows are small at first, so that the floor rises soon. Where a window has very many
postings, or many and all documents, all its sums are looked at instead, which is less work for
every posting.

``_add`` and ``_list`` are one loop written twice, since a choice inside it would be made for every
posting.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from bm25rag.kernels.collecting import (
        collect,
        enter_block,
        has_room,
        keep_best,
        sift,
    )
    from bm25rag.kernels.scratch import Plan, Query, Scratch, Segment, least_sum, part
    from bm25rag.kernels.selecting import (
        chunk_length,
        drain,
        kth_lower_bound,
        lowest_bit,
        mask,
        sum_if,
    )


Codes = cython.fused_type(cython.ushort, cython.uint)

# The documents of the first window, at least and for each document wanted.
_FIRST_WINDOW = cython.declare(cython.Py_ssize_t, 512)
_FIRST_BY_K = cython.declare(cython.Py_ssize_t, 16)
# If so many times fewer documents are listed than there are postings, they are listed rarely.
_RARELY = cython.declare(cython.Py_ssize_t, 24)
# Postings for each document from which on all sums of a window are looked at.
_FULL = cython.declare(cython.Py_ssize_t, 1)
# Documents for each posting from which on every posting's sum is cleared, instead of a window's.
_CLEARED = cython.declare(cython.Py_ssize_t, 3)


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
                sums[documents[i] - base] += part(weights[codes[i]], idf, count)
            posting += 4
    while posting + 4 <= stop and documents[posting + 3] < end:
        for i in range(posting, posting + 4):
            sums[documents[i] - base] += part(weights[codes[i]], idf, count)
        posting += 4
    while posting < stop and documents[posting] < end:
        sums[documents[posting] - base] += part(weights[codes[posting]], idf, count)
        posting += 1
    cursors[term] = posting


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _list_one(
    sums: cython.double[::1],
    listed: cython.longlong[::1],
    total: cython.Py_ssize_t,
    place: cython.Py_ssize_t,
    addend: cython.double,
    least: cython.double,
    rarely: cython.bint,
) -> cython.Py_ssize_t:
    """Add to a sum, and list its place if it exceeds ``least`` now, and did not before.

    Return how many are listed then. ``rarely`` predicts a branch, in less time if few are listed.
    """
    before: cython.double = sums[place]
    after: cython.double = before + addend
    sums[place] = after
    if rarely and after <= least:
        return total
    listed[total] = place
    return total + ((after > least) & (before <= least))


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
    rarely: cython.bint,
) -> cython.Py_ssize_t:
    """Do as ``_add``, and list places as ``_list_one`` does.

    Return how many are listed then; ``total`` are before, and there is room for one more than
    there are places. Each call is for one value of ``rarely``, and is compiled for that.
    """
    posting: cython.Py_ssize_t = cursors[term]
    more: cython.double
    i: cython.Py_ssize_t
    while posting + 4 <= stop and documents[posting + 3] < end:
        for i in range(posting, posting + 4):
            more = part(weights[codes[i]], idf, count)
            total = _list_one(sums, listed, total, documents[i] - base, more, least, rarely)
        posting += 4
    while posting < stop and documents[posting] < end:
        more = part(weights[codes[posting]], idf, count)
        total = _list_one(sums, listed, total, documents[posting] - base, more, least, rarely)
        posting += 1
    cursors[term] = posting
    return total


# --- a window ------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(
    segment: Segment,
    codes: cython.const[Codes][::1],
    query: Query,
    scratch: Scratch,
    least: cython.double,
    full: cython.bint,
    rarely: cython.bint,
) -> cython.Py_ssize_t:
    """Walk the terms in a window; return how many places are listed: none if ``full``.

    Then, a place is listed if its sum exceeds ``least``, and a sum is not 0 only where one of the
    terms has a posting.
    """
    listed: cython.Py_ssize_t = 0
    base: cython.Py_ssize_t = scratch.base
    end: cython.Py_ssize_t = scratch.end
    stop: cython.Py_ssize_t
    term: cython.Py_ssize_t
    for term in range(query.length):
        scratch.begins[term] = scratch.cursors[term]
        stop = query.starts[term, scratch.block + 1]
        if full:
            _add(
                segment.documents, codes, segment.weights, query.idf[term], query.counts[term],
                scratch.cursors, term, stop, base, end, scratch.sums,
            )  # fmt: skip
        elif rarely:
            listed = _list(
                segment.documents, codes, segment.weights, query.idf[term], query.counts[term],
                scratch.cursors, term, stop, base, end, least,
                scratch.sums, scratch.waiting, listed, True,
            )  # fmt: skip
        else:
            listed = _list(
                segment.documents, codes, segment.weights, query.idf[term], query.counts[term],
                scratch.cursors, term, stop, base, end, least,
                scratch.sums, scratch.waiting, listed, False,
            )  # fmt: skip
    return listed


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _mask(
    plan: Plan, scratch: Scratch, listed: cython.Py_ssize_t, full: cython.bint
) -> cython.void:
    """Leave zeros for the documents of a window that may not be returned."""
    first: cython.Py_ssize_t = scratch.first + scratch.base
    place: cython.Py_ssize_t
    i: cython.Py_ssize_t
    if full:
        mask(scratch.sums, 0, scratch.end - scratch.base, plan.allowed, first)
        return
    for i in range(listed):
        place = scratch.waiting[i]
        scratch.sums[place] = sum_if(plan.allowed[first + place], scratch.sums[place])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _take_out(
    plan: Plan,
    query: Query,
    scratch: Scratch,
    listed: cython.Py_ssize_t,
    least: cython.double,
    full: cython.bint,
) -> cython.Py_ssize_t:
    """Move the sums of documents that may be among the best out; return how many wait.

    All sums that were looked at are 0 then.
    """
    width: cython.Py_ssize_t = scratch.end - scratch.base
    known: cython.Py_ssize_t = 0
    reached: cython.double
    if full:
        if least == 0.0:
            reached = kth_lower_bound(
                scratch.sums, 0, width, plan.k, scratch.maxima, scratch.spare, scratch.work
            )
            # A smaller sum may have the same score, if the shift is much larger.
            least = max(0.0, least_sum(reached + query.shift, query.shift))
            known = width // 64 if chunk_length(width, plan.k) == 64 else 0
        return drain(
            scratch.sums, 0, width, least, 1.0, scratch.maxima, known,
            scratch.waiting, scratch.waiting_sums,
        )  # fmt: skip
    return _drain_listed(scratch, listed)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _drain_listed(scratch: Scratch, listed: cython.Py_ssize_t) -> cython.Py_ssize_t:
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
def _clear_walked(
    segment: Segment, query: Query, scratch: Scratch, postings: cython.Py_ssize_t
) -> cython.void:
    """Leave zeros in a window where the terms have been walked."""
    width: cython.Py_ssize_t = scratch.end - scratch.base
    term: cython.Py_ssize_t
    i: cython.Py_ssize_t
    if postings * _CLEARED < width:
        for term in range(query.length):
            for i in range(scratch.begins[term], scratch.cursors[term]):
                scratch.sums[segment.documents[i] - scratch.base] = 0.0
    else:
        for i in range(width):
            scratch.sums[i] = 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _postings_walked(query: Query, scratch: Scratch) -> cython.Py_ssize_t:
    """Return how many postings of the terms were in the window walked last."""
    total: cython.Py_ssize_t = 0
    term: cython.Py_ssize_t
    for term in range(query.length):
        total += scratch.cursors[term] - scratch.begins[term]
    return total


# --- a query ---------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def rank(segment: Segment, plan: Plan, query: Query, scratch: Scratch) -> cython.void:
    """Collect the best k above the floor, and some more, where every part is positive.

    A sum of 0 is no match, then. Before each window, all sums are 0, and of the documents before
    it, those are collected that may be among the best.
    """
    widest: cython.Py_ssize_t = min(min(plan.window, segment.block_size), segment.size)
    window: cython.Py_ssize_t = min(widest, max(_FIRST_WINDOW, plan.k * _FIRST_BY_K))
    rarely: cython.bint = False
    full: cython.bint
    postings: cython.Py_ssize_t = query.walked
    waiting: cython.Py_ssize_t
    block: cython.Py_ssize_t
    least: cython.double
    if postings == 0:
        return
    full = postings >= _FULL * segment.size or (
        segment.size <= widest and postings * plan.sparse >= segment.size
    )
    if full:
        window = widest
    for block in range(segment.blocks):
        enter_block(segment, query, scratch, block)
        while scratch.base < scratch.in_block:
            scratch.end = min(scratch.base + window, scratch.in_block)
            least = max(least_sum(scratch.floor, query.shift), 0.0)
            waiting = _walk_window(segment, query, scratch, least, full, rarely)
            postings = _postings_walked(query, scratch)
            waiting = _empty_window(segment, plan, query, scratch, waiting, least, full, postings)
            rarely = waiting * _RARELY < postings
            full = postings >= _FULL * (scratch.end - scratch.base)
            _collect(plan, query, scratch, waiting)
            scratch.base = scratch.end
            window = min(2 * window, widest)
    sift(scratch, scratch.floor)


# Sums, which were 0, are then those of the window's documents.
@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk_window(
    segment: Segment,
    query: Query,
    scratch: Scratch,
    least: cython.double,
    full: cython.bint,
    rarely: cython.bint,
) -> cython.Py_ssize_t:
    """Walk the terms in a window; return how many places are listed."""
    if segment.is_narrow:
        return _walk(segment, segment.narrow, query, scratch, least, full, rarely)
    return _walk(segment, segment.wide, query, scratch, least, full, rarely)


# All sums are 0 again; those of documents that may be among the best wait.
@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _empty_window(
    segment: Segment,
    plan: Plan,
    query: Query,
    scratch: Scratch,
    listed: cython.Py_ssize_t,
    least: cython.double,
    full: cython.bint,
    postings: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Move the sums of documents that may be returned out; return how many wait."""
    waiting: cython.Py_ssize_t
    if plan.allowed.shape[0]:
        _mask(plan, scratch, listed, full)
    waiting = _take_out(plan, query, scratch, listed, least, full)
    if least > 0.0 and not full:
        _clear_walked(segment, query, scratch, postings)
    return waiting


# The best k so far are among what is collected, and there is room for a window more.
@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _collect(plan: Plan, query: Query, scratch: Scratch, waiting: cython.Py_ssize_t) -> cython.void:
    """Collect what waits, and raise the floor where the room is used up."""
    collect(scratch, waiting, plan.k, query.shift, 0.0)
    if not has_room(scratch, 0.0):
        keep_best(scratch, plan.k)
        scratch.floor = max(scratch.floor, scratch.scores[plan.k - 1])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def rank_signed(segment: Segment, plan: Plan, query: Query, scratch: Scratch) -> cython.void:
    """Collect the best k above the floor whatever the signs; ``bits`` say which documents match."""
    block: cython.Py_ssize_t
    for block in range(segment.blocks):
        enter_block(segment, query, scratch, block)
        while scratch.base < scratch.in_block:
            scratch.end = min(scratch.base + plan.window, scratch.in_block)
            if segment.is_narrow:
                _match(segment, segment.narrow, query, scratch)
            else:
                _match(segment, segment.wide, query, scratch)
            _collect_matches(plan, query, scratch)
            scratch.base = scratch.end


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _match(
    segment: Segment, codes: cython.const[Codes][::1], query: Query, scratch: Scratch
) -> cython.void:
    """Add up the parts in a window, and set the bits of the documents that have any."""
    term: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    place: cython.Py_ssize_t
    for term in range(query.length):
        posting = scratch.cursors[term]
        stop = query.starts[term, scratch.block + 1]
        while posting < stop and segment.documents[posting] < scratch.end:
            place = segment.documents[posting] - scratch.base
            scratch.sums[place] += part(
                segment.weights[codes[posting]], query.idf[term], query.counts[term]
            )
            scratch.bits[place >> 6] |= cython.cast(cython.ulonglong, 1) << (place & 63)
            posting += 1
        scratch.cursors[term] = posting


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _collect_matches(plan: Plan, query: Query, scratch: Scratch) -> cython.void:
    """Collect the documents of a window whose bits are set; leave zeros."""
    first: cython.Py_ssize_t = scratch.first + scratch.base
    collected: cython.Py_ssize_t = scratch.collected
    place: cython.Py_ssize_t
    word: cython.Py_ssize_t
    bits: cython.ulonglong
    for word in range((scratch.end - scratch.base + 63) >> 6):
        bits = scratch.bits[word]
        scratch.bits[word] = 0
        while bits:
            place = word * 64 + lowest_bit(bits)
            bits &= bits - 1
            if plan.allowed.shape[0] == 0 or plan.allowed[first + place]:
                scratch.numbers[collected] = first + place
                scratch.scores[collected] = scratch.sums[place] + query.shift
                collected += scratch.scores[collected] > scratch.floor
                if collected == scratch.numbers.shape[0]:
                    scratch.collected = collected
                    keep_best(scratch, plan.k)
                    collected = scratch.collected
                    scratch.floor = scratch.scores[collected - 1]
            scratch.sums[place] = 0.0
    scratch.collected = collected

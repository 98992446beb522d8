"""Search where few documents may be returned, by these documents.

In each window, a term's postings of documents that may be returned are found first: by looking at
all of its postings, or, if it has very many more, by looking the documents up among them. Terms
are added up in the order of the query, whatever their signs, or by bound, and what is collected is
then scored as defined.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from math import nextafter

    from bm25rag.kernels.coarse import score_collected
    from bm25rag.kernels.collecting import (
        collect,
        collect_signed,
        enter_block,
        find,
        first_at_least,
        has_room,
        keep_best,
        look_up,
        sift,
    )
    from bm25rag.kernels.scratch import Plan, Query, Scratch, Segment, least_sum, part


Codes = cython.fused_type(cython.ushort, cython.uint)

# Postings that are looked at in the time in which a document is looked up.
_LOOK_UP = cython.declare(cython.Py_ssize_t, 128)
# How many postings ahead of those that are looked at the next are fetched.
_AHEAD = cython.declare(cython.Py_ssize_t, 512)
# Sums in any order are off by less than this share of the largest.
_OFF = cython.declare(cython.double, 1e-9)
_INFINITY = cython.declare(cython.double, float("inf"))


# --- the postings of documents that may be returned, of one term in one window ---------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _look_at_all(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    bits: cython.const[cython.ulonglong][::1],
    word: cython.Py_ssize_t,
    posting: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    scratch: Scratch,
    term: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """List the postings of a window, from ``posting`` on, whose documents may be returned.

    The block's ``bits`` begin at ``word``. The term's cursor is behind the window then. There is
    room for one more than there are such documents.
    """
    postings: cython.longlong[::1] = scratch.work
    end: cython.Py_ssize_t = scratch.end
    last: cython.Py_ssize_t = documents.shape[0] - 1
    count: cython.Py_ssize_t = 0
    document: cython.size_t
    i: cython.Py_ssize_t
    # Eight at a time need one comparison. The codes of those that pass are wanted soon.
    while posting + 8 <= stop and documents[posting + 7] < end:
        if cython.compiled:
            prefetch(cython.address(codes[posting]))  # noqa: F821 - of the .pxd
            prefetch(cython.address(documents[min(posting + _AHEAD, last)]))  # noqa: F821
        for i in range(posting, posting + 8):
            postings[count] = i
            document = documents[i]
            count += (bits[word + (document >> 6)] >> (document & 63)) & 1
        posting += 8
    while posting < stop and documents[posting] < end:
        postings[count] = posting
        document = documents[posting]
        count += (bits[word + (document >> 6)] >> (document & 63)) & 1
        posting += 1
    scratch.cursors[term] = posting
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _look_up(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    stop: cython.Py_ssize_t,
    wanted: cython.Py_ssize_t,
    scratch: Scratch,
    term: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """List the postings of ``wanted`` documents, which ``spare_numbers`` has; return how many."""
    postings: cython.longlong[::1] = scratch.work
    posting: cython.longlong
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    find(documents, scratch.cursors[term], stop, scratch.spare_numbers, wanted, postings)
    scratch.cursors[term] = postings[wanted - 1]
    for i in range(wanted):
        posting = postings[i]
        if cython.compiled:
            prefetch(cython.address(codes[posting]))  # noqa: F821 - of the .pxd
        postings[count] = posting
        count += documents[posting] == scratch.spare_numbers[i]
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_postings(
    segment: Segment,
    codes: cython.const[Codes][::1],
    plan: Plan,
    query: Query,
    scratch: Scratch,
    term: cython.Py_ssize_t,
    wanted: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """List a term's postings of the ``wanted`` documents of a window; return how many there are."""
    posting: cython.Py_ssize_t = scratch.cursors[term]
    stop: cython.Py_ssize_t = query.starts[term, scratch.block + 1]
    width: cython.Py_ssize_t = scratch.end - scratch.base
    word: cython.Py_ssize_t = scratch.block * ((segment.block_size + 63) // 64)
    if posting == stop:
        return 0
    # As many postings as a window of the rest of the block has on average.
    if (
        plan.bits.shape[0] == 0
        or wanted * _LOOK_UP * (scratch.in_block - scratch.base) < (stop - posting) * width
    ):
        return _look_up(segment.documents, codes, stop, wanted, scratch, term)
    posting = first_at_least(segment.documents, posting, stop, scratch.base)
    return _look_at_all(segment.documents, codes, plan.bits, word, posting, stop, scratch, term)


# --- a window ----------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add(
    segment: Segment,
    codes: cython.const[Codes][::1],
    idf: cython.float,
    weight: cython.double,
    scratch: Scratch,
    count: cython.Py_ssize_t,
    listed: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add the parts of the ``count`` postings in ``work``; list documents that have had none.

    ``listed`` are before; return how many are then. ``bits`` say which documents have had some.
    """
    postings: cython.longlong[::1] = scratch.work
    place: cython.Py_ssize_t
    posting: cython.longlong
    bits: cython.ulonglong
    bit: cython.ulonglong
    i: cython.Py_ssize_t
    for i in range(count):
        posting = postings[i]
        place = segment.documents[posting] - scratch.base
        bit = cython.cast(cython.ulonglong, 1) << (place & 63)
        bits = scratch.bits[place >> 6]
        scratch.waiting[listed] = place
        listed += (bits & bit) == 0
        scratch.bits[place >> 6] = bits | bit
        scratch.sums[place] += part(segment.weights[codes[posting]], idf, weight)
    return listed


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_up(
    segment: Segment,
    plan: Plan,
    query: Query,
    scratch: Scratch,
    walked: cython.Py_ssize_t,
    wanted: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add up the parts of the first terms in a window; return how many documents are listed."""
    listed: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t
    term: cython.Py_ssize_t
    for term in range(walked):
        if segment.is_narrow:
            count = _find_postings(segment, segment.narrow, plan, query, scratch, term, wanted)
            listed = _add(
                segment, segment.narrow, query.idf[term], query.counts[term],
                scratch, count, listed,
            )  # fmt: skip
        else:
            count = _find_postings(segment, segment.wide, plan, query, scratch, term, wanted)
            listed = _add(
                segment, segment.wide, query.idf[term], query.counts[term],
                scratch, count, listed,
            )  # fmt: skip
    return listed


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _take_out(
    scratch: Scratch, listed: cython.Py_ssize_t, least: cython.double
) -> cython.Py_ssize_t:
    """Move sums that exceed ``least`` out, and leave zeros; return how many wait."""
    waiting: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for i in range(listed):
        place = scratch.waiting[i]
        scratch.waiting[waiting] = place
        scratch.waiting_sums[waiting] = scratch.sums[place]
        waiting += scratch.sums[place] > least
        scratch.sums[place] = 0.0
        scratch.bits[place >> 6] = 0
    return waiting


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _enter_window(plan: Plan, scratch: Scratch, at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Begin a window at a document; return how many documents in it may be returned.

    The first is number ``at`` of all that may. ``spare_numbers`` takes their numbers within the
    block. The window reaches to the end of the block if there is room for its documents: the
    more of a term's postings follow each other, the faster they are read.
    """
    first: cython.Py_ssize_t = scratch.first
    end: cython.Py_ssize_t = first + scratch.in_block
    limit: cython.Py_ssize_t = min(scratch.width, plan.numbers.shape[0] - at)
    wanted: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    while wanted < limit and plan.numbers[at + wanted] < end:
        scratch.spare_numbers[wanted] = plan.numbers[at + wanted] - first
        wanted += 1
    scratch.base = scratch.spare_numbers[0]
    scratch.end = scratch.in_block
    if wanted == limit:
        scratch.end = scratch.spare_numbers[wanted - 1] + 1
    for i in range(wanted, wanted + 7):
        scratch.spare_numbers[i] = 0
    return wanted


# --- a query -----------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def rank_filtered(
    segment: Segment, plan: Plan, query: Query, terms: Query, scratch: Scratch
) -> cython.void:
    """Collect the best k above the floor, and some more; windows without a document are skipped.

    If sums are added ``by_bound``, ``terms`` has those of the query by bound, descending. They are
    walked until the rest cannot lift a document above the floor by itself (MaxScore), and what is
    collected is then scored as defined; by the order of terms, sums are off by far less than
    ``slack``. Otherwise ``terms`` is the query.
    """
    slack: cython.double = terms.rest[0] * _OFF if query.by_bound else 0.0
    walked: cython.Py_ssize_t = query.length
    at: cython.Py_ssize_t = 0
    wanted: cython.Py_ssize_t
    waiting: cython.Py_ssize_t
    least: cython.double
    scratch.in_block = scratch.first = 0  # of no block
    while at < plan.numbers.shape[0]:
        if plan.numbers[at] >= scratch.first + scratch.in_block:
            enter_block(segment, terms, scratch, plan.numbers[at] // segment.block_size)
        wanted = _enter_window(plan, scratch, at)
        least = least_sum(scratch.floor, query.shift) - slack
        while query.by_bound and walked > 0 and terms.rest[walked - 1] <= least:
            walked -= 1
        waiting = _add_up(segment, plan, terms, scratch, walked, wanted)
        if walked < query.length:
            waiting = _take_out(scratch, waiting, least - terms.rest[walked])
            waiting = look_up(segment, terms, scratch, walked, least, waiting)
        else:
            waiting = _take_out(scratch, waiting, least)
        if query.positive:
            collect(scratch, waiting, plan.k, query.shift, slack)
        else:
            collect_signed(scratch, waiting, query.shift)
        if not has_room(scratch, slack):
            if query.by_bound:
                score_collected(segment, query, scratch)
                enter_block(segment, terms, scratch, plan.numbers[at] // segment.block_size)
            keep_best(scratch, plan.k)
            scratch.floor = max(scratch.floor, nextafter(scratch.scores[plan.k - 1], -_INFINITY))
        at += wanted
    sift(scratch, scratch.floor - slack)
    if query.by_bound:
        score_collected(segment, query, scratch)
    sift(scratch, nextafter(scratch.floor, _INFINITY))

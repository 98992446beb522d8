"""What is known of a query before it is walked: its distinct terms, and how to look for the best.

If not all parts are positive, every match is collected. If there are many postings for each
document wanted, sums are coarse at first, and the terms that can add least are looked up instead of
walked as soon as may be (MaxScore: Turtle and Flood, 1995).
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from bm25rag.kernels.scratch import (
        Plan,
        Query,
        Scratch,
        Segment,
        Terms,
        fetch,
        part,
        slots_for,
    )
    from bm25rag.kernels.selecting import sort


# Bounds are raised by this much, beyond any rounding of theirs.
_SLACK = cython.declare(cython.double, 1.0 + 1e-6)
_INFINITY = cython.declare(cython.double, float("inf"))
# Coarse sums are for several windows, queries with a posting for so many documents at least, and
# no more terms than these.
_DENSE = cython.declare(cython.Py_ssize_t, 12)
_MOST_TERMS = cython.declare(cython.Py_ssize_t, 512)
# Strips are for queries with so many times fewer postings of terms without bounds than all.
_BOUNDED = cython.declare(cython.Py_ssize_t, 8)
# Terms are added by bound from so many times the postings on that coarse sums ask for.
_BY_BOUND = cython.declare(cython.Py_ssize_t, 16)
# Postings of all terms together that are fetched at first: as many as the first cache holds.
_FETCHED = cython.declare(cython.Py_ssize_t, 8192)
_NONE = cython.declare(cython.longlong, -1)
# From the least normal float32 on, what a part is off by is a share of it.
_NORMAL = cython.declare(cython.double, 2.0**-126)
_HUGE = cython.declare(cython.double, 1e300)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def resolve(
    segment: Segment,
    known: Terms,
    terms: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    query: Query,
    scratch: Scratch,
) -> cython.void:
    """Make a query of the terms from ``start`` to ``stop``."""
    term: cython.Py_ssize_t
    block: cython.Py_ssize_t
    i: cython.Py_ssize_t
    query.length = _distinct(terms, weights, start, stop, scratch, query)
    query.rest[query.length] = 0.0
    query.shift = 0.0
    for i in range(query.length):
        term = scratch.distinct[i]
        query.idf[i] = known.idf[term]
        query.rest[i] = 0.0
        query.rows[i] = known.rows[term] if known.rows.shape[0] else _NONE
        query.shift += part(known.absent, known.idf[term], query.counts[i])
        for block in range(segment.blocks + 1):
            query.starts[i, block] = known.starts[term, block]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _distinct(
    terms: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    scratch: Scratch,
    query: Query,
) -> cython.Py_ssize_t:
    """List the distinct known terms of a query in order of first occurrence, and count them.

    With ``weights``, one for each of ``terms``, these are added up instead. A hash table,
    ``slots``, says where a term is in ``distinct``.
    """
    slots: cython.longlong[::1] = scratch.slots
    distinct: cython.longlong[::1] = scratch.distinct
    counts: cython.double[::1] = query.counts
    total: cython.Py_ssize_t = 0
    mask: cython.Py_ssize_t = slots_for(stop - start) - 1
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
        while slots[slot] >= 0 and distinct[slots[slot]] != term:
            slot = (slot + 1) & mask
        if slots[slot] >= 0:
            counts[slots[slot]] += weight
        else:
            slots[slot] = total
            distinct[total] = term
            counts[total] = weight
            total += 1
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def choose_way(segment: Segment, plan: Plan, query: Query) -> cython.void:
    """Say of a query whether all parts are positive, and whether to look up or add coarsely.

    Coarse sums ask for enough postings to pay for scoring documents again, several windows, and
    ordinary numbers; strips, which are chosen among these, for many more. Where few documents may
    be returned, these are looked at first instead, and terms are added by bound if there are very
    many postings.
    """
    total: cython.double = 0.0
    smallest: cython.double = _INFINITY
    weighted: cython.double = _INFINITY
    walked: cython.Py_ssize_t = 0
    bounded: cython.Py_ssize_t = 0
    postings: cython.Py_ssize_t
    term: cython.Py_ssize_t
    count: cython.double
    least: cython.double
    ordinary: cython.bint
    least_walked: cython.Py_ssize_t = plan.k * query.length * plan.coarse
    for term in range(query.length):
        count = query.counts[term]
        total += segment.highest * query.idf[term] * count
        least = part(segment.lowest, query.idf[term], 1.0)
        # A part times a tiny weight may be 0.
        smallest = min(smallest, least)
        weighted = min(weighted, least * count)
        postings = query.starts[term, segment.blocks] - query.starts[term, 0]
        walked += postings
        if query.rows[term] >= 0:
            bounded += postings
    query.walked = walked
    query.positive = smallest > 0.0 and weighted > 0.0
    ordinary = (
        query.length <= _MOST_TERMS
        and smallest >= _NORMAL
        and weighted >= _NORMAL
        and abs(query.shift) <= total < _HUGE
    )
    query.by_bound = ordinary and plan.filtered_first and walked // _BY_BOUND >= least_walked
    query.coarse = (
        ordinary
        and not plan.filtered_first
        and segment.levels.shape[0] > 0
        and segment.size > plan.window
        and walked * _DENSE >= segment.size
        and walked >= least_walked
    )
    # Most postings are of terms with bounds.
    query.by_strips = (
        query.coarse
        and segment.strips is not None
        and _BOUNDED * (walked - bounded) <= walked
        and plan.k * segment.strips.worth <= walked
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def fetch_first(segment: Segment, query: Query) -> cython.void:
    """Have the first postings of all terms fetched, and not each term's when it is walked.

    Where they are in no cache, as those of a question that is new, a search takes a tenth less.
    """
    term: cython.Py_ssize_t
    start: cython.longlong
    for term in range(query.length):
        start = query.starts[term, 0]
        fetch(
            segment,
            start,
            min(query.starts[term, segment.blocks], start + _FETCHED // query.length),
        )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def order_by_bound(segment: Segment, query: Query, ordered: Query, scratch: Scratch) -> cython.void:
    """Sort the terms of a query by what they can add at most, and say what the rest can.

    A term's bound is its idf times the largest f of the segment, which a term that is in
    many documents nearly reaches.
    """
    place: cython.Py_ssize_t
    term: cython.Py_ssize_t
    block: cython.Py_ssize_t
    bound: cython.double
    for term in range(query.length):
        scratch.numbers[term] = term
        scratch.scores[term] = query.idf[term] * query.counts[term]
    sort(
        scratch.numbers, scratch.scores, query.length,
        scratch.spare_numbers, scratch.spare, scratch.work,
    )  # fmt: skip
    ordered.length = query.length
    ordered.shift = query.shift
    ordered.walked = query.walked
    ordered.rest[query.length] = 0.0
    for place in range(query.length - 1, -1, -1):
        term = scratch.numbers[place]
        ordered.idf[place] = query.idf[term]
        ordered.rows[place] = query.rows[term]
        ordered.counts[place] = query.counts[term]
        for block in range(segment.blocks + 1):
            ordered.starts[place, block] = query.starts[term, block]
        bound = segment.highest * query.idf[term] * query.counts[term] * _SLACK
        ordered.rest[place] = ordered.rest[place + 1] + bound

"""Search by coarse sums first.

Sums of 16 bits, in units, which take two thirds of the time of scores, say which few documents can
be among the best; these are looked up and scored as defined.

A part is at least as much as its units, which are rounded down, and exceeds them by less than
1 + 2^-15 of its bound in units: by the unit lost and by what level and multiplier lose. So a sum
exceeds its units by less than one for each term and 1 more. The rest of the slack, a unit, is far
more than any rounding of float64.

What the k-th best of all documents reaches is guessed by the best of those that were walked. If k
documents reach that in the end, it was no more than what the k-th best does; else the query is
walked again.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from math import nextafter, sqrt

    from bm25rag.kernels.collecting import collect, enter_block, has_room, look_up, sift, start
    from bm25rag.kernels.scratch import Plan, Query, Scratch, Segment, fetch, least_sum
    from bm25rag.kernels.selecting import drain, kth_lower_bound, mask

Codes = cython.fused_type(cython.ushort, cython.uint)

# All terms can add so many units.
_UNITS = cython.declare(cython.double, 32000.0)
# The share of what a sum must exceed that the terms which are looked up may add in any case.
_LEFT = cython.declare(cython.double, 0.25)
# Another is looked up if that is for so many times fewer documents than it has postings, as the
# first documents of a block say.
_LOOK_UP = cython.declare(cython.Py_ssize_t, 500)
_COUNTED = cython.declare(cython.Py_ssize_t, 2048)
# Of a shift so much larger than a unit, sums that differ by several may have the same score.
_ABSORBED = cython.declare(cython.double, 1e-14)
# Postings of the next term in a window that are fetched while another is walked; the processor
# finds the others. Where they are in no cache, that saves some hundredths of a query's time.
_FETCHED = cython.declare(cython.Py_ssize_t, 128)
# Documents of a block for each posting walked from which on only those with postings are drained.
_SCARCE = cython.declare(cython.Py_ssize_t, 16)
# Of the best k, as many are expected among the documents that were walked as their share of all,
# and so many deviations and documents more at most.
_DEVIATIONS = cython.declare(cython.double, 4.0)
_BESIDE = cython.declare(cython.double, 8.0)
# After a guess that was too high, so many queries go without: documents may come in an order.
_WARY = cython.declare(cython.Py_ssize_t, 64)
_MOST_UNITS = cython.declare(cython.double, 32767.0)
_INFINITY = cython.declare(cython.double, float("inf"))


# --- walking the postings of one term in one window ------------------------------------------


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
    end: cython.Py_ssize_t,
    units: cython.short[::1],
) -> cython.Py_ssize_t:
    """Add a term's parts to the coarse sums of a window; return where the next one's begin.

    A level is ``multiplier`` 2^-32 units.
    """
    i: cython.Py_ssize_t
    while posting + 4 <= stop and documents[posting + 3] < end:
        for i in range(posting, posting + 4):
            units[documents[i]] += cython.cast(cython.short, (levels[codes[i]] * multiplier) >> 32)
        posting += 4
    while posting < stop and documents[posting] < end:
        units[documents[posting]] += cython.cast(
            cython.short, (levels[codes[posting]] * multiplier) >> 32
        )
        posting += 1
    return posting


# --- a block, and its windows ----------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _postings_in_block(
    query: Query, walked: cython.Py_ssize_t, block: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return how many postings the first terms have in a block."""
    postings: cython.Py_ssize_t = 0
    term: cython.Py_ssize_t
    for term in range(walked):
        postings += query.starts[term, block + 1] - query.starts[term, block]
    return postings


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _drain_walked(
    segment: Segment,
    query: Query,
    scratch: Scratch,
    walked: cython.Py_ssize_t,
    least: cython.double,
    unit: cython.double,
) -> cython.Py_ssize_t:
    """Do as ``drain`` for the rest of a block, but look only where the first terms are."""
    limit: cython.short = cython.cast(cython.short, min(least, _MOST_UNITS))
    waiting: cython.Py_ssize_t = 0
    term: cython.Py_ssize_t
    i: cython.Py_ssize_t
    place: cython.Py_ssize_t
    sum_: cython.short
    for term in range(walked):
        for i in range(query.starts[term, scratch.block], query.starts[term, scratch.block + 1]):
            place = segment.documents[i]
            sum_ = scratch.units[place]
            scratch.units[place] = 0
            if sum_ > limit:
                scratch.waiting[waiting] = place - scratch.base
                scratch.waiting_sums[waiting] = sum_ * unit
                waiting += 1
    return waiting


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(
    segment: Segment,
    codes: cython.const[Codes][::1],
    query: Query,
    scratch: Scratch,
    walked: cython.Py_ssize_t,
    scale: cython.double,
    least: cython.double,
) -> cython.bint:
    """Add up the units of the first terms in a window; the largest level is ``scale`` times 2^16.

    Return whether the last of them is better looked up from the next block on: for documents whose
    units, without it, exceed ``least``. The first window of a block says so.
    """
    term: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    posting: cython.longlong
    block: cython.Py_ssize_t = scratch.block
    rarely: cython.bint = False
    for term in range(walked):
        stop = query.starts[term, block + 1]
        if term == walked - 1 and least >= 0.0 and scratch.base == 0:
            rarely = _are_few(
                scratch.units, min(scratch.end, _COUNTED), scratch.in_block, least,
                stop - query.starts[term, block],
            )  # fmt: skip
        if term + 1 < walked:
            posting = scratch.cursors[term + 1]
            fetch(segment, posting, min(query.starts[term + 1, block + 1], posting + _FETCHED))
        scratch.cursors[term] = _add_units(
            segment.documents, codes, segment.levels,
            cython.cast(cython.ulonglong, query.idf[term] * query.counts[term] * scale),
            scratch.cursors[term], stop, scratch.end, scratch.units,
        )  # fmt: skip
    return rarely


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _are_few(
    units: cython.short[::1],
    first: cython.Py_ssize_t,
    in_block: cython.Py_ssize_t,
    least: cython.double,
    postings: cython.Py_ssize_t,
) -> cython.bint:
    """Whether to look up documents of a block that exceed so many units is less than to walk.

    How many these are is estimated by the first ones.
    """
    limit: cython.short = cython.cast(cython.short, min(least, _MOST_UNITS))
    above: cython.int = 0
    i: cython.Py_ssize_t
    for i in range(first):
        above += units[i] > limit
    return above * _LOOK_UP * in_block < postings * first


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _least(
    plan: Plan, query: Query, scratch: Scratch, unit: cython.double, slack: cython.double
) -> cython.double:
    """Return what a coarse sum of a window must exceed with all that may be added to it."""
    least: cython.double = least_sum(scratch.floor, query.shift)
    reached: cython.double
    if scratch.cut == 0:  # the floor has not risen yet
        reached = kth_lower_bound(
            scratch.units, scratch.base, scratch.end, plan.k,
            scratch.maxima, scratch.spare, scratch.work,
        )  # fmt: skip
        least = max(least, reached * unit)
    return least - slack


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _expected(
    segment: Segment, plan: Plan, scratch: Scratch, earlier: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return how many of the best k are in a block up to ``end`` and earlier ones, most likely.

    There are hardly ever more, if documents come in no order.
    """
    share: cython.double = earlier + scratch.end
    share *= plan.k
    share /= segment.size
    return cython.cast(cython.Py_ssize_t, min(plan.k, share + _DEVIATIONS * sqrt(share) + _BESIDE))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def rank_coarsely(
    segment: Segment, plan: Plan, query: Query, ordered: Query, scratch: Scratch
) -> cython.bint:
    """Collect the best k above the floor, and some more; return whether coarse sums tell which."""
    unit: cython.double = ordered.rest[0] / _UNITS
    slack: cython.double = (query.length + 2) * unit
    floor: cython.double = scratch.floor
    guesses: cython.bint = scratch.wary == 0
    if query.shift * _ABSORBED > unit:
        return False
    scratch.wary -= not guesses
    if not _collect(segment, plan, ordered, scratch, unit, slack, guesses):
        return False
    if scratch.floor > floor and scratch.tallied < plan.k:  # the guess was too high
        scratch.wary = _WARY
        start(scratch, floor)
        if not _collect(segment, plan, ordered, scratch, unit, slack, False):
            return False
    score_best(segment, query, scratch, slack)
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _collect(
    segment: Segment,
    plan: Plan,
    ordered: Query,
    scratch: Scratch,
    unit: cython.double,
    slack: cython.double,
    guesses: cython.bint,
) -> cython.bint:
    """Collect by coarse sums; return whether they tell which documents may be the best.

    Terms are walked by bound descending, until those that are left can add so little that few
    documents must be looked up in them: as the floor rises, ever fewer terms. Before each block,
    all units are 0.
    """
    scale: cython.double = segment.highest * 65536.0 / unit
    walked: cython.Py_ssize_t = ordered.length
    earlier: cython.Py_ssize_t = 0
    wanted: cython.Py_ssize_t = plan.k
    waiting: cython.Py_ssize_t
    turn: cython.Py_ssize_t
    block: cython.Py_ssize_t
    least: cython.double
    in_units: cython.double
    without: cython.double
    rarely: cython.bint
    masked: cython.bint
    scarce: cython.bint
    postings: cython.Py_ssize_t
    # The last block may be a small one; what the best of it exceed is known in the others. These
    # come in order, so that the processor, which reads on, fetches what comes next.
    for turn in range(segment.blocks):
        block = turn - 1 if turn > 0 else segment.blocks - 1
        enter_block(segment, ordered, scratch, block)
        least = least_sum(scratch.floor, ordered.shift)
        while walked > 0 and ordered.rest[walked - 1] <= least * _LEFT:
            walked -= 1
        without = -1.0  # nothing is known of the best yet
        if scratch.cut > 0 and walked > 1:
            without = (least - slack - ordered.rest[walked - 1]) / unit
        rarely = False
        postings = _postings_in_block(ordered, walked, block)
        while scratch.base < scratch.in_block:
            scratch.end = min(scratch.base + scratch.width, scratch.in_block)
            scarce = (
                scratch.cut > 0
                and postings * _SCARCE <= scratch.in_block
                and postings <= scratch.width
            )
            if scarce:
                scratch.end = scratch.in_block
            if segment.is_narrow:
                rarely |= _walk(segment, segment.narrow, ordered, scratch, walked, scale, without)
            else:
                rarely |= _walk(segment, segment.wide, ordered, scratch, walked, scale, without)
            # If most documents may be returned, and the floor has risen, the few that are drained
            # are looked at instead.
            masked = plan.allowed.shape[0] > 0 and not (scarce or (plan.most and scratch.cut > 0))
            if masked:
                mask(scratch.units, scratch.base, scratch.end, plan.allowed, scratch.first)
            least = _least(plan, ordered, scratch, unit, slack)
            in_units = (least - ordered.rest[walked]) / unit
            if in_units < 0.0:  # a document may be among the best that has no units
                return _give_up(scratch)
            if scarce:
                waiting = _drain_walked(segment, ordered, scratch, walked, in_units, unit)
            else:
                waiting = drain(
                    scratch.units, scratch.base, scratch.end, in_units, unit,
                    scratch.maxima, 0, scratch.waiting, scratch.waiting_sums,
                )  # fmt: skip
            if plan.allowed.shape[0] and not masked:
                waiting = keep_allowed(plan, scratch, waiting)
            waiting = look_up(segment, ordered, scratch, walked, least, waiting)
            if guesses:
                wanted = _expected(segment, plan, scratch, earlier)
            collect(scratch, waiting, wanted, ordered.shift, slack)
            if not has_room(scratch, slack):
                return _give_up(scratch)
            scratch.base = scratch.end
        walked -= rarely
        earlier += scratch.in_block
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def keep_allowed(plan: Plan, scratch: Scratch, waiting: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Drop documents that may not be returned; return how many still wait."""
    first: cython.Py_ssize_t = scratch.first + scratch.base
    kept: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    place: cython.Py_ssize_t
    for i in range(waiting):
        place = scratch.waiting[i]
        scratch.waiting[kept] = place
        scratch.waiting_sums[kept] = scratch.waiting_sums[i]
        kept += plan.allowed[first + place] != 0
    return kept


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _give_up(scratch: Scratch) -> cython.bint:
    """Leave zeros in a block; return false."""
    i: cython.Py_ssize_t
    for i in range(scratch.in_block):
        scratch.units[i] = 0
    return False


# --- the scores of what has been collected ---------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def score_best(
    segment: Segment, query: Query, scratch: Scratch, slack: cython.double
) -> cython.void:
    """Score what has been collected and may be among the best; keep what exceeds the floor."""
    sift(scratch, scratch.floor - slack)
    score_collected(segment, query, scratch)
    sift(scratch, nextafter(scratch.floor, _INFINITY))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def score_collected(segment: Segment, query: Query, scratch: Scratch) -> cython.void:
    """Compute the scores of what has been collected as they are defined.

    Documents of one block, which follow each other, are scored together, as many as may wait. The
    search is in the last of these blocks then.
    """
    begin: cython.Py_ssize_t = 0
    some: cython.Py_ssize_t
    i: cython.Py_ssize_t
    while begin < scratch.collected:
        enter_block(segment, query, scratch, scratch.numbers[begin] // segment.block_size)
        some = _gather(segment, scratch, begin)
        look_up(segment, query, scratch, 0, -_INFINITY, some)
        for i in range(some):
            scratch.scores[begin + i] = scratch.waiting_sums[i] + query.shift
        begin += some


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _gather(segment: Segment, scratch: Scratch, begin: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Let collected documents of a block wait, from ``begin`` on; return how many wait."""
    some: cython.Py_ssize_t = 0
    while (
        some < scratch.width
        and begin + some < scratch.collected
        and scratch.numbers[begin + some] // segment.block_size == scratch.block
    ):
        scratch.waiting[some] = scratch.numbers[begin + some] - scratch.first
        scratch.waiting_sums[some] = 0.0
        some += 1
    return some

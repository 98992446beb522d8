"""Search by coarse sums of few terms, and bounds of strips for the others.

A strip is a few documents that follow each other. Of each frequent term, the largest weight in
every strip is kept, in 8 bits, rounded up (block-max pruning: Mallia, Suel and Tonellotto, 2024).
The terms that can add most for each of their postings are walked. What the others can add to a
document is at most what they can in its strip: so few documents are looked up in them, and while
these are, they are dropped as soon as what is left cannot take them beyond what they must exceed.
How many terms are walked depends on how many documents had to be looked up in the block before.

Sums are in units of 16 bits, as in ``coarse``, rounded down: a sum exceeds its units by less than
one for each term. The rest of the slack, two units, is far more than any rounding of float64, and
than ``_BELOW``, by which parts are lowered, so that none is more than it is.

Bounds of a term are made of its postings when it is first asked for.
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import zeros

if not cython.compiled:
    from math import nextafter

    from bm25rag.kernels.coarse import score_collected
    from bm25rag.kernels.collecting import (
        collect,
        enter_block,
        first_at_least,
        has_room,
        sift,
        start,
    )
    from bm25rag.kernels.scratch import (
        Plan,
        Query,
        Scratch,
        Segment,
        Strips,
        Terms,
        least_sum,
        part,
    )
    from bm25rag.kernels.selecting import kth, kth_lower_bound, lowest_bit, mask, sort


Codes = cython.fused_type(cython.ushort, cython.uint)

# All terms can add so many units, and one more each.
_UNITS = cython.declare(cython.double, 31000.0)
_LEVELS = cython.declare(cython.double, 255.0)
_BELOW = cython.declare(cython.double, 1.0 - 1e-6)
_ABOVE = cython.declare(cython.double, 1.0 + 1e-6)
# Postings that are walked in the time in which a document is looked up.
_LOOK_UP = cython.declare(cython.Py_ssize_t, 200)
# So many times fewer postings than all are walked at first, and to find a floor.
_AT_FIRST = cython.declare(cython.Py_ssize_t, 4)
_FEW = cython.declare(cython.Py_ssize_t, 256)
_FEWEST = cython.declare(cython.Py_ssize_t, 8192)
# The share of what a sum must exceed that terms may add which are neither walked nor bounded.
_LOOSE = cython.declare(cython.double, 0.1)
# Up to so many wanted, half as many more are looked up for that.
_FEW_WANTED = cython.declare(cython.Py_ssize_t, 32)
# Postings of the next term that are fetched.
_FETCHED = cython.declare(cython.Py_ssize_t, 512)
# The bounds of a term are made if those made before it, in a call, are of so many times fewer
# postings than all terms have.
_LEARNED = cython.declare(cython.Py_ssize_t, 4)
# Bounds are summed up for so many blocks at once, at most.
_GROUP = cython.declare(cython.Py_ssize_t, 8)
# The histogram of units has a bin for 2^6 of them.
_BIN = cython.declare(cython.Py_ssize_t, 6)
_INFINITY = cython.declare(cython.double, float("inf"))


# --- the bounds of a term ----------------------------------------------------------------------


@cython.ccall
def learn(
    segment: Segment,
    terms: Terms,
    numbers: cython.const[cython.longlong][::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    scratch: Scratch,
):
    """Have ``scratch`` know the rows of the terms from ``first`` to before ``last``, -1 for none.

    Of those that are asked for the first time, some get one: as many as do not take much longer
    than the search.
    """
    strips: Strips = segment.strips
    rows: cython.int[::1] = zeros(last, np.int32)
    known: dict = strips.rows
    number: cython.longlong
    start: cython.longlong
    postings: cython.longlong
    total: cython.longlong = 0
    new: cython.longlong = 0
    i: cython.Py_ssize_t
    for i in range(first, last):
        number = numbers[i]
        if number >= 0:
            total += terms.starts[number, segment.blocks] - terms.starts[number, 0]
    for i in range(first, last):
        number = numbers[i]
        rows[i] = -1
        if number < 0:
            continue
        start = terms.starts[number, 0]
        postings = terms.starts[number, segment.blocks] - start
        if postings < strips.least:
            continue
        row = known.get(start)
        if row is None and new * _LEARNED <= total:
            new += postings
            row = _new_row(segment, terms, number, start)
        if row is not None:
            rows[i] = row
    scratch.rows = rows
    scratch.block_bounds = 0
    if scratch.bounds.shape[0] < _GROUP * strips.in_block:
        scratch.bounds = zeros(_GROUP * strips.in_block, np.int16)


@cython.cfunc
def _new_row(
    segment: Segment, terms: Terms, number: cython.Py_ssize_t, start: cython.longlong
) -> object:
    """Make the row of a term; return it, or -1 if there is no room."""
    strips: Strips = segment.strips
    row: cython.Py_ssize_t = next(strips.free, -1)
    if not 0 <= row < strips.levels.shape[0]:
        return -1
    with cython.nogil:
        if segment.is_narrow:
            _fill(segment, segment.narrow, strips, terms.starts, number, row)
        else:
            _fill(segment, segment.wide, strips, terms.starts, number, row)
    # Of two threads that make one at the same time, both use that of the first.
    return strips.rows.setdefault(start, row)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill(
    segment: Segment,
    codes: cython.const[Codes][::1],
    strips: Strips,
    starts: cython.const[cython.longlong][:, ::1],
    term: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
) -> cython.void:
    """Write a term's bounds into a row of zeros, and where its postings are."""
    # Locals, since what is written could be any field for all that a compiler knows.
    shift: cython.Py_ssize_t = strips.shift
    step_shift: cython.Py_ssize_t = strips.step_shift
    places: cython.Py_ssize_t = strips.places_in_block
    most: cython.float = 0.0
    largest: cython.float
    weight: cython.float
    scale: cython.double
    block: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    strip: cython.Py_ssize_t
    current: cython.Py_ssize_t
    place: cython.Py_ssize_t
    for posting in range(starts[term, 0], starts[term, segment.blocks]):
        weight = segment.weights[codes[posting]]
        most = weight if weight > most else most
    scale = _LEVELS / most if most > 0.0 else 0.0
    strips.most[row] = most
    for block in range(segment.blocks):
        start = starts[term, block]
        stop = starts[term, block + 1]
        current = -1
        place = 0
        largest = 0.0
        for posting in range(start, stop):
            strip = segment.documents[posting] >> shift
            weight = segment.weights[codes[posting]]
            if strip == current:
                largest = weight if weight > largest else largest
                continue
            if current >= 0:
                strips.levels[row, block * strips.in_block + current] = _level(largest * scale)
            while place <= strip >> step_shift:
                strips.places[row, block * places + place] = posting - start
                place += 1
            current = strip
            largest = weight
        if current >= 0:
            strips.levels[row, block * strips.in_block + current] = _level(largest * scale)
        while place < places:
            strips.places[row, block * places + place] = stop - start
            place += 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _level(level: cython.double) -> cython.uchar:
    """Return a level, rounded up."""
    whole: cython.int = cython.cast(cython.int, level)
    whole += whole < level
    return cython.cast(cython.uchar, min(whole, 255))


# --- the terms of a query ----------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _order(
    segment: Segment, strips: Strips, query: Query, ordered: Query, scratch: Scratch
) -> cython.double:
    """Sort the terms of a query by what they can add for each posting; return the unit.

    ``loose[j]`` is what those of terms j and later can add that have no bounds.
    """
    place: cython.Py_ssize_t
    term: cython.Py_ssize_t
    block: cython.Py_ssize_t
    row: cython.Py_ssize_t
    postings: cython.Py_ssize_t
    bound: cython.double
    unit: cython.double
    for term in range(query.length):
        row = scratch.rows[scratch.origins[term]]
        bound = strips.most[row] if row >= 0 else segment.highest
        scratch.most[term] = bound * query.idf[term] * query.counts[term] * _ABOVE
        postings = query.starts[term, segment.blocks] - query.starts[term, 0]
        scratch.numbers[term] = term
        scratch.scores[term] = scratch.most[term] / max(postings, 1)
    sort(
        scratch.numbers, scratch.scores, query.length,
        scratch.spare_numbers, scratch.spare, scratch.work,
    )  # fmt: skip
    ordered.length = query.length
    ordered.shift = query.shift
    ordered.rest[query.length] = 0.0
    scratch.loose[query.length] = 0.0
    for place in range(query.length - 1, -1, -1):
        term = scratch.numbers[place]
        row = scratch.rows[scratch.origins[term]]
        scratch.own_rows[place] = row
        ordered.idf[place] = query.idf[term]
        ordered.counts[place] = query.counts[term]
        for block in range(segment.blocks + 1):
            ordered.starts[place, block] = query.starts[term, block]
        ordered.rest[place] = ordered.rest[place + 1] + scratch.most[term]
        scratch.loose[place] = scratch.loose[place + 1]
        if row < 0:
            scratch.loose[place] += scratch.most[term]
    unit = ordered.rest[0] / _UNITS
    for place in range(query.length):
        _set_multiplier(scratch, place, scratch.most[scratch.numbers[place]] / unit / _LEVELS)
    return unit


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _set_multiplier(
    scratch: Scratch, place: cython.Py_ssize_t, units: cython.double
) -> cython.void:
    """Say what a level of a term is in units: a number of 8 bits, shifted, and not less."""
    shift: cython.longlong = 0
    while units < 128.0 and shift < 15:
        units *= 2.0
        shift += 1
    scratch.multipliers[place] = cython.cast(cython.longlong, units) + 1
    scratch.shifts[place] = shift


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _postings(
    ordered: Query, walked: cython.Py_ssize_t, block: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return how many postings the first terms have in a block."""
    total: cython.Py_ssize_t = 0
    term: cython.Py_ssize_t
    for term in range(walked):
        total += ordered.starts[term, block + 1] - ordered.starts[term, block]
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _first_terms(
    ordered: Query, most: cython.Py_ssize_t, blocks: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return how many of the first terms have at most so many postings together."""
    walked: cython.Py_ssize_t = 0
    postings: cython.Py_ssize_t = 0
    while walked < ordered.length:
        postings += ordered.starts[walked, blocks] - ordered.starts[walked, 0]
        if postings > most:
            break
        walked += 1
    return walked


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _next_walked(
    ordered: Query,
    walked: cython.Py_ssize_t,
    fewest: cython.Py_ssize_t,
    block: cython.Py_ssize_t,
    waited: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Return how many terms to walk after a block in which so many documents were looked up.

    ``fewest`` are those with which not too many had to be.
    """
    postings: cython.Py_ssize_t = _postings(ordered, walked, block)
    looked_up: cython.Py_ssize_t = waited * _LOOK_UP
    if looked_up > postings:
        while walked < ordered.length and _postings(ordered, walked, block) <= 2 * postings:
            walked += 1
    elif looked_up * 8 < postings:
        while walked > fewest and 2 * _postings(ordered, walked, block) > postings:
            walked -= 1
    elif looked_up * 3 < postings and walked > fewest:
        walked -= 1
    return walked


# --- a block -----------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(
    segment: Segment,
    codes: cython.const[Codes][::1],
    ordered: Query,
    scratch: Scratch,
    walked: cython.Py_ssize_t,
    unit: cython.double,
) -> cython.void:
    """Add up the units of the first terms in a block."""
    block: cython.Py_ssize_t = scratch.block
    term: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    count: cython.Py_ssize_t
    units: cython.double
    for term in range(walked):
        start = ordered.starts[term, block]
        stop = ordered.starts[term, block + 1]
        if start == stop:
            continue
        if cython.compiled and term + 1 < walked:
            count = min(
                ordered.starts[term + 1, block + 1] - ordered.starts[term + 1, block], _FETCHED
            )
            if count > 0:
                fetch(  # noqa: F821 - of the .pxd
                    cython.address(segment.documents[ordered.starts[term + 1, block]]), 2 * count
                )
                fetch(  # noqa: F821
                    cython.address(codes[ordered.starts[term + 1, block]]), 2 * count
                )
        units = ordered.idf[term] * ordered.counts[term] / unit * _BELOW
        if segment.levels.shape[0]:
            _add_levels(
                segment.documents, codes, segment.levels,
                cython.cast(cython.ulonglong, segment.highest * units * 65536.0),
                start, stop, scratch.units,
            )  # fmt: skip
        else:
            _add_weights(
                segment.documents, codes, segment.weights, cython.cast(cython.float, units),
                start, stop, scratch.units,
            )  # fmt: skip


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_levels(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    levels: cython.const[cython.ushort][::1],
    multiplier: cython.ulonglong,
    posting: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    units: cython.short[::1],
) -> cython.void:
    """Add a term's parts: a level is ``multiplier`` 2^-32 units."""
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
def _add_weights(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[Codes][::1],
    weights: cython.const[cython.float][::1],
    factor: cython.float,
    posting: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    units: cython.short[::1],
) -> cython.void:
    """Add a term's parts: a weight is ``factor`` times as many units."""
    i: cython.Py_ssize_t
    while posting + 4 <= stop:
        for i in range(posting, posting + 4):
            units[documents[i]] += cython.cast(
                cython.short, cython.cast(cython.int, weights[codes[i]] * factor)
            )
        posting += 4
    while posting < stop:
        units[documents[posting]] += cython.cast(
            cython.short, cython.cast(cython.int, weights[codes[posting]] * factor)
        )
        posting += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sum_bounds(
    strips: Strips,
    scratch: Scratch,
    first_block: cython.Py_ssize_t,
    blocks: cython.Py_ssize_t,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
) -> cython.void:
    """Sum up, in units, what the terms from ``first`` to before ``last`` can add in each strip.

    Strips of several blocks follow each other in a row: memory is read faster so.
    """
    begin: cython.Py_ssize_t = first_block * strips.in_block
    count: cython.Py_ssize_t = blocks * strips.in_block
    term: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for i in range(count):
        scratch.bounds[i] = 0
    for term in range(first, last):
        if scratch.own_rows[term] < 0:
            continue
        if cython.compiled:
            add_levels(  # noqa: F821 - of the .pxd
                cython.address(scratch.bounds[0]),
                cython.address(strips.levels[scratch.own_rows[term], begin]),
                scratch.multipliers[term], scratch.shifts[term], count,
            )  # fmt: skip
        else:
            for i in range(count):
                scratch.bounds[i] += (
                    strips.levels[scratch.own_rows[term], begin + i] * scratch.multipliers[term]
                ) >> scratch.shifts[term]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _drain(
    strips: Strips, scratch: Scratch, least: cython.double, unit: cython.double
) -> cython.Py_ssize_t:
    """Have the documents of a window wait whose units and bounds exceed ``least`` together.

    Leave zeros; return how many wait. ``bounds`` are those of the block.
    """
    in_64: cython.Py_ssize_t = 64 >> strips.shift
    own: cython.Py_ssize_t = scratch.block_bounds
    units: cython.int = cython.cast(cython.int, min(least, 32767.0))
    count: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t
    place: cython.Py_ssize_t
    strip: cython.Py_ssize_t
    i: cython.Py_ssize_t
    bound: cython.short
    bits: cython.ulonglong
    for first in range(scratch.base, scratch.end, 64):
        strip = first >> strips.shift
        bound = 0
        for i in range(strip, min(strip + in_64, strips.in_block)):
            bound = max(bound, scratch.bounds[own + i])
        bits = 0
        if cython.compiled:
            bits = units_above(  # noqa: F821 - of the .pxd
                cython.address(scratch.units[first]), cython.cast(cython.short, units - bound)
            )
        else:
            for i in range(64):
                bits |= (scratch.units[first + i] > units - bound) << i
        while bits:
            place = first + lowest_bit(bits)
            bits &= bits - 1
            if place >= scratch.end:
                break
            scratch.waiting[count] = place - scratch.base
            scratch.waiting_sums[count] = scratch.units[place] * unit
            count += scratch.units[place] + scratch.bounds[own + (place >> strips.shift)] > units
        for i in range(64):
            scratch.units[first + i] = 0
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _keep_allowed(plan: Plan, scratch: Scratch, waiting: cython.Py_ssize_t) -> cython.Py_ssize_t:
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
def _look_up(
    segment: Segment,
    strips: Strips,
    codes: cython.const[Codes][::1],
    ordered: Query,
    scratch: Scratch,
    walked: cython.Py_ssize_t,
    least: cython.double,
    unit: cython.double,
    waiting: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add the parts of the terms that were not walked to documents that wait; drop the others.

    Return how many still wait: those that exceed ``least``.
    """
    block: cython.Py_ssize_t = scratch.block
    kept: cython.Py_ssize_t = 0
    document: cython.Py_ssize_t
    strip: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    place: cython.Py_ssize_t
    row: cython.Py_ssize_t
    term: cython.Py_ssize_t
    i: cython.Py_ssize_t
    level: cython.longlong
    rest: cython.double
    sum_: cython.double
    for i in range(waiting):
        document = scratch.base + scratch.waiting[i]
        strip = document >> strips.shift
        place = block * strips.places_in_block + (strip >> strips.step_shift)
        sum_ = scratch.waiting_sums[i]
        rest = scratch.bounds[scratch.block_bounds + strip] * unit + scratch.loose[walked]
        for term in range(walked, ordered.length):
            if sum_ + rest <= least:
                break
            row = scratch.own_rows[term]
            posting = ordered.starts[term, block]
            stop = ordered.starts[term, block + 1]
            if row >= 0:
                level = strips.levels[row, block * strips.in_block + strip]
                if level == 0:
                    continue
                rest -= ((level * scratch.multipliers[term]) >> scratch.shifts[term]) * unit
                if (strip >> strips.step_shift) + 1 < strips.places_in_block:
                    stop = posting + strips.places[row, place + 1]
                posting += strips.places[row, place]
            else:
                rest -= scratch.loose[term] - scratch.loose[term + 1]
            posting = first_at_least(segment.documents, posting, stop, document)
            if posting < stop and segment.documents[posting] == document:
                sum_ += part(
                    segment.weights[codes[posting]], ordered.idf[term], ordered.counts[term]
                )
        scratch.waiting[kept] = scratch.waiting[i]
        scratch.waiting_sums[kept] = sum_
        kept += sum_ > least
    return kept


# --- the first floor ---------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _tally(
    segment: Segment, plan: Plan, ordered: Query, scratch: Scratch, walked: cython.Py_ssize_t
) -> cython.void:
    """Count the units of the documents of the first terms in a block by size; leave zeros."""
    term: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    document: cython.Py_ssize_t
    for term in range(walked):
        for posting in range(
            ordered.starts[term, scratch.block], ordered.starts[term, scratch.block + 1]
        ):
            document = segment.documents[posting]
            if plan.allowed.shape[0] == 0 or plan.allowed[scratch.first + document]:
                scratch.tallies[scratch.units[document] >> _BIN] += 1
            scratch.units[document] = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _take_best(
    segment: Segment,
    plan: Plan,
    ordered: Query,
    scratch: Scratch,
    walked: cython.Py_ssize_t,
    least: cython.Py_ssize_t,
    unit: cython.double,
) -> cython.Py_ssize_t:
    """Have documents of a block wait that have ``least`` units or more; leave zeros.

    Return how many wait, at most as many as may.
    """
    count: cython.Py_ssize_t = 0
    term: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    document: cython.Py_ssize_t
    for term in range(walked):
        for posting in range(
            ordered.starts[term, scratch.block], ordered.starts[term, scratch.block + 1]
        ):
            document = segment.documents[posting]
            if (
                scratch.units[document] >= least
                and count < scratch.width
                and (plan.allowed.shape[0] == 0 or plan.allowed[scratch.first + document])
            ):
                scratch.waiting[count] = document
                scratch.waiting_sums[count] = scratch.units[document] * unit
                count += 1
            scratch.units[document] = 0
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_floor(
    segment: Segment,
    strips: Strips,
    codes: cython.const[Codes][::1],
    plan: Plan,
    query: Query,
    ordered: Query,
    scratch: Scratch,
    unit: cython.double,
) -> cython.void:
    """Raise the floor to what the best documents by a few rare terms reach.

    Their sums by these terms are known at once. If few are wanted, the documents are then looked up
    in all terms; ``scores`` has their sums.
    """
    wanted: cython.Py_ssize_t = plan.k + plan.k // 2
    most: cython.Py_ssize_t = scratch.scores.shape[0]
    walked: cython.Py_ssize_t = _first_terms(
        ordered, max(query.walked // _FEW, wanted + _FEWEST), segment.blocks
    )
    above: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    waiting: cython.Py_ssize_t
    block: cython.Py_ssize_t
    bin_: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for bin_ in range(scratch.tallies.shape[0]):
        scratch.tallies[bin_] = 0
    for block in range(segment.blocks):
        enter_block(segment, ordered, scratch, block)
        _walk(segment, codes, ordered, scratch, walked, unit)
        _tally(segment, plan, ordered, scratch, walked)
    bin_ = scratch.tallies.shape[0]
    while bin_ > 1 and above < plan.k:
        bin_ -= 1
        above += scratch.tallies[bin_]
    if above < plan.k:
        return
    scratch.floor = max(scratch.floor, (bin_ << _BIN) * unit * _BELOW + query.shift)
    if plan.k > _FEW_WANTED:
        return
    while bin_ > 1 and above < wanted:
        bin_ -= 1
        above += scratch.tallies[bin_]
    for block in range(segment.blocks):
        enter_block(segment, ordered, scratch, block)
        _walk(segment, codes, ordered, scratch, walked, unit)
        waiting = _take_best(segment, plan, ordered, scratch, walked, bin_ << _BIN, unit)
        _look_up(segment, strips, codes, ordered, scratch, walked, -_INFINITY, unit, waiting)
        for i in range(min(waiting, most - count)):
            scratch.scores[count] = scratch.waiting_sums[i]
            count += 1
    if count >= plan.k:
        scratch.floor = max(
            scratch.floor,
            kth(scratch.scores, count, plan.k, scratch.spare, scratch.work) * _BELOW + query.shift,
        )


# --- a query -----------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _least(
    plan: Plan, query: Query, scratch: Scratch, unit: cython.double, whole: cython.bint
) -> cython.double:
    """Return what a sum must exceed with all that may be added to it, but for the slack.

    If the floor has not risen, and the ``whole`` sums are known, a window says it.
    """
    least: cython.double = least_sum(scratch.floor, query.shift)
    reached: cython.double
    if whole and scratch.cut == 0:
        if plan.allowed.shape[0]:
            mask(scratch.units, scratch.base, scratch.end, plan.allowed, scratch.first)
        reached = kth_lower_bound(
            scratch.units, scratch.base, scratch.end, plan.k,
            scratch.maxima, scratch.spare, scratch.work,
        )  # fmt: skip
        least = max(least, reached * unit)
    return least


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _give_up(scratch: Scratch) -> cython.bint:
    """Leave zeros in a block; return false."""
    i: cython.Py_ssize_t
    for i in range(scratch.in_block):
        scratch.units[i] = 0
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def rank_by_strips(
    segment: Segment, strips: Strips, plan: Plan, query: Query, ordered: Query, scratch: Scratch
) -> cython.bint:
    """Collect the best k above the floor, and some more; return whether sums tell which.

    Every part is positive. Before each block, all units are 0.
    """
    unit: cython.double = _order(segment, strips, query, ordered, scratch)
    slack: cython.double = (query.length + 2) * unit
    chosen: cython.Py_ssize_t = _first_terms(ordered, query.walked // _AT_FIRST, segment.blocks)
    walked: cython.Py_ssize_t = 0
    waiting: cython.Py_ssize_t
    waited: cython.Py_ssize_t
    block: cython.Py_ssize_t
    least: cython.double
    group: cython.Py_ssize_t = 1
    fewest: cython.Py_ssize_t = 0
    first_block: cython.Py_ssize_t = segment.blocks
    if segment.is_narrow:
        _find_floor(segment, strips, segment.narrow, plan, query, ordered, scratch, unit)
    else:
        _find_floor(segment, strips, segment.wide, plan, query, ordered, scratch, unit)
    start(scratch, scratch.floor)
    for block in range(segment.blocks - 1, -1, -1):
        enter_block(segment, ordered, scratch, block)
        if block < first_block:
            least = least_sum(scratch.floor, query.shift) - slack
            walked = chosen
            while walked < query.length and scratch.loose[walked] > least * _LOOSE:
                walked += 1
            first_block = max(block + 1 - group, 0)
            _sum_bounds(strips, scratch, first_block, block + 1 - first_block, walked, query.length)
            group = min(2 * group, _GROUP)
        scratch.block_bounds = (block - first_block) * strips.in_block
        if segment.is_narrow:
            _walk(segment, segment.narrow, ordered, scratch, walked, unit)
        else:
            _walk(segment, segment.wide, ordered, scratch, walked, unit)
        waited = 0
        while scratch.base < scratch.in_block:
            scratch.end = min(scratch.base + scratch.width, scratch.in_block)
            least = _least(plan, query, scratch, unit, walked == query.length) - slack
            if least < scratch.loose[walked]:  # a document may be among the best without any units
                return _give_up(scratch)
            waiting = _drain(strips, scratch, (least - scratch.loose[walked]) / unit, unit)
            if plan.allowed.shape[0]:
                waiting = _keep_allowed(plan, scratch, waiting)
            waited += waiting
            if segment.is_narrow:
                waiting = _look_up(
                    segment, strips, segment.narrow, ordered, scratch, walked, least, unit, waiting
                )
            else:
                waiting = _look_up(
                    segment, strips, segment.wide, ordered, scratch, walked, least, unit, waiting
                )
            collect(scratch, waiting, plan.k, query.shift, slack)
            if not has_room(scratch, slack):
                return _give_up(scratch)
            scratch.base = scratch.end
        if block == first_block:
            chosen = _next_walked(ordered, walked, fewest, block, waited)
            if chosen > walked:
                fewest = walked + 1
    sift(scratch, scratch.floor - slack)
    score_collected(segment, query, scratch)
    sift(scratch, nextafter(scratch.floor, _INFINITY))
    return True

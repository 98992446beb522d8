"""Search by coarse sums of those strips alone that can hold the best documents.

A strip is 32 documents that follow each other. Of each frequent term, a row has the largest weight
in every strip, in 8 bits, rounded up (block-max pruning: Mallia, Suel and Tonellotto, "Faster
Learned Sparse Retrieval with Block-Max Pruning", 2024). Rows that are added up say what a document
of a strip can reach at most. The few strips of the highest bounds are walked at first: what is
found there is a floor, which few others can exceed.

Units are those of ``coarse``, and of 16 bits, too. A part exceeds its units by less than 1, whether
they are of a weight or of a level: so a sum exceeds its units by less than one for each term. The
slack is two more, as there.

Rows are made of the postings when a term is first asked for, and kept with these.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    WIDTH, SHIFT = 32, 5
    from math import nextafter

    from bm25rag.kernels.coarse import keep_allowed, score_collected
    from bm25rag.kernels.collecting import collect, enter_block, first_at_least, has_room, sift
    from bm25rag.kernels.scratch import Plan, Query, Scratch, Segment, Strips, Terms, least_sum
    from bm25rag.kernels.selecting import drain, kth_lower_bound, lowest_bit

# All terms can add so many units, and one more each.
_UNITS = cython.declare(cython.double, 31000.0)
# The largest weight has at most one level more, beyond rounding; see ``_level``.
_LEVELS = cython.declare(cython.double, 253.0)
_ABOVE = cython.declare(cython.double, 1.0 + 1e-6)
# Rows are made, in a call, of so many times fewer postings than all its terms have.
_LEARNED = cython.declare(cython.Py_ssize_t, 8)
# Bounds are added up for so many blocks at once, which the first-level cache holds.
_GROUP = cython.declare(cython.Py_ssize_t, 8)
# Where a term's postings of a strip begin is guessed, as if they were evenly spread, and looked for
# among so many before and after that at first. They are fetched for so many strips before.
_NEAR = cython.declare(cython.Py_ssize_t, 16)
_FETCHED = cython.declare(cython.Py_ssize_t, 16)
_MOST = cython.declare(cython.double, 32767.0)
_UNKNOWN = cython.declare(cython.int, -2)
_NONE = cython.declare(cython.int, -1)
# For each match wanted, so many strips are walked at first. With one, the slowest of 100 questions
# took twice as long at 8.8 million vectors; with four, all took some hundredths of a ms longer.
_AT_FIRST = cython.declare(cython.Py_ssize_t, 2)
_INFINITY = cython.declare(cython.double, float("inf"))


# --- the rows of terms -------------------------------------------------------------------------


@cython.cfunc
def learn(
    segment: Segment,
    terms: Terms,
    numbers: cython.const[cython.longlong][::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    k: cython.Py_ssize_t,
):
    """Have ``terms`` know the rows of those from ``first`` to before ``last``, if these pay.

    Rows are made of some of the terms that have none, so that a search takes little longer.
    """
    strips: Strips = segment.strips
    rows: dict = strips.rows
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
    if k * strips.worth > total:
        return
    for i in range(first, last):
        number = numbers[i]
        if number < 0 or terms.rows[number] != _UNKNOWN:
            continue
        start = terms.starts[number, 0]
        postings = terms.starts[number, segment.blocks] - start
        row = _NONE if postings < strips.least else rows.get(start)
        if row is None:
            if new * _LEARNED > total:
                continue
            new += postings
            row = _new_row(segment, strips, terms, number, start)
        terms.rows[number] = row


@cython.cfunc
def _new_row(
    segment: Segment,
    strips: Strips,
    terms: Terms,
    number: cython.Py_ssize_t,
    start: cython.longlong,
):
    """Make the row of a term; return it, or -1 if there is no room."""
    row: cython.Py_ssize_t = next(strips.free, -1)
    if not 0 <= row < strips.levels.shape[0] // strips.cells:
        return _NONE
    block: cython.Py_ssize_t
    with cython.nogil:
        for block in range(segment.blocks):
            _fill(
                segment.documents, segment.narrow, segment.levels,
                terms.starts[number, block], terms.starts[number, block + 1],
                strips.levels, row * strips.cells + block * strips.in_block,
            )  # fmt: skip
    # Of two threads that make one at the same time, both use that of the first.
    return strips.rows.setdefault(start, row)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[cython.ushort][::1],
    levels: cython.const[cython.ushort][::1],
    posting: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    row: cython.uchar[::1],
    first: cython.Py_ssize_t,
) -> cython.void:
    """Write a term's levels in a block into its row, where zeros are, from ``first`` on."""
    current: cython.Py_ssize_t = -1
    strip: cython.Py_ssize_t
    largest: cython.uint = 0
    level: cython.uint
    while posting < stop:
        strip = documents[posting] >> SHIFT
        level = _level(levels[codes[posting]])
        largest = largest if strip == current else 0
        largest = level if level > largest else largest
        row[first + strip] = cython.cast(cython.uchar, largest)
        current = strip
        posting += 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _level(level: cython.uint) -> cython.uint:
    """Return a level of 8 bits for one of 16, which was rounded down: no share is less than it was.

    A weight is less than (level + 1) / 65535 of the largest, and what is returned is at least
    253 times that: if ``level`` is less than 254, that is less than 1, and else 254 / 65536 of
    ``level``, which is rounded up here, is as much already.
    """
    return ((level * 254) >> 16) + 1


# --- bounds ------------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_row(
    row: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
    following: cython.Py_ssize_t,
    multiplier: cython.uint,
    shift: cython.uint,
    bounds: cython.short[::1],
    start: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
) -> cython.void:
    """Add a row from ``first`` on to so many bounds; have what is ``following`` fetched."""
    done: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    while done < count:  # a multiple of 64
        if cython.compiled:
            prefetch(cython.address(row[following + done]))  # noqa: F821 - of the .pxd
            add_levels(  # noqa: F821
                cython.address(row[first + done]), multiplier, shift,
                cython.address(bounds[start + done]), 64,
            )  # fmt: skip
        else:
            for i in range(done, done + 64):
                bounds[start + i] += (row[first + i] * multiplier) >> shift
        done += 64


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_postings(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[cython.ushort][::1],
    levels: cython.const[cython.ushort][::1],
    posting: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    multiplier: cython.uint,
    shift: cython.uint,
    bounds: cython.short[::1],
    first: cython.Py_ssize_t,
) -> cython.void:
    """Do the same for a term without a row: its postings in a block are walked."""
    current: cython.Py_ssize_t = -1
    strip: cython.Py_ssize_t
    largest: cython.uint = 0
    before: cython.uint
    units: cython.uint
    while posting < stop:
        strip = documents[posting] >> SHIFT
        units = (_level(levels[codes[posting]]) * multiplier) >> shift
        before = largest if strip == current else 0
        largest = units if units > before else before
        bounds[first + strip] += cython.cast(cython.short, largest - before)
        current = strip
        posting += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _set_multiplier(scratch: Scratch, term: cython.Py_ssize_t, units: cython.double) -> cython.void:
    """Say what makes units of a term's levels: a number of 8 bits, rounded up, and a shift."""
    shift: cython.longlong = 0
    while units < 128.0 and shift < 15:
        units *= 2.0
        shift += 1
    scratch.multipliers[term] = cython.cast(cython.longlong, units) + 1
    scratch.shifts[term] = shift


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_terms(
    segment: Segment,
    strips: Strips,
    ordered: Query,
    scratch: Scratch,
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
) -> cython.void:
    """Add up what the terms of a query can add in the strips of some blocks."""
    start: cython.Py_ssize_t = first * strips.in_block
    count: cython.Py_ssize_t = (last - first) * strips.in_block
    block: cython.Py_ssize_t
    term: cython.Py_ssize_t
    row: cython.longlong
    following: cython.longlong
    i: cython.Py_ssize_t
    for i in range(start, start + count):
        scratch.bounds[i] = 0
    for term in range(ordered.length):
        row = ordered.rows[term]
        if row >= 0:
            following = max(ordered.rows[min(term + 1, ordered.length - 1)], 0)
            _add_row(
                strips.levels, row * strips.cells + start, following * strips.cells + start,
                cython.cast(cython.uint, scratch.multipliers[term]),
                cython.cast(cython.uint, scratch.shifts[term]), scratch.bounds, start, count,
            )  # fmt: skip
            continue
        for block in range(first, last):
            _add_postings(
                segment.documents, segment.narrow, segment.levels,
                ordered.starts[term, block], ordered.starts[term, block + 1],
                cython.cast(cython.uint, scratch.multipliers[term]),
                cython.cast(cython.uint, scratch.shifts[term]),
                scratch.bounds, block * strips.in_block,
            )  # fmt: skip


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_up(
    segment: Segment, strips: Strips, ordered: Query, scratch: Scratch, unit: cython.double
) -> cython.void:
    """Do so for all blocks, some at a time."""
    share: cython.double = segment.highest / (_LEVELS * unit) * _ABOVE
    first: cython.Py_ssize_t = 0
    last: cython.Py_ssize_t
    term: cython.Py_ssize_t
    for term in range(ordered.length):
        _set_multiplier(scratch, term, ordered.idf[term] * ordered.counts[term] * share)
    while first < segment.blocks:
        last = min(first + _GROUP, segment.blocks)
        _add_terms(segment, strips, ordered, scratch, first, last)
        first = last


# --- the strips of a block ---------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _above(
    bounds: cython.short[::1], first: cython.Py_ssize_t, least: cython.short
) -> cython.ulonglong:
    """Return which of 64 bounds are greater than ``least``, as bits."""
    bits: cython.ulonglong = 0
    i: cython.Py_ssize_t
    if cython.compiled:
        bits = units_above(cython.address(bounds[first]), least)  # noqa: F821 - of the .pxd
    else:
        for i in range(64):
            bits |= (bounds[first + i] > least) << i
    return bits


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _are_few(
    bounds: cython.short[::1],
    cells: cython.Py_ssize_t,
    least: cython.short,
    most: cython.Py_ssize_t,
) -> cython.bint:
    """Whether at most so many bounds are greater than ``least``."""
    first: cython.Py_ssize_t = 0
    bits: cython.ulonglong
    while first < cells and most >= 0:
        bits = _above(bounds, first, least)
        while bits:
            most -= 1
            bits &= bits - 1
        first += 64
    return most >= 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _take(
    strips: Strips, scratch: Scratch, block: cython.Py_ssize_t, least: cython.short
) -> cython.Py_ssize_t:
    """List a block's strips that can exceed so many units, each but once; return how many.

    ``spare_numbers`` takes their first documents, ``work`` what they can reach.
    """
    taken: cython.Py_ssize_t = 0
    origin: cython.Py_ssize_t = block * strips.in_block
    first: cython.Py_ssize_t
    place: cython.Py_ssize_t
    bits: cython.ulonglong
    for first in range(origin, origin + strips.in_block, 64):
        bits = _above(scratch.bounds, first, least)
        while bits:
            place = first + lowest_bit(bits)
            scratch.spare_numbers[taken] = (place - origin) << SHIFT
            scratch.work[taken] = scratch.bounds[place]
            scratch.bounds[place] = 0
            taken += 1
            bits &= bits - 1
    return taken


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fetch(
    segment: Segment, query: Query, scratch: Scratch, term: cython.Py_ssize_t,
    taken: cython.Py_ssize_t,
) -> cython.void:  # fmt: skip
    """Have a term's postings in strips fetched while another's are walked."""
    start: cython.Py_ssize_t = query.starts[term, scratch.block]
    density: cython.double = query.starts[term, scratch.block + 1] - start
    i: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    density /= scratch.in_block
    if cython.compiled and density > 0.0:
        for i in range(min(taken, _FETCHED)):
            posting = start + cython.cast(cython.Py_ssize_t, scratch.spare_numbers[i] * density)
            prefetch(cython.address(segment.documents[posting]))  # noqa: F821 - of the .pxd
            prefetch(cython.address(segment.narrow[posting]))  # noqa: F821


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _find(
    documents: cython.const[cython.ushort][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    guess: cython.Py_ssize_t,
    wanted: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Return where the first document >= ``wanted`` is in ``start`` to ``stop``, near a guess."""
    step: cython.Py_ssize_t = _NEAR
    posting: cython.Py_ssize_t = max(start, guess - step)
    while posting > start and documents[posting] >= wanted:
        step <<= 1
        posting = max(start, posting - step)
    if posting + 2 * _NEAR < stop and documents[posting + 2 * _NEAR] < wanted:
        return first_at_least(documents, posting + 2 * _NEAR, stop, wanted)
    while posting < stop and documents[posting] < wanted:
        posting += 1
    return posting


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _walk(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[cython.ushort][::1],
    levels: cython.const[cython.ushort][::1],
    units: cython.short[::1],
    query: Query,
    scratch: Scratch,
    term: cython.Py_ssize_t,
    multiplier: cython.ulonglong,
    least: cython.double,
    taken: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add a term's units in strips; return how many can still exceed ``least``, clear the others.

    The strips are in ``spare_numbers``; what they can still reach, beside their units, in ``work``.
    """
    start: cython.Py_ssize_t = query.starts[term, scratch.block]
    stop: cython.Py_ssize_t = query.starts[term, scratch.block + 1]
    kept: cython.Py_ssize_t = 0
    strip: cython.Py_ssize_t
    density: cython.double = stop - start
    posting: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    level: cython.ulonglong
    most: cython.ulonglong
    reached: cython.short
    left: cython.longlong
    density /= scratch.in_block
    for i in range(taken):
        strip = scratch.spare_numbers[i]
        left = scratch.work[i]
        posting = start + cython.cast(cython.Py_ssize_t, strip * density)
        posting = _find(documents, start, stop, posting, strip)
        if posting < stop and documents[posting] < strip + WIDTH:
            most = 0
            while posting < stop and documents[posting] < strip + WIDTH:
                level = levels[codes[posting]]
                units[documents[posting]] += cython.cast(cython.short, (level * multiplier) >> 32)
                most = level if level > most else most
                posting += 1
            left -= (
                _level(cython.cast(cython.uint, most)) * scratch.multipliers[term]
            ) >> scratch.shifts[term]
        reached = 0
        for j in range(strip, strip + WIDTH):
            reached = units[j] if units[j] > reached else reached
        scratch.spare_numbers[kept] = strip
        scratch.work[kept] = left
        if reached + left > least:
            kept += 1
        else:
            for j in range(strip, strip + WIDTH):
                units[j] = 0
    return kept


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _collect(
    segment: Segment,
    plan: Plan,
    query: Query,
    scratch: Scratch,
    taken: cython.Py_ssize_t,
    unit: cython.double,
    slack: cython.double,
) -> cython.bint:
    """Collect the documents of strips that may be among the best; false if there is no room."""
    waiting: cython.Py_ssize_t
    least: cython.double
    i: cython.Py_ssize_t
    for i in range(taken):
        scratch.base = scratch.spare_numbers[i] & ~63  # two strips are drained together
        least = (least_sum(scratch.floor, query.shift) - slack) / unit
        waiting = drain(
            scratch.units, scratch.base, scratch.base + 64, least, unit,
            scratch.maxima, 0, scratch.waiting, scratch.waiting_sums,
        )  # fmt: skip
        if plan.allowed.shape[0]:
            waiting = keep_allowed(plan, scratch, waiting)
        collect(scratch, waiting, plan.k, query.shift, slack)
        if not has_room(scratch, slack):
            for i in range(scratch.units.shape[0]):
                scratch.units[i] = 0
            return False
    return True


# --- a query -----------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _look(
    segment: Segment,
    strips: Strips,
    plan: Plan,
    ordered: Query,
    scratch: Scratch,
    bound: cython.double,
    unit: cython.double,
    slack: cython.double,
) -> cython.bint:
    """Collect from the strips that can exceed ``bound`` units, and the floor.

    False: they are too many, or too many documents of theirs.
    """
    cells: cython.Py_ssize_t = segment.blocks * strips.in_block
    scale: cython.double = segment.highest * 65536.0 / unit
    block: cython.Py_ssize_t
    taken: cython.Py_ssize_t
    term: cython.Py_ssize_t
    least: cython.double
    wanted: cython.short = cython.cast(cython.short, bound)
    if not _are_few(scratch.bounds, cells, wanted, ordered.walked // max(strips.cost, 1)):
        return False
    for block in range(segment.blocks):
        least = (least_sum(scratch.floor, ordered.shift) - slack) / unit
        wanted = cython.cast(cython.short, min(max(bound, least), _MOST))
        taken = _take(strips, scratch, block, wanted)
        if taken == 0:
            continue
        enter_block(segment, ordered, scratch, block)
        for term in range(ordered.length):
            if ordered.starts[term, block] == ordered.starts[term, block + 1]:
                continue
            if term + 1 < ordered.length:
                _fetch(segment, ordered, scratch, term + 1, taken)
            taken = _walk(
                segment.documents, segment.narrow, segment.levels, scratch.units,
                ordered, scratch, term,
                cython.cast(
                    cython.ulonglong, ordered.idf[term] * ordered.counts[term] * scale
                ),
                least, taken,
            )  # fmt: skip
        if not _collect(segment, plan, ordered, scratch, taken, unit, slack):
            return False
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def rank_by_strips(
    segment: Segment,
    strips: Strips,
    plan: Plan,
    query: Query,
    ordered: Query,
    scratch: Scratch,
) -> cython.bint:
    """Collect the best k above the floor, and some more; return whether bounds tell which.

    If not, more than these may have been collected. Units are 0 before and after.
    """
    unit: cython.double = ordered.rest[0] / _UNITS
    slack: cython.double = (query.length + 2) * unit
    bound: cython.double
    _add_up(segment, strips, ordered, scratch, unit)
    bound = kth_lower_bound(
        scratch.bounds, 0, segment.blocks * strips.in_block, _AT_FIRST * plan.k,
        scratch.strip_maxima, scratch.strip_spare, scratch.work,
    )  # fmt: skip
    bound = max(bound - 1.0, 0.0)
    if not _look(segment, strips, plan, ordered, scratch, bound, unit, slack):
        return False
    bound = (least_sum(scratch.floor, query.shift) - slack) / unit
    if bound < 0.0:  # a document may be among the best that has no units
        return False
    if not _look(segment, strips, plan, ordered, scratch, min(bound, _MOST), unit, slack):
        return False
    sift(scratch, scratch.floor - slack)
    score_collected(segment, query, scratch)
    sift(scratch, nextafter(scratch.floor, _INFINITY))
    return True

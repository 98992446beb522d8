"""Search by coarse sums of those strips alone that can hold the best documents.

A strip is 32 documents that follow each other. Of each frequent term, a row has the largest weight
in every strip, in 8 bits, rounded up (block-max pruning: Mallia, Suel and Tonellotto, "Faster
Learned Sparse Retrieval with Block-Max Pruning", 2024). Rows that are added up say what a document
of a strip can reach at most. The few strips of the highest bounds are walked at first: what is
found there is a floor, which few others can exceed.

Units are those of ``coarse``, and of 16 bits, too. A part exceeds its units by less than 1, whether
they are of a weight or of a level: so a sum exceeds its units by less than one for each term. The
slack is two more, as there.

Rows are made with the postings (``segments/strip_rows.py``); of terms without one, postings are
walked. Of rows of a file, nothing is known but that they are those that were written: if they are
not those of the postings, documents are not found, and nothing else happens.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    WIDTH, SHIFT = 32, 5
    from bm25rag.kernels.coarse import keep_allowed, score_best
    from bm25rag.kernels.collecting import collect, enter_block, first_at_least, has_room
    from bm25rag.kernels.scratch import Plan, Query, Scratch, Segment, Strips, Terms, least_sum
    from bm25rag.kernels.selecting import drain, kth_lower_bound, lowest_bit

# All terms can add so many units, and one more each.
_UNITS = cython.declare(cython.double, 31000.0)
# The largest weight has at most one level more, beyond rounding; see ``strip_levels``.
_LEVELS = cython.declare(cython.double, 253.0)
_ABOVE = cython.declare(cython.double, 1.0 + 1e-6)
# Rows are added up for so many strips at once, which the first-level cache holds.
_GROUP = cython.declare(cython.Py_ssize_t, 1 << 14)
# Where a term's postings of a strip begin is guessed, as if they were evenly spread, and looked for
# among so many before and after that at first. They are fetched for so many strips before.
_NEAR = cython.declare(cython.Py_ssize_t, 16)
_FETCHED = cython.declare(cython.Py_ssize_t, 16)
_MOST_UNITS = cython.declare(cython.double, 32767.0)
_UNKNOWN = cython.declare(cython.int, -2)
_NONE = cython.declare(cython.int, -1)
# For each match wanted, so many strips are walked at first. With one, the slowest of 100 questions
# took twice as long at 8.8 million vectors; with four, all took some hundredths of a ms longer.
_AT_FIRST = cython.declare(cython.Py_ssize_t, 2)


# --- the rows of terms -------------------------------------------------------------------------


@cython.cfunc
def find_rows(
    segment: Segment,
    terms: Terms,
    numbers: cython.const[cython.longlong][::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    k: cython.Py_ssize_t,
):
    """Have ``terms`` know the rows of those from ``first`` to before ``last``, if these pay.

    A row of a file is checked before.
    """
    strips: Strips = segment.strips
    number: cython.longlong
    total: cython.longlong = 0
    row: cython.int
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
        row = _NONE
        if terms.starts[number, 0] < terms.starts[number, segment.blocks]:
            row = _row_at(strips.starts, terms.starts[number, 0])
        if row >= 0 and strips.check is not None:
            strips.check(strips.offsets[row], strips.offsets[row + 1], _ascends(strips, row))
        terms.rows[number] = row


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _ascends(strips: Strips, row: cython.Py_ssize_t) -> cython.bint:
    """Whether a row's pairs, if it has any, ascend within the strips."""
    first: cython.Py_ssize_t = strips.offsets[row]
    last: cython.Py_ssize_t = strips.offsets[row + 1]
    strip: cython.Py_ssize_t = strips.levels[first]
    gaps: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    if last - first == strips.cells:
        return True
    if last - first > 2:
        if cython.compiled:
            gaps = sum_gaps(  # noqa: F821 - of the .pxd
                cython.address(strips.levels[first + 2]), (last - first) // 2 - 1
            )
        elif all(strips.levels[first + 2 : last : 2]):
            for i in range(first + 2, last, 2):
                gaps += strips.levels[i]
        if gaps == 0:
            return False
    return strip + gaps < strips.cells


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _row_at(starts: cython.const[cython.longlong][::1], start: cython.longlong) -> cython.int:
    """Return the row of the term whose postings begin there, or -1."""
    first: cython.Py_ssize_t = 0
    last: cython.Py_ssize_t = starts.shape[0]
    middle: cython.Py_ssize_t
    while first < last:
        middle = (first + last) >> 1
        if starts[middle] < start:
            first = middle + 1
        else:
            last = middle
    if first < starts.shape[0] and starts[first] == start:
        return cython.cast(cython.int, first)
    return _NONE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _level(level: cython.uint) -> cython.uint:
    """Return a level of 8 bits for one of 16; see ``strip_levels``."""
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
def _add_pairs(
    pairs: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    multiplier: cython.ulonglong,
    bounds: cython.short[::1],
) -> cython.void:
    """Add a row of pairs to all bounds."""
    place: cython.Py_ssize_t = 0
    while first < last:
        place += pairs[first]
        bounds[place] += cython.cast(cython.short, (pairs[first + 1] * multiplier) >> 32)
        first += 2


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_postings(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[cython.ushort][::1],
    levels: cython.const[cython.uchar][::1],
    starts: cython.longlong[:, ::1],
    term: cython.Py_ssize_t,
    multiplier: cython.ulonglong,
    bounds: cython.short[::1],
    in_block: cython.Py_ssize_t,
) -> cython.void:
    """Do the same for a term without a row: its postings are walked."""
    current: cython.Py_ssize_t
    strip: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    block: cython.Py_ssize_t
    largest: cython.short = 0
    before: cython.short
    units: cython.short
    for block in range(starts.shape[1] - 1):
        current = -1
        for posting in range(starts[term, block], starts[term, block + 1]):
            strip = documents[posting] >> SHIFT
            units = cython.cast(cython.short, (levels[codes[posting]] * multiplier) >> 32)
            before = largest if strip == current else 0
            largest = units if units > before else before
            bounds[block * in_block + strip] += largest - before
            current = strip


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
def _add_rows(
    strips: Strips,
    ordered: Query,
    scratch: Scratch,
    start: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
) -> cython.void:
    """Set the bounds of some strips to what terms with a level for each can add there."""
    term: cython.Py_ssize_t
    known: cython.Py_ssize_t = -1
    i: cython.Py_ssize_t
    for i in range(start, start + count):
        scratch.bounds[i] = 0
    for term in range(ordered.length + 1):
        if term < ordered.length and not _is_whole(strips, ordered.rows[term]):
            continue
        if known >= 0:  # the next one is fetched meanwhile
            _add_row(
                strips.levels, strips.offsets[ordered.rows[known]] + start,
                strips.offsets[ordered.rows[term if term < ordered.length else known]] + start,
                cython.cast(cython.uint, scratch.multipliers[known]),
                cython.cast(cython.uint, scratch.shifts[known]), scratch.bounds, start, count,
            )  # fmt: skip
        known = term


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_whole(strips: Strips, row: cython.longlong) -> cython.bint:
    """Whether a row has a level for each strip."""
    return row >= 0 and strips.offsets[row + 1] - strips.offsets[row] == strips.cells


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_up(
    segment: Segment, strips: Strips, ordered: Query, scratch: Scratch, unit: cython.double
) -> cython.void:
    """Add up what the terms of a query can add in each strip."""
    share: cython.double = segment.highest / (_LEVELS * unit) * _ABOVE
    multiplier: cython.ulonglong
    start: cython.Py_ssize_t = 0
    term: cython.Py_ssize_t
    row: cython.longlong
    for term in range(ordered.length):
        _set_multiplier(scratch, term, ordered.idf[term] * ordered.counts[term] * share)
    while start < strips.cells:
        _add_rows(strips, ordered, scratch, start, min(_GROUP, strips.cells - start))
        start += _GROUP
    for term in range(ordered.length):
        row = ordered.rows[term]
        multiplier = scratch.multipliers[term]
        multiplier <<= 32 - scratch.shifts[term]
        if row < 0:
            _add_postings(
                segment.documents, segment.narrow, strips.of_codes, ordered.starts, term,
                multiplier, scratch.bounds, strips.in_block,
            )  # fmt: skip
        elif not _is_whole(strips, row):
            _add_pairs(
                strips.levels, strips.offsets[row], strips.offsets[row + 1], multiplier,
                scratch.bounds,
            )  # fmt: skip


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
    room: cython.Py_ssize_t,
) -> cython.bint:
    """Whether at most ``room`` bounds are greater than ``least``."""
    first: cython.Py_ssize_t = 0
    bits: cython.ulonglong
    while first < cells and room >= 0:
        bits = _above(bounds, first, least)
        while bits:
            room -= 1
            bits &= bits - 1
        first += 64
    return room >= 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _take(
    segment: Segment,
    strips: Strips,
    scratch: Scratch,
    block: cython.Py_ssize_t,
    least: cython.short,
) -> cython.Py_ssize_t:
    """List a block's strips that can exceed so many units, each but once; return how many.

    ``spare_numbers`` takes their first documents, ``work`` what they can reach. A row that is wrong
    may also name strips behind the last document, where nothing is.
    """
    documents: cython.Py_ssize_t = min(
        segment.block_size, segment.size - block * segment.block_size
    )
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
            taken += scratch.spare_numbers[taken] < documents
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
    largest: cython.ulonglong
    reached: cython.short
    left: cython.longlong
    density /= scratch.in_block
    for i in range(taken):
        strip = scratch.spare_numbers[i]
        left = scratch.work[i]
        posting = start + cython.cast(cython.Py_ssize_t, strip * density)
        posting = _find(documents, start, stop, posting, strip)
        if posting < stop and documents[posting] < strip + WIDTH:
            largest = 0
            while posting < stop and documents[posting] < strip + WIDTH:
                level = levels[codes[posting]]
                units[documents[posting]] += cython.cast(cython.short, (level * multiplier) >> 32)
                largest = level if level > largest else largest
                posting += 1
            left -= (
                _level(cython.cast(cython.uint, largest)) * scratch.multipliers[term]
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
    """Collect from the strips that can exceed both ``bound`` units and the floor.

    Return false if these strips are too many, or what is collected of them.
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
        wanted = cython.cast(cython.short, min(max(bound, least), _MOST_UNITS))
        taken = _take(segment, strips, scratch, block, wanted)
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
    if not _look(segment, strips, plan, ordered, scratch, min(bound, _MOST_UNITS), unit, slack):
        return False
    score_best(segment, query, scratch, slack)
    return True

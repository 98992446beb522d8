"""What the kernels of a search work with: prepared arrays, queries, and memory for a query's sums.

What a call needs beside its arguments is made once for a segment, and kept for the next calls.
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import empty, view, zeros
from bm25rag.kernels.records import shares, strip_levels
from bm25rag.kernels.selecting import WORK

if not cython.compiled:

    def part(weight: float, idf: float, count: float) -> float:
        """Return what a posting adds to a score; see the .pxd."""
        return float(np.float32(weight) * np.float32(idf)) * count

    def fetch(segment: Segment, posting: int, stop: int) -> None:
        """Have some postings fetched into the cache: see the .pxd; interpreted, nothing is."""

    def least_sum(floor: float, shift: float) -> float:
        """Return what a sum must exceed if its score may exceed a floor; see the .pxd."""
        return floor - shift - (abs(floor) + abs(shift)) * 1e-15


_INFINITY = cython.declare(cython.double, float("inf"))
# The histogram of sums.
_BINS = cython.declare(cython.Py_ssize_t, 512)
# Room for queries of so many terms is made at once. Memory to work in is kept for so many
# threads, if it is for no more matches and terms than these.
_USUAL = 64
_KEPT = 4
_MUCH = 1 << 14
# At most so many codes have levels: 32 MiB, made by the first search in half a second at most.
_MOST_CODES = 1 << 24
# Whether a term that nobody has asked for has a row of bounds is not known yet.
_UNKNOWN = -2
# If so many times fewer documents may be returned than there are, they are looked up in all terms.
_FEWEST = cython.declare(cython.Py_ssize_t, 400)
_NO_BITS = empty(0, np.uint64)
_NO_MASK = empty(0, np.uint8)
_NO_NUMBERS = empty(0, np.uint32)


@cython.final
@cython.cclass
class Strips:
    """``StripBounds``; a row has ``cells``, of which a block has ``in_block``.

    ``of_codes`` has the level of every code.
    """


@cython.final
@cython.cclass
class Segment:
    """A segment's postings, and f of every code; of the two arrays of codes one is empty.

    ``levels`` has f of every code as a share of the largest. ``spare`` is memory to work in that
    no thread uses now, the first of ``spares``: each knows the ``next``. ``strips``: ``None`` if
    there are no bounds.
    """


@cython.final
@cython.cclass
class Terms:
    """Where the postings of terms begin in each block, and their idf.

    ``rows`` has the row of bounds of each, if the segment has strips; see ``strips.find_rows``.
    """


@cython.final
@cython.cclass
class Plan:
    """``SearchPlan``; ``filtered_first`` says whether documents that are allowed come first.

    Then ``numbers`` has theirs, and ``bits`` those of ``Allowed.bits``, or none where so few are
    looked up in all terms. Else ``allowed`` has a mask. ``most`` says whether more than half are of
    the segment's ``size``, which is negative if all are.
    """


@cython.final
@cython.cclass
class Query:
    """Distinct terms: where their postings begin in each block, their idf and multiplicity.

    ``rest[j]`` is what terms j and later can add together at most, if some may be looked up instead
    of walked: they come by bound descending then. ``rest[length]`` is always 0. ``positive``,
    ``coarse``, ``by_strips`` and ``by_bound`` say how to look for the best; see ``planning``.
    ``walked`` is how many postings the terms have, ``rows`` are theirs of bounds, or negative.
    """


@cython.final
@cython.cclass
class Scratch:
    """Memory to work in, for one query after another.

    ``sums`` and ``units``, which share their memory, and ``bits`` are zero between queries. There
    is room for windows of ``width`` documents, sums and units of a block, and queries of
    ``longest`` terms.

    A search is in ``block``, of ``in_block`` documents, the first of which is number ``first``. It
    walks the window from ``base`` to ``end`` there; ``cursors`` say how far each term has been
    walked, ``begins`` where it was at the window's first document. ``waiting`` are the places of
    documents that may be among the best.

    ``numbers`` and ``scores`` are the ``collected`` documents. What does not exceed ``floor`` is
    none of the best; it only rises. ``tallies`` count the sums of collected documents by size,
    times ``scale``: at least k of them, ``tallied``, are in bin ``cut`` or above, if k are
    collected.

    For ``wary`` queries, the floor is not guessed.

    ``bounds`` are what a query's terms can add in each strip, ``multipliers`` and ``shifts`` what
    makes units of their levels. After some ``failures`` of that, one after another, ``rests`` is
    for how many queries it is not tried.
    """


@cython.cfunc
def prepare_segment(segment) -> Segment:
    """Return ``SegmentArrays`` as the kernels take them, made once."""
    prepared: Segment
    if segment.prepared is not None:
        prepared = segment.prepared
        return prepared
    prepared = Segment()
    prepared.documents = view(segment.documents)
    prepared.is_narrow = segment.codes.itemsize == 2
    prepared.narrow = view(segment.codes) if prepared.is_narrow else empty(0, np.uint16)
    prepared.wide = empty(0, np.uint32) if prepared.is_narrow else view(segment.codes)
    prepared.weights = view(segment.weights)
    prepared.levels = view(_levels(segment))
    prepared.lowest = segment.lowest
    prepared.highest = segment.highest
    prepared.size = segment.size
    prepared.block_size = segment.block_size
    prepared.blocks = segment.blocks
    prepared.strips = None
    if segment.strips is not None and prepared.is_narrow and prepared.levels.shape[0]:
        prepared.strips = _prepare_strips(segment)
    prepared.spare = None
    prepared.spares = 0
    segment.prepared = prepared
    return prepared


@cython.cfunc
def _prepare_strips(segment) -> Strips:
    """Return ``StripBounds`` as the kernels take them."""
    bounds = segment.strips
    prepared: Strips = Strips()
    prepared.starts = view(bounds.starts)
    prepared.levels = view(bounds.levels)
    prepared.offsets = view(bounds.offsets)
    prepared.of_codes = view(strip_levels(segment.weights, segment.highest))
    prepared.check = bounds.check
    prepared.in_block = bounds.in_block
    prepared.cells = bounds.cells
    prepared.cost = bounds.cost
    prepared.worth = bounds.worth
    return prepared


@cython.cfunc
def _levels(segment):
    """Return f of every code as a share of the largest; none if that is no finite number above 0.

    Nor if they are very many, as where each posting has its own code.
    """
    if len(segment.weights) > _MOST_CODES or not 0 < segment.highest < _INFINITY:
        return np.empty(0, np.uint16)
    return shares(segment.weights, segment.highest)


@cython.cfunc
def prepare_terms(terms, segment: Segment) -> Terms:
    """Return ``TermArrays`` as the kernels take them with a segment, made once."""
    prepared: Terms
    if terms.prepared is not None:
        prepared = terms.prepared
        return prepared
    prepared = Terms()
    prepared.starts = view(terms.starts)
    prepared.idf = view(terms.idf)
    prepared.absent = terms.absent
    rows = len(terms.idf) if segment.strips is not None else 0
    prepared.rows = view(np.full(rows, _UNKNOWN, np.int32))
    terms.prepared = prepared
    return prepared


@cython.cfunc
def prepare_plan(plan, segment: Segment) -> Plan:
    """Return a ``SearchPlan`` as the kernels take it with a segment, made once."""
    prepared: Plan
    if plan.prepared is not None:
        prepared = plan.prepared
        return prepared
    prepared = Plan()
    allowed = plan.allowed
    prepared.k = plan.k
    prepared.size = -1 if allowed is None else allowed.size
    prepared.filtered_first = (
        allowed is not None and allowed.count * plan.filtered_first <= allowed.size
    )
    prepared.most = allowed is not None and 2 * allowed.count > allowed.size
    prepared.numbers, prepared.bits, prepared.allowed = _NO_NUMBERS, _NO_BITS, _NO_MASK
    if prepared.filtered_first:
        prepared.numbers = view(allowed.numbers)
        if allowed.count * _FEWEST >= allowed.size:
            prepared.bits = view(allowed.bits(segment.block_size))
    elif allowed is not None:
        prepared.allowed = view(allowed.mask.view(np.uint8))
    prepared.window = plan.window
    prepared.sparse = plan.sparse
    prepared.coarse = plan.coarse
    plan.prepared = prepared
    return prepared


@cython.cfunc
def borrow(segment: Segment, plan: Plan, longest: cython.Py_ssize_t) -> Scratch:
    """Return memory that no other thread uses, of an earlier call if that fits."""
    width: cython.Py_ssize_t = min(min(plan.window, segment.block_size), segment.size)
    room: cython.Py_ssize_t = plan.k + max(plan.k, 512)
    # Compiled code takes one with no other thread in between.
    scratch: Scratch | None = segment.spare if cython.compiled else None
    if scratch is not None:
        segment.spare = scratch.next
        segment.spares -= 1
        scratch.next = None
        if scratch.width >= width and scratch.longest >= longest and scratch.room == room:
            return scratch
    return _allot(segment, (width + 63) // 64 * 64, room, max(longest, _USUAL))


@cython.cfunc
def give_back(segment: Segment, scratch: Scratch):
    """Keep the memory of a call for the next ones, unless it is much."""
    if segment.spares < _KEPT and scratch.room + scratch.longest <= _MUCH:
        scratch.next = segment.spare
        segment.spare = scratch
        segment.spares += 1


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def slots_for(terms: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return of how many slots a hash table for some terms is: a power of two."""
    slots: cython.Py_ssize_t = 4
    while slots < 2 * terms:
        slots <<= 1
    return slots


@cython.cfunc
def _allot(
    segment: Segment,
    width: cython.Py_ssize_t,
    room: cython.Py_ssize_t,
    longest: cython.Py_ssize_t,
) -> Scratch:
    """Make the memory that queries of ``longest`` terms are answered in.

    ``width`` are the documents of a window, a multiple of 64; ``room`` is for matches that are
    collected, beside those of a window; terms are sorted there, too, and strips of a block wait.
    """
    scratch: Scratch = Scratch()
    scratch.next = None
    scratch.width = width
    scratch.room = room
    scratch.wary = 0
    scratch.longest = longest
    # What is collected is cut down when there is no room for a window more.
    strips: cython.Py_ssize_t = 0 if segment.strips is None else segment.strips.in_block
    cells: cython.Py_ssize_t = max(max(room + width, longest), strips)
    spare: cython.Py_ssize_t = max(cells, width // 8)
    _allot_sums(segment, scratch)
    scratch.waiting_sums, scratch.maxima, scratch.scores, scratch.spare = _cut(
        np.float64, (width, width // 8, cells, spare)
    )
    scratch.waiting, scratch.numbers, scratch.spare_numbers, scratch.work = _cut(
        np.int64, (width + 1, cells, cells, spare + 1 + WORK)
    )
    scratch.tallies = empty(_BINS, np.int32)  # cleared for each query, so few bytes
    scratch.weights = empty(longest)
    scratch.terms, scratch.distinct, scratch.begins, scratch.cursors, scratch.multipliers = _cut(
        np.int64, [longest] * 5
    )
    scratch.shifts, scratch.slots = _cut(np.int64, (longest, slots_for(longest)))
    _allot_bounds(segment, scratch)
    scratch.query = _allot_query(segment, longest)
    scratch.ordered = _allot_query(segment, longest)
    return scratch


@cython.cfunc
def _allot_sums(segment: Segment, scratch: Scratch) -> cython.void:
    """Make the sums, and those in units, of a block: no query has both. Few reach all pages."""
    cells: cython.Py_ssize_t = (min(segment.block_size, segment.size) + 63) // 64 * 64
    shared = np.zeros(max(scratch.width, cells))
    scratch.sums = view(shared)
    scratch.units = view(shared.view(np.int16)[:cells])
    scratch.bits = zeros(max(scratch.width, cells) // 64, np.uint64)


@cython.cfunc
def _allot_bounds(segment: Segment, scratch: Scratch) -> cython.void:
    """Make the bounds of all strips, and what the best of them are found with."""
    cells: cython.Py_ssize_t = 0 if segment.strips is None else segment.strips.cells
    scratch.bounds = empty(cells, np.int16)
    scratch.strip_maxima, scratch.strip_spare = _cut(np.float64, (cells // 8, cells // 8))
    scratch.rests = scratch.failures = 0


@cython.cfunc
def _allot_query(segment: Segment, longest: cython.Py_ssize_t) -> Query:
    query: Query = Query()
    query.idf, query.counts, query.rest = _cut(np.float64, (longest, longest, longest + 1))
    query.rows = empty(longest, np.int64)
    query.starts = view(np.empty((longest, segment.blocks + 1), np.int64))
    return query


@cython.cfunc
def _cut(kind, lengths):
    """Cut arrays of these lengths out of one, which takes less time than to make each."""
    whole = np.empty(sum(lengths), kind)
    arrays = []
    start = 0
    for length in lengths:
        arrays.append(view(whole[start : start + length]))
        start += length
    return arrays

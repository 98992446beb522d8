"""Rows: the places of living documents among those of all segments, in order."""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.checks import require
from bm25rag.kernels.memory import view


@cython.final
@cython.cclass
class SegmentRows:
    """``records.SegmentRows``."""


@cython.final
@cython.cclass
class Rows:
    """``records.Rows``: those of each segment, and the first row of each, and what follows all."""


@cython.cfunc
def prepare_segment_rows(rows) -> SegmentRows:
    """Return ``records.SegmentRows`` as the kernels take them."""
    prepared: SegmentRows = SegmentRows()
    prepared.numbers = view(rows.numbers)
    prepared.kept = rows.kept
    living = None if rows.kept else rows.living
    prepared.living = view(np.empty(0, np.uint8) if living is None else living.view(np.uint8))
    return prepared


@cython.cfunc
def prepare_rows(rows) -> Rows:
    """Return ``records.Rows`` as the kernels take them, made once."""
    prepared: Rows
    if rows.prepared is None:
        prepared = Rows()
        prepared.segments = [prepare_segment_rows(one) for one in rows.segments]
        prepared.bases = view(np.array(rows.bases, np.int64))
        rows.prepared = prepared
    prepared = rows.prepared
    return prepared


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def first_from(
    numbers: cython.const[cython.uint][::1], low: cython.Py_ssize_t, number: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return where the first of ascending numbers is, from ``low`` on, that is not below one.

    It takes as many steps as there are bits in how far that is.
    """
    count: cython.Py_ssize_t = numbers.shape[0]
    high: cython.Py_ssize_t = low
    step: cython.Py_ssize_t = 1
    middle: cython.Py_ssize_t
    while high < count and cython.cast(cython.Py_ssize_t, numbers[high]) < number:
        low = high + 1
        high += step
        step *= 2
    high = min(high, count)
    while low < high:
        middle = (low + high) // 2
        if cython.cast(cython.Py_ssize_t, numbers[middle]) < number:
            low = middle + 1
        else:
            high = middle
    return low


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def rank_each(
    rows: SegmentRows, numbers: cython.longlong[::1], count: cython.Py_ssize_t
) -> cython.void:
    """Put in the place of some of a segment's documents which of its living ones each is."""
    i: cython.Py_ssize_t
    place: cython.Py_ssize_t
    if not rows.kept and rows.numbers.shape[0] == 0:  # all live
        return
    for i in range(count):
        place = first_from(rows.numbers, 0, numbers[i])
        numbers[i] = place if rows.kept else numbers[i] - place


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _number_at(rows: SegmentRows, rank: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return the number of a living document of a segment."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = rows.numbers.shape[0]
    middle: cython.Py_ssize_t
    if rows.kept:
        return rows.numbers[rank]
    while low < high:  # before so many of the deleted ones, ``rank`` others are not
        middle = (low + high) // 2
        if cython.cast(cython.Py_ssize_t, rows.numbers[middle]) - middle <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + low


def locate(rows, wanted):
    """Return where documents are; see ``Backend.locate``."""
    prepared: Rows = prepare_rows(rows)
    bases: cython.const[cython.longlong][::1] = prepared.bases
    last: cython.Py_ssize_t = bases.shape[0] - 1
    segments: list = []
    numbers: list = []
    segment: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    own: SegmentRows
    for row in wanted:
        if not 0 <= row < bases[last]:
            require(False, "there is no such row")
        if row < bases[segment]:
            segment = 0
        while row >= bases[segment + 1]:
            segment += 1
        own = prepared.segments[segment]
        segments.append(segment)
        numbers.append(_number_at(own, row - bases[segment]))
    return segments, numbers

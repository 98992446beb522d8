"""Compiled walks over the postings of one term in one window of documents.

A window's sums begin at 0 with its first document. Places are unsigned: a test for
negative ones would cost as much as the addition. ``add``, ``touch`` and ``add_to_touched``
are one loop written three times, since a choice inside it would be made for every posting.
"""

from __future__ import annotations

import numpy as np

from bm25rag.common.arrays import Bool, Float32, Float64, Int64, UInt16, Unsigned
from bm25rag.kernels.compiling import compiled


@compiled
def add(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    weight: np.float32,
    count: float,
    place: int,
    stop: int,
    base: int,
    end: int,
    whole: bool,
    sums: Float64,
) -> int:
    """Add a term's parts to the sums of a window; return its first posting behind the window.

    ``whole`` says that all postings up to ``stop`` are in the window.
    """
    first = np.uint64(base)
    posting, last = np.uint64(place), np.uint64(stop)
    if whole:
        for own in range(posting, last):
            part = np.float64(table[codes[own]] * weight) * count
            sums[np.uint64(documents[own]) - first] += part
        return stop
    while posting < last:
        document = documents[posting]
        if document >= end:
            break
        part = np.float64(table[codes[posting]] * weight) * count
        sums[np.uint64(document) - first] += part
        posting += np.uint64(1)
    return int(posting)


@compiled
def touch(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    weight: np.float32,
    count: float,
    place: int,
    stop: int,
    base: int,
    end: int,
    sums: Float64,
    touched: Int64,
    many: int,
) -> tuple[int, int]:
    """Do as ``add``, and list the places that were 0, ``many`` so far; return how many, too.

    ``touched`` has room for one more than there are places.
    """
    first = np.uint64(base)
    posting, last = np.uint64(place), np.uint64(stop)
    while posting < last:
        document = documents[posting]
        if document >= end:
            break
        offset = np.uint64(document) - first
        part = np.float64(table[codes[posting]] * weight) * count
        before = sums[offset]
        touched[np.uint64(many)] = offset
        many += before == 0.0
        sums[offset] = before + part
        posting += np.uint64(1)
    return many, int(posting)


@compiled
def add_to_touched(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    weight: np.float32,
    count: float,
    place: int,
    stop: int,
    base: int,
    end: int,
    sums: Float64,
) -> int:
    """Do as ``add``, but only where a sum is not 0."""
    first = np.uint64(base)
    posting, last = np.uint64(place), np.uint64(stop)
    while posting < last:
        document = documents[posting]
        if document >= end:
            break
        offset = np.uint64(document) - first
        part = np.float64(table[codes[posting]] * weight) * count
        before = sums[offset]
        sums[offset] = before + (part if before > 0.0 else 0.0)
        posting += np.uint64(1)
    return int(posting)


@compiled
def reject(allowed: Bool, first: int, sums: Float64, touched: Int64, many: int) -> None:
    """Let no sum stay of listed places that may not be returned; the window begins at ``first``."""
    for number in range(many):
        place = np.uint64(touched[np.uint64(number)])
        if not allowed[np.uint64(first) + place]:
            sums[place] = 0.0


@compiled
def first_at_least(documents: UInt16, start: int, stop: int, wanted: int) -> int:
    """Return where the first document >= ``wanted`` is in ``start`` to ``stop``, by galloping."""
    if start >= stop or documents[start] >= wanted:
        return start
    low, step = start, 1
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


@compiled
def look_up(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    weight: np.float32,
    count: float,
    place: int,
    stop: int,
    base: int,
    least: float,
    waiting: Int64,
    sums: Float64,
    many: int,
) -> tuple[int, int]:
    """Add a term's parts to the documents that wait, and let go of those not above ``least``.

    Return how many still wait, and where the term's cursor is.
    """
    kept = 0
    for number in range(many):
        document, own = base + waiting[number], sums[number]
        place = first_at_least(documents, place, stop, document)
        if place < stop and np.int64(documents[place]) == document:
            own += np.float64(table[codes[place]] * weight) * count
        waiting[kept], sums[kept] = waiting[number], own
        kept += own > least
    return kept, place

"""Numbering of bigrams: sorted by their first characters, not looked up.

Chinese has so many bigrams that a hash table of them outgrows the cache. Those of one first
character need a table of second characters alone, which does not.
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import empty, view, zeros

if not cython.compiled:
    from bm25rag.kernels.fold_bits import SIZE

# Code points that may be in a pair.
POINTS = 1 << 16
_NONE = cython.declare(cython.uint, 0xFFFFFFFF)
_LOW_HALF = cython.declare(cython.ulonglong, 0xFFFFFFFF)


def with_bigrams(pairs, total, tokens, entries, fold_table):
    """Return tokens and words with bigrams among them.

    A bigram may be there twice, which ``add_words`` mends: where its characters have wide and
    narrow forms, or where one of it was among the words before.
    ``pairs`` are, for each of ``total`` bigrams, its place among all tokens, that in the source,
    and its two code points, the first above 16 bits; uint32, (n, 3); they are overwritten.
    ``tokens`` and ``entries`` are the others, as ``scan`` returns them.
    """
    in_pairs: cython.uint[:, ::1] = view(pairs)
    in_tokens: cython.const[cython.uint][::1] = view(tokens)
    table: cython.const[cython.ulonglong][::1] = view(fold_table)
    numbers = np.full(len(tokens) + total, 0xFFFFFFFF, np.uint32)
    out: cython.uint[::1] = view(numbers)
    stops: cython.longlong[::1] = zeros(POINTS, np.int64)
    given: cython.uint[::1] = zeros(POINTS, np.uint32)
    sorted_pairs: cython.ulonglong[::1] = empty(total, np.uint64)
    bigrams: cython.Py_ssize_t = total
    known: cython.Py_ssize_t = len(entries)
    count: cython.Py_ssize_t
    with cython.nogil:
        count = _number_bigrams(in_pairs, bigrams, known, out, stops, given, sorted_pairs)
        _fill_in(in_tokens, out)
    rows = np.empty((known + count, 4), np.uint64)
    rows[:known] = entries
    out_rows: cython.ulonglong[:, ::1] = view(rows)
    with cython.nogil:
        _write_entries(in_pairs, count, table, out_rows, known)
    return numbers, rows


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill_in(tokens: cython.const[cython.uint][::1], numbers: cython.uint[::1]) -> cython.void:
    """Put the other tokens into the places that bigrams have left."""
    other: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    for i in range(numbers.shape[0]):
        if numbers[i] == _NONE:
            numbers[i] = tokens[other]
            other += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write_entries(
    pairs: cython.const[cython.uint][:, ::1],
    count: cython.Py_ssize_t,
    table: cython.const[cython.ulonglong][::1],
    rows: cython.ulonglong[:, ::1],
    known: cython.Py_ssize_t,
) -> cython.void:
    """Write the entries of the first pairs behind those of the words known before."""
    i: cython.Py_ssize_t
    first: cython.ulonglong
    second: cython.ulonglong
    width: cython.ulonglong
    for i in range(count):
        first = table[pairs[i, 2] >> 16]
        second = table[pairs[i, 2] & 0xFFFF]
        width = first >> SIZE & 0xFF
        rows[known + i, 0] = (first & _LOW_HALF) | (second & _LOW_HALF) << (8 * width)
        rows[known + i, 1] = 0
        rows[known + i, 2] = 0
        rows[known + i, 3] = width + (second >> SIZE & 0xFF)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _number_bigrams(
    pairs: cython.uint[:, ::1],
    total: cython.Py_ssize_t,
    known: cython.Py_ssize_t,
    numbers: cython.uint[::1],
    stops: cython.longlong[::1],
    given: cython.uint[::1],
    rows: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """Give bigrams numbers from ``known`` on; keep one of each, in order, and return how many."""
    i: cython.Py_ssize_t
    point: cython.Py_ssize_t
    row: cython.Py_ssize_t = 0
    stop: cython.longlong = 0
    size: cython.longlong
    code: cython.ulonglong
    second: cython.Py_ssize_t
    count: cython.uint = 0
    before: cython.uint
    for i in range(total):
        stops[pairs[i, 2] >> 16] += 1
    for point in range(stops.shape[0]):
        size = stops[point]
        stops[point] = stop
        stop += size
    for i in range(total):
        code = pairs[i, 2]
        rows[stops[code >> 16]] = code << 32 | pairs[i, 0]
        stops[code >> 16] += 1
    # ``given`` holds numbers plus one; those of an earlier first character are not above
    # ``before``.
    for point in range(stops.shape[0]):
        before = count
        while row < stops[point]:
            second = rows[row] >> 32 & 0xFFFF
            if given[second] <= before:
                pairs[count, 2] = rows[row] >> 32
                count += 1
                given[second] = count
            numbers[rows[row] & _LOW_HALF] = known + given[second] - 1
            row += 1
    return count

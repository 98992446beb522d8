"""Building: counting the tokens of documents, and putting postings into their places."""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.common.pages import empty_apart
from bm25rag.kernels.memory import empty, view
from bm25rag.kernels.records import STRIP, STRIP_GAP

if not cython.compiled:
    from bm25rag.kernels.checksum import crc_after

Numbers = cython.fused_type(cython.ushort, cython.uint)
Small = cython.fused_type(cython.uchar, cython.uint)
Codes = cython.fused_type(cython.ushort, cython.uint)

_STOPPED = cython.declare(cython.uint, 0xFFFFFFFF)
# A strip has so many documents: a power of two.
_SHIFT = cython.declare(cython.Py_ssize_t, STRIP.bit_length() - 1)
_GAP = cython.declare(cython.Py_ssize_t, STRIP_GAP)


def checksums(data, offsets):
    """Return the CRC-32 of byte strings; see ``Backend.checksums``."""
    source: cython.const[cython.uchar][::1] = view(data)
    bounds: cython.const[cython.ulonglong][::1] = view(offsets)
    sums = np.empty(max(len(offsets) - 1, 0), np.uint32)
    out: cython.uint[::1] = view(sums)
    with cython.nogil:
        _checksums(source, bounds, out)
    return sums


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _checksums(
    data: cython.const[cython.uchar][::1],
    offsets: cython.const[cython.ulonglong][::1],
    sums: cython.uint[::1],
) -> cython.void:
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t
    size: cython.Py_ssize_t
    for i in range(sums.shape[0]):
        start = offsets[i]
        size = offsets[i + 1] - offsets[i]
        sums[i] = 0
        if size > 0:
            text = cython.address(data[start]) if cython.compiled else data[start:]
            sums[i] = crc_after(0, text, size)


def count(tokens, counts, terms, spare):
    """Count the tokens of some documents; see ``Backend.count`` and ``Run``."""
    in_tokens: cython.const[cython.uint][::1] = view(tokens)
    in_counts: cython.const[cython.uint][::1] = view(counts)
    lengths = np.zeros(len(counts), np.uint32)
    to_lengths: cython.uint[::1] = view(lengths)
    scratch = _scratch(len(tokens), spare)
    postings: cython.uint[:, ::1] = view(scratch)
    state: cython.uint[:, ::1] = view(np.zeros((terms, 2), np.uint32))
    total: cython.Py_ssize_t
    used: cython.Py_ssize_t
    largest: cython.uint = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        total = _count(in_tokens, in_counts, state, postings, to_lengths)
        for i in range(total):
            largest = max(largest, postings[i, 2])
        used = _count_used(state)
    are_few: cython.bint = len(counts) <= 1 << 16
    is_small: cython.bint = largest < 1 << 8
    out_terms, out_sizes, documents, tf = empty_apart(
        (used, np.uint32),
        (used, np.uint32),
        (total, np.uint16 if are_few else np.uint32),
        (total, np.uint8 if is_small else np.uint32),
    )
    to_terms: cython.uint[::1] = view(out_terms)
    to_sizes: cython.uint[::1] = view(out_sizes)
    few: cython.ushort[::1] = view(documents) if are_few else _none16()
    many: cython.uint[::1] = _none32() if are_few else view(documents)
    small: cython.uchar[::1] = view(tf) if is_small else empty(0, np.uint8)
    large: cython.uint[::1] = _none32() if is_small else view(tf)
    with cython.nogil:
        _place(state, to_terms, to_sizes)
        if are_few and is_small:
            _group(postings, total, state, few, small)
        elif are_few:
            _group(postings, total, state, few, large)
        elif is_small:
            _group(postings, total, state, many, small)
        else:
            _group(postings, total, state, many, large)
    spare.append(scratch)
    return out_terms, out_sizes, documents, tf, lengths


def _scratch(size, spare):
    """Return room for so many postings, spare room if that is large enough."""
    try:
        scratch = spare.pop()
        if len(scratch) >= size:
            return scratch
    except IndexError:
        pass
    return empty_apart((3 * size, np.uint32))[0].reshape(size, 3)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count(
    tokens: cython.const[cython.uint][::1],
    counts: cython.const[cython.uint][::1],
    state: cython.uint[:, ::1],
    postings: cython.uint[:, ::1],
    lengths: cython.uint[::1],
) -> cython.Py_ssize_t:
    """List postings by document; return how many there are.

    ``state`` takes the latest posting of each term, plus one, and how many postings it has.
    ``postings`` takes terms, documents and term frequencies.
    """
    total: cython.Py_ssize_t = 0
    begin: cython.Py_ssize_t = 0
    document: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    length: cython.uint
    i: cython.Py_ssize_t
    place: cython.Py_ssize_t
    latest: cython.Py_ssize_t
    is_new: cython.Py_ssize_t
    term: cython.uint
    for document in range(counts.shape[0]):
        start = total
        stop = begin + counts[document]
        length = 0
        for i in range(begin, stop):
            term = tokens[i]
            if term == _STOPPED:
                continue
            length += 1
            # No branch on whether the term is new in the document: no processor foresees it.
            latest = state[term, 0]
            is_new = latest <= start
            place = total if is_new else latest - 1
            state[term, 0] = place + 1
            state[term, 1] += is_new
            postings[total, 2] = 0
            postings[place, 0] = term
            postings[place, 1] = document
            postings[place, 2] += 1
            total += is_new
        lengths[document] = length
        begin = stop
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_used(state: cython.const[cython.uint][:, ::1]) -> cython.Py_ssize_t:
    used: cython.Py_ssize_t = 0
    term: cython.Py_ssize_t
    for term in range(state.shape[0]):
        used += state[term, 1] > 0
    return used


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _place(
    state: cython.uint[:, ::1], terms: cython.uint[::1], sizes: cython.uint[::1]
) -> cython.void:
    """List the terms that occur; ``state`` then says where the postings of each begin."""
    used: cython.Py_ssize_t = 0
    start: cython.uint = 0
    term: cython.Py_ssize_t
    for term in range(state.shape[0]):
        if state[term, 1]:
            terms[used] = term
            sizes[used] = state[term, 1]
            used += 1
            state[term, 0] = start
            start += state[term, 1]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _group(
    postings: cython.const[cython.uint][:, ::1],
    count: cython.Py_ssize_t,
    state: cython.uint[:, ::1],
    documents: Numbers[::1],
    tf: Small[::1],
) -> cython.void:
    """Group postings by term; ``state`` says where those of each begin."""
    i: cython.Py_ssize_t
    place: cython.Py_ssize_t
    for i in range(count):
        place = state[postings[i, 0], 0]
        state[postings[i, 0], 0] = place + 1
        documents[place] = postings[i, 1]
        tf[place] = postings[i, 2]


def divide(run, groups, count: cython.Py_ssize_t):
    """Put the terms of a run in the order of their groups; see ``Backend.divide``."""
    outs = [np.empty_like(array) for array in run[:4]]
    edges = np.zeros((2, count + 1), np.int64)
    terms: cython.const[cython.uint][::1] = view(run.terms)
    sizes: cython.const[cython.uint][::1] = view(run.sizes)
    of_term: cython.const[cython.uchar][::1] = view(groups)
    to_terms: cython.uint[::1] = view(outs[0])
    to_sizes: cython.uint[::1] = view(outs[1])
    ends: cython.longlong[:, ::1] = view(edges)
    group: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(terms.shape[0]):
            group = of_term[terms[i]] + 1
            ends[0, group] += 1
            ends[1, group] += sizes[i]
        for group in range(count):
            ends[0, group + 1] += ends[0, group]
            ends[1, group + 1] += ends[1, group]
    places: cython.longlong[::1] = view(edges[0].copy())
    with cython.nogil:
        for i in range(terms.shape[0]):
            group = of_term[terms[i]]
            to_terms[places[group]] = terms[i]
            to_sizes[places[group]] = sizes[i]
            places[group] += 1
    for source, target in zip(run[2:4], outs[2:], strict=True):
        _divide(
            view(source.view(np.uint8)), view(target.view(np.uint8)), source.itemsize,
            terms, sizes, of_term, view(edges[1] * source.itemsize),
        )  # fmt: skip
    return *outs, edges


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _divide(
    source: cython.const[cython.uchar][::1],
    target: cython.uchar[::1],
    width: cython.Py_ssize_t,
    terms: cython.const[cython.uint][::1],
    sizes: cython.const[cython.uint][::1],
    of_term: cython.const[cython.uchar][::1],
    places: cython.longlong[::1],
) -> cython.void:
    """Do so with the bytes of postings; ``places`` say where those of each group go."""
    start: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    place: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for i in range(terms.shape[0]):
        size = sizes[i] * width
        place = places[of_term[terms[i]]]
        places[of_term[terms[i]]] = place + size
        for j in range(size):
            target[place + j] = source[start + j]
        start += size


def fill(run, codes, places):
    """Put the postings of a run into their places; see ``Backend.fill``."""
    terms: cython.const[cython.uint][::1] = view(run.terms)
    sizes: cython.const[cython.uint][::1] = view(run.sizes)
    is_narrow: cython.bint = run.documents.itemsize == 2
    narrow: cython.const[cython.ushort][::1] = view(run.documents) if is_narrow else _none16()
    wide: cython.const[cython.uint][::1] = _none32() if is_narrow else view(run.documents)
    are_few: cython.bint = codes.itemsize == 2
    few: cython.const[cython.ushort][::1] = view(codes) if are_few else _none16()
    many: cython.const[cython.uint][::1] = _none32() if are_few else view(codes)
    to_few: cython.ushort[::1] = view(places.codes) if are_few else _none16()
    to_many: cython.uint[::1] = _none32() if are_few else view(places.codes)
    cursors: cython.longlong[::1] = view(places.cursors)
    documents: cython.ushort[::1] = view(places.documents)
    targets: cython.const[cython.longlong][::1] = view(places.targets)
    cells: cython.uint[:, ::1] = view(places.cells)
    high: cython.ushort[::1] = view(places.high)
    size: cython.Py_ssize_t = places.block_size
    first: cython.Py_ssize_t = run.first
    with cython.nogil:
        if is_narrow and targets.shape[0]:
            _fill_blocks(terms, sizes, narrow, first, size, cursors, targets, cells, high)
        elif targets.shape[0]:
            _fill_blocks(terms, sizes, wide, first, size, cursors, targets, cells, high)
        if is_narrow and are_few:
            _fill(terms, sizes, narrow, first, size, few, cursors, documents, to_few)
        elif is_narrow:
            _fill(terms, sizes, narrow, first, size, many, cursors, documents, to_many)
        elif are_few:
            _fill(terms, sizes, wide, first, size, few, cursors, documents, to_few)
        else:
            _fill(terms, sizes, wide, first, size, many, cursors, documents, to_many)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill(
    terms: cython.const[cython.uint][::1],
    sizes: cython.const[cython.uint][::1],
    from_documents: cython.const[Numbers][::1],
    first: cython.Py_ssize_t,
    block_size: cython.Py_ssize_t,
    from_codes: cython.const[Codes][::1],
    cursors: cython.longlong[::1],
    documents: cython.ushort[::1],
    codes: Codes[::1],
) -> cython.void:
    start: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    begin: cython.Py_ssize_t
    place: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for i in range(terms.shape[0]):
        size = sizes[i]
        place = cursors[terms[i]]
        cursors[terms[i]] = place + size
        begin = first // block_size * block_size  # of the block that the documents are in
        for j in range(start, start + size):
            while first + from_documents[j] >= begin + block_size:
                begin += block_size
            documents[place] = first + from_documents[j] - begin
            codes[place] = from_codes[j]
            place += 1
        start += size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill_blocks(
    terms: cython.const[cython.uint][::1],
    sizes: cython.const[cython.uint][::1],
    documents: cython.const[Numbers][::1],
    first: cython.Py_ssize_t,
    block_size: cython.Py_ssize_t,
    cursors: cython.const[cython.longlong][::1],
    targets: cython.const[cython.longlong][::1],
    cells: cython.uint[:, ::1],
    high: cython.ushort[::1],
) -> cython.void:
    """Note which block each posting is in; see ``PostingsTarget``."""
    start: cython.Py_ssize_t = 0
    target: cython.Py_ssize_t
    place: cython.Py_ssize_t
    block: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for i in range(terms.shape[0]):
        target = targets[terms[i]]
        place = cursors[terms[i]] - target
        block = first // block_size
        for j in range(start, start + sizes[i]):
            while first + documents[j] >= (block + 1) * block_size:
                block += 1
            if target < 0:
                cells[-1 - target, block] += 1
            else:
                high[place] = block
                place += 1
        start += sizes[i]


def strip_row(
    documents, codes, starts, levels, in_block: cython.Py_ssize_t, limit: cython.Py_ssize_t
):
    """Return a term's row of levels; see ``Backend.strip_row``."""
    of_documents: cython.const[cython.ushort][::1] = view(documents)
    of_codes: cython.const[cython.ushort][::1] = view(codes)
    places: cython.const[cython.longlong][::1] = view(starts)
    of_levels: cython.const[cython.uchar][::1] = view(levels)
    cells: cython.Py_ssize_t = (places.shape[0] - 1) * in_block
    # A gap is divided at most once for each 255 strips.
    room = max(0, min(limit, places[places.shape[0] - 1] - places[0])) + cells // _GAP + 1
    row = np.empty(2 * room, np.uint8)
    to_row: cython.uchar[::1] = view(row)
    size: cython.Py_ssize_t
    with cython.nogil:
        size = _fill_pairs(of_documents, of_codes, places, of_levels, in_block, limit, to_row)
    if size >= 0:
        return row[:size].copy()
    row = np.zeros(cells, np.uint8)
    to_row = view(row)
    with cython.nogil:
        _fill_row(of_documents, of_codes, places, of_levels, in_block, to_row)
    return row


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill_pairs(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[cython.ushort][::1],
    starts: cython.const[cython.longlong][::1],
    levels: cython.const[cython.uchar][::1],
    in_block: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    pairs: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Write a row of pairs; return its size, or -1 if the term is in more than ``limit`` strips."""
    size: cython.Py_ssize_t = 0
    known: cython.Py_ssize_t = 0
    current: cython.Py_ssize_t = -1
    last: cython.Py_ssize_t = 0
    block: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    strip: cython.Py_ssize_t
    level: cython.uchar
    for block in range(starts.shape[0] - 1):
        for posting in range(starts[block], starts[block + 1]):
            strip = block * in_block + (documents[posting] >> _SHIFT)
            level = levels[codes[posting]]
            if strip == current:
                pairs[size - 1] = level if level > pairs[size - 1] else pairs[size - 1]
                continue
            current = strip
            known += 1
            if known > limit:
                return -1
            while strip - last > _GAP:
                pairs[size] = _GAP
                pairs[size + 1] = 0
                size += 2
                last += _GAP
            pairs[size] = cython.cast(cython.uchar, strip - last)
            pairs[size + 1] = level
            size += 2
            last = strip
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill_row(
    documents: cython.const[cython.ushort][::1],
    codes: cython.const[cython.ushort][::1],
    starts: cython.const[cython.longlong][::1],
    levels: cython.const[cython.uchar][::1],
    in_block: cython.Py_ssize_t,
    row: cython.uchar[::1],
) -> cython.void:
    """Write the largest level of each strip, where zeros are."""
    block: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    strip: cython.Py_ssize_t
    level: cython.uchar
    for block in range(starts.shape[0] - 1):
        for posting in range(starts[block], starts[block + 1]):
            strip = block * in_block + (documents[posting] >> _SHIFT)
            level = levels[codes[posting]]
            row[strip] = level if level > row[strip] else row[strip]


def _none16():
    return empty(0, np.uint16)


def _none32():
    return empty(0, np.uint32)

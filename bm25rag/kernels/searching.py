"""Search: the best k documents of each query of a batch.

A query is resolved, and a way chosen (``planning``). Its postings are walked block by block and
window by window, so that sums stay in the cache, terms in the order of the query (``exact``), or
with sums of 16 bits first (``coarse``), of vectors only where bounds say that the best may be
(``strips``); where few documents may be returned, by these (``filtered``). In each window,
documents that may not be returned are masked, the others that may be among the best are looked up
in the terms that were not walked, and collected (``collecting``). Once the k-th best score is
known, terms whose bounds together cannot reach it, or a share of it, are not walked any more for
themselves.

Before that, its terms are numbered. A new term is looked up in all segments, and what a search
needs of it is written before its number can be seen. What is not known to be right is left to
Python: ``numbers[term]`` looks it up there.

Loops over postings lie beside their callers. What another module calls, it calls once for a window.
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.checks import check_rising, check_search, check_terms
from bm25rag.kernels.memory import empty, view

if not cython.compiled:
    from bm25rag.kernels.checksum import crc_after
    from bm25rag.kernels.coarse import rank_coarsely
    from bm25rag.kernels.collecting import keep_best, start
    from bm25rag.kernels.exact import rank, rank_signed
    from bm25rag.kernels.filtered import rank_filtered
    from bm25rag.kernels.lookup import count_living, find_term, prepare_postings
    from bm25rag.kernels.planning import choose_way, fetch_first, order_by_bound, resolve
    from bm25rag.kernels.rows import (
        Rows,
        SegmentRows,
        prepare_rows,
        prepare_segment_rows,
        rank_each,
    )
    from bm25rag.kernels.scratch import (
        Plan,
        Query,
        Scratch,
        Segment,
        Strips,
        Terms,
        borrow,
        give_back,
        prepare_plan,
        prepare_segment,
        prepare_terms,
    )
    from bm25rag.kernels.strips import find_rows, rank_by_strips
    from bm25rag.kernels.utf8 import utf8_of

_INFINITY = cython.declare(cython.double, float("inf"))
# After several searches by strips in vain, at most so many queries go without.
_RESTS = cython.declare(cython.Py_ssize_t, 63)


@cython.final
@cython.cclass
class _Column:
    """A segment's postings, where those of each number begin, and where its part of a row does.

    And its living documents, if they are counted.
    """


@cython.final
@cython.cclass
class _Row:
    """The places of a term in all segments, one after another."""


@cython.final
@cython.cclass
class _Table:
    """``TermTable``; ``spare`` is a row of ``width`` places that no thread uses now."""


@cython.cfunc
def _prepare_table(table) -> _Table | None:
    """Return a ``TermTable`` as the kernels take it, made once; ``None`` if there is none."""
    prepared: _Table
    if table is None:
        return None
    if table.prepared is not None:
        prepared = table.prepared
        return prepared
    prepared = _Table()
    prepared.columns = []
    prepared.spare = None
    prepared.width = 0
    column: _Column
    each_rows = [None] * len(table.postings) if table.rows is None else table.rows
    for own, terms, rows in zip(table.postings, table.terms, each_rows, strict=True):
        column = _Column()
        column.postings = prepare_postings(own)
        column.rows = None if rows is None else prepare_segment_rows(rows)
        column.starts = view(terms.starts)
        column.first = prepared.width
        prepared.width += terms.starts.shape[1]
        prepared.columns.append(column)
    prepared.frequencies = view(table.frequencies)
    prepared.idf = view(table.idf)
    prepared.idfs = view(table.idfs)
    prepared.free = table.free
    prepared.counts = table.rows is not None
    table.prepared = prepared
    return prepared


def number_terms(queries, numbers):
    """Return the numbers of the terms of queries; see ``Backend.number_terms``."""
    table: _Table | None = _prepare_table(numbers.table)
    total: cython.Py_ssize_t = 0
    for query in queries:
        total += len(query)
    pointers = np.empty(len(queries) + 1, np.int64)
    terms = np.empty(total, np.int64)
    out_pointers: cython.longlong[::1] = view(pointers)
    out_terms: cython.longlong[::1] = view(terms)
    unknown: list = []
    place: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t = 0
    for query in queries:
        out_pointers[i] = place
        i += 1
        for term in query:
            if place == total:
                raise RuntimeError("a query grew while its terms were looked up")
            out_terms[place] = _number_of(numbers, term, table, unknown)
            place += 1
    out_pointers[i] = place
    if unknown:
        numbers.remember_unknown(unknown)
    return pointers, terms[:place]


def number_lists(lists, numbers):
    """Do as ``number_terms`` for ``TermLists``: each word is looked up once."""
    table: _Table | None = _prepare_table(numbers.table)
    tokens: cython.const[cython.uint][::1] = view(lists.tokens)
    counts: cython.const[cython.uint][::1] = view(lists.counts)
    of_words: list = lists.of_words
    more: dict = lists.more
    firsts: cython.longlong[::1] = empty(len(of_words) + 1, np.int64)
    unknown: list = []
    place: cython.Py_ssize_t = 0
    word: cython.Py_ssize_t = 0
    for terms in of_words:
        firsts[word] = place
        place += len(terms) if type(terms) is tuple else 1
        word += 1
    firsts[word] = place
    term_numbers: cython.longlong[::1] = empty(place, np.int64)
    place = 0
    for terms in of_words:
        if type(terms) is tuple:
            for term in terms:
                term_numbers[place] = _number_of(numbers, term, table, unknown)
                place += 1
        else:
            term_numbers[place] = _number_of(numbers, terms, table, unknown)
            place += 1
    others: dict = {
        number: [_number_of(numbers, term, table, unknown) for term in terms]
        for number, terms in more.items()
    }
    if unknown:
        numbers.remember_unknown(unknown)
    total: cython.Py_ssize_t = sum(map(len, others.values()))
    i: cython.Py_ssize_t
    text: cython.Py_ssize_t
    token: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t = 0
    for i in range(tokens.shape[0]):
        total += firsts[tokens[i] + 1] - firsts[tokens[i]]
    pointers = np.empty(counts.shape[0] + 1, np.int64)
    terms = np.empty(total, np.int64)
    out_pointers: cython.longlong[::1] = view(pointers)
    out_terms: cython.longlong[::1] = view(terms)
    place = 0
    for text in range(counts.shape[0]):
        out_pointers[text] = place
        stop += counts[text]
        while token < stop:
            for i in range(firsts[tokens[token]], firsts[tokens[token] + 1]):
                out_terms[place] = term_numbers[i]
                place += 1
            token += 1
        if others and text in others:
            for number in others[text]:
                out_terms[place] = number
                place += 1
    out_pointers[counts.shape[0]] = place
    return pointers, terms


def number_query(query, numbers):
    """Return the numbers of the terms of one query; see ``Backend.number_query``."""
    table: _Table | None = _prepare_table(numbers.table)
    unknown: list = []
    term_numbers: list = [_number_of(numbers, term, table, unknown) for term in query]
    if unknown:
        numbers.remember_unknown(unknown)
    return term_numbers


@cython.cfunc
def _number_of(numbers, term, table: _Table | None, unknown: list):
    """Return the number of a term as an object, looked up if it has none yet.

    ``unknown`` takes a term that no document has, which has yet to be remembered.
    """
    if cython.compiled:
        known = PyDict_GetItemWithError(numbers, term)  # noqa: F821 - of the .pxd
        if known != cython.NULL:
            return cython.cast(object, known)
    elif term in numbers:
        return numbers[term]
    if table is not None:
        number = _look_up(numbers, term, table, unknown)
        if number is not None:
            return number
    return numbers[term]


@cython.cfunc
def _look_up(numbers, term, table: _Table, unknown: list):
    """Return the number of a new term; ``None``: it is left to Python."""
    size: cython.Py_ssize_t = 0
    room: cython.uchar[192]  # most terms that are not ASCII are shorter
    if cython.compiled:
        name = short_utf8_of(term, cython.address(size), room, cython.sizeof(room))  # noqa: F821
    else:
        name, size = utf8_of(term)
    if size < 0:
        return None
    key: cython.uint = crc_after(0, name, size)
    row: _Row = _borrow(table)
    frequency: cython.longlong = 0
    column: _Column
    first: cython.Py_ssize_t
    is_verified: cython.bint
    counts: cython.bint = table.counts
    for column in table.columns:
        first = column.first
        starts = cython.address(row.starts[first]) if cython.compiled else row.starts[first:]
        if column.postings.blocks.flags.shape[0]:  # of a file, which may have to be read
            with cython.nogil:
                is_verified = find_term(column.postings, name, size, key, starts)
        else:
            is_verified = find_term(column.postings, name, size, key, starts)
        if not is_verified:
            return None
        found: cython.Py_ssize_t = starts[column.postings.doc_blocks] - starts[0]
        if counts and found and (column.rows.kept or column.rows.numbers.shape[0]):
            with cython.nogil:
                found = count_living(column.postings, starts, column.rows)
            counts = found >= 0
        frequency += found
    if not counts:
        frequency = numbers.count(term, row.places)
    if frequency <= 0:
        unknown.append(term)
        number = -1
    else:
        number = _assign(numbers, term, table, row, frequency)
    table.spare = row
    return number


@cython.cfunc
def _borrow(table: _Table) -> _Row:
    """Return a row of zeros that no other thread uses."""
    i: cython.Py_ssize_t
    row: _Row | None = table.spare if cython.compiled else None  # two threads could take it there
    table.spare = None
    if row is None:  # another thread has it, or this is the first call
        row = _Row()
        row.places = np.empty(table.width, np.int64)
        row.starts = view(row.places)
    for i in range(table.width):
        row.starts[i] = 0
    return row


@cython.cfunc
def _assign(numbers, term, table: _Table, row: _Row, frequency: cython.longlong):
    """Give a term a number, once its data are written; ``None``: it is left to Python."""
    idf: cython.float
    if frequency <= table.idfs.shape[0]:
        idf = table.idfs[frequency - 1]
    else:
        idf = numbers.idf_of(frequency)
    own = next(table.free, -1)
    number: cython.Py_ssize_t = own
    if not 0 <= number < table.frequencies.shape[0]:  # all are taken
        return None
    column: _Column
    i: cython.Py_ssize_t
    for column in table.columns:
        for i in range(column.starts.shape[1]):
            column.starts[number, i] = row.starts[column.first + i]
    table.frequencies[number] = frequency
    table.idf[number] = idf
    return cython.cast(dict, numbers).setdefault(term, own)  # which another thread may have


def search(segments, terms, rows, queries, floor: cython.double, plans, matches):
    """Find the best k matches of each query in all segments; see ``Backend.search``."""
    pointers: cython.const[cython.longlong][::1] = view(queries.pointers)
    numbers: cython.const[cython.longlong][::1] = view(queries.terms)
    weights: cython.const[cython.double][::1] = view(queries.weights)
    out_rows: cython.longlong[:, ::1] = view(matches.rows)
    out_scores: cython.double[:, ::1] = view(matches.scores)
    out_counts: cython.longlong[::1] = view(matches.counts)
    places: Rows = prepare_rows(rows)
    k: cython.Py_ssize_t = out_rows.shape[1]
    spare_rows: cython.longlong[::1] = empty(k, np.int64)
    spare_scores: cython.double[::1] = empty(k)
    count: cython.Py_ssize_t = pointers.shape[0] - 1
    longest: cython.Py_ssize_t = 0
    rising: cython.bint = pointers[0] >= 0 and pointers[count] <= numbers.shape[0]
    lowest: cython.longlong = -1
    highest: cython.longlong = -1
    own_floor: cython.double
    base: cython.Py_ssize_t
    number: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for number in range(count):
        rising = rising and pointers[number] <= pointers[number + 1]
        longest = max(longest, pointers[number + 1] - pointers[number])
        out_counts[number] = 0
    if not rising:
        check_rising("pointers", queries.pointers, numbers.shape[0])
    for i in range(pointers[0], pointers[count]):
        lowest = min(lowest, numbers[i])
        highest = max(highest, numbers[i])
    segment: Segment
    own: Terms
    prepared: Plan
    own_rows: SegmentRows
    scratch: Scratch
    query: Query
    ordered: Query
    strips: Strips | None
    for i, plan in enumerate(plans):
        if plan is None:
            continue
        segment = prepare_segment(segments[i])
        own = prepare_terms(terms[i], segment)
        prepared = prepare_plan(plan, segment)
        if not _fits(segment, own, prepared):
            check_search(segments[i], terms[i], plan)
        check_terms(lowest, highest, own.idf.shape[0])
        own_rows = places.segments[i]
        base = places.bases[i]
        scratch = borrow(segment, prepared, longest)
        query = scratch.query
        ordered = scratch.ordered
        strips = segment.strips
        if strips is not None and not prepared.filtered_first:
            find_rows(segment, own, numbers, pointers[0], pointers[count], count * prepared.k)
        with cython.nogil:
            for number in range(count):
                resolve(
                    segment, own, numbers, weights, pointers[number], pointers[number + 1],
                    query, scratch,
                )  # fmt: skip
                own_floor = floor
                if out_counts[number] == k:  # a match must beat the last one
                    own_floor = max(floor, out_scores[number, k - 1])
                _answer(segment, strips, prepared, own_floor, query, ordered, scratch)
                out_counts[number] = _merge_row(
                    out_rows, out_scores, number, out_counts[number],
                    scratch, own_rows, base, spare_rows, spare_scores,
                )  # fmt: skip
        give_back(segment, scratch)
    for number in range(count):
        for i in range(out_counts[number], k):
            out_rows[number, i] = -1
            out_scores[number, i] = -_INFINITY


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fits(segment: Segment, terms: Terms, plan: Plan) -> cython.bint:
    """Whether terms and a plan are of a segment; see ``check_search``."""
    return terms.starts.shape[1] == segment.blocks + 1 and plan.size in (-1, segment.size)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _merge_row(
    rows: cython.longlong[:, ::1],
    scores: cython.double[:, ::1],
    number: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    scratch: Scratch,
    own: SegmentRows,
    base: cython.Py_ssize_t,
    spare_rows: cython.longlong[::1],
    spare_scores: cython.double[::1],
) -> cython.Py_ssize_t:
    """Merge what was found in one more segment into the ``count`` of a query; return how many are.

    Equal scores keep the order of the segments.
    """
    most: cython.Py_ssize_t = min(count + scratch.collected, rows.shape[1])
    at: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t
    rank_each(own, scratch.numbers, scratch.collected)
    for place in range(count):
        spare_rows[place] = rows[number, place]
        spare_scores[place] = scores[number, place]
    for place in range(most):
        if at < count and (i == scratch.collected or spare_scores[at] >= scratch.scores[i]):
            rows[number, place] = spare_rows[at]
            scores[number, place] = spare_scores[at]
            at += 1
        else:
            rows[number, place] = base + scratch.numbers[i]
            scores[number, place] = scratch.scores[i]
            i += 1
    return most


def search_one(segments, terms, rows, query: list, weights: list, floor: cython.double, plans, k):
    """Find the best k matches of one query in all segments; see ``Backend.search_one``."""
    most: cython.Py_ssize_t = k
    places: Rows = prepare_rows(rows)
    best: list = []
    scores: list = []
    segment: Segment
    own: Terms
    prepared: Plan
    scratch: Scratch
    i: cython.Py_ssize_t
    for i, plan in enumerate(plans):
        if plan is None:
            continue
        segment = prepare_segment(segments[i])
        own = prepare_terms(terms[i], segment)
        prepared = prepare_plan(plan, segment)
        if not _fits(segment, own, prepared):
            check_search(segments[i], terms[i], plan)
        scratch = _search_segment(segment, own, query, weights, floor, prepared)
        best, scores = _merge(best, scores, scratch, places, i, most)
        give_back(segment, scratch)
        if len(scores) == most:  # from now on, a match must beat the last one
            floor = max(floor, scores[most - 1])
    return best, scores


@cython.cfunc
def _search_segment(
    segment: Segment, terms: Terms, numbers: list, weights: list, floor: cython.double, plan: Plan
) -> Scratch:
    """Find the best k matches of one query in one segment; return the memory that has them."""
    length: cython.Py_ssize_t = len(numbers)
    scratch: Scratch = borrow(segment, plan, length)
    query: Query = scratch.query
    ordered: Query = scratch.ordered
    own_weights: cython.double[::1] = scratch.weights[: len(weights)]
    number: cython.longlong
    i: cython.Py_ssize_t
    for i in range(length):
        number = numbers[i]
        if not -1 <= number < terms.idf.shape[0]:
            check_terms(number, number, terms.idf.shape[0])
        scratch.terms[i] = number
    for i in range(len(weights)):
        own_weights[i] = weights[i]
    strips: Strips | None = segment.strips
    if strips is not None and not plan.filtered_first:
        find_rows(segment, terms, scratch.terms, 0, length, plan.k)
    with cython.nogil:
        resolve(segment, terms, scratch.terms, own_weights, 0, length, query, scratch)
        _answer(segment, strips, plan, floor, query, ordered, scratch)
    return scratch


@cython.cfunc
def _merge(
    best: list,
    scores: list,
    scratch: Scratch,
    rows: Rows,
    segment: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
):
    """Merge what was found in one more segment; equal scores keep the order of the segments."""
    base: cython.Py_ssize_t = rows.bases[segment]
    own: SegmentRows = rows.segments[segment]
    at: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    rank_each(own, scratch.numbers, scratch.collected)
    found: list = [base + scratch.numbers[i] for i in range(scratch.collected)]
    found_scores: list = [scratch.scores[i] for i in range(scratch.collected)]
    if not best or not found:
        return (best, scores) if best else (found, found_scores)
    merged: list = []
    merged_scores: list = []
    i = 0
    while len(merged) < most and (at < len(best) or i < len(found)):
        if i == len(found) or (at < len(best) and scores[at] >= found_scores[i]):
            merged.append(best[at])
            merged_scores.append(scores[at])
            at += 1
        else:
            merged.append(found[i])
            merged_scores.append(found_scores[i])
            i += 1
    return merged, merged_scores


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _answer(
    segment: Segment,
    strips: Strips | None,
    plan: Plan,
    floor: cython.double,
    query: Query,
    ordered: Query,
    scratch: Scratch,
) -> cython.void:
    """Answer one query: the best k that are collected then, in order, are the matches."""
    choose_way(segment, plan, query)
    if not query.by_strips:
        fetch_first(segment, query)
    if query.coarse or query.by_bound:
        order_by_bound(segment, query, ordered, scratch)
    start(scratch, floor)
    if query.by_strips:
        if scratch.rests:
            scratch.rests -= 1
        elif rank_by_strips(segment, strips, plan, query, ordered, scratch):
            keep_best(scratch, plan.k)
            scratch.failures = 0
            return
        else:
            scratch.rests = scratch.failures
            scratch.failures = min(2 * scratch.failures + 1, _RESTS)
            start(scratch, floor)
    if query.coarse and not rank_coarsely(segment, plan, query, ordered, scratch):
        query.coarse = False
        start(scratch, floor)
    if query.by_bound:
        rank_filtered(segment, plan, query, ordered, scratch)
    elif plan.filtered_first:
        rank_filtered(segment, plan, query, query, scratch)
    elif not query.positive:
        rank_signed(segment, plan, query, scratch)
    elif not query.coarse:
        rank(segment, plan, query, scratch)
    keep_best(scratch, plan.k)

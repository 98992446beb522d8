"""The numbers of the terms of queries: those that are known, and those of terms that are new.

A new term is looked up in all segments, and what a search needs of it is written before its number
can be seen. What is not known to be right is left to Python: ``numbers[term]`` looks it up there.
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import view
from bm25rag.kernels.reading import crc_table

if not cython.compiled:
    from bm25rag.kernels.reading import find_term

_CRC = crc_table()
_ALL = cython.declare(cython.uint, 0xFFFFFFFF)


@cython.final
@cython.cclass
class _Column:
    """A segment's postings, where those of each number begin, and where its part of a row does."""


@cython.final
@cython.cclass
class _Row:
    """The places of a term in all segments, one after another."""


@cython.final
@cython.cclass
class _Table:
    """``TermTable``; ``rows`` holds those that no thread uses now, of ``width`` places."""


def prepare_table(table, postings):
    """Return a ``TermTable`` as ``number_terms`` takes it; ``postings`` are prepared."""
    prepared: _Table = _Table()
    prepared.columns = []
    prepared.rows = []
    prepared.width = 0
    column: _Column
    for own, terms in zip(postings, table.terms, strict=True):
        column = _Column()
        column.postings = own
        column.starts = view(terms.starts)
        column.first = prepared.width
        prepared.width += terms.starts.shape[1]
        prepared.columns.append(column)
    prepared.frequencies = view(table.frequencies)
    prepared.idf = view(table.idf)
    prepared.idfs = view(table.idfs)
    prepared.crc = view(_CRC)
    prepared.free = table.free
    prepared.counts = table.counts
    return prepared


def number_terms(queries, numbers, table: _Table | None):
    """Return the numbers of the terms of queries; see ``Backend.number_terms``."""
    total: cython.Py_ssize_t = 0
    for query in queries:
        total += len(query)
    pointers = np.empty(len(queries) + 1, np.int64)
    terms = np.empty(total, np.int64)
    out_pointers: cython.longlong[::1] = view(pointers)
    out_terms: cython.longlong[::1] = view(terms)
    place: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t = 0
    for query in queries:
        out_pointers[i] = place
        i += 1
        for term in query:
            if place == total:
                raise RuntimeError("a query grew while its terms were looked up")
            out_terms[place] = _number_of(numbers, term, table)
            place += 1
    out_pointers[i] = place
    return pointers, terms[:place]


def number_query(query, numbers, table: _Table | None):
    """Return the numbers of the terms of one query; see ``Backend.number_query``."""
    return [_number_of(numbers, term, table) for term in query]


@cython.cfunc
def _number_of(numbers, term, table: _Table | None):
    """Return the number of a term as an object, looked up if it has none yet."""
    if cython.compiled:
        found = PyDict_GetItemWithError(numbers, term)  # noqa: F821 - of the .pxd
        if found != cython.NULL:
            return cython.cast(object, found)
    elif term in numbers:
        return numbers[term]
    if table is not None:
        number = _look_up(numbers, term, table)
        if number is not None:
            return number
    return numbers[term]


@cython.cfunc
def _look_up(numbers, term, table: _Table):
    """Return the number of a new term; ``None``: it is left to Python."""
    size: cython.Py_ssize_t = 0
    key: cython.uint = _ALL
    i: cython.Py_ssize_t
    try:
        if cython.compiled:
            name = cython.cast(
                "const unsigned char *",
                PyUnicode_AsUTF8AndSize(term, cython.address(size)),  # noqa: F821 - of the .pxd
            )
        else:
            name = term.encode()
            size = len(name)
    except UnicodeEncodeError:  # a lone surrogate
        return None
    for i in range(size):
        key = table.crc[(key ^ name[i]) & 0xFF] ^ (key >> 8)
    key ^= _ALL
    row: _Row = _borrow(table)
    frequency: cython.longlong = 0
    column: _Column
    starts: cython.longlong[::1]
    is_right: cython.bint
    for column in table.columns:
        starts = row.starts[column.first : column.first + column.starts.shape[1]]
        if column.postings.blocks.flags.shape[0]:  # of a file, which may have to be read
            with cython.nogil:
                is_right = find_term(column.postings, name, size, key, starts)
        else:
            is_right = find_term(column.postings, name, size, key, starts)
        if not is_right:
            return None
        frequency += starts[starts.shape[0] - 1] - starts[0]
    if not table.counts:
        frequency = numbers.count(term, row.places)
    if frequency == 0:
        number = numbers.remember_unknown(term)
    else:
        number = _assign(numbers, term, table, row, frequency)
    table.rows.append(row)
    return number


@cython.cfunc
def _borrow(table: _Table) -> _Row:
    """Return a row of zeros that no other thread uses."""
    row: _Row
    try:
        row = table.rows.pop()
    except IndexError:  # of other threads, or this is the first call
        row = _Row()
        row.places = np.empty(table.width, np.int64)
        row.starts = view(row.places)
    i: cython.Py_ssize_t
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
    number: cython.Py_ssize_t = next(table.free, -1)
    if not 0 <= number < table.frequencies.shape[0]:  # all are taken
        return None
    column: _Column
    i: cython.Py_ssize_t
    for column in table.columns:
        for i in range(column.starts.shape[1]):
            column.starts[number, i] = row.starts[column.first + i]
    table.frequencies[number] = frequency
    table.idf[number] = idf
    return numbers.setdefault(term, number)

"""Building: counting the tokens of documents, and putting postings into their places."""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import empty, view

Numbers = cython.fused_type(cython.ushort, cython.uint)
Codes = cython.fused_type(cython.ushort, cython.uint)

_STOPPED = cython.declare(cython.uint, 0xFFFFFFFF)


def count(tokens, counts, terms, first):
    """Count the tokens of some documents; see ``Backend.count``.

    Returns
    -------
    terms, documents, tf
        The postings.
    lengths
        |d| of each document.
    """
    out_terms = np.empty(len(tokens), np.uint32)
    out_documents = np.empty(len(tokens), np.uint32)
    out_tf = np.empty(len(tokens), np.uint32)
    lengths = np.zeros(len(counts), np.uint32)
    in_tokens: cython.const[cython.uint][::1] = view(tokens)
    in_counts: cython.const[cython.uint][::1] = view(counts)
    latest: cython.longlong[::1] = view(np.full(terms, -1, np.int64))
    to_terms: cython.uint[::1] = view(out_terms)
    to_documents: cython.uint[::1] = view(out_documents)
    to_tf: cython.uint[::1] = view(out_tf)
    to_lengths: cython.uint[::1] = view(lengths)
    start: cython.Py_ssize_t = first
    found: cython.Py_ssize_t
    with cython.nogil:
        found = _count(
            in_tokens, in_counts, start, latest, to_terms, to_documents, to_tf, to_lengths
        )
    return out_terms[:found].copy(), out_documents[:found].copy(), out_tf[:found].copy(), lengths


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count(
    tokens: cython.const[cython.uint][::1],
    counts: cython.const[cython.uint][::1],
    first: cython.Py_ssize_t,
    latest: cython.longlong[::1],
    terms: cython.uint[::1],
    documents: cython.uint[::1],
    tf: cython.uint[::1],
    lengths: cython.uint[::1],
) -> cython.Py_ssize_t:
    """Return how many postings there are; ``latest`` holds the latest posting of each term."""
    found: cython.Py_ssize_t = 0
    begin: cython.Py_ssize_t = 0
    document: cython.Py_ssize_t
    start: cython.Py_ssize_t
    i: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    term: cython.uint
    for document in range(counts.shape[0]):
        start = found
        for i in range(begin, begin + counts[document]):
            term = tokens[i]
            if term == _STOPPED:
                continue
            lengths[document] += 1
            posting = latest[term]
            if posting >= start:
                tf[posting] += 1
            else:
                latest[term] = found
                terms[found] = term
                documents[found] = first + document
                tf[found] = 1
                found += 1
        begin += counts[document]
    return found


def tally(terms, frequencies):
    """Add how often each term occurs; see ``Backend.tally``."""
    of_postings: cython.const[cython.uint][::1] = view(terms)
    totals: cython.longlong[::1] = view(frequencies)
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(of_postings.shape[0]):
            totals[of_postings[i]] += 1


def fill(run, cursors, documents, codes):
    """Put the postings of a run into their places; see ``Backend.fill``."""
    terms: cython.const[cython.uint][::1] = view(run.terms)
    from_documents: cython.const[cython.uint][::1] = view(run.documents)
    from_codes: cython.const[cython.uint][::1] = view(run.codes)
    places: cython.longlong[::1] = view(cursors)
    documents16: cython.ushort[::1] = view(documents) if documents.itemsize == 2 else _none16()
    documents32: cython.uint[::1] = view(documents) if documents.itemsize == 4 else _none32()
    codes16: cython.ushort[::1] = view(codes) if codes.itemsize == 2 else _none16()
    codes32: cython.uint[::1] = view(codes) if codes.itemsize == 4 else _none32()
    narrow: cython.bint = documents.itemsize == 2
    few: cython.bint = codes.itemsize == 2
    with cython.nogil:
        if narrow and few:
            _fill(terms, from_documents, from_codes, places, documents16, codes16)
        elif narrow:
            _fill(terms, from_documents, from_codes, places, documents16, codes32)
        elif few:
            _fill(terms, from_documents, from_codes, places, documents32, codes16)
        else:
            _fill(terms, from_documents, from_codes, places, documents32, codes32)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill(
    terms: cython.const[cython.uint][::1],
    from_documents: cython.const[cython.uint][::1],
    from_codes: cython.const[cython.uint][::1],
    cursors: cython.longlong[::1],
    documents: Numbers[::1],
    codes: Codes[::1],
) -> cython.void:
    i: cython.Py_ssize_t
    place: cython.Py_ssize_t
    for i in range(terms.shape[0]):
        place = cursors[terms[i]]
        cursors[terms[i]] = place + 1
        documents[place] = from_documents[i]
        codes[place] = from_codes[i]


def _none16():
    return empty(0, np.uint16)


def _none32():
    return empty(0, np.uint32)

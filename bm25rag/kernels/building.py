"""Compiled counting and filling of postings."""

from __future__ import annotations

import numpy as np

from bm25rag.common.arrays import Int64, UInt32, Unsigned
from bm25rag.kernels.compiling import compiled

_STOPPED = np.uint32(0xFFFFFFFF)


@compiled
def count(
    tokens: UInt32, counts: UInt32, terms: int, first: int
) -> tuple[UInt32, UInt32, UInt32, UInt32]:
    """Count the tokens of some documents; see ``numpy_twin.count``."""
    seen = np.full(terms, -1, np.int64)  # the latest posting of each term
    out_terms = np.empty(len(tokens), np.uint32)
    out_documents = np.empty(len(tokens), np.uint32)
    out_tf = np.empty(len(tokens), np.uint32)
    lengths = np.zeros(len(counts), np.uint32)
    found, token = 0, 0
    for document in range(len(counts)):
        start = found
        for place in range(token, token + counts[document]):
            term = tokens[place]
            if term == _STOPPED:
                continue
            lengths[document] += np.uint32(1)
            posting = seen[term]
            if posting >= start:
                out_tf[posting] += np.uint32(1)
            else:
                seen[term] = found
                out_terms[found] = term
                out_documents[found] = first + document
                out_tf[found] = 1
                found += 1
        token += counts[document]
    return out_terms[:found].copy(), out_documents[:found].copy(), out_tf[:found].copy(), lengths


@compiled
def tally(terms: UInt32, frequencies: Int64) -> None:
    """Add how often each term occurs; see ``numpy_twin.tally``."""
    for place in range(len(terms)):
        frequencies[terms[place]] += 1


@compiled
def fill(
    terms: UInt32,
    run_documents: UInt32,
    run_codes: Unsigned,
    cursors: Int64,
    documents: Unsigned,
    codes: Unsigned,
) -> None:
    """Put the postings of a run into their places; see ``numpy_twin.fill``."""
    for posting in range(len(terms)):
        term = terms[posting]
        place = cursors[term]
        cursors[term] = place + 1
        documents[place] = run_documents[posting]
        codes[place] = run_codes[posting]

"""The hot loops in NumPy: the twin of the compiled kernels, with the same ids, order and bits."""

from __future__ import annotations

import numpy as np

from bm25rag._types import Bool, Float32, Float64, Int64, Unsigned


def accumulate(
    documents: Unsigned,
    codes: Unsigned,
    table: Float32,
    starts: Int64,
    stops: Int64,
    idf: Float32,
    counts: Int64,
    size: int,
) -> tuple[Float64, Bool]:
    """Score every document of a segment for one query.

    Parameters
    ----------
    documents, codes
        The postings' arrays, (P,).
    table
        ``f(tf, |d|)`` of every impact code, (C,), float32.
    starts, stops
        Where the postings of each query term begin and end, (t,), in order of first occurrence.
    idf
        Inverse document frequencies of the terms, (t,), float32.
    counts
        How often each term occurs in the query, (t,).
    size
        Number n of documents in the segment.

    Returns
    -------
    scores
        Sums of the parts, without the shift, (n,), float64.
    touched
        Which documents contain a query term, (n,).
    """
    if not len(starts):
        return np.zeros(size), np.zeros(size, np.bool_)
    spans = [slice(start, stop) for start, stop in zip(starts, stops, strict=True)]
    found = [documents[span] for span in spans]
    parts = [
        (table[codes[span]] * weight).astype(np.float64) * count
        for span, weight, count in zip(spans, idf, counts, strict=True)
    ]
    matched = np.concatenate(found)
    # bincount adds in the order of its input: term by term, as the score is defined.
    scores = np.bincount(matched, weights=np.concatenate(parts), minlength=size)
    touched = np.zeros(size, np.bool_)
    touched[matched] = True
    return scores.astype(np.float64, copy=False), touched


def search(
    documents: Unsigned,
    codes: Unsigned,
    table: Float32,
    front: Unsigned,
    bounds: Int64,
    idf: Float32,
    pointers: Int64,
    terms: Int64,
    counts: Int64,
    shifts: Float64,
    size: int,
    allowed: Bool,
    k: int,
    floors: Float64,
    window: int,
    out_numbers: Int64,
    out_scores: Float64,
    out_counts: Int64,
) -> None:
    """Find the best k matches of each query in one segment.

    Parameters
    ----------
    documents, codes
        The postings' arrays, (P,).
    table
        ``f(tf, |d|)`` of every impact code, (C,), float32.
    front
        ``Fronts.codes`` of the segment.
    bounds
        ``Bounds`` of the distinct terms of all queries, (u, 4).
    idf
        Their inverse document frequencies, (u,), float32.
    pointers
        Where each query begins in ``terms`` and ``counts``, (q + 1,).
    terms, counts
        The terms of each query in order of first occurrence, and how often each occurs.
    shifts
        What is added to every sum of a query, (q,).
    size
        Number n of documents in the segment.
    allowed
        Which documents may be returned, (n,); empty: all.
    k
        How many matches at most, >= 1.
    floors
        What scores must exceed, (q,).
    window
        How many documents the compiled twin walks at a time; without meaning here.
    out_numbers, out_scores, out_counts
        Take the matches of each query, (q, k), by score descending, then number
        ascending, and how many there are, (q,).
    """
    for query in range(len(pointers) - 1):
        own = slice(pointers[query], pointers[query + 1])
        chosen = terms[own]
        starts, stops = bounds[chosen, 0], bounds[chosen, 1]
        scores, touched = accumulate(
            documents, codes, table, starts, stops, idf[chosen], counts[own], size
        )
        if len(allowed):
            touched &= allowed
        numbers = np.flatnonzero(touched)
        numbers, found = _best(numbers, scores[numbers] + shifts[query], k, floors[query])
        out_numbers[query, : len(found)] = numbers
        out_scores[query, : len(found)] = found
        out_counts[query] = len(found)


def _best(numbers: Int64, scores: Float64, k: int, floor: float) -> tuple[Int64, Float64]:
    if floor > -np.inf:
        kept = scores > floor
        numbers, scores = numbers[kept], scores[kept]
    if len(scores) > k:
        # On the negated scores: argpartition is many times slower where the large end is flat.
        least = -np.partition(-scores, k - 1)[k - 1]
        kept = scores >= least
        numbers, scores = numbers[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")[:k]
    return numbers[order], scores[order]

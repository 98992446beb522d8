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
    found = [documents[start:stop] for start, stop in zip(starts, stops, strict=True)]
    parts = [
        (table[codes[start:stop]] * weight).astype(np.float64) * count
        for start, stop, weight, count in zip(starts, stops, idf, counts, strict=True)
    ]
    if not found:
        return np.zeros(size), np.zeros(size, np.bool_)
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
    starts: Int64,
    stops: Int64,
    idf: Float32,
    counts: Int64,
    size: int,
    shift: float,
    allowed: Bool | None,
    k: int,
    min_score: float,
) -> tuple[Int64, Float64]:
    """Find the best k matches of one query in one segment.

    Parameters
    ----------
    documents, codes, table, starts, stops, idf, counts, size
        As in ``accumulate``.
    shift
        What is added to every sum.
    allowed
        Which documents may be returned, (n,); ``None``: all.
    k
        How many at most, >= 1.
    min_score
        The least score returned.

    Returns
    -------
    numbers
        Documents by score descending, then number ascending, int64.
    scores
        Their scores, shift included, float64.
    """
    scores, touched = accumulate(documents, codes, table, starts, stops, idf, counts, size)
    if allowed is not None:
        touched &= allowed
    numbers = np.flatnonzero(touched)
    found = scores[numbers] + shift
    if min_score > -np.inf:
        kept = found >= min_score
        numbers, found = numbers[kept], found[kept]
    if len(found) > k:
        # On the negated scores: argpartition is many times slower where the large end is flat.
        least = -np.partition(-found, k - 1)[k - 1]
        kept = found >= least
        numbers, found = numbers[kept], found[kept]
    order = np.argsort(-found, kind="stable")[:k]
    return numbers[order], found[order]

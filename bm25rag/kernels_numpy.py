"""The hot loops in NumPy: the twin of the compiled kernels, with the same ids, order and bits."""

from __future__ import annotations

from itertools import repeat

import numpy as np

from bm25rag.common.arrays import Bool, Float32, Float64, Int64, UInt16, UInt32, Unsigned


def sum_parts(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    starts: Int64,
    idf: Float32,
    counts: Float64,
    size: int,
    stripe: int,
) -> tuple[Float64, Bool]:
    """Score every document of a segment for one query.

    Parameters
    ----------
    documents, codes
        The postings' arrays, (P,); documents are numbered within their stripes.
    table
        ``f(tf, |d|)`` of every impact code, (C,), float32.
    starts
        Where the postings of each query term begin in each of s stripes, and where they
        end, (t, s + 1); terms in order of first occurrence.
    idf
        Inverse document frequencies of the terms, (t,), float32.
    counts
        How often each term occurs in the query, or its weight, (t,), float64.
    size
        Number n of documents in the segment.
    stripe
        Number of documents in a stripe.

    Returns
    -------
    scores
        Sums of the parts, without the shift, (n,), float64.
    touched
        Which documents contain a query term, (n,).
    """
    scores, touched = np.zeros(size), np.zeros(size, np.bool_)
    for place, first in enumerate(range(0, size if len(starts) else 0, stripe)):
        ends = zip(starts[:, place].tolist(), starts[:, place + 1].tolist(), strict=True)
        spans = [slice(*own) for own in ends]
        matched = np.concatenate([documents[span] for span in spans])
        parts = [
            (table[codes[span]] * weight).astype(np.float64) * count
            for span, weight, count in zip(spans, idf, counts, strict=True)
        ]
        # bincount adds in the order of its input: term by term, as the score is defined.
        length = min(stripe, size - first)
        scores[first : first + length] = np.bincount(matched, np.concatenate(parts), length)
        touched[first : first + length][matched] = True
    return scores, touched


def distinct(terms: Int64, weights: Float64) -> tuple[Int64, Float64]:
    """Return the distinct known terms of a query in order of first occurrence, and their counts.

    With ``weights``, one for each of ``terms``, the sums of these instead.
    """
    counted: dict[int, float] = {}
    for term, weight in zip(terms.tolist(), weights.tolist() or repeat(1.0)):  # noqa: B905
        if term >= 0:
            counted[term] = counted.get(term, 0.0) + weight
    return np.array(list(counted), np.int64), np.array(list(counted.values()), np.float64)


def shift_of(idf: Float32, absent: np.float32, counts: Float64) -> float:
    """Return what the lower bounds of a query's terms add to every score, summed in order."""
    shift = 0.0
    for part in ((idf * absent).astype(np.float64) * counts).tolist():
        shift += part
    return shift


def search(
    documents: UInt16,
    codes: Unsigned,
    table: Float32,
    lowest: float,
    highest: float,
    starts: Int64,
    idf: Float32,
    absent: np.float32,
    pointers: Int64,
    terms: Int64,
    weights: Float64,
    size: int,
    stripe: int,
    allowed: Bool,
    k: int,
    floors: Float64,
    window: int,
    heavy: int,
    sparse: int,
    out_numbers: Int64,
    out_scores: Float64,
    out_counts: Int64,
) -> None:
    """Find the best k matches of each query in one segment.

    Parameters
    ----------
    documents, codes
        The postings' arrays, (P,); documents are numbered within their stripes.
    table
        ``f(tf, |d|)`` of every impact code, (C,), float32.
    lowest, highest
        The least and the largest of ``table``; without meaning here.
    starts
        Where the postings of u terms begin in each of s stripes, and where they end,
        (u, s + 1).
    idf
        Their inverse document frequencies, (u,), float32.
    absent
        f(0): the weight of a term that a document lacks.
    pointers
        Where each query begins in ``terms``, (q + 1,).
    terms
        The terms of each query, repeats included; -1 for one of no document.
    weights
        Their weights, one for each of ``terms``, finite; empty: each counts once.
    size
        Number n of documents in the segment.
    stripe
        Number of documents in a stripe.
    allowed
        Which documents may be returned, (n,); empty: all.
    k
        How many matches at most, >= 1.
    floors
        What scores must exceed, (q,).
    window
        How many documents the compiled twin walks at a time; without meaning here.
    heavy
        Postings of frequent terms from which it may prune; without meaning here.
    sparse
        How many times fewer postings than documents it takes for few; without meaning here.
    out_numbers, out_scores, out_counts
        Take the matches of each query, (q, k), by score descending, then number
        ascending, and how many there are, (q,). Unused cells become -1 and -inf.
    """
    for query in range(len(pointers) - 1):
        span = slice(pointers[query], pointers[query + 1])
        own, counts = distinct(terms[span], weights[span])
        scores, touched = sum_parts(
            documents, codes, table, starts[own], idf[own], counts, size, stripe
        )
        if len(allowed):
            touched &= allowed
        shift = shift_of(idf[own], absent, counts)
        numbers = np.flatnonzero(touched)
        numbers, found = _best(numbers, scores[numbers] + shift, k, floors[query])
        out_numbers[query], out_scores[query], out_counts[query] = -1, -np.inf, len(found)
        out_numbers[query, : len(found)] = numbers
        out_scores[query, : len(found)] = found


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


STOPPED = 0xFFFFFFFF


def count(
    tokens: UInt32, counts: UInt32, terms: int, first: int
) -> tuple[UInt32, UInt32, UInt32, UInt32]:
    """Count the tokens of some documents.

    Parameters
    ----------
    tokens
        The term of every token, uint32; ``STOPPED`` for a stop word.
    counts
        How many tokens each document has, stop words too, uint32.
    terms
        How many terms there are.
    first
        The number of the first document.

    Returns
    -------
    terms, documents, tf
        The postings, uint32; those of a term with documents ascending.
    lengths
        |d| of each document, uint32.
    """
    documents = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    kept = tokens != STOPPED
    documents = documents[kept]
    lengths = np.bincount(documents, minlength=len(counts)).astype(np.uint32)
    keys = (tokens[kept].astype(np.uint64) << np.uint64(32)) | (documents + np.uint32(first))
    keys.sort()
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1]))[: keys.size])
    tf = np.diff(starts, append=keys.size).astype(np.uint32)
    keys = keys[starts]
    return (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32), tf, lengths


def tally(terms: UInt32, frequencies: Int64) -> None:
    """Add how often each term occurs to ``frequencies``, int64."""
    frequencies += np.bincount(terms, minlength=len(frequencies))


def fill(
    terms: UInt32,
    run_documents: UInt32,
    run_codes: Unsigned,
    cursors: Int64,
    documents: Unsigned,
    codes: Unsigned,
) -> None:
    """Put the postings of a run into their places.

    Parameters
    ----------
    terms, run_documents, run_codes
        The run.
    cursors
        Where the next posting of each term goes; moved on.
    documents, codes
        Take the postings.
    """
    order = np.argsort(terms, kind="stable")
    heads = terms[order]
    starts = np.flatnonzero(np.concatenate(([True], heads[1:] != heads[:-1]))[: heads.size])
    counts = np.diff(starts, append=heads.size)
    first = heads[starts]
    places = np.arange(heads.size) + np.repeat(cursors[first] - starts, counts)
    cursors[first] += counts
    documents[places] = run_documents[order]
    codes[places] = run_codes[order]

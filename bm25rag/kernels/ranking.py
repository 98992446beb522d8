"""Compiled ranking: the best k documents of one query.

Documents are walked in windows whose sums stay in the cache, terms in the order of the
query, so every sum is that of the score's definition. A query with terms that are in very
many documents has its terms sorted by what they can add at most, if sums are exact in any
order: once the k-th best score is known, terms whose bounds together cannot reach it are
not walked any more for themselves, but added to the documents that still can, or looked up
for those (MaxScore: Turtle and Flood, 1995). Where few documents can, they are listed while
their sums are made, and the sums of the others are not looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bm25rag.common.arrays import Bool, Float32, Float64, Int64, UInt16, UInt64, Unsigned
from bm25rag.kernels.compiling import ZERO, compiled
from bm25rag.kernels.selecting import collect, drain, keep_best, kth_of_maxima
from bm25rag.kernels.walking import (
    add,
    add_to_touched,
    first_at_least,
    look_up,
    reject,
    touch,
)

# Postings that are walked in the time of one look-up.
_LOOK_UP = 40.0
# How much of its estimate a cut keeps from window to window.
_FADING = 0.95
# What subtracting a shift from a floor can be off by, for their size, and more.
_ROUNDING = 1e-15


class Source(NamedTuple):
    """Where to search: a segment's postings, f of every code, and which documents may be returned.

    ``allowed`` is empty if all may. Of postings so many times fewer than documents the
    kernel lists what they touch, instead of looking through all sums: ``sparse``.
    """

    documents: UInt16
    codes: Unsigned
    table: Float32
    size: int
    stripe: int
    allowed: Bool
    sparse: int


class Query(NamedTuple):
    """Distinct terms: where their postings begin in each stripe, their idf and multiplicity.

    ``rest[j]`` is what terms j and later can add together at most, if terms may be looked
    up instead of walked; they come by bound descending then. Otherwise it is infinite.
    """

    starts: Int64
    idf: Float32
    counts: Float64
    rest: Float64
    shift: float


class Scratch(NamedTuple):
    """Arrays that all queries of a call use.

    ``sums`` are zero between queries; ``numbers`` and ``scores`` collect documents; the last
    three have room for every term of the longest query, and one more.
    """

    sums: Float64
    waiting: Int64
    waiting_sums: Float64
    bits: UInt64
    maxima: Float64
    numbers: Int64
    scores: Float64
    spare: Float64
    cursors: Int64
    postings: Float64
    waited: Float64


@compiled
def _choose_walked(essential: int, terms: int, postings: Float64, waited: Float64) -> int:
    """Choose how many terms to walk: the rest is looked up for the documents still waiting.

    ``postings`` are those of each term in a window, ``waited`` how many documents waited
    when the terms were last cut there; it fades, so that every cut is tried again.
    """
    walked = _expected(postings, essential)
    best, least = terms, np.inf
    for cut in range(essential, terms + 1):
        waited[cut] *= _FADING
        cost = walked + waited[cut] * _LOOK_UP * (terms - cut)
        if cost < least:
            best, least = cut, cost
        if cut < terms:
            walked += postings[cut]
    return best


@compiled
def rank(source: Source, query: Query, k: int, floor: float, window: int, scratch: Scratch) -> int:
    """Collect the best k above a floor where every part is positive; return how many.

    A sum of 0 is no match, then.
    """
    documents, codes, table, size, stripe, allowed, sparse = source
    starts, idf, counts, rest, shift = query
    sums, waiting, waiting_sums, bits, maxima, numbers, scores, spare = scratch[:8]
    cursors, postings, waited = scratch[8:]
    terms = essential = len(idf)
    prune = terms > 0 and rest[0] < np.inf
    share = min(window, stripe, size) / size
    for term in range(terms):
        postings[term] = (starts[term, -1] - starts[term, 0]) * share
    for cut in range(terms + 1):
        waited[cut] = 0.0
    found = many = ZERO
    for first in range(0, size, stripe):
        own = first // stripe
        for term in range(terms):
            cursors[term] = starts[term, own]
        in_stripe = min(stripe, size - first)
        for base in range(0, in_stripe, window):
            cut = terms
            if prune:
                while essential > 0 and rest[essential - 1] + shift <= floor:
                    essential -= 1
                if essential == 0:
                    return found
                cut = _choose_walked(essential, terms, postings, waited)
                for term in range(terms):
                    cursors[term] = first_at_least(
                        documents, cursors[term], starts[term, own + 1], base
                    )
            end = min(base + window, in_stripe)
            width, least = end - base, _least(floor, shift)
            missing = rest[cut] if cut < terms else 0.0
            if least - missing > 0.0 and _expected(postings, essential) * sparse < width:
                many = ZERO
                for term in range(essential):
                    many, cursors[term] = touch(
                        documents, codes, table, idf[term], counts[term], cursors[term],
                        starts[term, own + 1], base, end, sums, waiting, many,
                    )  # fmt: skip
                for term in range(essential, cut):
                    cursors[term] = add_to_touched(
                        documents, codes, table, idf[term], counts[term],
                        cursors[term], starts[term, own + 1], base, end, sums,
                    )  # fmt: skip
                if len(allowed):
                    reject(allowed, first + base, sums, waiting, many)
                many = collect(sums, waiting, waiting_sums, bits, many, width, least - missing)
            else:
                for term in range(cut):
                    cursors[term] = add(
                        documents, codes, table, idf[term], counts[term],
                        cursors[term], starts[term, own + 1], base, end, end == in_stripe, sums,
                    )  # fmt: skip
                if len(allowed):
                    offset = np.uint64(first + base)
                    for place in range(width):
                        if not allowed[offset + np.uint64(place)]:
                            sums[np.uint64(place)] = 0.0
                if least <= 0.0 and cut == terms:
                    reached = kth_of_maxima(sums, width, k, maxima, spare)
                    if reached > 0.0:
                        floor = max(floor, np.nextafter(reached + shift, -np.inf))
                        least = _least(floor, shift)
                many = drain(sums, width, max(least - missing, 0.0), waiting, waiting_sums)
            if prune:
                waited[cut] = many
            for term in range(cut, terms):
                missing = rest[term + 1] if term + 1 < terms else 0.0
                many, cursors[term] = look_up(
                    documents, codes, table, idf[term], counts[term], cursors[term],
                    starts[term, own + 1], base, least - missing, waiting, waiting_sums, many,
                )  # fmt: skip
            for number in range(many):
                numbers[found] = first + base + waiting[number]
                scores[found] = waiting_sums[number] + shift
                found += scores[found] > floor
                if found == len(numbers):
                    floor = keep_best(numbers, scores, spare, found, k)
                    found = k
            if found > k + (k >> 1):
                floor = keep_best(numbers, scores, spare, found, k)
                found = k
    return found


@compiled
def _expected(postings: Float64, terms: int) -> float:
    """Return how many postings the first terms have in a window, on average."""
    total = 0.0
    for term in range(terms):
        total += postings[term]
    return total


@compiled
def _least(floor: float, shift: float) -> float:
    """Return what a sum must exceed if its score may exceed the floor."""
    return floor - shift - (abs(floor) + abs(shift)) * _ROUNDING


@compiled
def rank_any(source: Source, query: Query, k: int, floor: float, scratch: Scratch) -> int:
    """Collect the best k above a floor whatever the signs; who matches is kept account of."""
    documents, codes, table, size, stripe, allowed, _ = source
    starts, idf, counts, _, shift = query
    numbers, scores, spare = scratch.numbers, scratch.scores, scratch.spare
    found = ZERO
    sums, touched = np.empty(min(stripe, size)), np.empty(min(stripe, size), np.bool_)
    for first in range(0, size, stripe):
        own = first // stripe
        for place in range(len(sums)):
            sums[place], touched[place] = 0.0, False
        for term in range(len(idf)):
            for posting in range(starts[term, own], starts[term, own + 1]):
                document = documents[posting]
                sums[document] += np.float64(table[codes[posting]] * idf[term]) * counts[term]
                touched[document] = True
        for place in range(min(stripe, size - first)):
            if touched[place] and (len(allowed) == 0 or allowed[first + place]):
                numbers[found], scores[found] = first + place, sums[place] + shift
                found += scores[found] > floor
                if found == len(numbers):
                    floor = keep_best(numbers, scores, spare, found, k)
                    found = k
    return found

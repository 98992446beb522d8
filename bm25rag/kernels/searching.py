"""Search: the best k documents of each query of a batch.

A query is resolved, and a way chosen (``planning``). Its postings are walked block by block and
window by window, so that sums stay in the cache, terms in the order of the query or where sums are
exact in any order (``exact``), or with sums of 16 bits first (``coarse``). In each window,
documents that may not be returned are masked, the others that may be among the best are looked up
in the terms that were not walked, and collected (``collecting``). Once the k-th best score is
known, terms whose bounds together cannot reach it, or a share of it, are not walked any more for
themselves.

Loops over postings lie beside their callers. What another module calls, it calls once for a window.
"""

from __future__ import annotations

import cython

from bm25rag.kernels.checks import check_terms
from bm25rag.kernels.memory import view
from bm25rag.kernels.scratch import borrow, give_back, prepare_plan

if not cython.compiled:
    from bm25rag.kernels.coarse import rank_coarsely
    from bm25rag.kernels.collecting import keep_best, start
    from bm25rag.kernels.exact import rank, rank_signed
    from bm25rag.kernels.planning import choose_way, order_by_bound, resolve
    from bm25rag.kernels.scratch import Plan, Query, Scratch, Segment, Terms

_INFINITY = cython.declare(cython.double, float("inf"))


def search(segment: Segment, terms: Terms, queries, floors, plan, matches):
    """Find the best k matches of each query in one segment; see ``Backend.search``."""
    pointers: cython.const[cython.longlong][::1] = view(queries.pointers)
    numbers: cython.const[cython.longlong][::1] = view(queries.terms)
    weights: cython.const[cython.double][::1] = view(queries.weights)
    least: cython.const[cython.double][::1] = view(floors)
    out_numbers: cython.longlong[:, ::1] = view(matches.numbers)
    out_scores: cython.double[:, ::1] = view(matches.scores)
    out_counts: cython.longlong[::1] = view(matches.counts)
    prepared: Plan = prepare_plan(plan)
    longest: cython.Py_ssize_t = 0
    number: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for number in range(pointers.shape[0] - 1):
        longest = max(longest, pointers[number + 1] - pointers[number])
    scratch: Scratch = borrow(segment, prepared, longest)
    query: Query = scratch.query
    ordered: Query = scratch.ordered
    with cython.nogil:
        for number in range(pointers.shape[0] - 1):
            resolve(
                segment, terms, numbers, weights, pointers[number], pointers[number + 1],
                query, scratch,
            )  # fmt: skip
            _answer(segment, prepared, least[number], query, ordered, scratch)
            for i in range(scratch.collected):
                out_numbers[number, i] = scratch.numbers[i]
                out_scores[number, i] = scratch.scores[i]
            for i in range(scratch.collected, prepared.k):
                out_numbers[number, i] = -1
                out_scores[number, i] = -_INFINITY
            out_counts[number] = scratch.collected
    give_back(segment, scratch)


def search_one(
    segment: Segment, terms: Terms, numbers: list, weights: list, floor: cython.double, plan
):
    """Find the best k matches of one query in one segment; see ``Backend.search_one``."""
    prepared: Plan = prepare_plan(plan)
    length: cython.Py_ssize_t = len(numbers)
    scratch: Scratch = borrow(segment, prepared, length)
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
    with cython.nogil:
        resolve(segment, terms, scratch.terms, own_weights, 0, length, query, scratch)
        _answer(segment, prepared, floor, query, ordered, scratch)
    best = [scratch.numbers[i] for i in range(scratch.collected)]
    scores = [scratch.scores[i] for i in range(scratch.collected)]
    give_back(segment, scratch)
    return best, scores


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _answer(
    segment: Segment,
    plan: Plan,
    floor: cython.double,
    query: Query,
    ordered: Query,
    scratch: Scratch,
) -> cython.void:
    """Answer one query: the best k that are collected then, in order, are the matches."""
    choose_way(segment, plan, query)
    if query.coarse or query.prune:
        order_by_bound(segment, query, ordered, scratch)
    start(scratch, floor)
    if query.coarse and not rank_coarsely(segment, plan, query, ordered, scratch):
        query.coarse = False
        start(scratch, floor)
    if not query.positive:
        rank_signed(segment, plan, query, scratch)
    elif query.prune:
        rank(segment, plan, ordered, scratch)
    elif not query.coarse:
        rank(segment, plan, query, scratch)
    keep_best(scratch, plan.k)

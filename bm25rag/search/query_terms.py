"""Queries: what users may ask, its terms and weights, and the numbers of those terms.

A query is a text, a list of terms, a mapping of terms to weights, or a ``Query`` with parts that
matches must have, or must not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.common.arrays import Float64
from bm25rag.common.checks import are_strings
from bm25rag.kernels.records import Queries
from bm25rag.kernels.term_lists import TermLists
from bm25rag.search.plain_terms import RestrictedTerms, Terms, plain_terms, terms_of_texts
from bm25rag.search.snapshot import Snapshot
from bm25rag.search.term_numbers import TermCache

if TYPE_CHECKING:
    from bm25rag.search.query import Query

QueryLike: TypeAlias = "str | Sequence[str] | Mapping[str, float] | Query"

_UNWEIGHTED = np.empty(0)
_LISTS = frozenset({list, tuple})
_WEIGHTED = frozenset({dict, RestrictedTerms})


def terms_of(analyzer: Analyzer, query: QueryLike, name: str = "query") -> Terms:
    """Analyse a query and check it; ``name`` is what messages call it.

    A weight that is NaN, infinite or beyond 1e30, and a part of a ``Query`` without words, are each
    a ``ValueError``.
    """
    if isinstance(query, str) and not analyzer.also:
        return analyzer.query_terms(query)
    if not isinstance(query, (str, list, tuple, Mapping)):
        from bm25rag.search.query import Query  # most programs have none

        if isinstance(query, Query):
            from bm25rag.search.analyzed_parts import analyzed

            return analyzed(analyzer, query, name)
    return plain_terms(analyzer, query, name)  # which says what it must be


def terms_of_each(analyzer: Analyzer, queries: Sequence[QueryLike]) -> Sequence[Terms]:
    """Analyse queries and check them, as ``terms_of`` does; messages say which is wrong."""
    kinds = {*map(type, queries)}
    if kinds == {str}:
        return terms_of_texts(analyzer, cast("Sequence[str]", queries))
    lists = cast("Sequence[Sequence[str]]", queries)
    # In one step, which is faster than one by one.
    if kinds <= _LISTS and are_strings([*chain.from_iterable(lists)]):
        return lists
    analyzed = iter(terms_of_texts(analyzer, [one for one in queries if isinstance(one, str)]))
    return [
        next(analyzed) if isinstance(query, str) else terms_of(analyzer, query, f"queries[{n}]")
        for n, query in enumerate(queries)
    ]


def resolve_queries(snapshot: Snapshot, queries: Sequence[Terms]) -> tuple[TermCache, Queries]:
    """Return queries by the numbers of their terms, and the cache that gave the numbers."""
    cache, (pointers, terms) = snapshot.query_numbers(queries)
    return cache, Queries(pointers, terms, _weights(queries))


def _weights(queries: Sequence[Terms]) -> Float64:
    """Return the weight of every term of every query; nothing if each counts once."""
    if type(queries) is TermLists or _WEIGHTED.isdisjoint(map(type, queries)):
        return _UNWEIGHTED
    weights = (
        query.values() if isinstance(query, dict) else repeat(1.0, len(query)) for query in queries
    )
    return np.fromiter(chain.from_iterable(weights), np.float64)


def warn_of_texts(snapshot: Snapshot, unmatched: Iterable[QueryLike]) -> None:
    """Warn about a list that was probably meant as texts, because its terms match nothing."""
    if snapshot.is_restricted:  # other documents may have the terms
        return
    for query in unmatched:
        if not isinstance(query, (list, tuple, Mapping)):
            continue
        text = next((term for term in query if len(term.split()) > 1), None)
        if text is not None and max(snapshot.term_numbers(query)[1]) < 0:
            from bm25rag.common.caller import warn

            warn(
                f"no document has a term of the query {query!r:.100}: a list holds terms that "
                f"are analysed already; to search for a text, pass the text, {text!r:.100}",
                UserWarning,
            )

"""Queries: what users may ask, its terms and weights, and the numbers of those terms.

A query is a text, a list of terms, a mapping of terms to weights, or a ``Query`` with parts that
matches must have, or must not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.common.arrays import Float64
from bm25rag.common.checks import LARGEST_WEIGHT, are_strings, check_real
from bm25rag.kernels.records import Queries
from bm25rag.search.snapshot import Snapshot
from bm25rag.search.term_numbers import TermCache

if TYPE_CHECKING:
    from bm25rag.search.analyzed_parts import Restriction
    from bm25rag.search.query import Query

QueryLike: TypeAlias = "str | Sequence[str] | Mapping[str, float] | Query"
# A query, analysed and checked: its terms, repeats included, or its terms with their weights.
Terms: TypeAlias = Sequence[str] | dict[str, float]

_UNWEIGHTED = np.empty(0)


class RestrictedTerms(dict[str, float]):
    """The terms of a ``Query``, with their counts or weights.

    Attributes
    ----------
    restriction
        What its matches must have, and must not have.
    cut
        Whether its time was over before the search had all that was asked for.
    """

    __slots__ = ("cut", "restriction")

    restriction: Restriction
    cut: bool

    def __reduce__(self) -> tuple[type[dict[str, float]], tuple[dict[str, float]]]:
        return dict, (dict(self),)  # a hit that is sent needs the terms alone


_WEIGHTED = frozenset({dict, RestrictedTerms})


class ResolvedQueries(NamedTuple):
    """Queries by the numbers of their terms, and the cache that gave the numbers."""

    cache: TermCache
    queries: Queries


def terms_of(analyzer: Analyzer, query: QueryLike, name: str = "query") -> Terms:
    """Analyse a query and check it.

    Parameters
    ----------
    analyzer
        How texts become terms.
    query
        The query.
    name
        Its name in messages.

    Raises
    ------
    TypeError
        If the query, a term or a weight has the wrong type.
    ValueError
        If a weight is NaN or infinite, or beyond 1e30, or a part of a ``Query`` has no words.
    """
    if not isinstance(query, str):
        return _check(analyzer, query, name)
    return _weighed(analyzer, [query])[0] if analyzer.also else analyzer.query_terms(query)


def terms_of_each(analyzer: Analyzer, queries: Sequence[QueryLike]) -> list[Terms]:
    """Analyse queries and check them, as ``terms_of`` does; messages say which is wrong."""
    asked = [one for one in queries if isinstance(one, str)]
    analyzed: Sequence[Terms] = (
        _weighed(analyzer, asked) if analyzer.also else analyzer.query_terms_of_each(asked)
    )
    if len(asked) == len(queries):
        return [*analyzed]
    given = [query for query in queries if not isinstance(query, str)]
    checked: Iterable[Terms]
    if _are_lists_of_strings(given):
        checked = cast("list[Terms]", given)
    else:
        numbered = ((n, one) for n, one in enumerate(queries) if not isinstance(one, str))
        checked = [_check(analyzer, query, f"queries[{n}]") for n, query in numbered]
    texts, others = iter(analyzed), iter(checked)
    return [next(texts if isinstance(query, str) else others) for query in queries]


def _weighed(analyzer: Analyzer, texts: Sequence[str]) -> list[Terms]:
    """Return the terms of each text by all analyses, with their weights."""
    from bm25rag.analysis.spaces import weighed  # few indexes have several

    weights = [1.0, *(weight for _, weight in analyzer.also)]
    each = zip(*(one.query_terms_of_each(texts) for one in analyzer.analyses), strict=True)
    return [weighed(zip(terms, weights, strict=True)) for terms in each]


def resolve_queries(snapshot: Snapshot, queries: Sequence[Terms]) -> ResolvedQueries:
    """Look up the terms of queries.

    Parameters
    ----------
    snapshot
        Where to search.
    queries
        The terms of each query, or their weights.
    """
    cache, (pointers, terms) = snapshot.query_numbers(queries)
    return ResolvedQueries(cache, Queries(pointers, terms, _weights(queries)))


def _weights(queries: Sequence[Terms]) -> Float64:
    """Return the weight of every term of every query; nothing if each counts once."""
    if _WEIGHTED.isdisjoint(map(type, queries)):
        return _UNWEIGHTED
    weights = (
        query.values() if isinstance(query, dict) else repeat(1.0, len(query)) for query in queries
    )
    return np.fromiter(chain.from_iterable(weights), np.float64)


def warn_of_texts(snapshot: Snapshot, queries: Sequence[QueryLike], counts: Iterable[int]) -> None:
    """Warn about a list that was probably meant as texts, because its terms match nothing.

    Parameters
    ----------
    snapshot
        What was searched.
    queries
        The queries, checked.
    counts
        How many matches each has.
    """
    if snapshot.is_restricted or {*map(type, queries)} == {str}:
        return  # other documents may have the terms, or all are texts
    for query, count in zip(queries, counts, strict=True):
        if count or not isinstance(query, (list, tuple, Mapping)):
            continue
        text = next((term for term in query if len(term.split()) > 1), None)
        if text is not None and max(snapshot.term_numbers(query)[1]) < 0:
            from bm25rag.common.caller import warn

            warn(
                f"no document has a term of the query {query!r:.100}: a list holds terms that "
                f"are analysed already; to search for a text, pass the text, {text!r:.100}",
                UserWarning,
            )


def _are_lists_of_strings(queries: Sequence[QueryLike]) -> bool:
    """Whether all are lists of strings; checked in one step, which is faster than one by one."""
    lists = set(map(type, queries)) <= {list, tuple}
    return lists and are_strings(list(chain.from_iterable(cast("Sequence[list[str]]", queries))))


def _check(analyzer: Analyzer, query: QueryLike, name: str) -> Terms:
    if isinstance(query, Mapping):
        return check_weights(query, name)
    if isinstance(query, (list, tuple)) and are_strings(query):
        return query
    from bm25rag.search.query import Query  # most programs have none

    if isinstance(query, Query):
        from bm25rag.search.analyzed_parts import analyzed

        return analyzed(analyzer, query, name)
    raise TypeError(
        f"{name} must be a str, a list of terms, a dict of terms and their weights, or a Query, "
        f"got {query!r:.100}"
    )


def check_weights(query: Mapping[str, float], name: str) -> dict[str, float]:
    """Return terms with their weights; raise as ``terms_of``."""
    return {_check_term(term, name): _check_weight(w, term, name) for term, w in query.items()}


def _check_term(term: object, name: str) -> str:
    if not isinstance(term, str):
        raise TypeError(f"{name} must map terms, which are str, to weights, got the key {term!r}")
    return term


def _check_weight(weight: object, term: str, name: str) -> float:
    # Adding 0.0 turns -0.0 into 0.0.
    return check_real(f"{name}[{term!r:.100}]", weight, -LARGEST_WEIGHT, LARGEST_WEIGHT) + 0.0

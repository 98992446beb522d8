"""The terms of a query, checked: of a text, a list of terms, or a mapping of terms to weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from bm25rag.analysis import Analyzer
from bm25rag.common.checks import are_strings, check_weight
from bm25rag.kernels.term_lists import TermLists

if TYPE_CHECKING:
    from bm25rag.search.analyzed_parts import Restriction

# A query, analysed and checked: its terms, repeats included, or its terms with their weights.
Terms: TypeAlias = Sequence[str] | dict[str, float]


class RestrictedTerms(dict[str, float]):
    """The terms of a ``Query``, with their counts or weights, and its restriction of matches.

    ``cut`` says whether its time was over before the search had all that was asked for.
    """

    __slots__ = ("cut", "restriction")

    restriction: Restriction
    cut: bool

    def __reduce__(self) -> tuple[type[dict[str, float]], tuple[dict[str, float]]]:
        return dict, (dict(self),)  # a hit that is sent needs the terms alone


def having_parts(queries: Sequence[Terms]) -> dict[int, RestrictedTerms]:
    """Return the queries that have parts, by their numbers."""
    if type(queries) is TermLists or RestrictedTerms not in map(type, queries):  # as most of them
        return {}
    return {n: one for n, one in enumerate(queries) if isinstance(one, RestrictedTerms)}


def plain_terms(analyzer: Analyzer, query: object, name: str) -> Terms:
    """Return the terms of any query but a ``Query``; raise as ``terms_of``."""
    if isinstance(query, str):
        return terms_of_texts(analyzer, [query])[0]
    if isinstance(query, Mapping):
        return check_weights(query, name)
    if isinstance(query, (list, tuple)) and are_strings(query):
        return query
    raise TypeError(
        f"{name} must be a str, a list of terms, a dict of terms and their weights, or a Query, "
        f"got {query!r:.100}"
    )


def terms_of_texts(analyzer: Analyzer, texts: Sequence[str]) -> Sequence[Terms]:
    """Return the terms of each text; with their weights, if there are several analyses."""
    if not analyzer.also:
        return analyzer.query_terms_of_each(texts)
    from bm25rag.analysis.spaces import weighed  # few indexes have several

    weights = [1.0, *(weight for _, weight in analyzer.also)]
    each = zip(*(one.query_terms_of_each(texts) for one in analyzer.analyses), strict=True)
    return [weighed(zip(terms, weights, strict=True)) for terms in each]


def check_weights(query: Mapping[str, float], name: str) -> dict[str, float]:
    """Return terms with their weights; raise as ``terms_of``."""
    # Adding 0.0 turns -0.0 into 0.0.
    return {_check_term(term, name): check_weight(name, term, w) + 0.0 for term, w in query.items()}


def _check_term(term: object, name: str) -> str:
    if not isinstance(term, str):
        raise TypeError(f"{name} must map terms, which are str, to weights, got the key {term!r}")
    return term

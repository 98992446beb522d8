"""What LangChain's older BM25 retriever was told, said to bm25rag."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any

from bm25rag import Analyzer, BM25Index
from bm25rag.analysis import Tokenizer

_PARAMETERS = ("variant", "k1", "b", "delta", "delta_on")
_ELSEWHERE = {
    "epsilon": "bm25rag has no floor relative to the mean idf: the idf of its default variant is "
    "never negative, and variant='robertson' floors it at 0, as epsilon=0 did",
    "tokenizer": "give the callable as preprocess_func",
}


def make_index(
    analyzer: Analyzer | None,
    preprocess_func: Tokenizer | None,
    bm25_params: Mapping[str, Any] | None,
    name: str = "preprocess_func",
) -> BM25Index:
    """Make an empty index.

    Parameters
    ----------
    analyzer
        How texts become terms.
    preprocess_func
        A callable from text to terms, in place of an analyzer.
    bm25_params
        ``k1``, ``b``, and what else ``BM25Index`` takes: ``variant``, ``delta``, ``delta_on``.
    name
        What the caller's argument for the callable is called.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If both an analyzer and a callable are given, or a parameter that cannot be honoured.
    """
    if preprocess_func is not None:
        if analyzer is not None:
            message = f"{name} replaces analyzer; give one of them"
            raise ValueError(message)
        if not callable(preprocess_func):
            got = type(preprocess_func).__name__
            message = f"{name} must be a callable from str to list[str], got {got}"
            raise TypeError(message)
        analyzer = Analyzer(tokenizer=preprocess_func)
    return BM25Index(analyzer, **_checked(bm25_params))


@contextmanager
def naming_preprocess_func(preprocess_func: Tokenizer | None) -> Iterator[None]:
    """Say ``preprocess_func`` where the core, which knows it as the tokenizer, refuses its result.

    Raises
    ------
    TypeError
        If it returned anything but a list or tuple of terms.
    """
    try:
        yield
    except TypeError as error:
        said, core_name = str(error), "tokenizer must return"
        if preprocess_func is None or not said.startswith(core_name):
            raise
        message = said.replace(core_name, "preprocess_func must return", 1)
        raise TypeError(message) from None


def _checked(bm25_params: Mapping[str, Any] | None) -> dict[str, Any]:
    if bm25_params is None:
        return {}
    if not isinstance(bm25_params, Mapping):
        message = f"bm25_params must be a dict or None, got {type(bm25_params).__name__}"
        raise TypeError(message)
    for name in bm25_params:
        if name not in _PARAMETERS:
            why = _ELSEWHERE.get(name, f"known are {', '.join(_PARAMETERS)}")
            message = f"bm25_params[{name!r}] cannot be honoured: {why}"
            raise ValueError(message)
    return dict(bm25_params)


def check_k(k: Any) -> None:
    """Check the field ``k``, as the core checks it at every search.

    Raises
    ------
    TypeError
        If it is no integer.
    ValueError
        If it is negative.
    """
    message = f"k must be an integer >= 0, got {k!r}"
    try:
        count = operator.index(k)
    except TypeError:
        raise TypeError(message) from None
    if isinstance(k, bool):
        raise TypeError(message)
    if count < 0:
        raise ValueError(message)


def check_min_score(score: Any) -> None:
    """Check the field ``min_score``, as the core checks it at every search.

    Raises
    ------
    TypeError
        If it is neither a real number nor None.
    ValueError
        If it is NaN.
    """
    message = f"min_score must be a number or None, got {score!r}"
    if score is None:
        return
    if isinstance(score, bool) or not isinstance(score, Real):
        raise TypeError(message)
    if math.isnan(score):
        raise ValueError(message)


def check_call(name: str, query: object, given: Mapping[str, Any]) -> None:
    """Check what a search was called with, beside what the core checks.

    Parameters
    ----------
    name
        The class that was asked.
    query
        The query, which in a chain may be anything.
    given
        Other keywords; LangChain leaves its own ``verbose`` among them.

    Raises
    ------
    TypeError
        If the query is no text, or there are keywords that mean nothing.
    """
    if not isinstance(query, str):
        message = f"query must be a str, got {type(query).__name__}{_hint(query)}"
        raise TypeError(message)
    if unknown := [each for each in given if each != "verbose"]:
        message = (
            f"{name} takes k, filter and min_score for each call, got {', '.join(unknown)}; "
            "everything else is given to the constructor"
        )
        raise TypeError(message)


def _hint(query: object) -> str:
    if isinstance(query, Mapping):
        key = next((key for key in query if isinstance(query[key], str)), "question")
        return f": pick the text first, as in itemgetter({key!r}) | retriever"
    if isinstance(query, (list, tuple)):
        return ": batch takes several queries"
    return ""

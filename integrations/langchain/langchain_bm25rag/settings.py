"""What LangChain's older BM25 retriever was told, said to bm25rag."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bm25rag import Analyzer, BM25Index

_PARAMETERS = ("variant", "k1", "b", "delta", "delta_on")
_ELSEWHERE = {
    "epsilon": "bm25rag has no floor relative to the mean idf: the idf of its default variant is "
    "never negative, and variant='robertson' floors it at 0, as epsilon=0 did",
    "tokenizer": "give the callable as preprocess_func",
}


def make_index(
    analyzer: Analyzer | None,
    preprocess_func: Callable[[str], list[str]] | None,
    bm25_params: Mapping[str, Any] | None,
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

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If both an analyzer and a callable are given, or a parameter that cannot be honoured.
    """
    if preprocess_func is not None:
        if analyzer is not None:
            message = "preprocess_func replaces analyzer; give one of them"
            raise ValueError(message)
        if not callable(preprocess_func):
            got = type(preprocess_func).__name__
            message = f"preprocess_func must be a callable from str to list[str], got {got}"
            raise TypeError(message)
        analyzer = Analyzer(tokenizer=preprocess_func)
    return BM25Index(analyzer, **_checked(bm25_params))


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

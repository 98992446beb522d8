"""Translates the settings of LangChain's older BM25 retriever into bm25rag's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Number
from os import PathLike
from typing import Any

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import Mode, Tokenizer

_PARAMETERS = ("variant", "k1", "b", "delta", "delta_on")
# Okapi there floors the idf relative to the mean idf; the default variant's is never negative.
_COMMUNITY = {"okapi": None, "plus": "bm25+"}
_ELSEWHERE = {
    "epsilon": "bm25rag has no floor relative to the mean idf: the idf of its default variant is "
    "never negative, and variant='robertson' floors it at 0, as epsilon=0 did",
    "tokenizer": "give the callable as preprocess_func",
}


def without_none(**values: Any) -> dict[str, Any]:
    """Return the values that are not None: what a subclass overrides need not take the others."""
    return {name: value for name, value in values.items() if value is not None}


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
        ``k1``, ``b``, ``variant``, ``delta`` and ``delta_on``, as in ``BM25Index``.
    name
        The name of the caller's argument for the callable.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If both an analyzer and a callable are given, or a parameter is not supported.
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


def open_index(
    path: str | PathLike[str],
    mode: Mode,
    analyzer: Analyzer | None,
    tokenizer: Tokenizer | None,
    bm25_params: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> BM25Index:
    """Open the index in a folder; to write, make it if there is none.

    Parameters
    ----------
    path, mode
        As in ``BM25Index.open``, but for ``"w"``, which is ``"a"`` here.
    analyzer, bm25_params
        The settings of a new index; an existing one must have the same.
    tokenizer
        A callable in place of an analyzer.
    options
        Other arguments of ``BM25Index.open``: ``mmap``, ``timeout``, ...

    Raises
    ------
    StorageError
        As from ``BM25Index.open``.
    TypeError
        If an argument has the wrong type.
    ValueError
        If the existing index has different settings, or both an analyzer and a callable are given.
    """
    make_index(analyzer, tokenizer, bm25_params, "tokenizer")  # checks them
    params = dict(bm25_params or {})
    settings = {"analyzer": analyzer, "tokenizer": tokenizer, **params, **options}
    try:
        return BM25Index.open(path, "a" if mode == "w" else mode, **settings)
    except ValueError as error:
        name, _, problem = str(error).partition(" is ")
        if type(error) is not ValueError or name not in params:
            raise
        problem = problem.replace("was made with", "has").replace(f"leave {name}", "leave it")
        message = f"bm25_params[{name!r}] is {problem}"
        raise ValueError(message) from None


def with_variant(
    bm25_params: Mapping[str, Any] | None, bm25_variant: str | None
) -> Mapping[str, Any] | None:
    """Return parameters with the variant that langchain-community's class names.

    Parameters
    ----------
    bm25_params
        As for ``make_index``.
    bm25_variant
        ``"okapi"`` for the default variant, ``"plus"`` for BM25+, ``None`` for none.

    Raises
    ------
    ValueError
        If it is neither, or ``bm25_params`` names a variant too.
    """
    if bm25_variant is None:
        return bm25_params
    if bm25_variant not in _COMMUNITY:
        message = f"bm25_variant must be one of {', '.join(_COMMUNITY)}, got {bm25_variant!r:.100}"
        raise ValueError(message)
    if isinstance(bm25_params, Mapping) and "variant" in bm25_params:
        message = "bm25_variant replaces bm25_params['variant']; give one of them"
        raise ValueError(message)
    named = _COMMUNITY[bm25_variant]
    return {**(bm25_params or {}), "variant": named} if named else bm25_params


@contextmanager
def naming_preprocess_func(preprocess_func: Tokenizer | None) -> Iterator[None]:
    """Name ``preprocess_func`` in errors where the core names the tokenizer.

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
            why = _ELSEWHERE.get(name, f"the parameters are {', '.join(_PARAMETERS)}")
            message = f"bm25_params[{name!r}] is not supported: {why}"
            raise ValueError(message)
    return dict(bm25_params)


def check_call(name: str, query: object, given: Mapping[str, Any], takes: str) -> None:
    """Check those arguments of a search that the core does not check.

    Parameters
    ----------
    name
        The name of the class.
    query
        The query; in a chain it may be anything.
    given
        Other keywords; LangChain's own ``verbose`` may be among them.
    takes
        What a call takes, and where else to give what it does not.

    Raises
    ------
    TypeError
        If the query is neither a text nor weights of terms, or a keyword is unknown.
    """
    if not isinstance(query, str) and not _is_weighted(query):
        message = f"query must be a str, got {type(query).__name__}{_hint(query)}"
        raise TypeError(message)
    if unknown := [each for each in given if each != "verbose"]:
        message = f"{name} takes {takes.format(', '.join(unknown))}"
        raise TypeError(message)


def _is_weighted(query: object) -> bool:
    return (
        isinstance(query, Mapping)
        and bool(query)
        and all(isinstance(weight, Number) for weight in query.values())
    )


def _hint(query: object) -> str:
    if isinstance(query, Mapping):
        key = next((key for key in query if isinstance(query[key], str)), "question")
        return f": pick the text first, as in itemgetter({key!r}) | retriever"
    if isinstance(query, (list, tuple)):
        return ": batch takes several queries"
    return ""

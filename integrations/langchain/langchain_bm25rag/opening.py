"""Opens a saved index, or makes it if there is none."""

from __future__ import annotations

import time
from collections.abc import Mapping
from os import PathLike
from typing import Any

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import Tokenizer
from bm25rag.errors import LockedError, NotAnIndexError
from langchain_bm25rag.settings import make_index


def open_index(
    path: str | PathLike[str],
    analyzer: Analyzer | None,
    tokenizer: Tokenizer | None,
    bm25_params: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> BM25Index:
    """Open the index in a folder; in mode ``"w"``, make it if there is none.

    Parameters
    ----------
    path
        The folder.
    analyzer, bm25_params
        The settings of a new index; an existing one must have the same.
    tokenizer
        A callable in place of an analyzer.
    options
        Other arguments of ``BM25Index.open``: ``mode``, ``timeout``, ...

    Raises
    ------
    StorageError
        As from ``BM25Index.open``.
    ValueError
        If the existing index has different settings.
    """
    empty = make_index(analyzer, tokenizer, bm25_params, "tokenizer")
    index = _open_or_make(path, empty, options)
    try:
        _check_same(path, index, analyzer, bm25_params or {})
    except BaseException:
        index.close()  # or the folder stays locked while a traceback holds the index
        raise
    return index


def _open_or_make(
    path: str | PathLike[str], empty: BM25Index, options: Mapping[str, Any]
) -> BM25Index:
    until = time.monotonic() + options["timeout"]
    while True:
        try:
            return BM25Index.open(path, tokenizer=empty.analyzer.tokenizer, **options)
        except NotAnIndexError:
            if options["mode"] != "w":
                raise
        try:
            empty.save(path, overwrite=False)  # refuses a folder that holds anything else
        except FileExistsError:
            pass  # another process was faster
        except LockedError:  # another process is making it
            if time.monotonic() >= until:
                raise
            time.sleep(0.01)


def _check_same(
    path: str | PathLike[str],
    index: BM25Index,
    analyzer: Analyzer | None,
    bm25_params: Mapping[str, Any],
) -> None:
    if analyzer is not None and not index.analyzer.satisfies(analyzer):
        message = (
            f"analyzer is {analyzer!r}, but the index in {str(path)!r} was made with "
            f"{index.analyzer!r}: leave analyzer out, or make a new index with "
            "index.reanalyze(analyzer)"
        )
        raise ValueError(message)
    wanted = index.tune(**bm25_params)
    for name in bm25_params:
        given, existing = getattr(wanted, name), getattr(index, name)
        if given != existing:
            message = (
                f"bm25_params[{name!r}] is {given!r}, but the index in {str(path)!r} has "
                f"{existing!r}: leave it out, or search a tuned view, "
                f"from_index(index.tune({name}={given!r}))"
            )
            raise ValueError(message)

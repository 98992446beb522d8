"""Checks of arguments that are Haystack's own."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from haystack.dataclasses import Document, SparseEmbedding
from haystack.document_stores.types import FilterPolicy
from haystack.utils import Secret

from bm25rag import Analyzer
from bm25rag.adapters import check_real, is_url
from bm25rag.vectors import read_vector


def check_min_score(min_score: object) -> float | None:
    """Return ``min_score`` as a float; ``None`` for any score."""
    return None if min_score is None else check_real("min_score", min_score, -math.inf, math.inf)


def check_flag(name: str, value: object) -> bool:
    """Return a bool, or NumPy's bool, as a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_strings(name: str, value: object) -> list[str]:
    """Return an iterable of strings as a list; a single string is refused."""
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a list of str, got {value!r:.100}")
    strings = list(value)
    for position, string in enumerate(strings):
        if not isinstance(string, str):
            raise TypeError(f"{name}[{position}] must be a str, got {string!r:.100}")
    return strings


Question: TypeAlias = str | list[str] | dict[str, float]
"""A text, terms, or terms with their weights."""


def check_query(query: object, name: str = "query") -> Question:
    """Return a query; refuse an empty one."""
    if not isinstance(query, str | list | dict):
        expected = f"{name} must be a str, got {type(query).__name__}"
        raise TypeError(f"{expected}; or a list of terms, or a dict of terms and their weights")
    if not query:
        raise ValueError(f"{name} must not be empty")
    return query


def asked_for(**options: Any) -> dict[str, Any]:
    """Return the options that are not at their defaults, for methods that a subclass may have."""
    return {name: value for name, value in options.items() if value}


def asks_for_all(query: object, filters: dict[str, Any] | None) -> bool:
    """Whether a query is blank and there is a filter: what passes is found, in document order."""
    return bool(filters) and isinstance(query, str | list | dict) and not _stripped(query)


def _stripped(query: Question) -> Question:
    return query.strip() if isinstance(query, str) else query


def check_sparse_embedding(query: object) -> dict[str, float]:
    """Return the sparse embedding of a query as weights by term."""
    name = "query_sparse_embedding"
    if not isinstance(query, SparseEmbedding):
        raise TypeError(f"{name} must be a SparseEmbedding, got {query!r:.100}")
    return read_vector(query, name)


def check_path(path: object) -> str | None:
    """Return the path or URL of a folder as a string; ``None`` means memory."""
    if path is None:
        return None
    if isinstance(path, Secret):
        named, path = path, path.resolve_value()
        if not path:
            raise ValueError(f"path must name a folder, but {named!r} is not set, or empty")
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str, a Path or None, got {path!r:.100}; or a Secret")
    if path == "":
        raise ValueError("path must name a folder, got ''; leave it out for memory")
    return path if is_url(path) else str(Path(path))


def check_analyzer(analyzer: object) -> Analyzer | None:
    """Return an analyzer; ``None`` means that of the index."""
    if not isinstance(analyzer, Analyzer | None):
        raise TypeError(
            f"analyzer must be an Analyzer or None, got {analyzer!r:.100}: write, for example, "
            "Analyzer('german'), or in YAML, analyzer: {language: german}"
        )
    return analyzer


def check_policy(policy: object) -> FilterPolicy:
    """Return a filter policy, which may be given by name."""
    if isinstance(policy, str):
        return FilterPolicy.from_str(policy)
    if not isinstance(policy, FilterPolicy):
        raise TypeError(f"filter_policy must be a FilterPolicy, got {policy!r}")
    return policy


def check_documents(documents: object) -> list[Document]:
    """Return an iterable of documents as a list."""
    message = "documents must be a list of Documents"
    if isinstance(documents, str | bytes | dict) or not isinstance(documents, Iterable):
        raise ValueError(f"{message}, got {type(documents).__name__}")
    given = list(documents)
    for row, document in enumerate(given):
        if not isinstance(document, Document):
            raise ValueError(f"{message}, got {type(document).__name__} at documents[{row}]")
    return given

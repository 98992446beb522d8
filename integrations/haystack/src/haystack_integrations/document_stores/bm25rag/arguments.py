"""Checks of arguments that are Haystack's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from haystack.dataclasses import Document, SparseEmbedding

from bm25rag import Query
from bm25rag.vectors import read_vector

Question: TypeAlias = str | list[str] | dict[str, float]
"""A text, terms, or terms with their weights: what Haystack can describe to a model."""
AnyQuestion: TypeAlias = Question | Query
"""The same, or what documents must have and must not have."""


def check_query(query: object, name: str = "query") -> AnyQuestion:
    """Return a query; refuse an empty one."""
    if not isinstance(query, (str, list, dict, Query)):
        expected = f"{name} must be a str, got {type(query).__name__}"
        raise TypeError(
            f"{expected}; or a list of terms, a dict of terms and their weights, or a bm25rag.Query"
        )
    if not query:
        raise ValueError(f"{name} must not be empty")
    return query


def check_sparse_embedding(query: object) -> dict[str, float]:
    """Return the sparse embedding of a query as weights by term."""
    name = "query_sparse_embedding"
    if not isinstance(query, SparseEmbedding):
        raise TypeError(f"{name} must be a SparseEmbedding, got {query!r:.100}")
    return read_vector(query, name)


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

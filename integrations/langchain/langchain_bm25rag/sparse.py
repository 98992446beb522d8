"""Learned sparse vectors: what makes them of texts, and its faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from langchain_core.runnables import run_in_executor

from bm25rag import Document
from bm25rag.adapters import check_sequence
from bm25rag.vectors import Vector, read_vector

RetrievalMode: TypeAlias = Literal["bm25", "sparse", "hybrid"]
"""What a store searches by: BM25, sparse vectors, or both, fused."""


@runtime_checkable
class SparseEmbeddings(Protocol):
    """What makes sparse vectors of texts, as in langchain-qdrant and langchain-milvus.

    A vector is weights by term or by its number, an object with ``indices`` and ``values`` or a
    mapping of these two, or a SciPy array of one row. Asynchronous methods of a store await
    ``aembed_documents`` and ``aembed_query`` where the object has them.
    """

    def embed_documents(self, texts: list[str], /) -> Iterable[Vector]:
        """Return a vector for each of some texts."""

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a query."""


def read_embedding(embedding: object) -> SparseEmbeddings | None:
    """Return what makes sparse vectors, checked.

    Raises
    ------
    TypeError
        If it lacks a method, or is a class.
    """
    if embedding is None:
        return None
    if isinstance(embedding, SparseEmbeddings) and not isinstance(embedding, type):
        return embedding
    message = (
        "sparse_embedding must be an object with embed_documents and embed_query, such as "
        f"FastEmbedSparse(), or None, got {embedding!r:.100}"
    )
    raise TypeError(message)


def read_mode(mode: RetrievalMode, embedding: SparseEmbeddings | None) -> RetrievalMode:
    """Return a mode, checked.

    Raises
    ------
    ValueError
        If there is no such mode, or it needs an embedding and there is none.
    """
    if mode not in get_args(RetrievalMode):
        choices = ", ".join(get_args(RetrievalMode))
        message = f"retrieval_mode must be one of {choices}, got {mode!r:.100}"
        raise ValueError(message)
    if mode != "bm25" and embedding is None:
        message = (
            f"retrieval_mode {mode!r} needs sparse_embedding, which makes the vector of a query: "
            "give it to the constructor, from_... or open; a folder holds vectors, and not what "
            "made them"
        )
        raise ValueError(message)
    return mode


def with_vectors(embedding: SparseEmbeddings, documents: Iterable[Document]) -> list[Document]:
    """Return documents with the vectors of their texts.

    Parameters
    ----------
    embedding
        What makes them; it is not asked if there are no documents.
    documents
        The documents, of which all are read.

    Raises
    ------
    RuntimeError
        If the embedding fails, or returns too few, too many, or anything but vectors.
    """
    given = list(documents)
    with _naming(embedding):
        vectors = embedding.embed_documents(_texts(given)) if given else []
        return _paired(given, vectors)


async def awith_vectors(embedding: Any, documents: list[Document]) -> list[Document]:
    """Do what ``with_vectors`` does, by ``aembed_documents``, which the embedding must have."""
    with _naming(embedding):
        vectors = await embedding.aembed_documents(_texts(documents)) if documents else []
        return _paired(documents, vectors)


def embed_query(embedding: SparseEmbeddings, query: str) -> Vector:
    """Return the vector of a query.

    Raises
    ------
    RuntimeError
        If the embedding fails, or returns anything but a vector.
    """
    with _naming(embedding):
        return read_vector(embedding.embed_query(query), "its vector")


async def aembed_query(embedding: SparseEmbeddings, query: str) -> Vector:
    """Do what ``embed_query`` does, by ``aembed_query`` if there is one, or else in a thread."""
    if not hasattr(embedding, "aembed_query"):
        return await run_in_executor(None, embed_query, embedding, query)
    with _naming(embedding):
        return read_vector(await embedding.aembed_query(query), "its vector")


def _texts(documents: Iterable[Document]) -> list[str]:
    return [document.text or "" for document in documents]


def _paired(documents: list[Document], vectors: Iterable[Vector]) -> list[Document]:
    read = [
        read_vector(vector, f"vectors[{row}]")
        for row, vector in enumerate(check_sequence("what it returns", vectors, "vectors"))
    ]
    if len(read) != len(documents):
        message = f"it returned {len(read)} vectors for {len(documents)} texts"
        raise ValueError(message)
    for document, vector in zip(documents, read, strict=True):
        document.vector = vector
    return documents


@contextmanager
def _naming(embedding: SparseEmbeddings) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        name, why = type(embedding).__name__, f"{type(error).__name__}: {error}"
        message = f"sparse_embedding, {name}, failed: {why}"
        raise RuntimeError(message) from error

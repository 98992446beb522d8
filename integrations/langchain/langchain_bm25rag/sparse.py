"""Learned sparse vectors: what makes them of texts, and its faults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, TypeAlias, cast, get_args, runtime_checkable

from bm25rag import Document
from bm25rag.adapters import Call, Plan, check_sequence, naming
from bm25rag.vectors import Vector, read_vector

RetrievalMode: TypeAlias = Literal["bm25", "sparse", "hybrid"]
"""What a store searches by: BM25, sparse vectors, or both, fused."""
_MODES = get_args(RetrievalMode)


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
    """Return what makes sparse vectors; raise ``TypeError`` if it lacks a method, or is a class."""
    if embedding is None:
        return None
    # Since Python 3.12, isinstance with a protocol does not see what a wrapper has by __getattr__.
    known = hasattr(embedding, "embed_documents") and hasattr(embedding, "embed_query")
    if known and not isinstance(embedding, type):
        return cast(SparseEmbeddings, embedding)
    raise TypeError(
        "sparse_embedding must be an object with embed_documents and embed_query, such as "
        f"FastEmbedSparse(), or None, got {embedding!r:.100}"
    )


def read_mode(mode: RetrievalMode, embedding: SparseEmbeddings | None) -> RetrievalMode:
    """Return a mode; raise ``ValueError`` if it is unknown, or needs an embedding that is not."""
    if mode not in _MODES:
        raise ValueError(f"retrieval_mode must be one of {', '.join(_MODES)}, got {mode!r:.100}")
    if mode != "bm25" and embedding is None:
        raise ValueError(
            f"retrieval_mode {mode!r} needs sparse_embedding, which makes the vector of a query: "
            "give it to the constructor, from_... or open; a folder holds vectors, and not what "
            "made them"
        )
    return mode


def with_vectors(
    embedding: SparseEmbeddings, documents: Iterable[Document]
) -> Plan[list[Document]]:
    """Return documents with the vectors of their texts; without any, the embedding is not asked.

    A ``RuntimeError`` says that it fails, or returns too few, too many, or anything but vectors.
    """
    given = list(documents)
    if not given:
        return given
    texts = [document.text or "" for document in given]
    with naming("sparse_embedding", embedding):
        answer = yield Call(embedding, "embed_documents", (texts,))
        vectors = [
            read_vector(vector, f"vectors[{row}]")
            for row, vector in enumerate(check_sequence("what it returns", answer, "vectors"))
        ]
        if len(vectors) != len(given):
            raise ValueError(f"it returned {len(vectors)} vectors for {len(given)} texts")
    for document, vector in zip(given, vectors, strict=True):
        document.vector = vector
    return given


def embed_query(embedding: SparseEmbeddings, query: str) -> Plan[Vector]:
    """Return the vector of a query; raise ``RuntimeError`` as ``with_vectors`` does."""
    with naming("sparse_embedding", embedding):
        return read_vector((yield Call(embedding, "embed_query", (query,))), "its vector")

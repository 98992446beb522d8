"""The hybrid retriever of one store: BM25 and sparse embeddings, fused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haystack import Document, component
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.types import FilterPolicy
from haystack_integrations.components.retrievers.bm25rag.base import StoreRetriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from haystack_integrations.document_stores.bm25rag.awaited import reads
from haystack_integrations.document_stores.bm25rag.searching import Question

from bm25rag.adapters import DecayLike
from bm25rag.fusion import FusionMethod


@component
class BM25SparseHybridRetriever(StoreRetriever):
    """Finds documents in a ``BM25DocumentStore`` by keywords and by their sparse embeddings.

    Both rankings are of one state of the store. ``BM25HybridRetriever`` fuses BM25 with another
    store's embeddings.

    Parameters
    ----------
    document_store, filters, top_k, filter_policy, correct, expand, group, per_group
        As in ``BM25Retriever``.
    decay, parse_query
        As in ``BM25Retriever``.
    top_k_per_retriever
        How many documents of each ranking are fused, >= 0; at least ``top_k`` are.
    method, weights, rank_constant
        As in ``bm25rag.fusion.fuse``; the first weight is that of BM25.
    """

    parse_query: bool

    def __init__(
        self,
        document_store: BM25DocumentStore,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: FilterPolicy | str = FilterPolicy.REPLACE,
        top_k_per_retriever: int = 100,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        correct: bool = False,
        expand: bool = False,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
        parse_query: bool = False,
    ) -> None:
        self._set(locals())

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: Question,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        correct: bool | None = None,
        expand: bool | None = None,
        offset: int = 0,
        group: str | None = None,
        per_group: int | None = None,
        decay: dict[str, Any] | None = None,
    ) -> dict[str, list[Document]]:
        """Find the best documents of both rankings, fused.

        Parameters
        ----------
        query
            The text to search for, as in ``BM25Retriever.run``.
        query_sparse_embedding
            The sparse embedding of the query.
        filters
            Which documents may be found, in Haystack's language; ``filter_policy`` says how they
            combine with the retriever's own.
        top_k
            The maximum number of documents, >= 0; ``None`` for the retriever's setting.
        correct, expand, offset, group, per_group, decay
            As in ``BM25Retriever.run``; the last three are of the fused scores.

        Returns
        -------
        result
            ``documents``: new documents with their fused scores, best first.
        """
        asked = self._settled(locals())
        documents = self.document_store.sparse_hybrid_retrieval(
            query,
            query_sparse_embedding,
            **asked,
            top_k_per_retriever=self.top_k_per_retriever,
            method=self.method,
            weights=self.weights,
            rank_constant=self.rank_constant,
        )
        return {"documents": documents}

    run_async = reads(run)

"""The hybrid retriever of one store: BM25 and sparse embeddings, fused."""

from __future__ import annotations

from typing import Any

from haystack import Document, component
from haystack.dataclasses import SparseEmbedding
from haystack_integrations.components.retrievers.bm25rag.base import FusingRetriever
from haystack_integrations.document_stores.bm25rag.arguments import Question


@component
class BM25SparseHybridRetriever(FusingRetriever):
    """Finds documents in a ``BM25DocumentStore`` by keywords and by their sparse embeddings.

    Both rankings are of one state of the store. ``BM25HybridRetriever`` fuses BM25 with another
    store's embeddings.

    Parameters
    ----------
    document_store
        The store.
    filters
        Which documents may be found.
    top_k
        The maximum number of documents, >= 1.
    filter_policy
        How the filters of a call combine with these, as in ``BM25Retriever``.
    top_k_per_retriever
        How many documents of each ranking are fused, >= 0; at least ``top_k`` are.
    method
        ``"minmax"``, ``"zscore"`` or ``"rrf"``, as in ``bm25rag.fusion.fuse``.
    weights
        The weights of BM25 and of the sparse embeddings; ``None`` for equal ones.
    rank_constant
        The constant of ``"rrf"``, >= 0.
    correct, expand
        Whether to correct and to expand the keywords, as in ``BM25Retriever``.

    Raises
    ------
    TypeError, ValueError, FilterError
        If an argument is wrong.
    """

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
    ) -> dict[str, list[Document]]:
        """Find the best documents of both rankings, fused.

        Parameters
        ----------
        query
            As in ``BM25Retriever.run``; a blank one with filters finds all documents that pass.
        query_sparse_embedding
            Its sparse embedding.
        filters
            Which documents may be found, in Haystack's language; ``filter_policy`` says how they
            combine with the retriever's own.
        top_k
            The maximum number of documents, >= 0; ``None`` for the retriever's setting.
        correct, expand, offset
            As in ``BM25Retriever.run``.

        Returns
        -------
        result
            ``documents``: new documents with their fused scores, best first.

        Raises
        ------
        TypeError, ValueError, FilterError
            If an argument is wrong.
        """
        found = self.document_store.sparse_hybrid_retrieval(
            query,
            query_sparse_embedding,
            self._combined(filters),
            self._most(top_k),
            **self._fusion(),
            **self._options(correct, expand, offset),
        )
        return {"documents": found}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: Question,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        correct: bool | None = None,
        expand: bool | None = None,
        offset: int = 0,
    ) -> dict[str, list[Document]]:
        """Run ``run`` in a thread.

        Parameters
        ----------
        query, query_sparse_embedding, filters, top_k, correct, expand, offset
            As in ``run``.
        """
        found = await self.document_store.sparse_hybrid_retrieval_async(
            query,
            query_sparse_embedding,
            self._combined(filters),
            self._most(top_k),
            **self._fusion(),
            **self._options(correct, expand, offset),
        )
        return {"documents": found}

"""The retriever by sparse embeddings."""

from __future__ import annotations

from typing import Any

from haystack import Document, component
from haystack.dataclasses import SparseEmbedding
from haystack_integrations.components.retrievers.bm25rag.base import ScoringRetriever
from haystack_integrations.document_stores.bm25rag.arguments import asked_for


@component
class BM25SparseEmbeddingRetriever(ScoringRetriever):
    """Finds documents in a ``BM25DocumentStore`` by their sparse embeddings.

    The score is the exact dot product of the query's sparse embedding and the document's.

    Parameters
    ----------
    document_store
        The store.
    filters
        Which documents may be found.
    top_k
        The maximum number of documents, >= 1.
    scale_score
        Whether to scale scores to the range 0 to 1.
    filter_policy
        How the filters of a call combine with these, as in ``BM25Retriever``.
    min_score
        The lowest score that is returned, on the scaled range if scores are scaled; ``None``
        for any.

    Raises
    ------
    TypeError, ValueError, FilterError
        If an argument is wrong.

    Examples
    --------
    >>> from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
    >>> store = BM25DocumentStore()
    >>> sparse = SparseEmbedding(indices=[7, 12], values=[0.5, 1.5])
    >>> store.write_documents([Document(content="A cat sat.", sparse_embedding=sparse)])
    1
    >>> found = BM25SparseEmbeddingRetriever(store).run(SparseEmbedding([12], [2.0]))["documents"]
    >>> found[0].content, found[0].score
    ('A cat sat.', 3.0)
    """

    @component.output_types(documents=list[Document])
    def run(
        self,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        min_score: float | None = None,
        offset: int = 0,
    ) -> dict[str, list[Document]]:
        """Find the best documents whose sparse embeddings share an index with the query's.

        Parameters
        ----------
        query_sparse_embedding
            The sparse embedding of the query; an empty one matches nothing.
        filters, top_k, scale_score, min_score, offset
            As in ``BM25Retriever.run``.

        Returns
        -------
        result
            ``documents``: new documents with their scores, best first.

        Raises
        ------
        TypeError, ValueError, FilterError
            If an argument is wrong.
        """
        found = self.document_store.sparse_embedding_retrieval(
            query_sparse_embedding,
            *self._arguments(filters, top_k, scale_score, min_score),
            **asked_for(offset=offset),
        )
        return {"documents": found}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        min_score: float | None = None,
        offset: int = 0,
    ) -> dict[str, list[Document]]:
        """Run ``run`` in a thread.

        Parameters
        ----------
        query_sparse_embedding, filters, top_k, scale_score, min_score, offset
            As in ``run``.
        """
        found = await self.document_store.sparse_embedding_retrieval_async(
            query_sparse_embedding,
            *self._arguments(filters, top_k, scale_score, min_score),
            **asked_for(offset=offset),
        )
        return {"documents": found}

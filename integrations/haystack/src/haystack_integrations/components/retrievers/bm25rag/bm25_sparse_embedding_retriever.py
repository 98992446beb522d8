"""The retriever by sparse embeddings."""

from __future__ import annotations

from typing import Any

from haystack import Document, component
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.types import FilterPolicy
from haystack_integrations.components.retrievers.bm25rag.base import StoreRetriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from haystack_integrations.document_stores.bm25rag.awaited import reads

from bm25rag.adapters import DecayLike


@component
class BM25SparseEmbeddingRetriever(StoreRetriever):
    """Finds documents in a ``BM25DocumentStore`` by their sparse embeddings.

    The score is the exact dot product of the query's sparse embedding and the document's.

    Parameters
    ----------
    document_store, filters, top_k, scale_score, filter_policy, min_score, group, per_group, decay
        As in ``BM25Retriever``.

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

    def __init__(
        self,
        document_store: BM25DocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        filter_policy: FilterPolicy | str = FilterPolicy.REPLACE,
        min_score: float | None = None,
        *,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
    ) -> None:
        self._set(locals())

    @component.output_types(documents=list[Document])
    def run(
        self,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        min_score: float | None = None,
        offset: int = 0,
        group: str | None = None,
        per_group: int | None = None,
        decay: dict[str, Any] | None = None,
    ) -> dict[str, list[Document]]:
        """Find the best documents whose sparse embeddings share an index with the query's.

        Parameters
        ----------
        query_sparse_embedding
            The sparse embedding of the query; an empty one matches nothing.
        filters, top_k, scale_score, min_score, offset, group, per_group, decay
            As in ``BM25Retriever.run``.

        Returns
        -------
        result
            ``documents``: new documents with their scores, best first.
        """
        asked = self._settled(locals())
        store = self.document_store
        return {"documents": store.sparse_embedding_retrieval(query_sparse_embedding, **asked)}

    run_async = reads(run)

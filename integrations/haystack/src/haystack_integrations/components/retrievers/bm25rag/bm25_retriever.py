"""The retriever by keywords."""

from __future__ import annotations

from typing import Any

from haystack import Document, component
from haystack_integrations.components.retrievers.bm25rag.base import ScoringRetriever


@component
class BM25Retriever(ScoringRetriever):
    """Finds documents in a ``BM25DocumentStore`` by keywords.

    It replaces ``InMemoryBM25Retriever``, and is a ``TextRetriever``.

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
        How the filters of a call combine with these: ``REPLACE`` uses them instead, ``MERGE``
        returns documents that pass both, whatever the operators on either side.
    min_score
        The lowest score that is returned, on the scaled range if scores are scaled; ``None``
        for any.

    Raises
    ------
    TypeError
        If the store is not a ``BM25DocumentStore``, or an argument has the wrong type.
    ValueError
        If ``top_k`` is less than 1, ``min_score`` is NaN, or the policy is unknown.
    FilterError
        If the filters are malformed.

    Examples
    --------
    >>> from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
    >>> store = BM25DocumentStore()
    >>> store.write_documents([Document(content="A cat sat."), Document(content="Dogs run.")])
    2
    >>> BM25Retriever(store).run("cats")["documents"][0].content
    'A cat sat.'
    """

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        min_score: float | None = None,
    ) -> dict[str, list[Document]]:
        """Find the best documents that contain a term of the query.

        Parameters
        ----------
        query
            The text to search for; blanks or stop words alone match nothing.
        filters
            Which documents may be found, in Haystack's language:
            ``{"field": "meta.year", "operator": ">=", "value": 2000}``; ``filter_policy`` says
            how they combine with the retriever's own filters.
        top_k
            The maximum number of documents, >= 0; ``None`` for the retriever's setting.
        scale_score
            Whether to scale scores to the range 0 to 1; ``None`` for the retriever's setting.
        min_score
            The lowest score that is returned, on the scaled range if scores are scaled;
            ``None`` for the retriever's setting.

        Returns
        -------
        result
            ``documents``: new documents with their scores, best first.

        Raises
        ------
        ValueError
            If the query is empty, ``top_k`` is negative, or ``min_score`` is NaN.
        TypeError
            If an argument has the wrong type.
        FilterError
            If the filters are malformed.
        """
        found = self.document_store.bm25_retrieval(
            query, *self._arguments(filters, top_k, scale_score, min_score)
        )
        return {"documents": found}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        min_score: float | None = None,
    ) -> dict[str, list[Document]]:
        """Run ``run`` in a thread.

        Parameters
        ----------
        query, filters, top_k, scale_score, min_score
            As in ``run``.
        """
        found = await self.document_store.bm25_retrieval_async(
            query, *self._arguments(filters, top_k, scale_score, min_score)
        )
        return {"documents": found}

    def run_batch(
        self,
        queries: list[str],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        min_score: float | None = None,
    ) -> dict[str, list[list[Document]]]:
        """Do what ``run`` does for many queries at once, on several threads.

        Haystack's evaluators take the result as ``retrieved_documents``. For one list of what
        any of the queries finds, use ``MultiQueryTextRetriever`` in a pipeline.

        Parameters
        ----------
        queries
            The texts.
        filters, top_k, scale_score, min_score
            As in ``run``, for each query.

        Returns
        -------
        result
            ``documents``: what ``run`` finds for each query, in their order.

        Raises
        ------
        ValueError, TypeError, FilterError
            As from ``run``; the message says which query.
        """
        found = self.document_store.bm25_retrieval_batch(
            queries, *self._arguments(filters, top_k, scale_score, min_score)
        )
        return {"documents": found}

    async def run_batch_async(
        self,
        queries: list[str],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        min_score: float | None = None,
    ) -> dict[str, list[list[Document]]]:
        """Run ``run_batch`` in a thread.

        Parameters
        ----------
        queries, filters, top_k, scale_score, min_score
            As in ``run_batch``.
        """
        found = await self.document_store.bm25_retrieval_batch_async(
            queries, *self._arguments(filters, top_k, scale_score, min_score)
        )
        return {"documents": found}

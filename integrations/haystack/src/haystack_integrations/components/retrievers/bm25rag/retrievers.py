"""The retrievers of one ``BM25DocumentStore``: by keywords, by sparse embeddings, and by both."""

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
class BM25Retriever(StoreRetriever):
    """Finds documents in a ``BM25DocumentStore`` by keywords.

    It replaces ``InMemoryBM25Retriever``, and is a ``TextRetriever``.

    Parameters
    ----------
    document_store
        The store.
    filters, top_k, scale_score, min_score, correct, expand, group, per_group, decay
        As in ``run``, for calls that leave them out; ``top_k`` is at least 1.
    filter_policy
        How the filters of a call combine with these: ``REPLACE`` uses them instead, ``MERGE``
        returns documents that pass both, whatever the operators on either side.
    parse_query
        Whether to read quotes and signs in texts, as ``bm25rag.Query.parse`` does.

    Raises
    ------
    TypeError, ValueError, FilterError
        If an argument has the wrong type, is out of range, or is a malformed filter.

    Examples
    --------
    >>> from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
    >>> store = BM25DocumentStore()
    >>> store.write_documents([Document(content="A cat sat."), Document(content="Dogs run.")])
    2
    >>> BM25Retriever(store).run("cats")["documents"][0].content
    'A cat sat.'
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
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        min_score: float | None = None,
        correct: bool | None = None,
        expand: bool | None = None,
        offset: int = 0,
        group: str | None = None,
        per_group: int | None = None,
        decay: dict[str, Any] | None = None,
    ) -> dict[str, list[Document]]:
        """Find the best documents that contain a term of the query.

        Parameters
        ----------
        query
            The text to search for, or a dict of terms and their weights; where no component is
            connected, also a list of terms as the analyzer makes them, or a ``bm25rag.Query``.
            Stop words alone match documents of nothing else, and a blank query matches nothing;
            but with filters, a blank query finds all documents that pass, in the order of writing.
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
            ``None`` for the retriever's setting. It does not apply to a blank query with filters,
            which has no scores.
        correct
            Whether to replace terms that no document has by terms that are spelt alike; ``None``
            for the retriever's setting.
        expand
            Whether to add terms of the best documents to the query (RM3), as ``BM25Index.expand``;
            ``None`` for the retriever's setting.
        offset
            How many of the best documents to leave out: the next page begins at ``offset + top_k``.
        group
            A field of the meta, such as ``meta.source_id``: of documents with equal values there,
            the best alone is returned, and ``top_k`` and ``offset`` count such groups. Documents
            without a value are each a group. ``"$text"`` groups equal contents. ``None`` for the
            retriever's setting.
        per_group
            How many of each group's best documents to return at most; ``None`` for the
            retriever's setting.
        decay
            What lowers scores: the arguments of ``bm25rag.Decay``, as in ``{"path": "meta.date",
            "half_life": "30d"}``, or of ``bm25rag.Prior``; ``None`` for the retriever's setting.

        Returns
        -------
        result
            ``documents``: new documents with their scores, best first.

        Raises
        ------
        TypeError, ValueError, FilterError
            If an argument has the wrong type, the query is empty and there are no filters,
            ``top_k`` or ``offset`` is negative, ``min_score`` is NaN, or filters are malformed.
        """
        asked = self._settled(locals())
        return {"documents": self.document_store.bm25_retrieval(query, **asked)}

    def run_batch(
        self,
        queries: Sequence[Question],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        min_score: float | None = None,
        **options: Any,
    ) -> dict[str, list[list[Document]]]:
        """Do what ``run`` does for each of many queries at once, on several threads.

        The arguments are those of ``run``. Haystack's evaluators take the result as
        ``retrieved_documents``. For one list of what any of the queries finds, use
        ``MultiQueryTextRetriever`` in a pipeline. An error says which query is wrong.
        """
        given = {name: value for name, value in options.items() if value is not None}
        asked = self._settled(locals()) | given
        return {"documents": self.document_store.bm25_retrieval_batch(queries, **asked)}

    run_async = reads(run)
    run_batch_async = reads(run_batch)  # type: ignore[arg-type]  # mypy wants self without a name


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

        They are the result's ``documents``: new ones with their scores, best first.

        Parameters
        ----------
        query_sparse_embedding
            The sparse embedding of the query; an empty one matches nothing.
        filters, top_k, scale_score, min_score, offset, group, per_group, decay
            As in ``BM25Retriever.run``.
        """
        asked = self._settled(locals())
        store = self.document_store
        return {"documents": store.sparse_embedding_retrieval(query_sparse_embedding, **asked)}

    run_async = reads(run)


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

        They are the result's ``documents``: new ones with their fused scores, best first.

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
        """
        asked = self._settled(locals())
        for name in ("top_k_per_retriever", "method", "weights", "rank_constant"):
            asked[name] = getattr(self, name)
        store = self.document_store
        return {"documents": store.sparse_hybrid_retrieval(query, query_sparse_embedding, **asked)}

    run_async = reads(run)

"""The retriever component: settings, and how they meet those of a call."""

from __future__ import annotations

from typing import Any, Self

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.types import FilterPolicy
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from haystack_integrations.document_stores.bm25rag.arguments import check_flag, check_min_score
from haystack_integrations.document_stores.bm25rag.filters import check_filters

from bm25rag.adapters import check_count


@component
class BM25Retriever:
    """Finds documents in a ``BM25DocumentStore`` by keywords.

    Takes the place of ``InMemoryBM25Retriever``, and is a ``TextRetriever``.

    Parameters
    ----------
    document_store
        The store.
    filters
        Which documents may be found.
    top_k
        How many at most, >= 1.
    scale_score
        Whether to scale scores into 0 to 1.
    filter_policy
        What the filters of a call do to these: ``REPLACE`` takes their place,
        ``MERGE`` lets pass what passes both, whatever the operators on either side.
    min_score
        The least score that a document is returned with, scaled if they are scaled;
        ``None`` for any.

    Raises
    ------
    TypeError
        If the store is no ``BM25DocumentStore``, or an argument has the wrong type.
    ValueError
        If ``top_k`` is less than 1, ``min_score`` NaN, or the policy unknown.
    FilterError
        If the filter is malformed.

    Examples
    --------
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
    ) -> None:
        if not isinstance(document_store, BM25DocumentStore):
            came = type(document_store).__name__
            raise TypeError(f"document_store must be a BM25DocumentStore, got {came}")
        if isinstance(filter_policy, str):
            filter_policy = FilterPolicy.from_str(filter_policy)
        elif not isinstance(filter_policy, FilterPolicy):
            raise TypeError(f"filter_policy must be a FilterPolicy, got {filter_policy!r}")
        self.document_store = document_store
        self.filters = check_filters(filters)
        self.top_k = check_count("top_k", top_k, least=1)
        self.scale_score = check_flag("scale_score", scale_score)
        self.filter_policy = filter_policy
        self.min_score = check_min_score(min_score)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, those of the store among them."""
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            scale_score=self.scale_score,
            filter_policy=self.filter_policy.value,
            min_score=self.min_score,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the retriever that ``to_dict`` described, with the store's own class."""
        settings = dict(data.get("init_parameters", {}))  # which older Haystacks write to
        return default_from_dict(cls, {**data, "init_parameters": settings})

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
            The words to search for; only blanks or stop words match nothing.
        filters
            Which documents may be found, in Haystack's language:
            ``{"field": "meta.year", "operator": ">=", "value": 2000}``; how they go together
            with those that were set before is said by ``filter_policy``.
        top_k
            How many documents at most, >= 0; ``None`` for what was set before.
        scale_score
            Whether to scale scores into 0 to 1; ``None`` for what was set before.
        min_score
            The least score that a document is returned with, scaled if they are scaled;
            ``None`` for what was set before.

        Returns
        -------
        result
            ``documents``: fresh documents with their scores, best first.

        Raises
        ------
        ValueError
            If the query is empty, ``top_k`` negative, or ``min_score`` NaN.
        TypeError
            If an argument has the wrong type.
        FilterError
            If a filter is malformed.
        """
        found = self.document_store.bm25_retrieval(
            query, *self._settled(filters, top_k, scale_score, min_score)
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
        """Do as ``run``, in a thread.

        Parameters
        ----------
        query, filters, top_k, scale_score, min_score
            As in ``run``.
        """
        found = await self.document_store.bm25_retrieval_async(
            query, *self._settled(filters, top_k, scale_score, min_score)
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
        """Do as ``run`` for many queries at once, on several threads.

        Haystack's evaluators take the result as ``retrieved_documents``. In a pipeline, for
        one list of what any of the queries finds, see ``MultiQueryTextRetriever``.

        Parameters
        ----------
        queries
            The texts.
        filters, top_k, scale_score, min_score
            As in ``run``, for each query.

        Returns
        -------
        result
            ``documents``: what ``run`` finds, for each query in their order.

        Raises
        ------
        ValueError, TypeError, FilterError
            As ``run`` does; the message says which query.
        """
        found = self.document_store.bm25_retrieval_batch(
            queries, *self._settled(filters, top_k, scale_score, min_score)
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
        """Do as ``run_batch``, in a thread.

        Parameters
        ----------
        queries, filters, top_k, scale_score, min_score
            As in ``run_batch``.
        """
        found = await self.document_store.bm25_retrieval_batch_async(
            queries, *self._settled(filters, top_k, scale_score, min_score)
        )
        return {"documents": found}

    def close(self) -> None:
        """Close the store, as Haystack's own retrievers do."""
        self.document_store.close()

    async def close_async(self) -> None:
        """Do as ``close``."""
        await self.document_store.close_async()

    def _settled(
        self,
        filters: dict[str, Any] | None,
        top_k: int | None,
        scale_score: bool | None,
        min_score: float | None,
    ) -> tuple[dict[str, Any] | None, int, bool, float | None]:
        return (
            self._merged(filters),
            self.top_k if top_k is None else top_k,
            self.scale_score if scale_score is None else scale_score,
            self.min_score if min_score is None else min_score,
        )

    def _merged(self, filters: dict[str, Any] | None) -> dict[str, Any] | None:
        # Not by Haystack's apply_filter_policy, which drops conditions on a field that both
        # have, and a whole side where the operators differ.
        if filters is None or filters == {}:
            return self.filters
        if not self.filters or self.filter_policy is FilterPolicy.REPLACE:
            return filters
        return {"operator": "AND", "conditions": [self.filters, filters]}

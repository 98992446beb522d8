"""The hybrid retriever: BM25 and the embedding retriever of any other document store, fused."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any

from haystack import Document, component, default_to_dict
from haystack.components.embedders.types import TextEmbedder
from haystack.components.retrievers.types import EmbeddingRetriever
from haystack.core.serialization import component_to_dict
from haystack.document_stores.types import FilterPolicy
from haystack_integrations.components.retrievers.bm25rag.base import FusingRetriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from haystack_integrations.document_stores.bm25rag.arguments import Question, asks_for_all

from bm25rag.adapters import check_count
from bm25rag.fusion import FusionMethod
from bm25rag.hybrid import HybridSearch, OnUnknown


@component
class BM25HybridRetriever(FusingRetriever):
    """Finds documents by keywords in a ``BM25DocumentStore``, by embeddings in another store.

    Both stores must hold the same documents under the same ids. Filters and ``top_k`` reach both,
    and every result passes the filters as ``BM25DocumentStore`` understands them: what the other
    store finds is looked up by id. It is a ``TextRetriever`` if it has a ``text_embedder``.

    Parameters
    ----------
    document_store
        The store for keywords.
    embedding_retriever
        The embedding retriever of any document store.
    text_embedder
        Embeds the queries; ``None`` if ``run`` is given ``query_embedding``, such as by an
        embedder that is connected to it.
    filters
        Which documents may be found.
    top_k
        The maximum number of documents, >= 1.
    filter_policy
        How the filters of a call combine with these, as in ``BM25Retriever``.
    top_k_per_retriever
        How many documents of each retriever are fused, >= 0; at least ``top_k`` are.
    method
        ``"minmax"``, ``"zscore"`` or ``"rrf"``, as in ``bm25rag.fusion.fuse``.
    weights
        The weights of BM25 and of the embedding retriever; ``None`` for equal ones.
    rank_constant
        The constant of ``"rrf"``, >= 0.
    on_unknown
        What to do if the other store finds a document that this one does not hold: ``"error"``, or
        ``"skip"`` where it may be written to first.
    correct, expand
        Whether to correct and to expand the keywords, as in ``BM25Retriever``.

    Raises
    ------
    TypeError, ValueError, FilterError
        If an argument is wrong.
    """

    def __init__(
        self,
        document_store: BM25DocumentStore,
        embedding_retriever: EmbeddingRetriever,
        text_embedder: TextEmbedder | None = None,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: FilterPolicy | str = FilterPolicy.REPLACE,
        top_k_per_retriever: int = 100,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        on_unknown: OnUnknown = "error",
        correct: bool = False,
        expand: bool = False,
    ) -> None:
        # Not super(), which knows the class only as it was before ``component`` made it anew.
        FusingRetriever.__init__(
            self,
            document_store,
            filters=filters,
            top_k=top_k,
            filter_policy=filter_policy,
            top_k_per_retriever=top_k_per_retriever,
            method=method,
            weights=weights,
            rank_constant=rank_constant,
            correct=correct,
            expand=expand,
        )
        _check_component("embedding_retriever", embedding_retriever, "query_embedding")
        if text_embedder is not None:
            _check_component("text_embedder", text_embedder, "text")
        self.embedding_retriever = embedding_retriever
        self.text_embedder = text_embedder
        self.on_unknown: OnUnknown = on_unknown
        self._start("a query", self._page(None, None, 0), self._rewriting())  # checks it

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, including those of the store and the components."""
        embedder = self.text_embedder
        return default_to_dict(
            self,
            **self._settings(),
            embedding_retriever=component_to_dict(self.embedding_retriever, "embedding_retriever"),
            text_embedder=embedder and component_to_dict(embedder, "text_embedder"),
            on_unknown=self.on_unknown,
        )

    # --- resources ------------------------------------------------------------------

    def warm_up(self) -> None:
        """Warm up the embedder and the embedding retriever."""
        for part in self._components:
            if hasattr(part, "warm_up"):
                part.warm_up()

    async def warm_up_async(self) -> None:
        """Warm up the embedder and the embedding retriever on the event loop."""
        for part in self._components:
            await _call_first(part, "warm_up_async", "warm_up")

    def close(self) -> None:
        """Close the store, the embedder and the embedding retriever."""
        for part in (self.document_store, *self._components):
            if hasattr(part, "close"):
                part.close()

    async def close_async(self) -> None:
        """Close the store, the embedder and the embedding retriever."""
        for part in (self.document_store, *self._components):
            await _call_first(part, "close_async", "close")

    @property
    def _components(self) -> list[Any]:
        return [part for part in (self.text_embedder, self.embedding_retriever) if part is not None]

    # --- searching ------------------------------------------------------------------

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: Question,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        query_embedding: list[float] | None = None,
        correct: bool | None = None,
        expand: bool | None = None,
        offset: int = 0,
    ) -> dict[str, list[Document]]:
        """Find the best documents of both, fused.

        Parameters
        ----------
        query
            As in ``BM25Retriever.run``; a blank one with filters finds all documents that pass.
            What is no text needs ``query_embedding``.
        filters
            Which documents may be found, in Haystack's language; ``filter_policy`` says how they
            combine with the retriever's own.
        top_k
            The maximum number of documents, >= 0; ``None`` for the retriever's setting.
        query_embedding
            The embedding of the query; ``None`` for that of ``text_embedder``.
        correct, expand, offset
            As in ``BM25Retriever.run``.

        Returns
        -------
        result
            ``documents``: new documents with their fused scores, best first, as
            ``BM25DocumentStore`` holds them.

        Raises
        ------
        ValueError, TypeError, FilterError
            If an argument is wrong, there is no embedding, or the other store finds what cannot be
            fused.
        RuntimeError
            If the embedder or the embedding retriever fails.
        """
        page = self._page(filters, top_k, offset)
        if asks_for_all(query, page["filters"]):
            return {"documents": self.document_store.bm25_retrieval(query, **page)}
        search = self._start(query, page, self._options(correct, expand))
        self.warm_up()
        if query_embedding is None:
            query_embedding = _run("text_embedder", self._embedder(), text=query)["embedding"]
        asked: dict[str, Any] = {
            "query_embedding": query_embedding,
            "filters": page["filters"],
        }
        enough = False
        while not enough:
            asked["top_k"] = search.wanted
            answer = _run("embedding_retriever", self.embedding_retriever, **asked)
            enough = search.take(self._ranking(answer))
        return {"documents": self.document_store.hybrid_documents(search)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: Question,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        query_embedding: list[float] | None = None,
        correct: bool | None = None,
        expand: bool | None = None,
        offset: int = 0,
    ) -> dict[str, list[Document]]:
        """Do what ``run`` does, with the asynchronous methods of the components that have them.

        Parameters
        ----------
        query, filters, top_k, query_embedding, correct, expand, offset
            As in ``run``.
        """
        page = self._page(filters, top_k, offset)
        if asks_for_all(query, page["filters"]):
            found = await self.document_store.bm25_retrieval_async(query, **page)
            return {"documents": found}
        search = self._start(query, page, self._options(correct, expand))
        await self.warm_up_async()
        by_words = asyncio.create_task(asyncio.to_thread(search.search_index))
        try:
            if query_embedding is None:
                embedded = await _run_async("text_embedder", self._embedder(), text=query)
                query_embedding = embedded["embedding"]
            asked: dict[str, Any] = {
                "query_embedding": query_embedding,
                "filters": page["filters"],
            }
            enough = False
            while not enough:
                asked["top_k"] = search.wanted
                answer = await _run_async("embedding_retriever", self.embedding_retriever, **asked)
                enough = await asyncio.to_thread(search.take, self._ranking(answer))
        finally:
            await by_words
        documents = await asyncio.to_thread(self.document_store.hybrid_documents, search)
        return {"documents": documents}

    def _embedder(self) -> TextEmbedder:
        if self.text_embedder is None:
            raise ValueError(
                "query_embedding is missing: connect an embedder to it, or give the retriever a "
                "text_embedder"
            )
        return self.text_embedder

    def _page(
        self, filters: dict[str, Any] | None, top_k: int | None, offset: int
    ) -> dict[str, Any]:
        return {
            "filters": self._combined(filters),
            "top_k": self._most(top_k),
            "offset": check_count("offset", offset),
        }

    def _start(
        self, query: Question, page: dict[str, Any], rewriting: dict[str, Any]
    ) -> HybridSearch:
        return self.document_store.hybrid_search(
            query,
            **page,
            **self._fusion(),
            **rewriting,
            on_unknown=self.on_unknown,
        )

    def _ranking(self, answer: dict[str, Any]) -> list[tuple[str, Any]]:
        """Return ids and scores; ranks alone need none, and not every retriever has them."""
        ranks_alone = self.method == "rrf"
        return [(found.id, 0.0 if ranks_alone else found.score) for found in answer["documents"]]


def _check_component(name: str, value: object, takes: str) -> None:
    run = getattr(value, "run", None)
    if not callable(run) or takes not in inspect.signature(run).parameters:
        got = type(value).__name__
        raise TypeError(f"{name} must be a component whose run takes {takes}, got {got}")


def _run(name: str, part: Any, **inputs: Any) -> dict[str, Any]:
    """Run a component; name it if it fails."""
    try:
        result: dict[str, Any] = part.run(**inputs)
    except Exception as error:
        raise _failed(name, part, error) from error
    return result


async def _run_async(name: str, part: Any, **inputs: Any) -> dict[str, Any]:
    if not hasattr(part, "run_async"):
        return await asyncio.to_thread(_run, name, part, **inputs)
    try:
        result: dict[str, Any] = await part.run_async(**inputs)
    except Exception as error:
        raise _failed(name, part, error) from error
    return result


def _failed(name: str, part: object, error: Exception) -> RuntimeError:
    why = f"{type(error).__name__}: {error}"
    return RuntimeError(f"the {name}, {type(part).__name__}, failed: {why}")


async def _call_first(part: object, *methods: str) -> None:
    """Call the first of these methods that a component has, and await it if it must be."""
    for method in methods:
        if hasattr(part, method):
            result = getattr(part, method)()
            if inspect.isawaitable(result):
                await result
            return

"""The hybrid retriever: BM25 and the embedding retriever of any other document store, fused."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from haystack import Document, component
from haystack.components.embedders.types import TextEmbedder
from haystack.components.retrievers.types import EmbeddingRetriever
from haystack.core.serialization import component_to_dict
from haystack.document_stores.types import FilterPolicy
from haystack_integrations.components.retrievers.bm25rag.base import StoreRetriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from haystack_integrations.document_stores.bm25rag.awaited import reads
from haystack_integrations.document_stores.bm25rag.searching import Question

from bm25rag import Query
from bm25rag.adapters import Both, Call, DecayLike, Plan, is_blank, naming, planned, run, work
from bm25rag.fusion import FusionMethod, Ranking
from bm25rag.hybrid import HybridSearch, OnUnknown


@component
class BM25HybridRetriever(StoreRetriever):
    """Finds documents by keywords in a ``BM25DocumentStore``, by embeddings in another store.

    Both stores must hold the same documents under the same ids. Filters and ``top_k`` reach both,
    and every result passes the filters as ``BM25DocumentStore`` understands them: what the other
    store finds is looked up by id. It is a ``TextRetriever`` if it has a ``text_embedder``.

    Parameters
    ----------
    document_store, filters, top_k, filter_policy, correct, expand, group, per_group
        As in ``BM25Retriever``; the store is that for keywords.
    decay, parse_query
        As in ``BM25Retriever``.
    embedding_retriever
        The embedding retriever of any document store.
    text_embedder
        Embeds the queries; ``None`` if ``run`` is given ``query_embedding``, such as by an
        embedder that is connected to it.
    top_k_per_retriever, method, weights, rank_constant
        As in ``BM25SparseHybridRetriever``; the second weight is that of the embedding retriever.
    on_unknown
        What to do if the other store finds a document that this one does not hold: ``"error"``, or
        ``"skip"`` where it may be written to first.
    """

    embedding_retriever: EmbeddingRetriever
    text_embedder: TextEmbedder | None
    on_unknown: OnUnknown
    correct: bool
    expand: bool

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
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
        parse_query: bool = False,
    ) -> None:
        _check_component("embedding_retriever", embedding_retriever, "query_embedding")
        if text_embedder is not None:
            _check_component("text_embedder", text_embedder, "text")
        self._set(locals())
        # Checks on_unknown, group and decay.
        self._search("a query", self._settled({"filters": None}))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, including those of the store and the components."""
        data = StoreRetriever.to_dict(self)
        for name, part in self._components.items():
            data["init_parameters"][name] = component_to_dict(part, name)
        return data

    def warm_up(self) -> None:
        """Warm up the embedder and the embedding retriever."""
        _call(self._components.values(), "warm_up")

    async def warm_up_async(self) -> None:
        """Warm up the embedder and the embedding retriever on the event loop."""
        await _call_async(self._components.values(), "warm_up")

    def close(self) -> None:
        """Close the store, the embedder and the embedding retriever."""
        _call([self.document_store, *self._components.values()], "close")

    async def close_async(self) -> None:
        """Close the store, the embedder and the embedding retriever."""
        await _call_async([self.document_store, *self._components.values()], "close")

    @property
    def _components(self) -> dict[str, Any]:
        names = ("text_embedder", "embedding_retriever")
        return {name: part for name in names if (part := getattr(self, name)) is not None}

    @component.output_types(documents=list[Document])
    @planned
    def run(
        self,
        query: Question,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        query_embedding: list[float] | None = None,
        correct: bool | None = None,
        expand: bool | None = None,
        offset: int = 0,
        group: str | None = None,
        per_group: int | None = None,
        decay: dict[str, Any] | None = None,
    ) -> Plan[dict[str, list[Document]]]:
        """Find the best documents of both, fused.

        They are the result's ``documents``: new ones with their fused scores, best first, as
        ``BM25DocumentStore`` holds them.

        Parameters
        ----------
        query
            The text to search for, as in ``BM25Retriever.run``; terms need ``query_embedding``.
        filters
            Which documents may be found, in Haystack's language; ``filter_policy`` says how they
            combine with the retriever's own.
        top_k
            The maximum number of documents, >= 0; ``None`` for the retriever's setting.
        query_embedding
            The embedding of the query; ``None`` for that of ``text_embedder``.
        correct, expand, offset, group, per_group, decay
            As in ``BM25Retriever.run``; the last three are of the fused scores.

        Raises
        ------
        ValueError, TypeError, RuntimeError
            If there is no embedding, if the other store finds what cannot be fused, or if the
            embedder or the embedding retriever fails.
        """
        store = self.document_store
        asking = store.parsed(query) if self.parse_query else query
        asked = self._settled(locals())
        if asked["filters"] and is_blank(asking):
            return {"documents": store.bm25_retrieval(asking, **asked)}
        search = self._search(asking, asked)
        yield Call(self, "warm_up")
        beside = self._ask_beside(search, asking, query_embedding, asked["filters"])
        yield Both(_alone(work(search.search_index)), beside)
        return {"documents": (yield work(store.hybrid_documents, search))}

    run_async = component.output_types(documents=list[Document])(reads(run))

    def _search(self, query: Question, asked: dict[str, Any]) -> HybridSearch:
        options = {name: value for name, value in asked.items() if name != "parse_query"}
        return self.document_store.hybrid_search(query, **self.fusing() | options)

    def fusing(self) -> dict[str, Any]:
        """Return the arguments of ``bm25rag.hybrid.HybridSearch`` that say how both are fused."""
        names = ("method", "weights", "rank_constant", "on_unknown", "correct", "expand")
        same = {name: getattr(self, name) for name in names}
        return {"fetch_k": self.top_k_per_retriever, **same}

    def find_beside(self, query: str, top_k: int) -> Ranking:
        """Ask the embedding retriever alone for ids and scores; the text is embedded here.

        Without a ``text_embedder`` it is a ``ValueError``, and a ``RuntimeError`` if one fails.
        """
        if self.text_embedder is None:
            raise ValueError("the retriever needs a text_embedder for the questions of a tool")
        self.warm_up()
        embedding = run(self._ask("text_embedder", text=query))["embedding"]
        asked = {"query_embedding": embedding, "filters": self.filters, "top_k": top_k}
        return self._ranking(run(self._ask("embedding_retriever", **asked)))

    def _ranking(self, answer: dict[str, Any]) -> Ranking:
        ranks_alone = self.method == "rrf"  # not every retriever has scores
        return [(one.id, 0.0 if ranks_alone else one.score) for one in answer["documents"]]

    def _ask_beside(
        self,
        search: HybridSearch,
        query: Question,
        embedding: list[float] | None,
        filters: dict[str, Any] | None,
    ) -> Plan[None]:
        """Ask the embedding retriever until the search has enough."""
        if embedding is None:
            if self.text_embedder is None:
                raise ValueError(
                    "query_embedding is missing: connect an embedder to it, or give the retriever "
                    "a text_embedder"
                )
            text = query.as_text() if isinstance(query, Query) else query
            embedding = (yield from self._ask("text_embedder", text=text))["embedding"]
        asked = {"query_embedding": embedding, "filters": filters}
        enough = False
        while not enough:
            asking = self._ask("embedding_retriever", **asked, top_k=search.wanted)
            enough = search.take(self._ranking((yield from asking)))

    def _ask(self, name: str, **inputs: Any) -> Plan[dict[str, Any]]:
        part = self._components[name]
        with naming(f"the {name}", part):
            answer: dict[str, Any] = yield Call(part, "run", (), inputs)
        return answer


def _alone(call: Call) -> Plan[Any]:
    return (yield call)


def _check_component(name: str, value: object, takes: str) -> None:
    run = getattr(value, "run", None)
    if not callable(run) or takes not in inspect.signature(run).parameters:
        got = type(value).__name__
        raise TypeError(f"{name} must be a component whose run takes {takes}, got {got}")


def _call(parts: Iterable[Any], method: str) -> None:
    for part in parts:
        if hasattr(part, method):
            getattr(part, method)()


async def _call_async(parts: Iterable[Any], method: str) -> None:
    """Call the asynchronous version of a method where a component has one."""
    for part in parts:
        call = getattr(part, f"{method}_async", None) or getattr(part, method, None)
        if call is not None and inspect.isawaitable(result := call()):
            await result

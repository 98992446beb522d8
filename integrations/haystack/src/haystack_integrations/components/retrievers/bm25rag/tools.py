"""Tools for Haystack's agents: to search, grep and read a document store."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from haystack.core.serialization import generate_qualified_class_name
from haystack.document_stores.types import FilterPolicy
from haystack.tools.tool import Tool
from haystack_integrations.components.retrievers.bm25rag.hybrid_retriever import BM25HybridRetriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from haystack_integrations.document_stores.bm25rag.filters import combine, dumpable
from haystack_integrations.document_stores.bm25rag.searching import filter_of

from bm25rag.agents import Doing, IndexTool, check_searched

_INSTEAD = (
    "give a BM25DocumentStore, such as the document_store of a retriever, and its filters as "
    "filters, or take Haystack's ComponentTool, which asks any retriever"
)


class BM25SearchTool(Tool):
    """Searches a ``BM25DocumentStore``; a model fills query, k, filter, budget and cursor.

    It answers with ids, lines and the best parts of texts, within a budget of characters; an answer
    that begins with ``Error:`` says what to change.

    Parameters
    ----------
    document_store
        The store; or a ``BM25HybridRetriever`` with a ``text_embedder``, whose embedding retriever
        is asked, too: both are fused as it says, and its filters hold.
    name
        What the model calls the tool.
    about
        What the documents are, for the model.
    filters
        Which documents may be found in any case, in Haystack's language.
    """

    _does: ClassVar[Doing] = "search"

    def __init__(
        self,
        document_store: BM25DocumentStore | BM25HybridRetriever,
        name: str,
        about: str,
        filters: dict[str, Any] | None = None,
    ) -> None:
        kinds = (BM25HybridRetriever, BM25DocumentStore)
        searches = ("run", "run_async", "bm25_retrieval", "bm25_retrieval_async")
        check_searched(document_store, "document_store", kinds, searches, _INSTEAD)
        self._given = {"name": name, "about": about, "filters": filters}
        self._searched = document_store
        asked: dict[str, Any] = {}
        if isinstance(document_store, BM25HybridRetriever):
            hybrid, store = document_store, document_store.document_store
            asked = {"options": hybrid.fusing(), "beside": hybrid.find_beside}
            filters = combine(filters, hybrid.filters, FilterPolicy.MERGE)
        else:
            store = document_store
        made = IndexTool(
            lambda: store._current,
            name,
            about,
            self._does,
            within=lambda index: filter_of(index, filters),
            **asked,
        )
        super().__init__(
            name=name, description=made.description, parameters=made.parameters, function=made.run
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the tool as JSON values."""
        filters = dumpable(self._given["filters"])
        data = {**self._given, "filters": filters, "document_store": self._searched.to_dict()}
        return {"type": generate_qualified_class_name(type(self)), "data": data}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the tool that ``to_dict`` described."""
        given = dict(data["data"])
        searched = given.pop("document_store")
        kind = (
            BM25HybridRetriever
            if "embedding_retriever" in searched["init_parameters"]
            else BM25DocumentStore
        )
        return cls(kind.from_dict(searched), **given)


class BM25GrepTool(BM25SearchTool):
    """Finds lines of a ``BM25DocumentStore`` with exactly a string; else as the search tool."""

    _does = "grep"


class BM25ReadTool(BM25SearchTool):
    """Reads numbered lines of a ``BM25DocumentStore``, by id or source; as the search tool."""

    _does = "read"

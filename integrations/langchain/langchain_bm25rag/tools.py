"""Tools for LangChain's agents: to search, grep and read what a retriever finds."""

from __future__ import annotations

from typing import Any, get_args

from langchain_core.tools import StructuredTool

from bm25rag.agents import Doing, IndexTool, check_searched
from langchain_bm25rag.document_index import BM25DocumentIndex
from langchain_bm25rag.filters import filter_of
from langchain_bm25rag.hybrid import FUSING, BM25HybridRetriever
from langchain_bm25rag.retriever import BM25Retriever, SearchingBM25

_INSTEAD = (
    "give BM25Retriever(index=..., filter=...), whose index may be index.restricted(...), or take "
    "LangChain's create_retriever_tool, which asks any retriever"
)


def search_tool(
    retriever: SearchingBM25, name: str, about: str, *, metadata: bool = True
) -> StructuredTool:
    """Make a tool of a retriever, whose arguments a model fills: query, k, filter, budget, cursor.

    It answers with ids, lines and the best parts of texts, within a budget of characters; an answer
    that begins with ``Error:`` says what to change. The retriever's ``filter``, ``min_score`` and
    ``correct`` hold for every call. Of a ``BM25HybridRetriever`` the vector store is asked, too,
    and both are fused as it says; there is no reranking.

    Parameters
    ----------
    retriever
        The retriever.
    name
        What the model calls the tool.
    about
        What the documents are, for the model.
    metadata
        Whether the model sees metadata.
    """
    return _tool(retriever, name, about, "search", metadata)


def agent_tools(
    retriever: SearchingBM25, name: str, about: str, *, metadata: bool = True
) -> list[StructuredTool]:
    """Make three tools of a retriever: to search, to find lines by a string, and to read texts.

    They are ``search_NAME``, ``grep_NAME`` and ``read_NAME``; all else is as of ``search_tool``.
    """
    return [_tool(retriever, f"{does}_{name}", about, does, metadata) for does in get_args(Doing)]


def _tool(
    retriever: SearchingBM25, name: str, about: str, does: Doing, metadata: bool
) -> StructuredTool:
    kinds = (BM25HybridRetriever, BM25DocumentIndex, BM25Retriever)
    searches = ("invoke", "ainvoke", "_get_relevant_documents", "_aget_relevant_documents")
    check_searched(retriever, "retriever", kinds, searches, _INSTEAD)
    options: dict[str, Any] = {"min_score": retriever.min_score, "correct": retriever.correct}
    beside = None
    if isinstance(retriever, BM25HybridRetriever):
        options |= {name: getattr(retriever, name) for name in (*FUSING, "expand")}
        options["known"] = lambda id: id in retriever.index
        beside = retriever._find_beside
    made = IndexTool(
        lambda: retriever.index,
        name,
        about,
        does,
        within=lambda index: filter_of(index, retriever.filter),
        metadata=metadata,
        options=options,
        beside=beside,
    )
    return StructuredTool(
        name=name, description=made.description, args_schema=made.parameters, func=made.run
    )

"""A search tool for LangChain's agents."""

from __future__ import annotations

from langchain_core.tools import StructuredTool

from bm25rag.agents import SearchTool
from langchain_bm25rag.filters import filter_of
from langchain_bm25rag.searching import SearchingBM25


def search_tool(
    retriever: SearchingBM25, name: str, about: str, *, metadata: bool = True
) -> StructuredTool:
    """Make a tool of a retriever, whose arguments a model fills: query, k, filter, budget, cursor.

    It answers with ids, lines and the best parts of texts, within a budget of characters; an answer
    that begins with ``Error:`` says what to change. The retriever's ``filter``, ``min_score`` and
    ``correct`` hold for every call.

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
    searched = SearchTool(
        lambda: retriever.index,
        name,
        about,
        within=lambda index: filter_of(index, retriever.filter),
        metadata=metadata,
        options={"min_score": retriever.min_score, "correct": retriever.correct},
    )

    return StructuredTool(
        name=name,
        description=searched.description,
        args_schema=searched.parameters,
        func=searched.run,
    )

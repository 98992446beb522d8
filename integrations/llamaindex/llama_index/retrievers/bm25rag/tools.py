"""Tools for LlamaIndex's agents: to search, grep and read what a retriever finds."""

from __future__ import annotations

from typing import Any, get_args

from llama_index.core.schema import MetadataMode
from llama_index.core.tools import FunctionTool, ToolMetadata
from llama_index.retrievers.bm25rag.base import BM25Retriever
from llama_index.retrievers.bm25rag.filters import translate

from bm25rag.agents import Doing, IndexTool, check_searched

_INSTEAD = (
    "give BM25Retriever(existing_bm25=..., filters=...), whose index may be that of a store or "
    "index.restricted(...), or take LlamaIndex's RetrieverTool, which asks any retriever"
)


class _Metadata(ToolMetadata):
    """What a model is told of a tool whose schema is no Pydantic model."""

    def __init__(self, made: IndexTool) -> None:
        super().__init__(made.description, made.name, None)
        self._made = made

    def get_parameters_dict(self) -> dict[str, Any]:
        """Return the schema, with the fields that nodes have now."""
        return self._made.parameters


def search_tool(retriever: BM25Retriever, name: str, about: str) -> FunctionTool:
    """Make a tool of a retriever, whose arguments a model fills: query, k, filter, budget, cursor.

    It answers with ids, lines and the best parts of the texts that are indexed, within a budget of
    characters; an answer that begins with ``Error:`` says what to change. The retriever's
    ``filters``, ``min_score`` and ``correct`` hold for every call.

    Parameters
    ----------
    retriever
        The retriever.
    name
        What the model calls the tool.
    about
        What the nodes are, for the model.
    """
    return _tool(retriever, name, about, "search")


def agent_tools(retriever: BM25Retriever, name: str, about: str) -> list[FunctionTool]:
    """Make three tools of a retriever: to search, to find lines by a string, and to read texts.

    They are ``search_NAME``, ``grep_NAME`` and ``read_NAME``; all else is as of ``search_tool``.
    """
    return [_tool(retriever, f"{does}_{name}", about, does) for does in get_args(Doing)]


def _tool(retriever: BM25Retriever, name: str, about: str, does: Doing) -> FunctionTool:
    searches = ("retrieve", "aretrieve", "_retrieve", "_aretrieve", "search", "asearch")
    check_searched(retriever, "retriever", (BM25Retriever,), searches, _INSTEAD)
    asking = retriever._asking
    made = IndexTool(
        lambda: retriever.bm25,
        name,
        about,
        does,
        within=lambda index: translate(retriever.filters, index),
        # Otherwise the texts have them already.
        metadata=retriever.metadata_mode == MetadataMode.NONE,
        options={"min_score": asking.min_score, "correct": asking.correct},
    )
    return FunctionTool(fn=made.run, metadata=_Metadata(made))

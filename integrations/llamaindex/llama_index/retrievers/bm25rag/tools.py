"""A search tool for LlamaIndex's agents."""

from __future__ import annotations

from typing import Any

from llama_index.core.schema import MetadataMode
from llama_index.core.tools import FunctionTool, ToolMetadata
from llama_index.retrievers.bm25rag.base import BM25Retriever
from llama_index.retrievers.bm25rag.filters import translate

from bm25rag.agents import SearchTool


class _Metadata(ToolMetadata):
    """What a model is told of a tool whose schema is no Pydantic model."""

    def __init__(self, searched: SearchTool) -> None:
        super().__init__(searched.description, searched.name, None)
        self._searched = searched

    def get_parameters_dict(self) -> dict[str, Any]:
        """Return the schema, with the fields that nodes have now."""
        return self._searched.parameters


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
    options = retriever._options
    searched = SearchTool(
        lambda: retriever.bm25,
        name,
        about,
        within=lambda index: translate(retriever.filters, index),
        # Otherwise the texts have them already.
        metadata=retriever.metadata_mode == MetadataMode.NONE,
        options={"min_score": options.min_score, "correct": options.correct},
    )

    def search(**arguments: Any) -> str:
        return searched.run(**arguments)

    return FunctionTool(fn=search, metadata=_Metadata(searched))

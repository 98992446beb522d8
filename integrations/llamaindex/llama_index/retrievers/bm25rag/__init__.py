"""BM25 for LlamaIndex on bm25rag's exact, updatable and durable index."""

from llama_index.retrievers.bm25rag.base import BM25Retriever
from llama_index.retrievers.bm25rag.syncing import SyncResult
from llama_index.retrievers.bm25rag.tools import agent_tools, search_tool

__all__ = ["BM25Retriever", "SyncResult", "agent_tools", "search_tool"]

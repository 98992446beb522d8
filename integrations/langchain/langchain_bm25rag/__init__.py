"""BM25 for LangChain: a retriever and stores over a ``bm25rag.BM25Index``."""

from langchain_bm25rag.document_index import BM25DocumentIndex
from langchain_bm25rag.hybrid import BM25HybridRetriever
from langchain_bm25rag.retriever import BM25Retriever
from langchain_bm25rag.self_query import BM25Translator
from langchain_bm25rag.sparse import SparseEmbeddings
from langchain_bm25rag.tools import agent_tools, search_tool
from langchain_bm25rag.vector_store import BM25VectorStore

__all__ = [
    "BM25DocumentIndex",
    "BM25HybridRetriever",
    "BM25Retriever",
    "BM25Translator",
    "BM25VectorStore",
    "SparseEmbeddings",
    "agent_tools",
    "search_tool",
]

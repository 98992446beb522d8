"""BM25 for LangChain: a retriever and a document index over a ``bm25rag.BM25Index``."""

from langchain_bm25rag.document_index import BM25DocumentIndex
from langchain_bm25rag.retriever import BM25Retriever

__all__ = ["BM25DocumentIndex", "BM25Retriever"]

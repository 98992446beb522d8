"""The retrievers of ``BM25DocumentStore``: by keywords, and hybrid."""

from haystack_integrations.components.retrievers.bm25rag.bm25_hybrid_retriever import (
    BM25HybridRetriever,
)
from haystack_integrations.components.retrievers.bm25rag.bm25_retriever import BM25Retriever

__all__ = ["BM25HybridRetriever", "BM25Retriever"]

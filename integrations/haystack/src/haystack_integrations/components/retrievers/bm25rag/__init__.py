"""The keyword retriever of ``BM25DocumentStore``."""

from haystack_integrations.components.retrievers.bm25rag.bm25_retriever import BM25Retriever

__all__ = ["BM25Retriever"]

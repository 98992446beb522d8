"""A Haystack document store on bm25rag: exact BM25, updatable and durable."""

from haystack_integrations.document_stores.bm25rag.document_store import BM25DocumentStore

__all__ = ["BM25DocumentStore"]

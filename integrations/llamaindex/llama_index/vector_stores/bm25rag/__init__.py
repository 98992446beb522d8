"""A LlamaIndex vector store on bm25rag: BM25 without vectors, or hybrid with a dense store."""

from llama_index.vector_stores.bm25rag.base import BM25VectorStore
from llama_index.vector_stores.bm25rag.calls import DenseStoreError
from llama_index.vector_stores.bm25rag.embedding import NoEmbedding

__all__ = ["BM25VectorStore", "DenseStoreError", "NoEmbedding"]

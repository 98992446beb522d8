"""A LlamaIndex vector store on bm25rag: BM25 alone, or hybrid with sparse or dense vectors."""

from llama_index.vector_stores.bm25rag.base import BM25VectorStore
from llama_index.vector_stores.bm25rag.dense import DenseStoreError
from llama_index.vector_stores.bm25rag.embedding import NoEmbedding
from llama_index.vector_stores.bm25rag.encoding import SparseEncoderError

__all__ = ["BM25VectorStore", "DenseStoreError", "NoEmbedding", "SparseEncoderError"]

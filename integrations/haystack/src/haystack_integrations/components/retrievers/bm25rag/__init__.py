"""The retrievers of ``BM25DocumentStore``: by keywords, by sparse embeddings, and hybrid."""

from haystack_integrations.components.retrievers.bm25rag.bm25_hybrid_retriever import (
    BM25HybridRetriever,
)
from haystack_integrations.components.retrievers.bm25rag.bm25_retriever import BM25Retriever
from haystack_integrations.components.retrievers.bm25rag.bm25_sparse_embedding_retriever import (
    BM25SparseEmbeddingRetriever,
)
from haystack_integrations.components.retrievers.bm25rag.bm25_sparse_hybrid_retriever import (
    BM25SparseHybridRetriever,
)
from haystack_integrations.components.retrievers.bm25rag.tools import (
    BM25GrepTool,
    BM25ReadTool,
    BM25SearchTool,
)

__all__ = [
    "BM25GrepTool",
    "BM25HybridRetriever",
    "BM25ReadTool",
    "BM25Retriever",
    "BM25SearchTool",
    "BM25SparseEmbeddingRetriever",
    "BM25SparseHybridRetriever",
]

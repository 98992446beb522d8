"""The retrievers of ``BM25DocumentStore``: by keywords, by sparse embeddings, and hybrid."""

from haystack_integrations.components.retrievers.bm25rag.hybrid_retriever import BM25HybridRetriever
from haystack_integrations.components.retrievers.bm25rag.retrievers import (
    BM25Retriever,
    BM25SparseEmbeddingRetriever,
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

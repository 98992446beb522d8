"""Exact, updatable, durable BM25: the lexical retriever for RAG."""

from bm25rag.analysis import Analyzer
from bm25rag.documents import Deleted, Document, Hit
from bm25rag.index import BM25Index
from bm25rag.search.correction import Correction
from bm25rag.search.explain import Explanation
from bm25rag.search.results import BatchResult

__all__ = [
    "Analyzer",
    "BM25Index",
    "BatchResult",
    "Correction",
    "Deleted",
    "Document",
    "Explanation",
    "Hit",
]
__version__ = "0.1.0"

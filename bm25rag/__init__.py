"""Exact, updatable, durable BM25: the lexical retriever for RAG."""

import importlib as _importlib
import typing as _typing

import bm25rag.forks  # noqa: F401 - first: before a fork, it waits for the rest of this import
from bm25rag.analysis import Analyzer
from bm25rag.common.version import __version__ as __version__
from bm25rag.documents import Document, Hit
from bm25rag.index import BM25Index
from bm25rag.search.results import BatchResult

if _typing.TYPE_CHECKING:
    from bm25rag.decay import Decay, Prior
    from bm25rag.search.correction import Correction
    from bm25rag.search.explain import Explanation
    from bm25rag.search.query import Query

__all__ = [
    "Analyzer",
    "BM25Index",
    "BatchResult",
    "Correction",
    "Decay",
    "Document",
    "Explanation",
    "Hit",
    "Prior",
    "Query",
]

# What few programs name: their modules take a tenth of the import.
_LATER = {
    "Correction": "bm25rag.search.correction",
    "Decay": "bm25rag.decay",
    "Explanation": "bm25rag.search.explain",
    "Prior": "bm25rag.decay",
    "Query": "bm25rag.search.query",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

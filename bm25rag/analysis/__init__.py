"""Text to terms: one analyzer for documents and questions."""

from bm25rag.analysis.analyzer import Analyzer
from bm25rag.analysis.languages import LANGUAGES, STOPWORD_LISTS, load_stopwords
from bm25rag.analysis.settings import PAPER, Tokenizer

__all__ = [
    "LANGUAGES",
    "PAPER",
    "STOPWORD_LISTS",
    "Analyzer",
    "Tokenizer",
    "load_stopwords",
]

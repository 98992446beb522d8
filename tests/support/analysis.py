"""Asking whether two spellings meet, and which stemmers are installed."""

from __future__ import annotations

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.analysis.languages import find_language
from bm25rag.analysis.snowball import algorithms
from bm25rag.analysis.stemming import algorithm_of, is_snowball


def skip_without_stemmer(language: str) -> None:
    """Skip where PyStemmer is older than the language's algorithm."""
    stemmer = find_language(language).stemmer
    if stemmer is None or not is_snowball(stemmer):
        return
    if algorithm_of(stemmer) not in algorithms():
        pytest.skip(f"the installed PyStemmer has no {stemmer!r}")


def meets(analyzer: Analyzer, document: str, query: str) -> bool:
    """Whether the query finds the document, and the document, asked as a query, finds the query."""
    index = BM25Index.from_texts([document, "something else"], analyzer=analyzer)
    back = BM25Index.from_texts([query, "something else"], analyzer=analyzer)
    found = [[hit.id for hit in index.search(query)], [hit.id for hit in back.search(document)]]
    return found == [["0"], ["0"]]

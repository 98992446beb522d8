"""Asking whether two spellings meet."""

from __future__ import annotations

from bm25rag import Analyzer, BM25Index


def meets(analyzer: Analyzer, document: str, query: str) -> bool:
    """Whether the query finds the document, and the document, asked as a query, finds the query."""
    index = BM25Index.from_texts([document, "something else"], analyzer=analyzer)
    back = BM25Index.from_texts([query, "something else"], analyzer=analyzer)
    found = [[hit.id for hit in index.search(query)], [hit.id for hit in back.search(document)]]
    return found == [["0"], ["0"]]

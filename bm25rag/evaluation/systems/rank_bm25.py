"""rank_bm25."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from bm25rag.documents import Document
from bm25rag.evaluation.systems.base import Found, System


class RankBm25(System):
    """rank_bm25's BM25Okapi on lower-cased words, as in its README."""

    package = "rank-bm25"

    def __init__(self) -> None:
        self._type = importlib.import_module("rank_bm25").BM25Okapi

    def build(self, documents: Sequence[Document]) -> None:
        self._ids = [document.id for document in documents]
        self._index = self._type([(document.text or "").lower().split() for document in documents])

    def search(self, query: str, k: int) -> Found:
        scores = self._index.get_scores(query.lower().split())
        best = (-scores).argsort(kind="stable")[:k].tolist()
        return [(self._ids[row], float(scores[row])) for row in best if scores[row] > 0]

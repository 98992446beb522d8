"""rank_bm25: a pass over all documents for each term."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import rank_bm25

from benchmarks.corpora import Queries
from benchmarks.engines import K1, B
from benchmarks.engines.base import Engine, Found, padded


class RankBm25(Engine):
    """Okapi BM25 with robertson's idf; negative ones are floored at 0 here as in ours."""

    variant = "robertson"
    scale = 1 / (K1 + 1)
    most = 10

    def build(self, lines: Iterable[str]) -> None:
        terms = [line.split() for line in lines]
        self._index = rank_bm25.BM25Okapi(terms, k1=K1, b=B, epsilon=0)

    def answer(self, queries: Queries, k: int, threads: int) -> list[Any]:
        return [self._best(query, k) for query in queries]

    def _best(self, query: list[str], k: int) -> tuple[list[int], list[float]]:
        scores = self._index.get_scores(query)
        rows = np.argsort(-scores, kind="stable")[:k]
        return rows.tolist(), scores[rows].tolist()

    def results(self, queries: Queries, k: int) -> Found:
        return padded(self.answer(queries, k, 1), k)

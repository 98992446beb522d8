"""bm25-pt: BM25 as a product of sparse matrices in PyTorch."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from bm25rag.documents import Document
from bm25rag.evaluation.systems.base import Found, System

_BATCH = 64  # queries, whose scores of all documents are in memory at once


class Bm25Pt(System):
    """bm25-pt's ``TokenizedBM25`` on lower-cased words, with its own k1 and b.

    Its ``BM25`` cuts texts by the tokenizer of bert-base-uncased, which would be downloaded.
    """

    package = "bm25-pt"

    def __init__(self) -> None:
        self._torch = importlib.import_module("torch")
        self._type = importlib.import_module("bm25_pt.bm25").TokenizedBM25
        self._torch.set_num_threads(1)
        self._numbers: dict[str, int] = {}

    def _matrix(self, rows: Sequence[Sequence[int]]) -> Any:
        """Return rows of term numbers as a matrix, 0 beyond their ends."""
        length = max(map(len, rows), default=0)
        return self._torch.tensor([[*row, *[0] * (length - len(row))] for row in rows])

    def build(self, documents: Sequence[Document]) -> None:
        self._ids = [document.id for document in documents]
        numbers: defaultdict[str, int] = defaultdict(count(1).__next__)
        rows = [
            [numbers[word] for word in (document.text or "").lower().split()]
            for document in documents
        ]
        self._numbers = dict(numbers)
        self._index = self._type(vocab_size=len(numbers) + 1)
        self._index.index(self._matrix(rows))

    def _known(self, queries: Iterable[str]) -> list[list[int]]:
        rows = ([self._numbers.get(w, 0) for w in query.lower().split()] for query in queries)
        return [[number for number in row if number] for row in rows]

    def search(self, query: str, k: int) -> Found:
        rows = self._known([query])
        if not rows[0]:
            return []
        scores = self._index.score_batch(self._matrix(rows))[0]
        best = self._torch.topk(scores, min(k, len(self._ids)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [(self._ids[row], score) for row, score in pairs if score > 0]

    def search_batch(self, queries: Sequence[str], k: int, threads: int) -> None:
        self._torch.set_num_threads(threads)
        rows = [row for row in self._known(queries) if row]
        for start in range(0, len(rows), _BATCH):
            scores = self._index.score_batch(self._matrix(rows[start : start + _BATCH]))
            self._torch.topk(scores, min(k, len(self._ids)))
        self._torch.set_num_threads(1)

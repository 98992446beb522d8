"""PISA, through pyterrier_pisa."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bm25rag.documents import Document
from bm25rag.evaluation.systems.base import FolderSystem, Found


class PisaSearcher:
    """The function beneath the data frames, which cost more than many a search."""

    def __init__(self, index: Any, k1: float, b: float, pretokenised: bool = False) -> None:
        self._retrieve = importlib.import_module("pyterrier_pisa")._pisathon.retrieve
        self._context = index.bm25(k1=k1, b=b)._ctxt
        self._pretokenised = pretokenised

    def search(self, queries: Sequence[Any], k: int, threads: int, algorithm: str) -> Any:
        """Return, sorted by query, the numbers of queries, the names and the scores found."""
        size = len(queries) * k
        numbers, ranks = np.empty(size, np.int32), np.empty(size, np.int32)
        names, scores = np.empty(size, object), np.empty(size, np.float32)
        count = self._retrieve(
            self._context,
            algorithm,
            list(enumerate(queries)),
            k=k,
            threads=threads,
            query_weighted=1,  # or a repeated term would count once
            pretokenised=self._pretokenised,
            result_qidxs=numbers,
            result_docnos=names,
            result_ranks=ranks,
            result_scores=scores,
        )
        return numbers[:count], names[:count], scores[:count]


class Pisa(FolderSystem):
    """PISA with Porter's second stemmer and Terrier's stop words, k1 = 1.2 and b = 0.75.

    By block-max WAND, its default.
    """

    package = "pyterrier_pisa"

    def __init__(self) -> None:
        self._type = importlib.import_module("pyterrier_pisa").PisaIndex
        super().__init__()

    def _at(self, folder: Path) -> Any:
        return self._type(
            str(folder), text_field="text", stemmer="porter2", stops="terrier", threads=1
        )

    def build(self, documents: Sequence[Document]) -> None:
        made = self._at(self._folder / "index")
        made.index({"docno": one.id, "text": one.text or ""} for one in documents)
        self._searcher = PisaSearcher(made, 1.2, 0.75)

    def search(self, query: str, k: int) -> Found:
        _, names, scores = self._searcher.search([query], k, 1, "block_max_wand")
        return list(zip(names.tolist(), scores.tolist(), strict=True))

    def search_batch(self, queries: Sequence[str], k: int, threads: int) -> None:
        self._searcher.search(queries, k, threads, "block_max_wand")

    def load(self, folder: Path) -> None:
        self._searcher = PisaSearcher(self._at(folder / "index"), 1.2, 0.75)

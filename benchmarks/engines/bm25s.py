"""bm25s, with its numba and its numpy backend."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import bm25s
import numpy as np
import Stemmer

from benchmarks.engines import K1, B
from benchmarks.engines.base import Found, RawBatchEngine


class Numba(RawBatchEngine):
    """The faster backend."""

    backend: ClassVar[str] = "numba"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        importlib.import_module(self.backend)  # bm25s raises later that it is missing

    def build(self, lines: Iterable[str]) -> None:
        self._take([line.split() for line in lines])

    def _take(self, tokens: Any) -> None:
        self._index = bm25s.BM25(k1=K1, b=B, backend=self.backend)
        self._index.index(tokens, show_progress=False)
        if self.backend == "numba":
            self._index.activate_numba_scorer()

    def save(self, folder: Path) -> None:
        self._index.save(folder, show_progress=False)

    def load(self, folder: Path) -> None:
        self._index = bm25s.BM25.load(folder, mmap=True, load_corpus=False)
        self._index.backend = self.backend
        self._index.activate_numba_scorer()

    def answer(self, queries: Any, k: int, threads: int) -> Any:
        k = min(k, self._index.scores["num_docs"])  # it raises where k is larger
        return self._index.retrieve(
            queries,
            k=k,
            n_threads=0 if threads == 1 else threads,
            show_progress=False,
            backend_selection="numba" if self.backend == "numba" else "numpy",
        )

    def results(self, queries: list[Any], k: int) -> Found:
        got = self.answer(queries, k, 1)
        scores = got.scores.astype(np.float64)
        # Where fewer match, it fills up with documents of score 0.
        return np.where(scores > 0, got.documents, -1), scores

    def build_raw(self, texts: list[str], threads: int) -> None:
        self._stemmer = Stemmer.Stemmer(self.language)
        self._take(self._terms(texts))

    def _terms(self, texts: list[str]) -> Any:
        return bm25s.tokenize(
            texts, stopwords=self.language, stemmer=self._stemmer, show_progress=False
        )

    def answer_raw(self, question: str, k: int) -> Any:
        return self.answer(self._terms([question]), k, 1)

    def answer_raw_batch(self, questions: list[str], k: int) -> Any:
        return self.answer(self._terms(questions), k, 1)


class Plain(Numba):
    """Without Numba."""

    backend = "numpy"
    most = 20

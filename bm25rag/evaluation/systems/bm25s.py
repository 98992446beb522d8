"""bm25s, with its three backends."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bm25rag.documents import Document
from bm25rag.evaluation.systems.base import Found, SavedSystem, read_ids, write_ids


class Bm25s(SavedSystem):
    """bm25s, by backend, with its English stop words and PyStemmer, as in its README."""

    package = "bm25s"

    def __init__(self, backend: str) -> None:
        self._bm25s = importlib.import_module("bm25s")
        if backend != "numpy":
            importlib.import_module(backend)
        self._stemmer = importlib.import_module("Stemmer").Stemmer("english")
        self._backend = backend
        self._ids: list[str] = []

    def _tokens(self, texts: Sequence[str], **options: Any) -> Any:
        options |= {"stopwords": "en", "stemmer": self._stemmer, "show_progress": False}
        return self._bm25s.tokenize(list(texts), **options)

    def build(self, documents: Sequence[Document]) -> None:
        self._ids = [document.id for document in documents]
        self._names = np.asarray(self._ids)
        backend = "numba" if self._backend == "numba" else "numpy"
        self._index = self._bm25s.BM25(backend=backend)
        self._index.index(
            self._tokens([document.text or "" for document in documents]), show_progress=False
        )
        if backend == "numba":
            self._index.activate_numba_scorer()

    def _retrieve(self, queries: Sequence[str], k: int, threads: int) -> Any:
        """Retrieve for queries that have terms; the Numba backend raises for others."""
        asked = [terms for terms in self._tokens(queries, return_ids=False) if terms]
        if not asked:
            return None
        return self._index.retrieve(
            asked,
            k=min(k, self._index.scores["num_docs"]),  # it raises if k is larger
            n_threads=0 if threads == 1 else threads,
            show_progress=False,
            backend_selection=self._backend,
        )

    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k, without the documents of score 0 that bm25s adds."""
        results = self._retrieve([query], k, 1)
        if results is None:
            return []
        pairs = zip(results.documents[0].tolist(), results.scores[0].tolist(), strict=True)
        return [(self._ids[row], score) for row, score in pairs if score > 0]

    def search_batch(self, queries: Sequence[str], k: int, threads: int) -> None:
        """Retrieve all, and look up the ids at once, as bm25s does with a corpus of ids."""
        results = self._retrieve(queries, k, threads)
        if results is not None:
            self._names[results.documents]

    def save(self, folder: Path) -> None:
        self._index.save(str(folder), show_progress=False)
        write_ids(folder, self._ids)

    def load(self, folder: Path) -> None:
        self._index = self._bm25s.BM25.load(str(folder), mmap=True, load_corpus=False)
        self._index.backend = "numba" if self._backend == "numba" else "numpy"
        if self._backend == "numba":
            self._index.activate_numba_scorer()
        self._ids = read_ids(folder)
        self._names = np.asarray(self._ids)

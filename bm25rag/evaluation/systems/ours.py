"""bm25rag."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bm25rag.documents import Document
from bm25rag.evaluation.systems.base import FolderSystem, Found, SavedSystem


class Ours(SavedSystem):
    """bm25rag, by variant."""

    package = "bm25rag"

    def __init__(self, variant: str = "lucene") -> None:
        from bm25rag.index import BM25Index

        self._type, self._variant = BM25Index, variant
        self._index = BM25Index()

    def build(self, documents: Sequence[Document]) -> None:
        variant: Any = self._variant
        self._index = self._type(variant=variant)
        self._index.add_documents(documents)

    def search(self, query: str, k: int) -> Found:
        return [(hit.id, hit.score) for hit in self._index.search(query, k=k)]

    def search_batch(self, queries: Sequence[str], k: int, threads: int) -> None:
        self._index.search_batch(queries, k=k, threads=threads).ids()

    def save(self, folder: Path) -> None:
        self._index.save(folder)

    def load(self, folder: Path) -> None:
        self._index = self._type.open(folder)


class OnDisk(FolderSystem, Ours):
    """bm25rag, built in a folder as what does not fit into memory is, and read from there."""

    streams = True

    def __init__(self) -> None:
        Ours.__init__(self)
        FolderSystem.__init__(self)

    def build(self, documents: Iterable[Document]) -> None:
        self._index = self._type.build(documents, self._folder)

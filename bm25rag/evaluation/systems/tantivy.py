"""tantivy."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path

from bm25rag.documents import Document
from bm25rag.evaluation.systems.base import FolderSystem, Found


class Tantivy(FolderSystem):
    """tantivy with its English stemmer, in a folder; k1 and b are its own, 1.2 and 0.75."""

    package = "tantivy"

    def __init__(self) -> None:
        self._tantivy = importlib.import_module("tantivy")
        super().__init__()

    def build(self, documents: Sequence[Document]) -> None:
        builder = self._tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        builder.add_text_field("text", stored=False, tokenizer_name="en_stem")
        self._index = self._tantivy.Index(builder.build(), path=str(self._folder))
        writer = self._index.writer()
        for document in documents:
            writer.add_document(self._tantivy.Document(id=document.id, text=document.text or ""))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, query: str, k: int) -> Found:
        words = "".join(c if c.isalnum() else " " for c in query).lower()
        if not words.strip():
            return []
        parsed = self._index.parse_query(words, ["text"])
        hits = self._searcher.search(parsed, k).hits
        return [(self._searcher.doc(address)["id"][0], float(score)) for score, address in hits]

    def load(self, folder: Path) -> None:
        self._index = self._tantivy.Index.open(str(folder))
        self._searcher = self._index.searcher()

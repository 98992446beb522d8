"""The BM25 retrievers that the frameworks themselves have, as their documentation uses them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bm25rag.documents import Document
from bm25rag.evaluation.systems.base import Found, SavedSystem, System


class LangChain(System):
    """``BM25Retriever`` of langchain-community: rank_bm25 on words cut at spaces.

    It returns no scores, and k documents for every query; those here fall by rank.
    """

    package = "langchain-community"

    def __init__(self) -> None:
        importlib.import_module("rank_bm25")  # it raises only later that this is missing
        self._type = importlib.import_module("langchain_community.retrievers").BM25Retriever
        self._document = importlib.import_module("langchain_core.documents").Document

    def build(self, documents: Sequence[Document]) -> None:
        self._retriever = self._type.from_documents(
            [self._document(id=one.id, page_content=one.text or "") for one in documents]
        )

    def search(self, query: str, k: int) -> Found:
        self._retriever.k = k
        return [(one.id, float(-rank)) for rank, one in enumerate(self._retriever.invoke(query))]


class LlamaIndex(SavedSystem):
    """``BM25Retriever`` of llama-index-retrievers-bm25: bm25s, with a stemmer and stop words."""

    package = "llama-index-retrievers-bm25"

    def __init__(self) -> None:
        self._type = importlib.import_module("llama_index.retrievers.bm25").BM25Retriever
        self._node = importlib.import_module("llama_index.core.schema").TextNode
        self._stemmer = importlib.import_module("Stemmer").Stemmer("english")

    def build(self, documents: Sequence[Document]) -> None:
        self._retriever = self._type.from_defaults(
            nodes=[self._node(id_=one.id, text=one.text or "") for one in documents],
            similarity_top_k=1,
            stemmer=self._stemmer,
            language="english",
        )
        self._count = len(documents)

    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k, those of score 0 too."""
        self._retriever.similarity_top_k = min(k, self._count)  # it raises if k is larger
        return [(one.node.node_id, float(one.score)) for one in self._retriever.retrieve(query)]

    def save(self, folder: Path) -> None:
        self._retriever.persist(str(folder))

    def load(self, folder: Path) -> None:
        """Read them, and restore the stemmer, which is not saved."""
        self._retriever = self._type.from_persist_dir(str(folder))
        self._retriever.stemmer = self._stemmer
        self._count = len(self._retriever.corpus)


class Haystack(SavedSystem):
    """``InMemoryBM25Retriever`` of Haystack: BM25L over all documents."""

    package = "haystack-ai"

    def __init__(self) -> None:
        os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when Haystack is imported
        place = "haystack.components.retrievers.in_memory"
        self._type = importlib.import_module(place).InMemoryBM25Retriever
        stores: Any = importlib.import_module("haystack.document_stores.in_memory")
        self._store = stores.InMemoryDocumentStore()
        self._document = importlib.import_module("haystack").Document

    def build(self, documents: Sequence[Document]) -> None:
        self._store.write_documents(
            [self._document(id=one.id, content=one.text or "") for one in documents]
        )
        self._retriever = self._type(self._store)

    def search(self, query: str, k: int) -> Found:
        if not query:  # it raises
            return []
        documents = self._retriever.run(query=query, top_k=k)["documents"]
        return [(one.id, float(one.score)) for one in documents]

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._store.save_to_disk(str(folder / "store.json"))

    def load(self, folder: Path) -> None:
        """Read the documents, and index them again."""
        self._store = self._store.load_from_disk(str(folder / "store.json"))
        self._retriever = self._type(self._store)

"""The systems that are known by name, and whatever a factory makes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial

from bm25rag.documents import Document
from bm25rag.evaluation.retrievers import answering
from bm25rag.evaluation.systems.base import Found, System
from bm25rag.evaluation.systems.bm25_pt import Bm25Pt
from bm25rag.evaluation.systems.bm25s import Bm25s
from bm25rag.evaluation.systems.frameworks import Haystack, LangChain, LlamaIndex
from bm25rag.evaluation.systems.lucene import Lucene
from bm25rag.evaluation.systems.ours import OnDisk, Ours
from bm25rag.evaluation.systems.pisa import Pisa
from bm25rag.evaluation.systems.rank_bm25 import RankBm25
from bm25rag.evaluation.systems.servers import Server
from bm25rag.evaluation.systems.tantivy import Tantivy
from bm25rag.scoring.variants import VARIANTS


class Made(System):
    """A system made by a factory, ``module:factory``, which takes a list of ``Document``.

    It returns what ``answering`` takes; the ids are those of the documents.
    """

    def __init__(self, path: str) -> None:
        module, _, name = path.partition(":")
        self._factory = getattr(importlib.import_module(module), name)

    def build(self, documents: Sequence[Document]) -> None:
        self._answer = answering(self._factory(list(documents)))

    def search(self, query: str, k: int) -> Found:
        return self._answer(query, k)


SYSTEMS: dict[str, Callable[[], System]] = {
    **{f"bm25rag {name}": partial(Ours, name) for name in VARIANTS},
    "bm25rag on disk": OnDisk,
    **{f"bm25s {name}": partial(Bm25s, name) for name in ("numpy", "numba", "jax")},
    "rank_bm25": RankBm25,
    "bm25-pt": Bm25Pt,
    "tantivy": Tantivy,
    "PISA": Pisa,
    "Lucene": Lucene,
    **{name: partial(Server, name) for name in ("Elasticsearch", "OpenSearch")},
    "LangChain BM25Retriever": LangChain,
    "LlamaIndex BM25Retriever": LlamaIndex,
    "Haystack InMemoryBM25Retriever": Haystack,
}


def make_system(name: str) -> System:
    """Make a system, one of ``SYSTEMS`` or ``module:factory``, in this process."""
    if name in SYSTEMS:
        return SYSTEMS[name]()
    if ":" not in name:
        raise ValueError(f"unknown system {name!r}; systems are {list(SYSTEMS)} or module:factory")
    return Made(name)

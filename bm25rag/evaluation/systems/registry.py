"""The systems that are known by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bm25rag.evaluation.systems.base import System
from bm25rag.evaluation.systems.bm25_pt import Bm25Pt
from bm25rag.evaluation.systems.bm25s import Bm25s
from bm25rag.evaluation.systems.frameworks import Haystack, LangChain, LlamaIndex
from bm25rag.evaluation.systems.lucene import Lucene
from bm25rag.evaluation.systems.made import Made
from bm25rag.evaluation.systems.ours import Ours
from bm25rag.evaluation.systems.pisa import Pisa
from bm25rag.evaluation.systems.rank_bm25 import RankBm25
from bm25rag.evaluation.systems.servers import Server
from bm25rag.evaluation.systems.tantivy import Tantivy
from bm25rag.scoring.variants import VARIANTS

SYSTEMS: dict[str, Callable[[], System]] = {
    **{f"bm25rag {name}": partial(Ours, name) for name in VARIANTS},
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

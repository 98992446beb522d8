"""Embeddings that tests can follow, and dense stores with the faults and limits of real ones."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery
from llama_index.core.vector_stores.types import VectorStoreQueryResult

DIMENSION = 16


class WordEmbedding(BaseEmbedding):
    """Counts words by the remainders of their checksums, and plurals as singulars."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.01] * DIMENSION
        for word in text.lower().replace(".", " ").split():
            vector[crc32(word.rstrip("s").encode()) % DIMENSION] += 1.0
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def embed(text: str) -> list[float]:
    return WordEmbedding()._get_text_embedding(text)


class Dense(SimpleVectorStore):
    """Remembers what it was asked, and fails on demand."""

    _asked: list[VectorStoreQuery] = PrivateAttr(default_factory=list)
    _awaited: list[str] = PrivateAttr(default_factory=list)
    _fails: dict[str, Exception] = PrivateAttr(default_factory=dict)

    def _called(self, method: str) -> None:
        if method in self._fails:
            raise self._fails[method]

    def add(self, nodes: Any, **add_kwargs: Any) -> list[str]:
        self._called("add")
        return super().add(nodes, **add_kwargs)

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        self._called("delete")
        super().delete(ref_doc_id, **delete_kwargs)

    def delete_nodes(self, *args: Any, **kwargs: Any) -> None:
        self._called("delete_nodes")
        super().delete_nodes(*args, **kwargs)

    def clear(self) -> None:
        self._called("clear")
        super().clear()

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        self._asked.append(query)
        self._called("query")
        return super().query(query, **kwargs)

    async def async_add(self, nodes: Any, **kwargs: Any) -> list[str]:
        self._awaited.append("add")
        return self.add(nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        self._awaited.append("delete")
        self.delete(ref_doc_id, **delete_kwargs)

    async def adelete_nodes(self, *args: Any, **kwargs: Any) -> None:
        self._awaited.append("delete_nodes")
        self.delete_nodes(*args, **kwargs)

    async def aclear(self) -> None:
        self._awaited.append("clear")
        self.clear()

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        self._awaited.append("query")
        return self.query(query, **kwargs)


class WithoutFilters(Dense):
    """Refuses filters, as Faiss does."""

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        if query.filters is not None:
            self._asked.append(query)
            raise ValueError("Metadata filters not implemented yet.")
        return super().query(query, **kwargs)


class IgnoringFilters(Dense):
    """Takes filters and ids, and returns what it likes."""

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        query.filters = query.node_ids = query.doc_ids = None
        return super().query(query, **kwargs)


class KeepingNodes(Dense):
    """Returns nodes, as most stores do."""

    stores_text: bool = True
    _nodes: dict[str, BaseNode] = PrivateAttr(default_factory=dict)

    def add(self, nodes: Any, **add_kwargs: Any) -> list[str]:
        ids = super().add(nodes, **add_kwargs)
        self._nodes |= {node.node_id: node.model_copy() for node in nodes}
        return ids

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        result = super().query(query, **kwargs)
        return VectorStoreQueryResult(
            nodes=[self._nodes[id] for id in result.ids or []],
            similarities=result.similarities,
            ids=[f"row {number}" for number in range(len(result.ids or []))],
        )

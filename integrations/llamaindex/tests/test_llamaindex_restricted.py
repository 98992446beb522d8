"""A restricted view in place of an index: no argument of a call finds what is outside."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.retrievers.bm25rag import BM25Retriever
from llama_index.vector_stores.bm25rag import BM25VectorStore

from bm25rag import BM25Index
from bm25rag.errors import ReadOnlyError

NODES = [
    TextNode(id_=str(n), text=f"a red boat {n}", metadata={"tenant": "ab"[n % 2]}) for n in range(6)
]
OTHERS = MetadataFilter(key="tenant", value="a")
WIDER = [
    None,
    MetadataFilters(filters=[]),
    MetadataFilters(filters=[OTHERS]),
    MetadataFilters(filters=[OTHERS], condition=FilterCondition.NOT),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    BM25Retriever(NODES).persist(tmp_path)
    return tmp_path


def test_no_call_of_a_retriever_finds_more(folder: Path) -> None:
    view = _view(folder)
    made = BM25Retriever(existing_bm25=view, similarity_top_k=9)
    for each in (made, pickle.loads(pickle.dumps(made))):
        for filters in WIDER:
            for query in ("boat", ""):
                nodes = each.search(query, filters=filters, correct=True, expand=True)
                assert {one.node.metadata["tenant"] for one in nodes} <= {"b"}
    assert len(made) == 3
    with pytest.raises(ReadOnlyError):
        made.add_nodes(NODES)


def test_nor_of_a_store(folder: Path) -> None:
    store: Any = BM25VectorStore(_view(folder))
    for filters in WIDER:
        query = VectorStoreQuery(
            query_str="boat",
            filters=filters,
            mode=VectorStoreQueryMode.TEXT_SEARCH,
            similarity_top_k=9,
        )
        assert {one.metadata["tenant"] for one in store.query(query).nodes} <= {"b"}
        assert {one.metadata["tenant"] for one in store.get_nodes(filters=filters)} <= {"b"}
    assert [one.node_id for one in store.get_nodes(["0", "1"])] == ["1"]
    with pytest.raises(ReadOnlyError):
        store.delete_nodes(["1"])


def _view(folder: Path) -> BM25Index:
    return BM25Index.open(folder).restricted({"tenant": "b"})

"""Groups and decay through LlamaIndex: parents with their best passage, newer before older."""

from __future__ import annotations

from pathlib import Path

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.retrievers.bm25rag import BM25Retriever
from llama_index.vector_stores.bm25rag import BM25VectorStore

from bm25rag import Decay

NODES = [
    TextNode(
        id_=str(n),
        text=f"a boat {'red ' * n}",
        metadata={"a.b": n % 2, "date": f"20{n:02}-01-01", "made.on": f"20{n:02}-01-01"},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"parent{n // 3}")},
        excluded_embed_metadata_keys=["a.b", "date", "made.on"],
    )
    for n in range(9)
]
DECAY = Decay("date", "1y", floor=0.001, now="2009-01-01")


def test_a_retriever_groups_and_lowers(tmp_path: Path) -> None:
    retriever = BM25Retriever(NODES, similarity_top_k=9, group="ref_doc_id")
    nodes = retriever.retrieve("red boat")
    assert len(nodes) == 3
    assert {one.node.ref_doc_id for one in nodes} == {"parent0", "parent1", "parent2"}
    assert len(retriever.search("red boat", per_group=2)) == 6
    assert len(retriever.search("red boat", group="a.b")) == 2
    newest = BM25Retriever(NODES, similarity_top_k=1, decay=DECAY, group="a.b")
    assert newest.retrieve("boat")[0].node_id == "8"
    by_key = retriever.search("boat", decay=DECAY.to_dict() | {"path": "made.on"})
    assert by_key[0].node_id == "8"
    newest.persist(tmp_path)
    again = BM25Retriever.from_persist_dir(tmp_path)
    assert [(one.node_id, one.score) for one in again.retrieve("boat")] == [
        (one.node_id, one.score) for one in newest.retrieve("boat")
    ]
    with pytest.raises(ValueError, match="per_group"):
        BM25Retriever(NODES, per_group=0)


def test_a_store_does_so_in_its_own_modes() -> None:
    store = BM25VectorStore()
    store.add(NODES)
    for mode in (VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.SPARSE):
        query = VectorStoreQuery(query_str="red boat", mode=mode, similarity_top_k=9)
        assert len(store.query(query, group="ref_doc_id").nodes or []) == 3
        (best,) = (
            store.query(
                VectorStoreQuery(query_str="boat", mode=mode, similarity_top_k=1), decay=DECAY
            ).nodes
            or []
        )
        assert best.node_id == "8"

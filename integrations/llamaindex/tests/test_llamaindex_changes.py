"""Nodes come and go, and the result is as if built afresh."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.retrievers.bm25rag import BM25Retriever, SyncResult
from llamaindex_nodes import node


def scores(retriever: BM25Retriever, query: str = "cats grass new") -> dict[str, float | None]:
    nodes = retriever.search(query, similarity_top_k=100)
    return {each.node.node_id: each.score for each in nodes}


def test_adding_replaces_by_id(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    assert retriever.add_nodes([node("cow", "new"), node("cow", "newest"), node("ox", "new")]) == [
        "cow",
        "ox",
    ]
    assert len(retriever.bm25) == 5
    afresh = [nodes[0], nodes[1], nodes[3], node("cow", "newest"), node("ox", "new")]
    assert scores(retriever) == scores(BM25Retriever(afresh))
    assert retriever.retrieve("newest")[0].node.text == "newest"


def test_deleting_by_id(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    assert retriever.delete_nodes(["cat", "nobody", "cat"]) == ["cat"]
    assert scores(retriever) == scores(BM25Retriever(nodes[1:]))
    assert retriever.delete_nodes([]) == []


def test_deleting_by_source(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=[*nodes, node("free", "cats")])
    assert len(retriever.delete_ref_doc("pets")) == 2
    assert retriever.delete_ref_doc("pets") == []
    assert retriever.delete_ref_doc("None") == []
    assert set(scores(retriever)) == {"free", "cow"}


@pytest.mark.parametrize("wrong", ["cat", b"cat", 1, [1]])
def test_ids_of_the_wrong_type_are_refused(nodes: list[TextNode], wrong: Any) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    with pytest.raises(TypeError, match="node_ids"):
        retriever.delete_nodes(wrong)
    assert len(retriever.bm25) == 4


def test_a_source_of_the_wrong_type_is_refused(nodes: list[TextNode]) -> None:
    with pytest.raises(TypeError, match="ref_doc_id must be a str"):
        BM25Retriever(nodes).delete_ref_doc(["pets"])  # type: ignore[arg-type]  # the point


def test_nodes_may_come_from_a_generator(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever(each for each in nodes)
    retriever.delete_nodes(id for id in ["cow", "hen"])
    assert retriever.bm25.ids() == ["cat", "dog"]


def test_sync_follows_a_docstore(nodes: list[TextNode]) -> None:
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    retriever = BM25Retriever.from_defaults(docstore=docstore)
    assert retriever.sync(docstore) == SyncResult([], [], [])

    docstore.delete_document("hen")
    docstore.add_documents([node("cow", "new grass", "farm"), node("ox", "new")])
    assert retriever.sync(docstore) == SyncResult(["ox"], ["cow"], ["hen"])
    assert scores(retriever) == scores(BM25Retriever.from_defaults(docstore=docstore))
    assert retriever.sync(docstore) == SyncResult([], [], [])


def test_sync_sees_changed_metadata(nodes: list[TextNode]) -> None:
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    retriever = BM25Retriever.from_defaults(docstore=docstore)
    docstore.add_documents([node("cat", nodes[0].text, "pets", year=1999)])
    assert retriever.sync(docstore).updated == ["cat"]
    assert retriever.retrieve("mat")[0].node.metadata == {"year": 1999}


def test_sync_with_an_empty_docstore_empties(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    assert len(retriever.sync(SimpleDocumentStore()).deleted) == 4
    assert retriever.retrieve("cats") == []

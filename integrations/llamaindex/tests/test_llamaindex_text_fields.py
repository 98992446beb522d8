"""Fields with weights: those of a node are its metadata by their names."""

from __future__ import annotations

from pathlib import Path

from llama_index.core.schema import MetadataMode, TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index.retrievers.bm25rag import BM25Retriever, search_tool
from llama_index.vector_stores.bm25rag import BM25VectorStore

NODES = [
    TextNode(id_="a", text="Dogs run, and a cat."),
    TextNode(id_="b", text="They sleep a lot.", metadata={"title": "Cats", "year": 2020}),
]
FIELDS = {"title": 3.0}


def test_a_retriever_ranks_by_weighted_fields(tmp_path: Path) -> None:
    retriever = BM25Retriever(NODES, fields=FIELDS)
    assert retriever.metadata_mode is MetadataMode.NONE  # or a title would count twice
    assert [one.node for one in retriever.retrieve("cats")] == NODES[::-1]
    retriever.persist(str(tmp_path / "saved"))
    again = BM25Retriever.from_persist_dir(str(tmp_path / "saved"))
    assert again.bm25.fields == {"title": 3.0, "text": 1.0}
    assert [one.node for one in again.retrieve("cats")] == NODES[::-1]


def test_a_store_keeps_fields_in_its_folder(tmp_path: Path) -> None:
    store = BM25VectorStore(path=str(tmp_path / "store"), fields=FIELDS)
    store.add(NODES)
    for one in (store, BM25VectorStore.from_dict(store.to_dict())):
        result = one.query(VectorStoreQuery(query_str="cats", similarity_top_k=2))
        assert result.ids == ["b", "a"]


def test_a_context_is_searched_and_the_tool_does_not_quote_it() -> None:
    node = TextNode(id_="a", text="Revenue rose.", metadata={"context": "Filing of Acme."})
    retriever = BM25Retriever([node], fields={"context": 1.0})
    assert [one.node for one in retriever.retrieve("acme")] == [node]
    answer = search_tool(retriever, "filings", "Filings").call(query="acme").content
    assert "Revenue rose." in answer
    assert "Acme" not in answer

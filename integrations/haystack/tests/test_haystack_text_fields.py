"""Fields with weights: those of a document are its meta by their names."""

from __future__ import annotations

from pathlib import Path

from haystack.dataclasses import Document
from haystack_integrations.components.retrievers.bm25rag import BM25SearchTool
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

DOCUMENTS = [
    Document(id="a", content="Dogs run, and a cat."),
    Document(id="b", content="They sleep a lot.", meta={"title": "Cats", "year": 2020}),
    Document(id="c", meta={"title": "About cats, dogs and many more"}),
]


def test_a_store_ranks_by_weighted_fields(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path / "store", fields={"title": 3.0})
    store.write_documents(DOCUMENTS)
    again = BM25DocumentStore.from_dict(store.to_dict())
    for one in (store, again):
        documents = one.bm25_retrieval("cats")
        assert [document.id for document in documents] == ["b", "a", "c"]
        contents = [DOCUMENTS[number].content for number in (1, 0, 2)]
        assert [document.content for document in documents] == contents
    assert store.to_dict()["init_parameters"]["fields"] == {"title": 3.0, "text": 1.0}


def test_a_context_is_searched_and_the_tool_does_not_quote_it() -> None:
    store = BM25DocumentStore(fields={"context": 1.0})
    filing = Document(id="a", content="Revenue rose.", meta={"context": "Filing of Acme."})
    store.write_documents([filing])
    assert [one.meta for one in store.bm25_retrieval("acme")] == [filing.meta]
    answer = BM25SearchTool(store, "filings", "Filings").invoke(query="acme")
    assert "Revenue rose." in answer
    assert "Acme" not in answer

"""Fields with weights: those of a document are its metadata by their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_bm25rag import BM25Retriever, BM25VectorStore, search_tool
from langchain_core.documents import Document

from bm25rag import BM25Index

DOCUMENTS = [
    Document("Dogs run, and a cat.", id="a"),
    Document("They sleep a lot.", id="b", metadata={"title": "Cats", "year": 2020}),
]
FIELDS = {"title": 3.0}


def test_a_retriever_ranks_by_weighted_fields(tmp_path: Path) -> None:
    retriever = BM25Retriever.from_documents(DOCUMENTS, bm25_params={"fields": FIELDS})
    assert retriever.invoke("cats") == DOCUMENTS[::-1]
    retriever.save(tmp_path / "saved")
    again = BM25Retriever.open(tmp_path / "saved")
    assert again.invoke("cats") == DOCUMENTS[::-1]
    plain = BM25Retriever.from_documents(DOCUMENTS)
    assert plain.invoke("cats") == DOCUMENTS[:1]


def test_a_store_takes_an_index_with_fields() -> None:
    store = BM25VectorStore(BM25Index(fields=FIELDS))
    store.add_texts(["They sleep."], [{"title": "Cats"}], ids=["c"])
    store.index.add([{"title": "Cats alone"}], ids=["d"])
    documents = store.similarity_search("cats")
    assert [(one.id, one.page_content) for one in documents] == [("c", "They sleep."), ("d", "")]
    with pytest.raises(TypeError, match=r"documents\[0\].fields\['title'\] must be a str"):
        store.add_documents([Document("x", metadata={"title": 5})])


def test_a_context_is_searched_and_the_tool_does_not_quote_it() -> None:
    documents = [Document("Revenue rose.", id="a", metadata={"context": "Filing of Acme."})]
    retriever = BM25Retriever.from_documents(documents, bm25_params={"fields": {"context": 1.0}})
    assert retriever.invoke("acme") == documents  # metadata come back as given
    assert retriever.index.get(["a"])[0].context == "Filing of Acme."
    answer = search_tool(retriever, "filings", "Filings").invoke({"query": "acme"})
    assert "Revenue rose." in answer
    assert "Acme" not in answer

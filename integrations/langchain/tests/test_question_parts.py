"""Questions with parts: ``bm25rag.Query``, and texts that are parsed."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_bm25rag import BM25HybridRetriever, BM25Retriever, BM25VectorStore
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from bm25rag import Query

TEXTS = {"york": "York is old.", "new": "New York is new.", "old": "A new and old york."}
DOCUMENTS = [Document(text, id=id) for id, text in TEXTS.items()]
QUERY = Query("old", phrases=["new york"])


class Embedding:
    """Embeds each text by its length, and remembers them."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[dict[str, float]]:
        return [{"x": float(len(text))} for text in texts]

    def embed_query(self, text: str) -> dict[str, float]:
        self.asked.append(text)
        return {"x": 1.0}


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_retrievers_take_queries_and_parse_texts_if_told_to() -> None:
    retriever = BM25Retriever.from_documents(DOCUMENTS)
    assert ids(retriever.invoke(QUERY)) == ["new"]  # type: ignore[arg-type]
    chain: Any = RunnableLambda(Query.parse) | retriever
    assert ids(chain.invoke("old -york")) == []
    assert len(retriever.invoke('"new york" old')) == 3
    assert ids(retriever.invoke('"new york" old', parse_query=True)) == ["new"]
    parsing = BM25Retriever.from_documents(DOCUMENTS, parse_query=True)
    assert ids(parsing.invoke('york -"new york"')) == ["york", "old"]
    assert ids(parsing.invoke("york -new")) == ["york"]
    assert ids(parsing.invoke(" ", filter={"york", "old"})) == ["york", "old"]
    with pytest.raises(TypeError, match="parse_query must be True or False"):
        retriever.invoke("york", parse_query="yes")


async def test_both_retrievers_find_what_the_parts_allow() -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    retriever = BM25HybridRetriever.from_documents(DOCUMENTS, store)
    assert ids(retriever.invoke(QUERY)) == ["new"]  # type: ignore[arg-type]
    documents = await retriever.ainvoke('+york -"new york"', parse_query=True)
    assert sorted(map(str, ids(documents))) == ["old", "york"]


def test_stores_take_queries_and_parse_texts_if_told_to() -> None:
    embedding = Embedding()
    store = BM25VectorStore.from_documents(DOCUMENTS, sparse_embedding=embedding)
    assert ids(store.similarity_search(QUERY)) == ["new"]
    assert embedding.asked == ["old new york"]
    asked: dict[str, Any] = {"parse_query": True, "retrieval_mode": "bm25"}
    assert ids(store.as_retriever(search_kwargs=asked).invoke("york -new")) == ["york"]
    with pytest.raises(ValueError, match="a query of weights or parts needs retrieval_mode='bm25'"):
        store.similarity_search(QUERY, retrieval_mode="sparse")

"""What annotations say, as ``make types-langchain`` checks it here."""

from __future__ import annotations

import asyncio
from typing import assert_type

from langchain_bm25rag import BM25HybridRetriever, BM25Retriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from bm25rag import Query

CAT = Document("A cat.", id="cat")


def test_a_question_may_be_weights_or_parts() -> None:
    retriever = BM25Retriever.from_documents([CAT], k=3)
    found = retriever.invoke({"cat": 2.0}, k=1)
    assert_type(found, list[Document])
    assert found == retriever.invoke(Query("cats"), {"tags": ["here"]}) == [CAT]
    assert asyncio.run(retriever.ainvoke(Query("cats"))) == found


def test_a_hybrid_retriever_is_aligned_without_a_record_manager() -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    hybrid = BM25HybridRetriever.from_documents([CAT], store, weights=[0.7, 0.3])
    aligned = asyncio.run(hybrid.aalign())
    assert_type(aligned.added, list[str])
    assert aligned == hybrid.align() == ([], [])

"""What annotations say, as ``make types-haystack`` checks it here."""

from __future__ import annotations

import asyncio
from typing import assert_type

from haystack import Document
from haystack.dataclasses import SparseEmbedding
from haystack_integrations.components.retrievers.bm25rag import (
    BM25Retriever,
    BM25SparseHybridRetriever,
)
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Query


def test_a_question_may_be_terms_weights_or_parts() -> None:
    store = BM25DocumentStore()
    store.write_documents([Document(content="A cat.")])
    retriever = BM25Retriever(store)
    found = retriever.run(Query("cats"))
    assert_type(found, dict[str, list[Document]])
    assert found == retriever.run(["cat"]) == retriever.run({"cat": 1.0})
    assert found == asyncio.run(retriever.run_async(Query("cats")))
    assert found["documents"] == store.bm25_retrieval(Query("cats"), top_k=3)
    sparse = SparseEmbedding(indices=[], values=[])
    assert BM25SparseHybridRetriever(store).run(Query("cats"), sparse)["documents"]


def test_the_queries_of_a_batch_may_be_a_list_of_texts() -> None:
    store = BM25DocumentStore()
    queries: list[str] = ["cats", "dogs"]
    assert BM25Retriever(store).run_batch(queries) == {"documents": [[], []]}
    assert store.bm25_retrieval_batch(queries) == [[], []]

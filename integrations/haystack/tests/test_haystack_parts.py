"""Queries with parts: ``bm25rag.Query``, and texts that are parsed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.retrievers import InMemoryEmbeddingRetriever
from haystack.core.errors import BreakpointException
from haystack.dataclasses import SparseEmbedding
from haystack.dataclasses.breakpoints import Breakpoint, PipelineSnapshot
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.retrievers.bm25rag import (
    BM25HybridRetriever,
    BM25Retriever,
    BM25SparseHybridRetriever,
)
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Query

TEXTS = {"york": "York is old.", "new": "New York is new.", "old": "A new and old york."}
DOCUMENTS = [
    Document(id=id, content=text, embedding=[1.0], sparse_embedding=SparseEmbedding([1], [1.0]))
    for id, text in TEXTS.items()
]
QUERY = Query("old", phrases=["new york"])


@pytest.fixture
def store() -> BM25DocumentStore:
    store = BM25DocumentStore()
    store.write_documents(DOCUMENTS)
    return store


def ids(result: dict[str, list[Document]]) -> list[str]:
    return [document.id for document in result["documents"]]


def test_retrievers_take_queries_and_parse_texts_if_told_to(store: BM25DocumentStore) -> None:
    retriever, parsing = BM25Retriever(store), BM25Retriever(store, parse_query=True)
    assert ids(retriever.run(QUERY)) == ["new"]
    assert len(retriever.run('"new york" old')["documents"]) == 3
    again = BM25Retriever.from_dict(parsing.to_dict())
    again.document_store = store
    for each in (parsing, again):
        assert ids(each.run('york -"new york"')) == ["york", "old"]
    everything = {"field": "id", "operator": "in", "value": ["york", "old"]}
    assert ids(parsing.run(" ", filters=everything)) == ["york", "old"]
    lists = parsing.run_batch(["york -new", "+city", QUERY])["documents"]
    assert [[one.id for one in each] for each in lists] == [["york"], [], ["new"]]
    pipeline = Pipeline()
    pipeline.add_component("retriever", parsing)
    result = pipeline.run({"retriever": {"query": '"new york"'}})
    assert ids(result["retriever"]) == ["new"]


@pytest.mark.parametrize("query", ['"new york"', ["new"], {"new": 2.0}])
def test_a_snapshot_holds_a_question_of_any_kind_but_a_query(
    store: BM25DocumentStore, query: Any
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(store, parse_query=True))
    asked = {"retriever": {"query": query}}
    with pytest.raises(BreakpointException) as stopped:
        pipeline.run(asked, break_point=Breakpoint(component_name="retriever"))
    assert stopped.value.pipeline_snapshot is not None
    written = json.dumps(stopped.value.pipeline_snapshot.to_dict())
    snapshot = PipelineSnapshot.from_dict(json.loads(written))
    assert pipeline.run({}, pipeline_snapshot=snapshot) == pipeline.run(asked)


class Embedder:
    """Remembers what it was asked for."""

    def run(self, text: str) -> dict[str, Any]:
        self.asked = text
        return {"embedding": [1.0]}


def test_both_retrievers_find_what_the_parts_allow(store: BM25DocumentStore) -> None:
    other = InMemoryDocumentStore()
    other.write_documents(DOCUMENTS)
    embedder = Embedder()
    dense = BM25HybridRetriever(
        store, InMemoryEmbeddingRetriever(other), embedder, parse_query=True
    )
    assert ids(dense.run('old "new york" -city')) == ["new"]
    assert embedder.asked == "old new york"
    sparse = BM25SparseHybridRetriever(store)
    assert ids(sparse.run(QUERY, SparseEmbedding([1], [1.0]))) == ["new"]

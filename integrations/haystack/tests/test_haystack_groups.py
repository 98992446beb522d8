"""Groups and decay through Haystack: parents with their best passage, newer before older."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from haystack import Document
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.retrievers.bm25rag import (
    BM25HybridRetriever,
    BM25Retriever,
    BM25SparseEmbeddingRetriever,
    BM25SparseHybridRetriever,
)
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Decay

DOCUMENTS = [
    Document(
        id=str(n),
        content=f"a boat {'red ' * n}",
        meta={"source_id": f"s{n // 3}", "date": f"20{n:02}-01-01"},
        embedding=[1.0, n / 10],
        sparse_embedding=SparseEmbedding([1], [1.0 + n / 10]),
    )
    for n in range(9)
]
DECAY = Decay("date", "1y", floor=0.001, now="2009-01-01")
OF_META = DECAY.to_dict() | {"path": "meta.date"}


def test_a_retriever_groups_and_lowers() -> None:
    store = BM25DocumentStore()
    store.write_documents(DOCUMENTS)
    retriever = BM25Retriever(store, top_k=9)
    for group in ("meta.source_id", "source_id"):
        documents = retriever.run("red boat", group=group)["documents"]
        assert len({one.meta["source_id"] for one in documents}) == len(documents) == 3
    assert len(retriever.run("red boat", group="source_id", per_group=2)["documents"]) == 6
    own = BM25Retriever(store, top_k=1, decay=DECAY, group="source_id")
    as_filters = BM25Retriever(store, top_k=1, decay=OF_META, group="meta.source_id")
    for each in (own, as_filters, BM25Retriever.from_dict(own.to_dict())):
        each.document_store = store
        assert each.run("boat")["documents"][0].id == "8"
        assert each.run_batch(["boat", "red"])["documents"][0][0].id == "8"
    with pytest.raises(ValueError, match="path is missing"):
        BM25Retriever(store, decay={"half_life": "1d"})
    with pytest.raises(ValueError, match="per_group is for searches with group"):
        retriever.run("red", per_group=2)


@pytest.mark.parametrize("kind", ["sparse", "sparse hybrid", "hybrid"])
def test_retrievers_by_vectors_group_and_lower(kind: str) -> None:
    store, vectors = BM25DocumentStore(), InMemoryDocumentStore()
    store.write_documents(DOCUMENTS)
    vectors.write_documents(DOCUMENTS)
    sparse = SparseEmbedding([1], [1.0])
    made: Any = {
        "sparse": BM25SparseEmbeddingRetriever,
        "sparse hybrid": BM25SparseHybridRetriever,
        "hybrid": partial(
            BM25HybridRetriever, embedding_retriever=InMemoryEmbeddingRetriever(vectors)
        ),
    }[kind]
    asked: Any = {
        "sparse": {"query_sparse_embedding": sparse},
        "sparse hybrid": {"query": "red boat", "query_sparse_embedding": sparse},
        "hybrid": {"query": "red boat", "query_embedding": [1.0, 0.5]},
    }[kind]
    retriever = made(document_store=store, top_k=9)
    plain = [one.meta["source_id"] for one in retriever.run(**asked)["documents"]]
    documents = retriever.run(**asked, group="meta.source_id")["documents"]
    assert [one.meta["source_id"] for one in documents] == list(dict.fromkeys(plain))
    assert len(retriever.run(**asked, group="source_id", per_group=2)["documents"]) == 6
    own = made(document_store=store, top_k=1, decay=DECAY, group="source_id")
    settings = own.to_dict()["init_parameters"]
    assert (settings["group"], settings["decay"]["path"]) == ("source_id", "date")
    assert own.run(**asked)["documents"][0].id == "8"
    assert retriever.run(**asked, decay=OF_META)["documents"][0].id == "8"
    with pytest.raises(ValueError, match="path is missing"):
        made(document_store=store, decay={"half_life": "1d"})
    vectors.shutdown()

"""A restricted view in place of an index: no argument of a call finds what is outside."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from langchain_bm25rag import BM25DocumentIndex, BM25HybridRetriever, BM25Retriever, BM25VectorStore
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from bm25rag import BM25Index
from bm25rag.errors import ReadOnlyError

DOCUMENTS = [
    Document(f"a red boat {n}", id=str(n), metadata={"tenant": "ab"[n % 2]}) for n in range(6)
]
WIDER: list[Any] = [None, {"tenant": "a"}, {"0", "1"}, lambda document: True, {"$not": {"x": 1}}]


@pytest.mark.parametrize("kind", [BM25Retriever, BM25DocumentIndex, BM25VectorStore])
def test_no_call_finds_more(kind: Any, tmp_path: Path) -> None:
    BM25Retriever.from_documents(DOCUMENTS).save(tmp_path)
    made = kind(index=BM25Index.open(tmp_path).restricted({"tenant": "b"}))
    asked = made.as_retriever() if kind is BM25VectorStore else made
    for filter in WIDER:
        for each in (asked, copy.deepcopy(asked), pickle.loads(pickle.dumps(asked))):
            if callable(filter) and each is not asked:
                continue
            for query in ("boat", ""):
                documents = each.invoke(query, k=9, filter=filter, correct=True, expand=True)
                assert {one.metadata["tenant"] for one in documents} <= {"b"}
    assert [one.id for one in made.get_by_ids(["0", "1"])] == ["1"]
    with pytest.raises(ReadOnlyError):
        made.delete(["1"])
    with BM25Index.open(tmp_path, mode="w") as index:
        index.add(["a new boat"], ["7"], [{"tenant": "b"}])
    assert made.refresh()
    assert "7" in [one.id for one in asked.invoke("boat", k=9)]


def test_nor_does_another_retriever_beside_it() -> None:
    index = BM25Retriever.from_documents(DOCUMENTS).index.restricted({"tenant": "b"})
    vectors = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))  # knows of no restriction
    vectors.add_documents(DOCUMENTS)
    retriever = BM25HybridRetriever(index=index, vector_store=vectors, on_unknown="skip", k=6)
    for filter in (None, {"tenant": "a"}):
        assert {one.metadata["tenant"] for one in retriever.invoke("boat", filter=filter)} <= {"b"}

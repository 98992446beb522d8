"""Groups and decay through LangChain: parents with their best passage, and newer before older."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_bm25rag import BM25DocumentIndex, BM25HybridRetriever, BM25Retriever, BM25VectorStore
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from bm25rag import Prior

DOCUMENTS = [
    Document(f"a boat {'red ' * n}", id=str(n), metadata={"source": f"s{n // 3}", "stars": n % 3})
    for n in range(9)
]


@pytest.mark.parametrize("kind", [BM25Retriever, BM25DocumentIndex, BM25VectorStore])
def test_each_class_groups_and_lowers(kind: Any) -> None:
    made = kind(index=BM25Retriever.from_documents(DOCUMENTS).index)
    asked = made.as_retriever() if kind is BM25VectorStore else made
    plain = [one.metadata["source"] for one in asked.invoke("red boat", k=9)]
    documents = asked.invoke("red boat", k=2, group="source")
    assert [one.metadata["source"] for one in documents] == list(dict.fromkeys(plain))[:2]
    assert len(asked.invoke("red boat", k=2, group="source", per_group=2)) == 4
    for decay in (Prior("stars", 2, floor=0.01), {"path": "stars", "full": 2, "floor": 0.01}):
        assert {one.metadata["stars"] for one in asked.invoke("boat", k=3, decay=decay)} == {2}
    if kind is not BM25VectorStore:
        fields = {"group": "source", "per_group": 1, "decay": {"path": "stars", "full": 2}}
        own = kind(index=made.index, k=9, **fields)
        assert own.invoke("red boat") == made.invoke("red boat", k=9, **fields)
        with pytest.raises(ValueError, match="path is missing"):
            kind(index=made.index, decay={"half_life": "1d"})
    with pytest.raises(ValueError, match="per_group is for searches with group"):
        asked.invoke("red", per_group=2)


def test_the_hybrid_retriever_groups_what_is_fused() -> None:
    index = BM25Retriever.from_documents(DOCUMENTS).index
    vectors = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    vectors.add_documents(DOCUMENTS)
    retriever = BM25HybridRetriever(index=index, vector_store=vectors, group="source", k=9)
    documents = retriever.invoke("red boat")
    assert len({one.metadata["source"] for one in documents}) == len(documents) == 3
    best = retriever.invoke("red boat", decay={"path": "stars", "full": 2, "floor": 0.01})
    assert {one.metadata["stars"] for one in best} == {2}

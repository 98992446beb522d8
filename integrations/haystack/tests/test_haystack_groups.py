"""Groups and decay through Haystack: parents with their best passage, newer before older."""

from __future__ import annotations

import pytest
from haystack import Document
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Decay

DOCUMENTS = [
    Document(
        id=str(n),
        content=f"a boat {'red ' * n}",
        meta={"source_id": f"s{n // 3}", "date": f"20{n:02}-01-01"},
    )
    for n in range(9)
]
DECAY = Decay("date", "1y", floor=0.001, now="2009-01-01")


def test_a_retriever_groups_and_lowers() -> None:
    store = BM25DocumentStore()
    store.write_documents(DOCUMENTS)
    retriever = BM25Retriever(store, top_k=9)
    for group in ("meta.source_id", "source_id"):
        found = retriever.run("red boat", group=group)["documents"]
        assert len({one.meta["source_id"] for one in found}) == len(found) == 3
    assert len(retriever.run("red boat", group="source_id", per_group=2)["documents"]) == 6
    own = BM25Retriever(store, top_k=1, decay=DECAY, group="source_id")
    for each in (own, BM25Retriever.from_dict(own.to_dict())):
        each.document_store = store
        assert each.run("boat")["documents"][0].id == "8"
        assert each.run_batch(["boat", "red"])["documents"][0][0].id == "8"
    with pytest.raises(ValueError, match="path is missing"):
        BM25Retriever(store, decay={"half_life": "1d"})
    with pytest.raises(ValueError, match="per_group is for searches with group"):
        retriever.run("red", per_group=2)

"""A retriever of a sharded index returns what one of a plain index does."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_bm25rag import BM25Retriever
from langchain_core.documents import Document

from bm25rag import BM25Index
from bm25rag import Document as StoredDocument
from bm25rag.sharded import ShardedIndex


@pytest.fixture
def folder(retriever: BM25Retriever, tmp_path: Path) -> Path:
    """Return the folder of a sharded index of the retriever's documents."""
    stored: list[StoredDocument] = retriever.index.get(retriever.index.ids())
    BM25Index.build(stored, tmp_path / "it", shards=3)
    return tmp_path / "it"


@pytest.mark.parametrize("by_path", [True, False])
def test_a_sharded_index_is_searched_like_a_plain_one(
    retriever: BM25Retriever, folder: Path, by_path: bool
) -> None:
    sharded = (
        BM25Retriever.open(folder) if by_path else BM25Retriever.from_index(BM25Index.open(folder))
    )
    assert isinstance(sharded.index, ShardedIndex)
    for query in ("cats", "a cat on the mat", "nothing"):
        assert sharded.invoke(query) == retriever.invoke(query)
        filtered = {"filter": {"lang": "en"}}
        assert sharded.invoke(query, **filtered) == retriever.invoke(query, **filtered)
    assert sharded.batch(["cats", "bird"]) == retriever.batch(["cats", "bird"])


def test_documents_are_added_to_a_sharded_index(folder: Path) -> None:
    with BM25Retriever.open(folder, mode="w") as writer:
        writer.add_documents([Document("A zebra.", id="zebra"), Document("New cats.", id="cats")])
    assert [found.id for found in BM25Retriever.open(folder).invoke("zebra")] == ["zebra"]
    assert BM25Index.open(folder).ids() == ["cat", "dogs", "bird", "empty", "zebra", "cats"]

"""A retriever of a sharded index returns what one of a plain index does."""

from __future__ import annotations

from pathlib import Path

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag import BM25Retriever

from bm25rag import BM25Index

TEXTS = ["The cat sat on the mat.", "Dogs chase cats.", "A bird sings.", "Cats, cats, cats."]


@pytest.fixture
def plain(tmp_path: Path) -> BM25Retriever:
    """Return a retriever of a plain index, which is in the folder ``plain``, too."""
    nodes = [
        TextNode(text=text, id_=f"n{number}", metadata={"parity": number % 2})
        for number, text in enumerate(TEXTS)
    ]
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=3)
    retriever.persist(str(tmp_path / "plain"))
    return retriever


@pytest.fixture
def folder(plain: BM25Retriever, tmp_path: Path) -> Path:
    """Return the folder of a sharded index of the same nodes."""
    saved = BM25Index.open(tmp_path / "plain")
    stored = saved.get(saved.ids())
    BM25Index.build(stored, tmp_path / "it", shards=3, analyzer=saved.analyzer, extra=saved.extra)
    return tmp_path / "it"


def test_a_sharded_index_is_searched_like_a_plain_one(plain: BM25Retriever, folder: Path) -> None:
    sharded = BM25Retriever(existing_bm25=BM25Index.open(folder), similarity_top_k=3)
    even = MetadataFilters(filters=[MetadataFilter(key="parity", value=0)])
    for query in ("cats", "the cat and the bird", "nothing"):
        assert sharded.retrieve(query) == plain.retrieve(query)
        assert sharded.search(query, filters=even) == plain.search(query, filters=even)
        assert sharded.search(query, similarity_top_k=1) == plain.search(query, similarity_top_k=1)


def test_a_sharded_folder_is_loaded_as_a_retriever_in_memory(
    plain: BM25Retriever, folder: Path
) -> None:
    loaded = BM25Retriever.from_persist_dir(str(folder))
    assert loaded.retrieve("cats") == plain.retrieve("cats")
    loaded.add_nodes([TextNode(text="Another cat.", id_="more")])
    assert len(loaded) == 5


def test_nodes_are_added_to_a_sharded_index(folder: Path) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        BM25Retriever(existing_bm25=writer).add_nodes([TextNode(text="A zebra.", id_="zebra")])
    reader = BM25Retriever(existing_bm25=BM25Index.open(folder))
    assert [found.node_id for found in reader.retrieve("zebra")] == ["zebra"]

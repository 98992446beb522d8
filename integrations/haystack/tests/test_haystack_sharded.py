"""A store on a sharded index answers as one on a plain index does."""

from __future__ import annotations

from pathlib import Path

import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import BM25Index


@pytest.fixture
def plain(tmp_path: Path, documents: list[Document]) -> BM25DocumentStore:
    """Return a store on a plain index in the folder ``plain``."""
    store = BM25DocumentStore(tmp_path / "plain")
    store.write_documents(documents)
    return store


@pytest.fixture
def folder(plain: BM25DocumentStore, tmp_path: Path) -> Path:
    """Return the folder of a sharded index of the same documents."""
    saved = BM25Index.open(tmp_path / "plain")
    stored = saved.get(saved.ids())
    BM25Index.build(stored, tmp_path / "it", shards=3, analyzer=saved.analyzer, extra=saved.extra)
    return tmp_path / "it"


def test_a_sharded_index_is_searched_like_a_plain_one(
    plain: BM25DocumentStore, folder: Path
) -> None:
    sharded = BM25DocumentStore(folder)
    filters = {"field": "meta.year", "operator": ">=", "value": 2000}
    for query in ("cat", "the dogs and the cat", "nothing"):
        for given in (None, filters):
            one, other = (
                BM25Retriever(document_store=store).run(query=query, filters=given)
                for store in (plain, sharded)
            )
            assert one == other
    assert sharded.count_documents() == 4
    assert sharded.filter_documents(filters) == plain.filter_documents(filters)


def test_documents_are_written_to_and_deleted_from_a_sharded_index(folder: Path) -> None:
    store = BM25DocumentStore(folder)
    more = [Document(id="zebra", content="A zebra."), Document(id="cat", content="Another cat.")]
    assert store.write_documents(more, DuplicatePolicy.OVERWRITE) == 2
    store.delete_documents(["dog"])
    assert [found.id for found in store.bm25_retrieval("zebra")] == ["zebra"]
    assert BM25Index.open(folder).ids() == ["hund", "fish", "zebra", "cat"]

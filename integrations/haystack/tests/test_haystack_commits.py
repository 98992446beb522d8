"""With ``commit_every``, writes are committed together."""

from __future__ import annotations

from pathlib import Path

import pytest
from haystack import Document
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import BM25Index


def documents(*ids: str) -> list[Document]:
    return [Document(id=id, content="cat") for id in ids]


def committed(folder: Path) -> list[str]:
    return BM25Index.open(folder).ids()


def test_this_process_sees_writes_at_once_and_others_after_the_commit(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path, commit_every=3600)
    for number in range(5):
        assert store.write_documents(documents(str(number))) == 1
        assert store.count_documents() == number + 1
    assert len(BM25DocumentStore(tmp_path).bm25_retrieval("cat")) == 5
    assert committed(tmp_path) == []
    BM25Retriever(store).close()
    assert committed(tmp_path) == ["0", "1", "2", "3", "4"]
    store.delete_documents(["0"])
    assert store.count_documents() == 4
    store.close()
    assert len(committed(tmp_path)) == 4


def test_the_time_is_a_setting_of_the_dump(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path, commit_every=2)
    assert BM25DocumentStore.from_dict(store.to_dict()).commit_every == 2.0
    with pytest.raises(ValueError, match="commit_every"):
        BM25DocumentStore(tmp_path, commit_every=-1)

"""With ``commit_every``, writes are committed together."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from haystack import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import BM25Index
from bm25rag.errors import LockedError


def documents(*ids: str) -> list[Document]:
    return [Document(id=id, content="cat") for id in ids]


def committed(folder: Path) -> list[str]:
    return BM25Index.open(folder).ids()


def test_each_write_is_committed_unless_asked_otherwise(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path)
    store.write_documents(documents("1"))
    assert committed(tmp_path) == ["1"]


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


def test_a_commit_comes_by_itself_in_time(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path, commit_every=0.2)
    for _ in range(2):  # the time begins anew with the first write after a commit
        store.write_documents(documents(str(store.count_documents())))
        until = time.monotonic() + 30
        while len(committed(tmp_path)) < store.count_documents():
            assert time.monotonic() < until
            time.sleep(0.01)
    with BM25Index.open(tmp_path, mode="w", timeout=30) as another:  # the folder is free again
        another.add(["cat"], ids=["theirs"])
    store.write_documents(documents("ours"))
    assert store.count_documents() == 4


def test_a_store_that_commits_each_write_commits_what_another_has_delayed(tmp_path: Path) -> None:
    BM25DocumentStore(tmp_path, commit_every=float("inf")).write_documents(documents("1"))
    BM25DocumentStore(tmp_path).write_documents(documents("2"))  # the first is gone by now
    assert committed(tmp_path) == ["1", "2"]


def test_a_write_that_fails_keeps_what_was_written_before(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path, commit_every=3600)
    store.write_documents(documents("1"))
    with pytest.raises(DuplicateDocumentError):
        store.write_documents(documents("2", "1"))
    assert [one.id for one in store.filter_documents()] == ["1"]
    store.close()
    assert committed(tmp_path) == ["1"]


def test_others_cannot_write_before_the_commit(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path, commit_every=3600)
    store.write_documents(documents("1"))
    with pytest.raises(LockedError):
        BM25Index.open(tmp_path, mode="w")
    store.close()
    BM25Index.open(tmp_path, mode="w").close()


SCRIPT = """
import os, sys
from haystack import Document
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

store = BM25DocumentStore(sys.argv[1], commit_every=3600)
store.write_documents([Document(id="1", content="cat")])
if sys.argv[2] == "killed":
    os._exit(0)
if sys.argv[2] == "dropped":
    del store
"""


@pytest.mark.parametrize(("end", "kept"), [("exit", 1), ("dropped", 1), ("killed", 0)])
def test_the_end_of_the_process_commits_unless_it_is_killed(
    tmp_path: Path, end: str, kept: int
) -> None:
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path), end]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ}, timeout=120
    )
    assert len(committed(tmp_path)) == kept
    assert done.stderr == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_leaves_the_commit_to_its_parent(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path, commit_every=3600)
    store.write_documents(documents("1"))
    child = os.fork()
    if not child:
        store.close()
        os._exit(store.count_documents())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert committed(tmp_path) == []
    store.write_documents(documents("2"))
    store.close()
    assert committed(tmp_path) == ["1", "2"]


def test_the_time_is_a_setting_of_the_dump(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path, commit_every=2)
    assert BM25DocumentStore.from_dict(store.to_dict()).commit_every == 2.0
    with pytest.raises(ValueError, match="commit_every"):
        BM25DocumentStore(tmp_path, commit_every=-1)

"""Who waits for whom: slow writers, other processes, and the threads of asynchronous methods."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import LockedError

SOON = 60.0
"""Seconds after which a test gives up; nothing here is expected to take one."""


class Gate:
    """A tokenizer that keeps a text with the word slow until the gate is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, text: str) -> list[str]:
        if "slow" in text:
            self.reached.set()
            assert self.opened.wait(SOON)
        return text.split()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def begin_slow_write(
    store: BM25DocumentStore, gate: Gate, threads: ThreadPoolExecutor
) -> Future[int]:
    write = threads.submit(store.write_documents, [Document(id="slow", content="slow cat")])
    assert gate.reached.wait(SOON)
    return write


# --- slow writers -------------------------------------------------------------------------


def test_a_slow_write_stops_no_store_from_being_made_and_read(
    tmp_path: Path, gate: Gate, threads: ThreadPoolExecutor
) -> None:
    store = BM25DocumentStore(tmp_path / "slow", analyzer=Analyzer(tokenizer=gate))
    store.write_documents([Document(id="1", content="cat")])
    write = begin_slow_write(store, gate, threads)
    for make in (
        lambda: BM25DocumentStore(tmp_path / "slow"),
        lambda: BM25DocumentStore(tmp_path / "other"),
        lambda: BM25DocumentStore(index="unrelated"),
        BM25DocumentStore,
    ):
        threads.submit(make).result(SOON)
    same = BM25DocumentStore(tmp_path / "slow")
    assert [one.id for one in same.bm25_retrieval("cat")] == ["1"]
    assert not write.done()
    gate.opened.set()
    assert write.result(SOON) == 1
    assert same.count_documents() == 2


# --- other processes ----------------------------------------------------------------------


def test_a_write_waits_for_another_writer_no_longer_than_it_was_told(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    patient, impatient = BM25DocumentStore(tmp_path), BM25DocumentStore(tmp_path, lock_timeout=0.1)
    cat = [Document(id="1", content="cat")]
    with BM25Index.open(tmp_path, mode="w"):
        with pytest.raises(LockedError, match=r"after 0\.1 seconds; .* a longer lock_timeout"):
            impatient.write_documents(cat)
        assert impatient.write_documents([]) == 0  # which needs no lock
        impatient.delete_documents([])
        write = threads.submit(patient.write_documents, cat)
    assert write.result(SOON) == 1
    assert impatient.write_documents(cat, DuplicatePolicy.SKIP) == 0


def test_the_time_to_wait_is_dumped_and_may_be_endless(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path, lock_timeout=float("inf"))
    assert store.write_documents([Document(content="cat")]) == 1
    again = BM25DocumentStore.from_dict(store.to_dict())
    assert again.lock_timeout == float("inf")
    assert BM25DocumentStore(tmp_path).to_dict()["init_parameters"]["lock_timeout"] == 60.0


def test_every_read_sees_what_another_process_has_committed(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path)
    retriever = BM25Retriever(store)
    recent = {"field": "meta.year", "operator": ">", "value": 2000}
    for number in range(1, 4):
        with BM25Index.open(tmp_path, mode="w") as other:
            other.add([f"cat {number}"], ids=[str(number)], metadata=[{"year": 2000 + number}])
        assert store.count_documents() == number
        with BM25Index.open(tmp_path, mode="w") as other:
            other.add(["dog"], ids=["dog"])
        assert len(retriever.run("dog")["documents"]) == 1
        with BM25Index.open(tmp_path, mode="w") as other:
            other.delete(["dog"])
        assert asyncio.run(retriever.run_async("dog"))["documents"] == []
        with BM25Index.open(tmp_path, mode="w") as other:
            other.update_metadata([str(number)], [{"year": 1999}])
        assert store.count_documents_by_filter(recent) == 0
        store.write_documents([Document(id="own", content="cat")])
        store.delete_documents(["own"])


# --- asynchronous methods ------------------------------------------------------------------


@pytest.mark.parametrize("place", ["memory", "folder"])
def test_reads_and_other_threads_never_wait_for_writes(
    place: str, tmp_path: Path, gate: Gate
) -> None:
    path = tmp_path / "index" if place == "folder" else None
    store = BM25DocumentStore(path, analyzer=Analyzer(tokenizer=gate))

    async def read_while_many_write() -> None:
        await store.write_documents_async([Document(id="first", content="cat")])
        writes = [
            asyncio.create_task(
                store.write_documents_async([Document(id=str(n), content="slow cat")])
            )
            for n in range(100)
        ]
        assert await asyncio.wait_for(asyncio.to_thread(gate.reached.wait, SOON), SOON)
        output = await asyncio.wait_for(BM25Retriever(store).run_async("cat"), SOON)
        assert [one.id for one in output["documents"]] == ["first"]
        assert await asyncio.wait_for(store.count_documents_async(), SOON) == 1
        assert await asyncio.wait_for(asyncio.to_thread(len, "unrelated"), SOON) == 9
        assert not any(write.done() for write in writes)
        gate.opened.set()
        assert sum(await asyncio.wait_for(asyncio.gather(*writes), SOON)) == 100
        assert await store.count_documents_async() == 101

    asyncio.run(read_while_many_write())


def own_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("bm25rag-")]


@pytest.mark.parametrize("how", ["close", "close_async", "gone", "pipeline"])
def test_threads_end_with_the_store_or_when_it_is_closed(how: str) -> None:
    before = own_threads()
    store = BM25DocumentStore()
    retriever = BM25Retriever(store)
    asyncio.run(store.write_documents_async([Document(content="cat")]))
    asyncio.run(retriever.run_async("cat"))
    started = [one for one in own_threads() if one not in before]
    assert len(started) == 2
    if how == "gone":
        del store, retriever
        gc.collect()
    else:
        {
            "close": store.close,
            "close_async": lambda: asyncio.run(store.close_async()),
            "pipeline": retriever.close,
        }[how]()
        assert len(asyncio.run(retriever.run_async("cat"))["documents"]) == 1
    for thread in started:
        thread.join(SOON)
        assert not thread.is_alive()


@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_a_call_goes_on_if_another_thread_closes_the_store_as_it_begins(
    write: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pipelines that share a store do when one of them ends."""
    store, submit, closed = BM25DocumentStore(), ThreadPoolExecutor.submit, []

    def close_first(pool: ThreadPoolExecutor, *arguments: Any) -> Future[Any]:
        if not closed:
            closed.append(True)
            store.close()
        return submit(pool, *arguments)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", close_first)
    if write:
        assert asyncio.run(store.write_documents_async([Document(content="cat")])) == 1
    else:
        assert asyncio.run(store.count_documents_async()) == 0
    assert closed


FORK = """
import asyncio, os, signal, sys, threading
from haystack import Document
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from bm25rag import Analyzer

reached, opened = threading.Event(), threading.Event()

def tokenize(text):
    if "slow" in text:
        reached.set()
        opened.wait()
    return text.split()

store = BM25DocumentStore(analyzer=Analyzer(tokenizer=tokenize))
asyncio.run(store.write_documents_async([Document(content="cat")]))
asyncio.run(store.bm25_retrieval_async("cat"))
slow = threading.Thread(target=store.write_documents, args=[[Document(content="slow")]])
slow.start()
reached.wait()
if os.fork():
    code = os.waitstatus_to_exitcode(os.wait()[1])
    opened.set()
    sys.exit(code)
signal.alarm(30)  # nobody else would end a child that hangs
asyncio.run(store.write_documents_async([Document(content="a cat")]))
print(len(asyncio.run(store.bm25_retrieval_async("cat"))))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_asynchronous_methods_work_after_a_fork_in_the_midst_of_a_write() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SOON, check=True)
    assert done.stdout == "2\n"

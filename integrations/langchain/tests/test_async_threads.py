"""Async writes wait for one another in threads of their own, and keep nothing else waiting."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import ids
from langchain_bm25rag import BM25DocumentIndex, BM25Retriever
from langchain_core.documents import Document

SECONDS = 120.0  # within which what does not wait has long ended

OWL = Document("An owl hoots.", id="owl")


class Held:
    """Documents that are read only when the test says so."""

    def __init__(self) -> None:
        self.started, self.released = threading.Event(), threading.Event()

    def documents(self) -> Iterator[Document]:
        self.started.set()
        assert self.released.wait(SECONDS)
        yield Document("An owl hoots.")

    async def until_started(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            assert await asyncio.get_running_loop().run_in_executor(
                pool, self.started.wait, SECONDS
            )


async def test_a_hundred_waiting_writes_keep_nothing_else_waiting(retriever: BM25Retriever) -> None:
    """Neither a search of the same index, nor another retriever, nor the application's threads."""
    other = BM25Retriever.from_texts(["a cat"], ids=["other"])
    held = Held()
    writes = [asyncio.create_task(retriever.aadd_documents(held.documents())) for _ in range(100)]
    try:
        await held.until_started()
        async with asyncio.timeout(SECONDS / 2):
            assert ids(await retriever.ainvoke("bird")) == ["bird"]
            assert ids(await retriever.aget_by_ids(["bird"])) == ["bird"]
            assert ids(await BM25DocumentIndex(index=retriever.index).aget(["bird"])) == ["bird"]
            assert ids(await other.ainvoke("cat")) == ["other"]
            assert await other.aadd_documents([OWL]) == ["owl"]
            assert await asyncio.to_thread(int) == 0
            made = await BM25Retriever.afrom_texts(["a cat"], ids=["made"])
            assert ids(await made.ainvoke("cat")) == ["made"]
    finally:
        held.released.set()
        await asyncio.gather(*writes)
    assert len(retriever.invoke("owl", k=1000)) == 100


Call = Callable[[BM25Retriever, Path], Coroutine[Any, Any, Any]]
WRITES: dict[str, Call] = {
    "aadd_documents": lambda it, _: it.aadd_documents([OWL]),
    "adelete": lambda it, _: it.adelete(["owl"]),
    "asave": lambda it, path: it.asave(path / "copy"),
    "acommit": lambda it, _: it.acommit(),
    "arefresh": lambda _, path: BM25Retriever.open(path / "saved").arefresh(),
    "aupsert": lambda it, _: BM25DocumentIndex(index=it.index).aupsert([OWL]),
    "the document index's adelete": lambda it, _: BM25DocumentIndex(index=it.index).adelete([]),
    "afrom_texts": lambda *_: BM25Retriever.afrom_texts(["a cat"]),
    "afrom_documents": lambda *_: BM25Retriever.afrom_documents([OWL]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_no_write_needs_a_thread_of_asyncio(
    write: Call, retriever: BM25Retriever, tmp_path: Path
) -> None:
    """Each goes on while the application has taken the only one."""
    retriever.save(tmp_path / "saved")
    release = threading.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    taken = asyncio.create_task(asyncio.to_thread(release.wait, SECONDS))
    await asyncio.sleep(0)  # it is handed over
    try:
        with BM25Retriever.open(tmp_path / "saved", mode="w") as writer:
            async with asyncio.timeout(SECONDS / 2):
                await write(writer, tmp_path)
    finally:
        release.set()
        assert await taken


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
async def test_a_retriever_that_has_written_is_copied_and_pickled(
    retriever: BM25Retriever, duplicate: Callable[[BM25Retriever], BM25Retriever]
) -> None:
    """The copy writes to its own index, while the original's thread is held up."""
    held = Held()
    await retriever.aadd_documents([OWL])
    twin = duplicate(retriever)
    write = asyncio.create_task(retriever.aadd_documents(held.documents()))
    try:
        await held.until_started()
        async with asyncio.timeout(SECONDS / 2):
            assert await twin.adelete(["owl"]) == ["owl"]
    finally:
        held.released.set()
        await write
    assert (len(retriever.invoke("owl")), twin.invoke("owl")) == (2, [])


async def test_documents_cannot_wait_for_a_write_to_where_they_are_added(
    retriever: BM25Retriever,
) -> None:
    """It would wait for the thread that waits for the documents."""
    other = BM25Retriever()

    async def documents() -> AsyncIterator[Document]:
        await other.aadd_documents([OWL])
        assert ids(await retriever.ainvoke("bird")) == ["bird"]
        yield OWL
        await retriever.aadd_documents([OWL])

    async with asyncio.timeout(SECONDS):
        with pytest.raises(RuntimeError, match="each would wait for the other"):
            await retriever.aadd_documents(documents())
        assert ids(other.invoke("owl")) == ["owl"]
        assert retriever.invoke("owl") == []
        assert await retriever.aadd_documents([OWL]) == ["owl"]

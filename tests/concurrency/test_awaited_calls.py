"""Awaited writes: one thread for each index, in the order of the calls."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.awaited_calls import end_threads, in_read_thread, in_write_thread

WHO: ContextVar[str] = ContextVar("who")


@pytest.mark.parametrize("in_thread", [in_write_thread, in_read_thread])
def test_calls_see_the_context_of_the_caller(in_thread: Any) -> None:
    async def run() -> str:
        WHO.set("caller")
        found: str = await in_thread(BM25Index(), WHO.get)
        return found

    assert asyncio.run(run()) == "caller"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_has_threads_of_its_own() -> None:
    index = BM25Index()

    def write() -> None:
        asyncio.run(asyncio.wait_for(in_write_thread(index, index.add, ["red"]), 60))

    write()
    if not (child := os.fork()):
        try:
            write()
        finally:
            os._exit(len(index))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def test_a_write_that_another_to_the_same_index_waits_for_is_refused() -> None:
    index, other = BM25Index(), BM25Index()
    late: list[asyncio.Task[list[str]]] = []
    ended = asyncio.Event()

    async def write_late() -> list[str]:
        await ended.wait()
        return await in_write_thread(index, index.add, ["late"])

    async def write_both() -> None:
        late.append(asyncio.ensure_future(write_late()))
        await in_write_thread(other, other.add, ["red"])
        await in_write_thread(index, index.add, ["red"])

    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        waiting = in_write_thread(
            index, lambda: asyncio.run_coroutine_threadsafe(write_both(), loop).result(60)
        )
        with pytest.raises(RuntimeError, match="each would wait for the other"):
            await waiting
        ended.set()
        return await late[0]

    assert asyncio.run(run()) == ["0"]
    assert (len(index), len(other)) == (1, 1)


def test_writes_are_done_in_order_by_one_thread() -> None:
    index = BM25Index()
    names: list[str] = []

    def write(text: str) -> list[str]:
        names.append(threading.current_thread().name)
        return index.add([text])

    async def run() -> list[list[str]]:
        return await asyncio.gather(
            *(in_write_thread(index, write, text=f"red {n}") for n in range(20))
        )

    assert asyncio.run(run()) == [[str(n)] for n in range(20)]
    assert len(set(names)) == 1


def test_a_busy_index_keeps_no_other_and_no_thread_of_asyncio_waiting() -> None:
    busy, other, free = BM25Index(), BM25Index(), threading.Event()

    async def run() -> list[str]:
        waiting = [asyncio.ensure_future(in_write_thread(busy, free.wait)) for _ in range(50)]
        ids = await in_write_thread(other, other.add, ["red"])
        assert await asyncio.to_thread(len, other) == 1
        free.set()
        await asyncio.gather(*waiting)
        return ids

    assert asyncio.run(asyncio.wait_for(run(), 60)) == ["0"]


@pytest.mark.parametrize("error", [KeyError("x"), StopIteration("x")])
def test_what_a_write_raises_reaches_the_caller(error: Exception) -> None:
    def write() -> None:
        raise error

    index = BM25Index()
    expected = RuntimeError if isinstance(error, StopIteration) else type(error)
    with pytest.raises(expected):
        asyncio.run(asyncio.wait_for(in_write_thread(index, write), 60))


def test_the_thread_ends_with_the_index() -> None:
    index = BM25Index()
    current: Callable[[], threading.Thread] = threading.current_thread
    thread = asyncio.run(in_write_thread(index, current))
    assert thread.is_alive()
    del index
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


def test_a_thread_that_is_ended_has_done_its_writes_and_a_later_write_starts_another() -> None:
    index, started, free = BM25Index(), threading.Event(), threading.Event()
    current: Callable[[], threading.Thread] = threading.current_thread

    def write() -> threading.Thread:
        started.set()
        free.wait()
        index.add(["red"])
        return current()

    async def run() -> tuple[threading.Thread, threading.Thread]:
        waiting = asyncio.ensure_future(in_write_thread(index, write))
        assert await asyncio.to_thread(started.wait, 60)
        ending = asyncio.ensure_future(asyncio.to_thread(end_threads, index))
        await asyncio.sleep(0.05)
        assert not ending.done()
        free.set()
        await ending
        assert len(index) == 1
        return await waiting, await in_write_thread(index, current)

    first, second = asyncio.run(run())
    assert not first.is_alive()
    assert second is not first
    end_threads(index)
    end_threads(index)  # no calls, no results
    assert not second.is_alive()


def test_a_cancelled_write_is_done_if_it_has_begun_and_otherwise_never() -> None:
    index = BM25Index()
    begun, go_on = threading.Event(), threading.Event()

    def write() -> None:
        begun.set()
        assert go_on.wait(20)
        index.add(["red"], ids=["begun"])

    async def use() -> None:
        first = asyncio.create_task(in_write_thread(index, write))
        await asyncio.to_thread(begun.wait, 20)
        second = asyncio.create_task(in_write_thread(index, index.add, ["tea"], ids=["waits"]))
        await asyncio.sleep(0)
        for task in (first, second):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        go_on.set()
        await in_write_thread(index, index.add, ["later"], ids=["later"])

    asyncio.run(use())
    assert index.ids() == ["begun", "later"]

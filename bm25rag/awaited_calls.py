"""Threads of an index for calls that are awaited: one for its writes, some for its reads.

Writes to one index wait for one another, so one thread does them all. In asyncio's own few
threads, a hundred waiting writes would block searches and whatever else the application runs
there; in one thread for all indexes, they would block the writes to others. Reads of an owner that
asks for threads of its own wait for nothing that the application does in asyncio's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache, partial
from typing import Literal, ParamSpec, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from bm25rag.common.threads import Task

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Kind: TypeAlias = Literal["write", "read"]
# The owners of the writes that wait for what is done in this context; of each while it lasts.
_WRITING: ContextVar[tuple[list[object], ...]] = ContextVar("_WRITING", default=())


async def in_write_thread(
    owner: object, write: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Call a function in the thread for writes to an index, in the context of the caller.

    The thread starts with the first write, does the writes in the order of the calls, and ends
    with the owner: the index, or an object that stands for it, such as a document store. Where no
    thread can be started, the caller's does the write.

    What a write waits for, such as an async iterable that it reads, cannot wait for the thread,
    too: that is a ``RuntimeError``.
    """
    around = _WRITING.get()
    if any(one is owner for each in around for one in each):
        raise RuntimeError(
            "a write cannot be awaited by what another write to the same index waits for, such as "
            "the async iterable that it reads: each would wait for the other"
        )
    lasting = [owner]

    def work() -> _T:
        _WRITING.set((*around, lasting))
        try:
            return write(*args, **kwargs)
        finally:
            lasting.clear()

    return await _in_thread("write", owner, work)


async def in_read_thread(
    owner: object, read: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Call a function in one of the threads for reads of an index, in the context of the caller."""
    return await _in_thread("read", owner, partial(read, *args, **kwargs))


async def _in_thread(kind: _Kind, owner: object, work: Callable[[], _T]) -> _T:
    import asyncio

    def call() -> _T:
        try:
            return work()
        except StopIteration as error:  # a future would not carry it: nobody would be told
            raise RuntimeError(f"the {kind} raised StopIteration") from error

    task = Task(call)
    while True:
        threads = _threads_of(kind, owner)
        try:
            done = threads.submit(task.help)
        except RuntimeError:  # none can start, or another thread has ended them
            if threads is _threads_of(kind, owner):
                return task.result()
        else:
            await asyncio.wrap_future(done)
            return task.result()


def end_threads(owner: object) -> None:
    """Wait for the calls that an owner's threads were given, and end them.

    A later call starts others.
    """
    for kind in _MOST:
        threads = _threads(kind, os.getpid()).pop(owner, None)
        if threads is not None:
            threads.shutdown()


# How many threads; None for as many as ThreadPoolExecutor thinks right.
_MOST: dict[_Kind, int | None] = {"write": 1, "read": None}


def _threads_of(kind: _Kind, owner: object) -> ThreadPoolExecutor:
    threads = _threads(kind, os.getpid())
    made = threads.get(owner)
    return made or threads.setdefault(owner, ThreadPoolExecutor(_MOST[kind], f"bm25rag-{kind}"))


# One registry for each process: after a fork, the parent's threads do not exist.
@cache
def _threads(kind: _Kind, process: int) -> WeakKeyDictionary[object, ThreadPoolExecutor]:
    return WeakKeyDictionary()

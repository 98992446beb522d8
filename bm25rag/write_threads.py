"""A thread for each index, for writes that are awaited.

Writes to one index wait for one another, so one thread does them all. In asyncio's own few
threads, a hundred waiting writes would block searches and whatever else the application runs
there; in one thread for all indexes, they would block the writes to others.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from bm25rag.common.threads import Task

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def in_write_thread(
    owner: object, write: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Call a function in the thread for writes to an index, in the context of the caller.

    The thread starts with the first write, does the writes in the order of the calls, and ends
    with the owner. Where no thread can be started, the caller's does the write.

    Parameters
    ----------
    owner
        The index that is written to, or an object that stands for it, such as a document store.
    write
        The function.
    *args, **kwargs
        Its arguments.
    """
    import asyncio

    def call() -> _T:
        try:
            return write(*args, **kwargs)
        except StopIteration as error:  # a future would not carry it: nobody would be told
            raise RuntimeError("the write raised StopIteration") from error

    task = Task(call)
    while True:
        thread = _thread_of(owner)
        try:
            done = thread.submit(task.help)
        except RuntimeError:  # it cannot start, or another thread has ended it
            if thread is _thread_of(owner):
                return task.result()
        else:
            await asyncio.wrap_future(done)
            return task.result()


def end_write_thread(owner: object) -> None:
    """Wait for the writes that an owner's thread was given, and end it.

    A later write starts another thread.

    Parameters
    ----------
    owner
        As in ``in_write_thread``.
    """
    thread = _threads(os.getpid()).pop(owner, None)
    if thread is not None:
        thread.shutdown()


def _thread_of(owner: object) -> ThreadPoolExecutor:
    threads = _threads(os.getpid())
    return threads.get(owner) or threads.setdefault(owner, ThreadPoolExecutor(1, "bm25rag-write"))


# One registry for each process: after a fork, the parent's threads do not exist.
@cache
def _threads(process: int) -> WeakKeyDictionary[object, ThreadPoolExecutor]:
    return WeakKeyDictionary()

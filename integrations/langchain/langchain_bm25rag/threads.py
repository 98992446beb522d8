"""Threads for the asynchronous twins of what takes long or waits for its turn.

Writes to one index wait for one another. In asyncio's own threads, of which there are few, a
hundred of them would keep searches, and whatever else the application does there, from running.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from langchain_core.runnables import run_in_executor

from bm25rag import BM25Index

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def in_write_thread(
    index: BM25Index, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Call a function that writes to an index in the thread for writes to this index.

    All that is written to one index, whichever retriever is asked, has one thread. It starts
    with the first write and ends with the index.
    """
    writers = _writers(os.getpid())
    writer = writers.get(index) or writers.setdefault(
        index, ThreadPoolExecutor(1, thread_name_prefix="bm25rag-write")
    )
    return await _run(writer, function, *args, **kwargs)


async def in_build_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function that makes an index in one of the threads that are there for that."""
    return await _run(_builders(os.getpid()), function, *args, **kwargs)


# Of a process, since after a fork the parent's threads are not there.
@cache
def _writers(process: int) -> WeakKeyDictionary[BM25Index, ThreadPoolExecutor]:
    return WeakKeyDictionary()


@cache
def _builders(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="bm25rag-build")


async def _run(
    executor: Executor, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    # LangChain's function copies the context, on which tracing relies, only for asyncio's threads.
    return await run_in_executor(executor, copy_context().run, partial(function, *args, **kwargs))

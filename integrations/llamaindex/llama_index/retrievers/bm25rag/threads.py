"""Threads for the asynchronous twins of writes.

Writes to one index wait for each other, so one thread does them all. In asyncio's own threads, of
which there are few, a hundred waiting writes would keep searches, and whatever else the application
does there, from running; in threads of all indexes, the writes of others.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from bm25rag import BM25Index

_P = ParamSpec("_P")
_T = TypeVar("_T")

# By index, the process that its thread is in, and the thread, which ends with the index.
_threads: WeakKeyDictionary[BM25Index, tuple[int, ThreadPoolExecutor]] = WeakKeyDictionary()


async def in_write_thread(
    index: BM25Index, write: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Run a write in the thread that is there for the writes to an index."""
    context = contextvars.copy_context()
    return await asyncio.wrap_future(
        _thread(index).submit(context.run, partial(write, *args, **kwargs))
    )


def _thread(index: BM25Index) -> ThreadPoolExecutor:
    """Return the thread of an index; after a fork the parent's is not there."""
    process, thread = _threads.get(index, (None, None))
    if thread is None or process != os.getpid():
        thread = ThreadPoolExecutor(1, thread_name_prefix="bm25rag-write")
        _threads[index] = os.getpid(), thread
    return thread

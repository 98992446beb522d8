"""A thread for each index, for writes that are awaited.

Writes to one index wait for one another, so one thread does them all. In asyncio's own threads,
of which there are few, a hundred waiting writes would keep searches, and whatever else the
application does there, from running; in a thread of all indexes, the writes to others.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from bm25rag.index import BM25Index

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def in_write_thread(
    index: BM25Index, write: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Call a function in the thread for writes to an index, in the context of the caller.

    The thread starts with the first write, does the writes in the order of the calls, and ends
    with the index.

    Parameters
    ----------
    index
        The index that is written to.
    write
        What to call.
    *args, **kwargs
        Its arguments.
    """
    import asyncio
    from contextvars import copy_context

    def call() -> _T:
        try:
            return write(*args, **kwargs)
        except StopIteration as error:  # which a future would not carry: nobody would be told
            raise RuntimeError("the write raised StopIteration") from error

    return await asyncio.wrap_future(_thread_of(index).submit(copy_context().run, call))


def _thread_of(index: BM25Index) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # see ``search.search``

    threads = _threads(os.getpid())
    return threads.get(index) or threads.setdefault(
        index, ThreadPoolExecutor(1, thread_name_prefix="bm25rag-write")
    )


# Of a process: after a fork the parent's threads are not there.
@cache
def _threads(process: int) -> WeakKeyDictionary[BM25Index, ThreadPoolExecutor]:
    return WeakKeyDictionary()

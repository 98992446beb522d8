"""Threads for the asynchronous twins of writes.

Writes to one index wait for each other. In asyncio's own threads, of which there are few, a hundred
waiting writes would keep searches, and whatever else the application does there, from running.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_THREADS = 4


async def in_write_thread(write: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a write in a thread that is there for writes."""
    context = contextvars.copy_context()
    return await asyncio.wrap_future(
        _pool(os.getpid()).submit(context.run, partial(write, *args, **kwargs))
    )


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of a process: after a fork the parent's are not there."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="bm25rag-write")

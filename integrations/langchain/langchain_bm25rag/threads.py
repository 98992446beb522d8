"""Threads that build indexes, separate from asyncio's own few threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import ParamSpec, TypeVar

from langchain_core.runnables import run_in_executor

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def in_build_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function that builds an index in one of the threads for that."""
    # Tracing relies on the context, which LangChain's function copies only for asyncio's threads.
    call = partial(copy_context().run, partial(function, *args, **kwargs))
    return await run_in_executor(_builders(os.getpid()), call)


# One pool for each process: after a fork, the parent's threads do not exist.
@cache
def _builders(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="bm25rag-build")

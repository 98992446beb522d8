"""Threads for the asynchronous methods of a store, apart from those of the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple, Unpack

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")


class AsyncThreads:
    """Runs reads beside writes.

    Writes wait for one another, so one thread does them all; reads have threads of their own,
    and so never wait for a write. Threads start when they are needed, and end with the store.
    """

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._readers = ThreadPoolExecutor(thread_name_prefix="bm25rag-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="bm25rag-write")

    async def read(
        self, function: Callable[[Unpack[_Arguments]], _Result], *arguments: *_Arguments
    ) -> _Result:
        """Call a function that reads, in a thread."""
        self._check_process()
        return await _run(self._readers, function, *arguments)

    async def write(
        self, function: Callable[[Unpack[_Arguments]], _Result], *arguments: *_Arguments
    ) -> _Result:
        """Call a function that writes, in a thread, after the writes before it."""
        self._check_process()
        return await _run(self._writer, function, *arguments)

    def close(self) -> None:
        """End the threads, once they have done what they were given."""
        self._check_process()
        ended = self._readers, self._writer
        self._start()
        for pool in ended:
            pool.shutdown()

    def _check_process(self) -> None:
        if self._process != os.getpid():  # threads do not survive a fork
            self._start()


async def _run(
    pool: ThreadPoolExecutor,
    function: Callable[[Unpack[_Arguments]], _Result],
    *arguments: *_Arguments,
) -> _Result:
    # As asyncio.to_thread does: tracing follows the call into the thread.
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(pool, lambda: context.run(function, *arguments))

"""Threads for the asynchronous reads of a store, separate from those of the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple, Unpack

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")


class ReadThreads:
    """Runs reads in threads of their own, where they never wait for a write.

    Threads start when they are needed, and end with the store.
    """

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._pool = ThreadPoolExecutor(thread_name_prefix="bm25rag-read")

    async def run(
        self, read: Callable[[Unpack[_Arguments]], _Result], *arguments: *_Arguments
    ) -> _Result:
        """Call a function that reads, in a thread."""
        self._check_process()
        # As asyncio.to_thread does: tracing follows the call into the thread.
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        while True:
            pool = self._pool
            try:
                done = loop.run_in_executor(pool, lambda: context.run(read, *arguments))
            except RuntimeError:  # at the end of the process, or another thread has closed it
                if pool is self._pool:
                    raise
            else:
                return await done

    def close(self) -> None:
        """End the threads once they have finished what they were given."""
        self._check_process()
        ended = self._pool
        self._start()
        ended.shutdown()

    def _check_process(self) -> None:
        if self._process != os.getpid():  # threads do not survive a fork
            self._start()

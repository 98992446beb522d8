"""Pools of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bm25rag.forks import importing

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


def thread_pool(
    workers: int,
    name: str = "bm25rag",
    initializer: Callable[..., object] | None = None,
    initargs: tuple[Any, ...] = (),
) -> ThreadPoolExecutor:
    """Return a new pool of threads.

    Parameters
    ----------
    workers
        How many threads at most.
    name
        What their names begin with.
    initializer, initargs
        What each thread calls first.
    """
    with importing:  # not at the top: it imports logging, a sixth of our import time
        from concurrent.futures import ThreadPoolExecutor
    return ThreadPoolExecutor(workers, name, initializer, initargs)

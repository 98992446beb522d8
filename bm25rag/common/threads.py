"""Pools of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from bm25rag.forks import importing

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


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


def map_in_order(
    work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int
) -> Iterator[_Result]:
    """Yield the result for each item, in order; at most ``threads`` of them wait in memory."""
    if threads == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[_Result]] = deque()
    pool = thread_pool(threads)
    try:
        for item in items:
            waiting.append(pool.submit(copy_context().run, work, item))
            if len(waiting) == threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)

"""Running jobs on many threads at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context


def together(work: list[Callable[[], None]]) -> None:
    """Run each job on its own thread, on the current backend; raise the first error."""
    with ThreadPoolExecutor(len(work)) as pool:
        futures = [pool.submit(copy_context().run, job) for job in work]
        wait(futures)
    for future in futures:
        future.result()

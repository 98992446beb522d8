"""Work on many threads at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context


def together(work: list[Callable[[], None]]) -> None:
    """Run on a thread each, on the same backend; an error in any of them is this one's."""
    with ThreadPoolExecutor(len(work)) as pool:
        futures = [pool.submit(copy_context().run, job) for job in work]
        wait(futures)
    for future in futures:
        future.result()

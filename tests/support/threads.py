"""Running jobs on many threads at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context

import pytest

from bm25rag.common.threads import Task
from support.waiting import wait_until


def together(work: list[Callable[[], None]]) -> None:
    """Run each job on its own thread, on the current backend; raise the first error."""
    with ThreadPoolExecutor(len(work)) as pool:
        futures = [pool.submit(copy_context().run, job) for job in work]
        wait(futures)
    for future in futures:
        future.result()


def let_helpers_begin(patch: pytest.MonkeyPatch) -> None:
    """Have whoever waits for a task wait until a helper has begun it."""
    result = Task.result

    def wait_and_return(task: Task[object]) -> object:
        wait_until(lambda: task._working.locked() or task.ended)
        return result(task)

    patch.setattr(Task, "result", wait_and_return)

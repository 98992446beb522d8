"""Running jobs on many threads at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from time import sleep
from typing import Any

import pytest

from bm25rag.common.threads import Task


def together(work: list[Callable[[], None]]) -> None:
    """Run each job on its own thread, on the current backend; raise the first error."""
    with ThreadPoolExecutor(len(work)) as pool:
        futures = [pool.submit(copy_context().run, job) for job in work]
        wait(futures)
    for future in futures:
        future.result()


def leave_work_to_helpers(patch: pytest.MonkeyPatch) -> None:
    """Let nobody who waits for a helper's result do the work meanwhile."""
    result = Task.result

    def wait_for_helper(task: Task[Any]) -> Any:
        while not task.ended:
            sleep(0.001)
        return result(task)

    patch.setattr(Task, "result", wait_for_helper)

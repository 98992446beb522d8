"""Threads that help another one, where threads can be started."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Lock, Thread, get_ident
from typing import Any, Generic, Self, TypeVar

from bm25rag.common.gil import work_for_thread

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Task(Generic[_Result]):
    """Some work, done once: by a helper, or by whoever waits for its result, if it comes first.

    Parameters
    ----------
    work
        The work; it is done in the context of the thread that makes the task.
    """

    _result: _Result

    def __init__(self, work: Callable[[], _Result]) -> None:
        self._work = [work]  # until somebody takes it out
        self._context = copy_context()
        self._error: BaseException | None = None
        self._busy = Lock()
        self._busy.acquire()

    def run(self) -> None:
        """Do the work, unless somebody has begun it."""
        try:
            work = self._work.pop()
        except IndexError:
            return
        try:
            self._result = self._context.run(work)
        except BaseException as error:
            self._error = error
        finally:
            self._busy.release()

    def result(self) -> _Result:
        """Return what the work returned, or raise what it raised."""
        self.run()
        with self._busy:
            pass
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # its traceback holds this task
        return self._result


class Helpers:
    """Threads that do tasks for the one that made them; each ends when there is nothing to do.

    Where no thread can be started (in a container that allows few, or in a browser), whoever
    waits for a result does the work. These threads are not those of ``concurrent.futures``, which
    keep what they were given in such a case, wait for more work if Ctrl-C comes at a bad moment,
    and do something at forks, which must not be imported while another thread forks.

    Parameters
    ----------
    most
        How many work at a time, at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: deque[Task[Any]] = deque()
        self._threads: list[Thread] = []
        self._owner = get_ident()

    def submit(self, work: Callable[[], _Result]) -> Callable[[], _Result]:
        """Have some work done; return what waits for its result."""
        task = Task(work)
        self._tasks.append(task)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) < self._most:
            self._start()
        return task.result

    def _start(self) -> None:
        thread = Thread(target=self._help, name="bm25rag")
        try:
            thread.start()
        except RuntimeError:  # "can't start new thread"
            if not self._threads:
                self._tasks.clear()  # whoever waits for them has them
        else:
            self._threads.append(thread)

    def _help(self) -> None:
        work_for_thread(self._owner)
        with suppress(IndexError):  # nothing left
            while True:
                self._tasks.popleft().run()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Drop what nobody has begun, and wait for the rest."""
        self._tasks.clear()
        for thread in self._threads:
            thread.join()


def map_in_order(
    work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int
) -> Iterator[_Result]:
    """Yield the result for each item, in order; at most ``threads`` of them wait in memory."""
    if threads == 1:
        yield from map(work, items)
        return
    waiting: deque[Callable[[], _Result]] = deque()
    with Helpers(threads) as helpers:
        for item in items:
            waiting.append(helpers.submit(partial(work, item)))
            if len(waiting) == threads:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()

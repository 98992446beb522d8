"""Threads that help another one, where threads can be started."""

from __future__ import annotations

from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import copy_context
from copy import copy
from functools import partial
from threading import Lock, get_ident
from time import sleep
from typing import Any, Generic, Self, TypeVar
from weakref import ref

from bm25rag.common.gil import work_for_thread

# Characters or tokens from which another thread pays.
_WORTH_A_THREAD = 1 << 18

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Task(Generic[_Result]):
    """Some work, done once: by a helper, or by whoever waits for its result, if it comes first.

    It is done in the context of the thread that makes the task.
    """

    _result: _Result

    def __init__(self, work: Callable[[], _Result]) -> None:
        self._work: Callable[[], _Result] | None = work  # until it is done, or dropped
        self._context = copy_context()
        self._error: BaseException | None = None
        # Whoever works holds it. Ctrl-C reaches the main thread alone, which takes it by ``with``:
        # that leaves no moment between taking it and being sure to give it up.
        self._working = Lock()

    def help(self) -> None:
        """Do the work, unless somebody does it already."""
        if self._working.acquire(blocking=False):
            try:
                self._do()
            finally:
                self._working.release()

    def result(self) -> _Result:
        """Return what the work returned, or raise what it raised; each time the same."""
        with self._working:
            self._do()
            # Its traceback will hold this task, which must not hold it: so it keeps a copy.
            error, self._error = self._error, _copy_of(self._error)
        if error is not None:
            try:
                raise error
            finally:
                del error
        return self._result

    def drop(self) -> None:
        """Have nobody begin the work; wait for whoever does it."""
        with self._working:
            self._work = None

    @property
    def ended(self) -> bool:
        """Whether the work is done."""
        return self._work is None

    def _do(self) -> None:
        if self._work is None:
            return
        try:
            self._result = self._context.run(self._work)
        except BaseException as error:
            self._error = error
        self._work = None


def _copy_of(error: BaseException | None) -> BaseException | None:
    try:
        return copy(error)
    except Exception:  # of a class that cannot be copied
        return RuntimeError(f"the work raised {error!r:.200}")


class Helpers:
    """Threads, at most ``limit``, that do tasks for the one that made them; they end when idle.

    Where no thread can be started (in a container that allows few, or in a browser), whoever
    waits for a result does the work. These threads are not those of ``concurrent.futures``, which
    keep what they were given in such a case, wait for more work if Ctrl-C comes at a bad moment,
    and do something at forks, which must not be imported while another thread forks.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tasks: deque[Task[Any]] = deque()
        self._given: list[Task[Any]] = []  # those that have not ended
        self._alive: set[ref[Callable[[], None]]] = set()  # what each thread calls
        self._owner = get_ident()

    def submit(self, work: Callable[[], _Result]) -> Callable[[], _Result]:
        """Have some work done; return what waits for its result."""
        task = Task(work)
        self._given = [one for one in self._given if not one.ended]
        self._given.append(task)
        self._tasks.append(task)
        if len(self._alive) < self._limit:
            self._start()
        return task.result

    def start(self, work: Callable[[], _Result], size: int) -> Callable[[], _Result]:
        """Do some work now, or have it done if it is on so many characters or tokens that it pays.

        It returns what waits for the result.
        """
        if self._limit and size >= _WORTH_A_THREAD:
            return self.submit(work)
        result = work()
        return lambda: result

    def _start(self) -> None:
        helper = partial(self._help)  # each is itself, while methods of one object are equal
        try:
            # A thread drops what it calls when it ends, even if it had no memory to call it.
            self._alive.add(ref(helper, self._alive.discard))
            # Not a ``Thread``: its ``start`` waits for ever for one that has no memory to begin.
            start_new_thread(helper, ())
        except RuntimeError:  # "can't start new thread"
            pass
        finally:
            del helper  # which a traceback would keep
        if not self._alive:
            self._tasks.clear()  # whoever waits for them has them

    def _help(self) -> None:
        with suppress(IndexError, MemoryError):  # nothing left, or too little to begin
            work_for_thread(self._owner)
            while True:
                self._tasks.popleft().help()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Drop what nobody has begun, and wait for the rest and for the ends of the threads.

        An interpreter that closes beside one that is about to end is a fatal error.
        """
        self._tasks.clear()
        for task in self._given:
            task.drop()
        while self._alive:
            sleep(1e-5)


def share(items: Iterable[_Item], do: Callable[[_Item], object], threads: int) -> None:
    """Do something with each item on so many threads, of which the calling one is one.

    The first of the others needs a millisecond to start.
    """
    left = iter(list(items))

    def work() -> None:
        for item in left:
            do(item)

    with Helpers(threads - 1) as helpers:
        others = [helpers.submit(work) for _ in range(threads - 1)]
        try:
            work()
        finally:
            list(left)  # after Ctrl-C, leaves nothing for the others
        for wait in others:
            wait()


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

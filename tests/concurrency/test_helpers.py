"""Work that helpers do, and that is done where no thread can be started."""

from __future__ import annotations

import _thread
import asyncio
import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from weakref import ref

import pytest

from bm25rag import BM25Index
from bm25rag.awaited_calls import in_write_thread
from bm25rag.common.threads import Helpers, Task, map_in_order

WHO: ContextVar[str] = ContextVar("who")
TEXTS = [f"red word{n % 997} boat{n % 31} " * 8 for n in range(20_000)]
QUERIES = [f"red word{n % 997}" for n in range(400)]


def limit_threads(patch: pytest.MonkeyPatch, most: int) -> None:
    left = most

    def limit(start: Callable[..., object]) -> Callable[..., object]:
        def start_or_raise(*arguments: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise RuntimeError("can't start new thread")
            return start(*arguments, **options)

        return start_or_raise

    patch.setattr("bm25rag.common.threads.start_new_thread", limit(_thread.start_new_thread))
    for name in ("_start_new_thread", "_start_joinable_thread"):  # before Python 3.13, and since
        if hasattr(threading, name):
            patch.setattr(threading, name, limit(getattr(threading, name)))


@pytest.mark.parametrize("most", [0, 1, 2])
def test_where_few_threads_or_none_can_be_started_the_results_are_the_same(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = BM25Index.from_texts(TEXTS)
    found = expected.search_batch(QUERIES, threads=4)
    limit_threads(monkeypatch, most)
    index = BM25Index()
    index.add(TEXTS, threads=4)
    again = index.search_batch(QUERIES, threads=4)
    assert index.ids() == expected.ids()
    assert again.ids() == found.ids()
    assert again.scores.tobytes() == found.scores.tobytes()
    assert list(map_in_order(str, range(50), 4)) == [str(n) for n in range(50)]


def test_an_awaited_write_is_done_where_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = BM25Index()
    limit_threads(monkeypatch, 0)

    async def run() -> list[str]:
        first = await in_write_thread(index, index.add, ["red"])
        return first + await in_write_thread(index, index.add, ["tea"])

    assert asyncio.run(run()) == ["0", "1"]
    assert len(index) == 2
    with pytest.raises(TypeError):
        asyncio.run(in_write_thread(index, index.add, [None]))  # type: ignore[list-item]


def test_a_helper_works_in_the_context_of_the_caller() -> None:
    WHO.set("caller")

    begun, free = threading.Event(), threading.Event()

    def work() -> tuple[int, str]:
        begun.set()
        free.wait(60)
        return threading.get_ident(), WHO.get()

    with Helpers(1) as helpers:
        wait = helpers.submit(work)
        assert begun.wait(60)
        free.set()
        thread, who = wait()
        assert (thread != threading.get_ident(), who) == (True, "caller")


def test_what_a_helper_raises_is_raised_by_who_waits_and_the_others_are_waited_for() -> None:
    begun, free, ended = threading.Event(), threading.Event(), list[bool]()

    def fail() -> None:
        raise KeyError("x")

    def linger() -> None:
        begun.set()
        free.wait()
        ended.append(True)

    def run(*works: Callable[[], None]) -> None:
        with Helpers(2) as helpers:
            waits = [helpers.submit(work) for work in works]
            assert begun.wait(60)  # what nobody has begun is dropped
            threading.Timer(0.1, free.set).start()
            waits[1]()

    with pytest.raises(KeyError, match="x"):
        run(linger, fail)
    assert ended == [True]


class PeculiarError(Exception):
    """Cannot be copied: it is made of two values, and has one argument."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


@pytest.mark.parametrize(
    "error", [KeyError("x"), PeculiarError("the ", "cause"), KeyboardInterrupt("y")]
)
def test_a_task_is_done_once_and_gives_the_same_each_time(error: BaseException) -> None:
    done = list[int]()

    def fail() -> None:
        done.append(1)
        raise error

    good, bad = Task(lambda: done.append(0)), Task(fail)
    assert good.result() is good.result() is None
    with pytest.raises(type(error), match=str(error)) as first:
        bad.result()
    assert first.value is error
    for _ in range(2):
        with pytest.raises((type(error), RuntimeError), match=str(error)):
            bad.result()
    assert done == [0, 1]


def test_a_task_does_not_hold_what_holds_it() -> None:
    def fail() -> ref[object]:
        def work() -> None:
            raise KeyError("x")

        task = Task(work)
        with suppress(KeyError):
            task.result()
        return ref(task)

    gc.disable()
    try:
        assert fail()() is None
    finally:
        gc.enable()

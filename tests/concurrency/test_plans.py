"""One body for a method and its asynchronous twin."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from bm25rag.plans import Both, Call, Plan, Thread, arun, awaited, naming, planned, run, work


class Store:
    """Says how it was called; each method has its twin under another kind of name."""

    def search(self, text: str) -> str:
        return f"search {text}"

    async def asearch(self, text: str) -> str:
        return f"asearch {text}"

    async def async_add(self, text: str) -> str:
        return f"async_add {text}"

    def add(self, text: str) -> str:
        return f"add {text}"

    async def run_async(self, *, text: str) -> str:
        return f"run_async {text}"

    def run(self, *, text: str) -> str:
        return f"run {text}"

    def plain(self) -> str:
        return threading.current_thread().name

    async def native(self) -> str:
        return "native"

    def fail(self) -> None:
        raise KeyError("lost")


def plan_of(store: Store) -> Plan[list[Any]]:
    told = []
    told.append((yield Call(store, "search", ("a",))))
    told.append((yield Call(store, "add", ("b",))))
    told.append((yield Call(store, "run", (), {"text": "c"})))
    told.append((yield work(len, "four")))
    return told


def wait_for(plan: Plan[Any], light: bool = False) -> Any:
    return asyncio.run(arun(plan, asyncio.to_thread, light=light))


def test_a_plan_calls_the_methods_or_awaits_their_twins() -> None:
    assert run(plan_of(Store())) == ["search a", "add b", "run c", 4]
    expected = ["asearch a", "async_add b", "run_async c", 4]
    assert wait_for(plan_of(Store())) == wait_for(plan_of(Store()), light=True) == expected


def test_what_has_no_twin_is_called_in_the_thread_and_what_is_asynchronous_is_awaited() -> None:
    def plan() -> Plan[list[Any]]:
        main = threading.current_thread().name
        name = yield Call(Store(), "plain")
        return [main, name, (yield Call(Store(), "native"))]

    here = threading.current_thread().name
    between, called, native = wait_for(plan(), light=True)
    assert (between, native) == (here, "native")
    assert called != here
    assert wait_for(plan())[0] != here


@pytest.mark.parametrize("go", [run, wait_for])
def test_a_plan_may_answer_an_error_of_a_call_and_lets_others_through(
    go: Callable[[Plan[Any]], Any],
) -> None:
    def answering() -> Plan[str]:
        try:
            yield Call(Store(), "fail")
        except KeyError as error:
            return f"answered {error}"
        return "not reached"

    def failing() -> Plan[None]:
        with naming("the store", Store(), LookupError):
            yield Call(Store(), "fail")

    assert go(answering()) == "answered 'lost'"
    with pytest.raises(LookupError, match=r"^the store, Store, failed: KeyError: 'lost'$"):
        go(failing())


@pytest.mark.parametrize("go", [run, wait_for])
def test_both_of_two_plans_are_done_and_the_first_that_fails_is_raised(
    go: Callable[[Plan[Any]], Any],
) -> None:
    def one(text: str) -> Plan[str]:
        return (yield work(str.upper, text))

    def fails(error: Exception) -> Plan[None]:
        yield work(len, "")
        raise error

    def both(first: Plan[Any], second: Plan[Any]) -> Plan[Any]:
        return (yield Both(first, second))

    assert list(go(both(one("a"), one("b")))) == ["A", "B"]
    with pytest.raises(ValueError, match="first"):
        go(both(fails(ValueError("first")), fails(TypeError("second"))))
    with pytest.raises(TypeError, match="second"):
        go(both(one("a"), fails(TypeError("second"))))


def test_a_planned_method_is_called_as_any_and_shows_what_it_returns() -> None:
    class Owner:
        @planned
        def search(self, text: str) -> Plan[str]:
            """Find a text."""
            return (yield Call(Store(), "search", (text,)))

    assert Owner().search("a") == "search a"
    assert Owner.search.__doc__ == "Find a text."
    assert Owner.search.__annotations__ == {"text": "str", "return": "str"}
    plan = Owner.search.plan  # type: ignore[attr-defined]  # what twins are made of
    assert wait_for(plan(Owner(), "a")) == "asearch a"


def test_stop_iteration_ends_no_plan_that_it_does_not_end_of_itself() -> None:
    def plan() -> Plan[None]:
        yield work(next, iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        run(plan())


def test_an_awaited_method_does_what_a_subclass_makes_of_it_in_the_objects_threads() -> None:
    def thread_of(owner: Owner) -> Thread:
        return owner.in_thread

    class Owner:
        used = 0

        async def in_thread(self, call: Callable[[], Any]) -> Any:
            self.used += 1
            return await asyncio.to_thread(call)

        def plain(self, text: str) -> str:
            return f"plain {text}"

        @planned
        def asking(self, text: str) -> Plan[str]:
            return (yield Call(Store(), "search", (text,)))

        aplain = awaited(plain, thread_of)
        aasking = awaited(asking, thread_of)

    class Shouting(Owner):
        def plain(self, text: str) -> str:
            return super().plain(text).upper()

    assert asyncio.run(Owner().aasking("a")) == "asearch a"
    one = Shouting()
    assert asyncio.run(one.aplain(text="a")) == "PLAIN A"
    assert one.used == 1
    assert "plain" in (Owner.aplain.__doc__ or "")
    for twin in (Owner.aplain, Owner.aasking):  # Haystack compares those of run and run_async
        assert twin.__annotations__ == {"text": "str", "return": "str"}


def test_who_is_cancelled_does_not_wait_for_a_busy_thread() -> None:
    told: list[str] = []

    class Slow:
        async def asearch(self) -> None:
            await asyncio.sleep(60)

        def search(self) -> None:
            raise AssertionError("it has a twin")

    def plan() -> Plan[None]:
        try:
            yield Call(Slow(), "search")
        finally:
            told.append("ended")

    async def once(call: Callable[[], Any]) -> Any:
        if told:
            await asyncio.sleep(60)
        told.append("begun")
        return call()

    async def use() -> None:
        task = asyncio.create_task(arun(plan(), once))
        await asyncio.sleep(0.01)
        task.cancel()
        async with asyncio.timeout(20):
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(use())
    assert told == ["begun", "ended"]

"""Methods and their asynchronous twins, of one body.

What a subclass overrides holds in both: a filter for a tenant in ``similarity_search`` must hold
in ``asimilarity_search``, too.

A method that calls what has asynchronous methods of its own, such as a vector store, is written as
a plan: a generator that yields steps and is sent their results. ``planned`` makes the synchronous
method of it, ``awaited`` the asynchronous one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from functools import cache, partial, update_wrapper
from inspect import iscoroutinefunction
from itertools import takewhile
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

from langchain_core.runnables import run_in_executor

from bm25rag.adapters import in_write_thread

_P = ParamSpec("_P")
_T = TypeVar("_T")
Thread: TypeAlias = Callable[[Any, partial[Any]], Coroutine[Any, Any, Any]]

# How many elements of an async iterable are waited for together: going from one thread to
# another takes 50 us.
_CHUNK = 100


# --- where synchronous code runs ----------------------------------------------------------


async def reading(_owner: object, call: partial[_T]) -> _T:
    """Call in one of asyncio's threads, with a ``run_manager`` that is not asynchronous."""
    if manager := call.keywords.get("run_manager"):
        call = partial(call, run_manager=manager.get_sync())
    return await run_in_executor(None, call)


async def writing(owner: Any, call: Callable[[], _T]) -> _T:
    """Call in the thread for writes to the index of the owner."""
    return await in_write_thread(owner.index, call)


async def building(_owner: object, call: Callable[[], _T]) -> _T:
    """Call in one of the threads that build indexes, separate from asyncio's own few threads."""
    # Tracing relies on the context, which LangChain's function copies only for asyncio's threads.
    return await run_in_executor(_builders(os.getpid()), partial(copy_context().run, call))


# One pool for each process: after a fork, the parent's threads do not exist.
@cache
def _builders(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="bm25rag-build")


# --- plans --------------------------------------------------------------------------------


class Step(NamedTuple):
    """A call of a method, or of its twin with an a in front; without one, in a thread."""

    owner: Any
    method: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Both(NamedTuple):
    """Two plans, one after the other or side by side; the first that fails is raised."""

    first: Plan[Any]
    second: Plan[Any]


class _End(NamedTuple):
    value: Any


Plan: TypeAlias = Generator[Step | Both, Any, _T]


def work(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Step:
    """Return the step of calling a function that has no asynchronous twin."""
    return Step(partial(function, *args, **kwargs), "__call__")


def run(plan: Plan[_T]) -> _T:
    """Take all steps, and return the result of the plan."""
    go_on: Callable[[Any], Any] = plan.send
    given: Any = None
    try:
        while True:
            step = go_on(given)
            try:
                if isinstance(step, Both):
                    given = [run(each) for each in step]
                else:
                    owner, method, args, kwargs = step
                    given = getattr(owner, method)(*args, **kwargs)
                go_on = plan.send
            except BaseException as error:
                go_on, given = plan.throw, error
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        del given  # it may be an error, whose traceback holds this frame


async def _arun(plan: Plan[_T], owner: Any, thread: Thread) -> _T:
    """Do what ``run`` does, with asynchronous methods; what has none is called in the thread."""
    go_on: Callable[[Any], Any] = plan.send
    given: Any = None
    try:
        while True:
            if thread is reading:  # what such plans do between the steps takes microseconds
                step = _after(go_on, given)
            else:
                step = await thread(owner, partial(_after, go_on, given))
            if isinstance(step, _End):
                return step.value  # type: ignore[no-any-return]
            try:
                go_on, given = plan.send, await _atake(step, owner, thread)
            except BaseException as error:
                go_on, given = plan.throw, error
    finally:
        del given


async def _atake(step: Step | Both, owner: Any, thread: Thread) -> Any:
    if isinstance(step, Both):
        runs = [_arun(plan, owner, thread) for plan in step]
        answers = await asyncio.gather(*runs, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return answers
    has_twin = hasattr(step.owner, f"a{step.method}")
    method = getattr(step.owner, f"a{step.method}" if has_twin else step.method)
    call = partial(method, *step.args, **step.kwargs)
    # Those of asynchronous callback managers have the name of the synchronous ones.
    return await (call() if has_twin or iscoroutinefunction(method) else thread(owner, call))


def _after(go_on: Callable[[Any], Any], given: Any) -> Any:
    try:
        return go_on(given)
    except StopIteration as end:  # which no future can hold
        return _End(end.value)


def traced(
    parent: Any, name: str, query: str, plan: Plan[_T], found: Callable[[_T], Any]
) -> Plan[_T]:
    """Follow a plan within a run of its own, as LangChain's tracers show it.

    ``parent`` is the callback manager of the run that it is a part of, synchronous or not, and
    ``found`` returns the documents of the plan's result.
    """
    if not parent.inheritable_handlers:  # nobody looks
        return (yield from plan)
    started = {"name": name}
    run = yield Step(parent.get_child(), "on_retriever_start", (None, query), started)
    try:
        answer = yield from plan
    except BaseException as error:
        yield Step(run, "on_retriever_error", (error,))
        raise
    yield Step(run, "on_retriever_end", (found(answer),))
    return answer


# --- methods ------------------------------------------------------------------------------


def planned(plan: Callable[_P, Plan[_T]]) -> Callable[_P, _T]:
    """Make a synchronous method of a plan."""

    def method(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return run(plan(*args, **kwargs))

    update_wrapper(method, plan)
    method.plan = plan  # type: ignore[attr-defined]
    # What ``help`` and editors show follows to the plan.
    result = plan.__annotations__["return"].removeprefix("Plan[").removesuffix("]")
    plan.__annotations__["return"] = result
    return method


def awaited(
    function: Callable[_P, _T],
    thread: Thread,
    *through: Any,
    native: Callable[..., Any] | None = None,
) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """Make the asynchronous twin of a method; it takes async iterables, too.

    What a subclass has overridden is run in its place. It gets the elements of an async iterable
    as a list, and may read it twice. So it is if it overrides one of the methods ``through`` which
    the elements are passed on.

    The thread, ``reading``, ``writing`` or ``building``, is for what is not ``planned``. ``native``
    does the same asynchronously.
    """
    own: Any = getattr(function, "__func__", function)

    async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        twin = _twin(self, own.__name__, method)
        is_own = _is(twin, own)
        if is_own and native is not None:
            return await native(self, *args, **kwargs)
        with ExitStack() as stack:
            if any(isinstance(value, AsyncIterable) for value in (*args, *kwargs.values())):
                listed = not (is_own and all(_is(getattr(self, f.__name__), f) for f in through))
                args = tuple([await _ready(value, listed, stack) for value in args])
                kwargs = {name: await _ready(one, listed, stack) for name, one in kwargs.items()}
            if plan := getattr(twin, "plan", None):
                return await _arun(plan(self, *args, **kwargs), self, thread)
            return await thread(self, partial(twin, *args, **kwargs))

    update_wrapper(method, own)  # its signature, too
    bare = own.__name__.lstrip("_")
    name = f"{own.__name__.removesuffix(bare)}a{bare}"
    method.__name__, method.__qualname__ = name, own.__qualname__.replace(own.__name__, name)
    method.__doc__ = f"Do what ``{own.__name__}`` does while the event loop goes on."
    return method  # type: ignore[return-value]


def awaits(
    function: Callable[_P, _T], thread: Thread, *through: Any
) -> Callable[[Callable[..., object]], Callable[_P, Coroutine[Any, Any, _T]]]:
    """Make the same in place of a stub, which type checkers need where a method is overridden."""

    def decorate(stub: Callable[..., object]) -> Any:
        method = awaited(function, thread, *through)
        method.__doc__ = stub.__doc__
        return method

    return decorate


def streams(
    function: Any, thread: Thread, *through: Any
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Make the same under the types of the stub, which name async iterables."""
    decorate: Any = awaits(function, thread, *through)
    return decorate  # type: ignore[no-any-return]


def _is(method: Any, function: object) -> bool:
    return getattr(method, "__func__", method) is function


def _twin(owner: Any, name: str, asynchronous: Callable[..., object]) -> Any:
    """Return the synchronous method that an asynchronous one stands for.

    A subclass that overrides both, and in the asynchronous one calls ours by ``super()``, has done
    there what it does in the other: then it is the one above it.
    """
    cls = owner if isinstance(owner, type) else type(owner)
    caller = None
    for one in (owner, *cls.__mro__):
        names = getattr(one, "__dict__", {})
        here = names.get(asynchronous.__name__)
        if getattr(here, "__func__", here) is asynchronous:
            break
        if here is not None:
            caller = one if isinstance(one, type) else None
        elif name in names and caller is None:
            break
    return getattr(owner if caller is None else super(caller, owner), name)


# --- elements of async iterables ------------------------------------------------------


async def _ready(value: Any, listed: bool, stack: ExitStack) -> Any:
    if not isinstance(value, AsyncIterable):
        return value
    return [each async for each in value] if listed else stack.enter_context(_pulled(value))


@contextmanager
def _pulled(elements: AsyncIterable[_T]) -> Iterator[Iterator[_T]]:
    """Give another thread the elements, a few at a time, while the event loop waits for it.

    If the waiting task is cancelled, the other thread gets an error.
    """
    loop, iterator, waits = asyncio.get_running_loop(), aiter(elements), [True]

    def chunk() -> list[_T]:
        taken = asyncio.run_coroutine_threadsafe(_next_few(iterator), loop).result()
        if not waits:
            message = "the task that awaited this has been cancelled"
            raise RuntimeError(message)
        return taken

    try:
        yield (each for few in takewhile(len, iter(chunk, None)) for each in few)
    finally:
        waits.clear()


async def _next_few(elements: AsyncIterator[_T]) -> list[_T]:
    taken: list[_T] = []
    while len(taken) < _CHUNK:
        try:
            taken.append(await anext(elements))
        except StopAsyncIteration:
            break
    return taken

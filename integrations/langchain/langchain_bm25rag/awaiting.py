"""Asynchronous twins of methods.

What a subclass overrides holds in both: a filter for a tenant in ``similarity_search`` must hold
in ``asimilarity_search``, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, update_wrapper
from itertools import takewhile
from typing import Any, ParamSpec, TypeAlias, TypeVar

from langchain_core.runnables import run_in_executor

from bm25rag.adapters import Call, Plan, arun, in_read_thread, in_write_thread

_P = ParamSpec("_P")
_T = TypeVar("_T")
Thread: TypeAlias = Callable[[Any, Any], Coroutine[Any, Any, Any]]

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


# Indexes are built in threads of their class, apart from asyncio's own few.
building: Thread = in_read_thread


def traced(
    parent: Any, name: str, query: str, plan: Plan[_T], documents_of: Callable[[_T], Any]
) -> Plan[_T]:
    """Follow a plan within a run of its own, as LangChain's tracers show it.

    ``parent`` is the callback manager of the run that it is a part of, synchronous or not, and
    ``documents_of`` returns the documents of the plan's result.
    """
    if not parent.inheritable_handlers:  # nobody looks
        return (yield from plan)
    started = {"name": name}
    run = yield Call(parent.get_child(), "on_retriever_start", (None, query), started)
    try:
        answer = yield from plan
    except BaseException as error:
        yield Call(run, "on_retriever_error", (error,))
        raise
    yield Call(run, "on_retriever_end", (documents_of(answer),))
    return answer


# --- methods ------------------------------------------------------------------------------


def awaited(
    function: Callable[_P, _T],
    thread: Thread,
    *through: Any,
    native: Callable[..., Any] | None = None,
) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """Make the asynchronous twin of a method; it takes async iterables, too.

    What a subclass has overridden is run in its place. It gets the elements of an async iterable
    as a list, which it may read twice. So do overrides of ``through``, the methods to which
    ``function`` passes the elements on.

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
                made, light = plan(self, *args, **kwargs), thread is reading
                return await arun(made, partial(thread, self), light=light)
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
            raise RuntimeError("the task that awaited this has been cancelled")
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

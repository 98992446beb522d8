"""Asynchronous methods by their synchronous twins, in threads.

What a subclass overrides holds in both: a filter for a tenant in ``similarity_search`` must hold
in ``asimilarity_search``, too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from functools import cache, partial, update_wrapper
from itertools import takewhile
from typing import Any, ParamSpec, TypeAlias, TypeVar

from langchain_core.runnables import run_in_executor

from bm25rag.adapters import in_write_thread

_P = ParamSpec("_P")
_T = TypeVar("_T")
Thread: TypeAlias = Callable[[Any, partial[Any]], Coroutine[Any, Any, Any]]

# How many elements of an async iterable are waited for together: going from one thread to
# another takes 50 us.
_CHUNK = 100


async def reading(_owner: object, call: Callable[[], _T]) -> _T:
    """Call in one of asyncio's threads."""
    return await run_in_executor(None, call)


async def asking(_owner: object, call: partial[_T]) -> _T:
    """Call in one of asyncio's threads, with a ``run_manager`` that is not asynchronous."""
    manager = call.keywords.get("run_manager")
    if manager is not None:
        call = partial(call, run_manager=manager.get_sync())
    return await run_in_executor(None, call)


async def writing(owner: Any, call: Callable[[], _T]) -> _T:
    """Call in the thread for writes to the index of the owner."""
    return await in_write_thread(owner.index, call)


async def building(_owner: object, call: Callable[[], _T]) -> _T:
    """Call in one of the threads that build indexes, separate from asyncio's own few threads."""
    # Tracing relies on the context, which LangChain's function copies only for asyncio's threads.
    return await run_in_executor(_builders(os.getpid()), partial(copy_context().run, call))


def runs(
    function: Callable[_P, _T], thread: Thread
) -> Callable[[Callable[..., object]], Callable[_P, Coroutine[Any, Any, _T]]]:
    """Make an asynchronous method that runs the synchronous one in a thread.

    Parameters
    ----------
    function
        The synchronous method. What a subclass has in its place is run instead.
    thread
        ``reading``, ``writing`` or ``building``.
    """

    def decorate(stub: Callable[..., object]) -> Any:
        async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            twin = _twin(self, function.__name__, method)
            return await thread(self, partial(twin, *args, **kwargs))

        return _named(method, stub, function)

    return decorate


def mirrors(function: Any, thread: Thread) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Make an asynchronous method that awaits what the synchronous one calls.

    Where a subclass has overridden the synchronous one, that is run in a thread.

    Parameters
    ----------
    function
        The synchronous method, which does the same.
    thread
        As for ``runs``.
    """
    own = getattr(function, "__func__", function)

    def decorate(native: Any) -> Any:
        async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            twin = _twin(self, own.__name__, method)
            if _is(twin, own):
                return await native(self, *args, **kwargs)
            values = [await gathered(value) for value in args]
            named = {name: await gathered(value) for name, value in kwargs.items()}
            return await thread(self, partial(twin, *values, **named))

        return _named(method, native, own)

    return decorate


def streams(
    function: Any, thread: Thread, *through: Any
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Make an asynchronous method that runs the synchronous one, and takes async iterables too.

    What a subclass has overridden gets their elements as a list, and may read it twice.

    Parameters
    ----------
    function, thread
        As for ``runs``.
    *through
        Other methods that ``function`` passes the elements on to.
    """
    own = getattr(function, "__func__", function)

    def decorate(stub: Any) -> Any:
        async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            twin = _twin(self, own.__name__, method)
            passed_on = ((getattr(self, one.__name__), one) for one in through)
            listed = not all(_is(*pair) for pair in ((twin, own), *passed_on))
            with ExitStack() as stack:

                async def ready(value: Any) -> Any:
                    return await gathered(value) if listed else stack.enter_context(pulled(value))

                values = [await ready(value) for value in args]
                named = {name: await ready(value) for name, value in kwargs.items()}
                return await thread(self, partial(twin, *values, **named))

        return _named(method, stub, own)

    return decorate


def _is(method: Any, function: object) -> bool:
    return getattr(method, "__func__", method) is function


def _named(method: Any, stub: Callable[..., object], function: Callable[..., object]) -> Any:
    update_wrapper(method, function)  # its signature, too
    method.__name__, method.__qualname__ = stub.__name__, stub.__qualname__
    method.__doc__ = stub.__doc__
    return method


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


async def gathered(value: Any) -> Any:
    """Return the elements of an async iterable, or any other value as it is."""
    return [each async for each in value] if isinstance(value, AsyncIterable) else value


@contextmanager
def pulled(elements: Any) -> Iterator[Any]:
    """Give what another thread iterates over, while the event loop waits for that thread.

    Parameters
    ----------
    elements
        What is iterated over: an async iterable in this event loop, a few elements at a time. If
        the waiting task is cancelled, the other thread gets an error. Anything else stays as it is.
    """
    if not isinstance(elements, AsyncIterable):
        yield elements
        return
    loop, iterator, waits = asyncio.get_running_loop(), aiter(elements), [True]

    def chunk() -> list[Any]:
        taken = asyncio.run_coroutine_threadsafe(_take(iterator), loop).result()
        if not waits:
            message = "the task that awaited this has been cancelled"
            raise RuntimeError(message)
        return taken

    try:
        yield (each for few in takewhile(len, iter(chunk, None)) for each in few)
    finally:
        waits.clear()


async def _take(elements: AsyncIterator[_T]) -> list[_T]:
    taken: list[_T] = []
    while len(taken) < _CHUNK:
        try:
            taken.append(await anext(elements))
        except StopAsyncIteration:
            break
    return taken


# One pool for each process: after a fork, the parent's threads do not exist.
@cache
def _builders(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="bm25rag-build")

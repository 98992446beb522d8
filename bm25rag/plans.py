"""Methods that ask other objects, of one body for those who call them and those who await them.

A plan is a generator that yields calls, such as one of a vector store, and is sent their results;
an error of a call is raised in it, too. ``run`` makes the calls. ``arun`` awaits the asynchronous
twins of what is called, ``asearch``, ``async_search`` or ``search_async`` of ``search``, and calls
what has none in a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from functools import partial, update_wrapper
from inspect import iscoroutinefunction
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Owner = TypeVar("_Owner")

Thread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function in another thread."""


class Call(NamedTuple):
    """A call of a method of an object, by its synchronous name, or of its asynchronous twin."""

    owner: Any
    method: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Both(NamedTuple):
    """Two plans, one after the other or side by side; the first that fails is raised."""

    first: Plan[Any]
    second: Plan[Any]


Plan: TypeAlias = Generator[Call | Both, Any, _T]
"""What yields calls, and returns a result."""


class _End(NamedTuple):
    value: Any


def work(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Call:
    """Return the call of a function that has no asynchronous twin."""
    return Call(partial(function, *args, **kwargs), "__call__")


def planned(plan: Callable[_P, Plan[_T]]) -> Callable[_P, _T]:
    """Make a synchronous method of a plan, which is the method's attribute ``plan``."""

    def method(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return run(plan(*args, **kwargs))

    update_wrapper(method, plan)
    method.plan = plan  # type: ignore[attr-defined]
    # What ``help`` and editors show, which may follow to the plan.
    result = plan.__annotations__["return"].removeprefix("Plan[").removesuffix("]")
    annotations = {**plan.__annotations__, "return": result}
    method.__annotations__ = plan.__annotations__ = annotations
    # What wraps the method copies this since Python 3.14, and not the annotations.
    method.__annotate__ = lambda _: annotations  # type: ignore[attr-defined]
    return method


def awaited(
    method: Callable[Concatenate[_Owner, _P], _T],
    thread_of: Callable[[_Owner], Thread],
    name: str | None = None,
) -> Callable[Concatenate[_Owner, _P], Coroutine[Any, Any, _T]]:
    """Return the asynchronous twin of a method, which does what a subclass makes of the method.

    If the method is ``planned``, the calls of its plan are awaited; the rest is done in the threads
    that ``thread_of`` returns for the object. ``name`` is that under which the object has the
    method, if it is not the function's.
    """
    own = name or method.__name__

    async def twin(self: _Owner, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        call, thread = getattr(self, own), thread_of(self)
        if plan := getattr(call, "plan", None):
            return await arun(plan(self, *args, **kwargs), thread)
        result: _T = await thread(partial(call, *args, **kwargs))
        return result

    update_wrapper(twin, method)
    twin.__doc__ = f"Run ``{own}`` in a thread, and await what it asks of others."
    return twin


def run(plan: Plan[_T]) -> _T:
    """Make all calls, and return the result of the plan."""
    go_on: Callable[[Any], Any] = plan.send
    given: Any = None
    try:
        while True:
            call = go_on(given)
            try:
                if isinstance(call, Both):
                    given = [run(each) for each in call]
                else:
                    owner, method, args, kwargs = call
                    given = getattr(owner, method)(*args, **kwargs)
                go_on = plan.send
            except BaseException as error:
                go_on, given = plan.throw, error
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        del given  # it may be an error, whose traceback holds this frame


async def arun(plan: Plan[_T], thread: Thread, *, light: bool = False) -> _T:
    """Do what ``run`` does, awaiting the calls; ``thread`` calls what has no asynchronous twin.

    ``light``: what the plan does between its calls takes microseconds, and is done on the event
    loop; otherwise in the thread, too.
    """
    go_on: Callable[[Any], Any] = plan.send
    given: Any = None
    try:
        while True:
            step = partial(_after, go_on, given)
            # Who is cancelled does not wait for a thread that may be busy.
            ends = isinstance(given, BaseException) and not isinstance(given, Exception)
            call = step() if light or ends else await thread(step)
            if isinstance(call, _End):
                return call.value  # type: ignore[no-any-return]
            try:
                go_on, given = plan.send, await _take(call, thread, light)
            except BaseException as error:
                go_on, given = plan.throw, error
    finally:
        del given


async def _take(call: Call | Both, thread: Thread, light: bool) -> Any:
    if isinstance(call, Both):
        import asyncio

        runs = [arun(plan, thread, light=light) for plan in call]
        answers = await asyncio.gather(*runs, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return answers
    owner, name, args, kwargs = call
    twins = (getattr(owner, one, None) for one in (f"a{name}", f"async_{name}", f"{name}_async"))
    twin = next((one for one in twins if one is not None), None)
    method = getattr(owner, name) if twin is None else twin
    made = partial(method, *args, **kwargs)
    # Asynchronous methods of LangChain's callback managers have the name of the synchronous ones.
    awaits = twin is not None or iscoroutinefunction(method)
    return await (made() if awaits else thread(made))


def _after(go_on: Callable[[Any], Any], given: Any) -> Any:
    try:
        return go_on(given)
    except StopIteration as end:  # which no future can hold
        return _End(end.value)


@contextmanager
def naming(what: str, owner: object, kind: type[Exception] = RuntimeError) -> Iterator[None]:
    """Raise an error that names what failed, by its owner's class, ``from`` the failure."""
    try:
        yield
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise kind(f"{what}, {type(owner).__name__}, failed: {why}") from error

"""Asynchronous versions of methods: each runs its method in a thread of the store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from bm25rag.adapters import arun, in_read_thread, in_write_thread

_Owner = TypeVar("_Owner")
_P = ParamSpec("_P")
_T = TypeVar("_T")
_Method = Callable[Concatenate[_Owner, _P], _T]
_Awaited = Callable[Concatenate[_Owner, _P], Coroutine[Any, Any, _T]]


def reads(method: _Method[_Owner, _P, _T]) -> _Awaited[_Owner, _P, _T]:
    """Return the asynchronous version of a method that reads a store."""
    return _in_thread(method, in_read_thread)


def writes(method: _Method[_Owner, _P, _T]) -> _Awaited[_Owner, _P, _T]:
    """Return the asynchronous version of a method that writes to a store."""
    return _in_thread(method, in_write_thread)


def _in_thread(
    method: _Method[_Owner, _P, _T], in_thread: Callable[..., Coroutine[Any, Any, Any]]
) -> _Awaited[_Owner, _P, _T]:
    name = method.__name__

    @wraps(method)
    async def version(self: _Owner, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        store = getattr(self, "document_store", self)  # of a retriever
        call = getattr(self, name)  # what a subclass has in its place
        if plan := getattr(call, "plan", None):
            return await arun(plan(self, *args, **kwargs), partial(in_thread, store))
        result: _T = await in_thread(store, call, *args, **kwargs)
        return result

    version.__name__ = f"{name}_async"
    version.__qualname__ = f"{method.__qualname__}_async"
    version.__doc__ = f"Run ``{name}`` in a thread of the store."
    return version

"""Asynchronous versions of methods: each runs its method in threads of the store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from bm25rag.adapters import Thread, awaited, in_read_thread, in_write_thread

_Owner = TypeVar("_Owner")
_P = ParamSpec("_P")
_T = TypeVar("_T")
_Method = Callable[Concatenate[_Owner, _P], _T]
_Awaited = Callable[Concatenate[_Owner, _P], Coroutine[Any, Any, _T]]


def reads(method: _Method[_Owner, _P, _T]) -> _Awaited[_Owner, _P, _T]:
    """Return the asynchronous version of a method that reads a store, or that of a retriever."""
    return _named(awaited(method, _reading))


def writes(method: _Method[_Owner, _P, _T]) -> _Awaited[_Owner, _P, _T]:
    """Return the asynchronous version of a method that writes to a store."""
    return _named(awaited(method, lambda store: partial(in_write_thread, store)))


def _reading(owner: Any) -> Thread:
    return partial(in_read_thread, getattr(owner, "document_store", owner))


def _named(version: _Method[_Owner, _P, _T]) -> _Method[_Owner, _P, _T]:
    version.__name__ += "_async"
    version.__qualname__ += "_async"
    return version

"""Asynchronous methods that do what a subclass makes of their synchronous twins.

Some asynchronous methods do more than run their twin in a thread: they await a dense store, or the
objects of index nodes. But a subclass may override the synchronous method alone, to add the filter
of a tenant, say. It gets an asynchronous one that runs it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from bm25rag.adapters import Thread, awaited, in_write_thread

_P = ParamSpec("_P")
_T = TypeVar("_T")

_WRITES = {"add", "add_nodes", "clear", "delete", "delete_nodes", "delete_ref_doc"}
_WRITES |= {"persist", "sync", "update_metadata"}


def add_twins(kind: type) -> None:
    """Give a new class the asynchronous methods that do what its synchronous ones do.

    Where a class or its bases override both, theirs stay; each may call ours.
    """
    for name, asynchronous in pairs_of(kind):
        if _place(kind, name) < _place(kind, asynchronous):
            setattr(kind, asynchronous, in_thread(getattr(kind, name), name))


def pairs_of(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the methods of a class that have an asynchronous twin, with its name."""
    names = set(dir(kind))
    for name in sorted(names):
        bare = name.removeprefix("_")
        for asynchronous in (f"{name[: len(name) - len(bare)]}a{bare}", f"async_{name}"):
            if asynchronous in names and callable(getattr(kind, asynchronous)):
                yield name, asynchronous


def _place(kind: type, name: str) -> int:
    """Return which of a class and its bases, in the order of inheritance, has a method."""
    return next(place for place, each in enumerate(kind.__mro__) if name in vars(each))


def in_thread(
    method: Callable[_P, _T], name: str | None = None
) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """Return the asynchronous twin of a method, which does what a subclass makes of the method."""
    own = name or method.__name__
    plain: Any = awaited(method, _writing if own in _WRITES else lambda _: asyncio.to_thread, own)

    @wraps(plain)
    async def twin(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "query_bundle" in kwargs:  # awaited by keyword but called by position: names may differ
            args = (*args, kwargs.pop("query_bundle"))
        return await plain(self, *args, **kwargs)

    vars(twin).update(__signature__=inspect.signature(method))
    del vars(twin)["__wrapped__"]  # or it would pass for a synchronous function
    return twin  # type: ignore[return-value]  # of the same arguments


def _writing(owner: Any) -> Thread:
    # A store's own ``bm25`` looks for a newer commit of its folder, and may wait for a refresh.
    return partial(in_write_thread, getattr(owner, "_nodes", owner).bm25)

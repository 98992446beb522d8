"""Asynchronous methods that do what a subclass makes of their synchronous twins.

Most asynchronous methods here do more than run their twin in a thread: they await a dense store, or
the objects of index nodes. But a subclass may override the synchronous method alone, to add the
filter of a tenant, say. It gets an asynchronous one that runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from typing import Any

from bm25rag.adapters import in_write_thread

_WRITES = frozenset(
    {
        "add",
        "add_nodes",
        "clear",
        "delete",
        "delete_nodes",
        "delete_ref_doc",
        "persist",
        "sync",
        "update_metadata",
    }
)


def add_twins(kind: type) -> None:
    """Give a new class the asynchronous methods that do what its synchronous ones do.

    Where a class or its bases override both, theirs stay; each may call ours.
    """
    for name, asynchronous in pairs_of(kind):
        if _place(kind, name) < _place(kind, asynchronous):
            setattr(kind, asynchronous, _in_thread(name, asynchronous, getattr(kind, name)))


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


def _in_thread(
    name: str, asynchronous: str, method: Callable[..., Any]
) -> Callable[..., Coroutine[Any, Any, Any]]:
    @wraps(method)
    async def twin(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "query_bundle" in kwargs:  # awaited by keyword but called by position: names may differ
            args = (*args, kwargs.pop("query_bundle"))
        if name in _WRITES:
            return await in_write_thread(self.bm25, method, self, *args, **kwargs)
        return await asyncio.to_thread(method, self, *args, **kwargs)

    twin.__name__ = asynchronous
    twin.__doc__ = f"Run ``{name}`` in a thread."
    return twin

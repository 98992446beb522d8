"""The one place that picks who runs the hot loops.

A backend is a module with the functions of ``kernels_numpy``, which give the same
ids, order and bits. ``use`` forces one, for tests.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType

from bm25rag._types import check_choice

_MODULES = {"numpy": "bm25rag.kernels_numpy"}

_forced: ContextVar[str | None] = ContextVar("bm25rag_backend", default=None)


def available() -> tuple[str, ...]:
    """Return the names of the backends that can run here."""
    return tuple(_MODULES)


def kernels() -> ModuleType:
    """Return the module whose functions score and rank."""
    return importlib.import_module(_MODULES[_forced.get() or "numpy"])


@contextmanager
def use(name: str) -> Iterator[None]:
    """Force a backend within a ``with`` block, in this thread.

    Raises
    ------
    ValueError
        If there is none of that name here.
    """
    token = _forced.set(check_choice("name", name, available()))
    try:
        yield
    finally:
        _forced.reset(token)

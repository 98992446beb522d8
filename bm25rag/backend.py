"""The one place that picks who runs the hot loops.

A backend is a module with the functions of ``kernels_numpy``, which give the same
ids, order and bits: that module itself, or ``kernels``, compiled by Numba. Loading
Numba takes a second or so, hence NumPy answers until there is work that pays for it
or ``warmup`` is called. ``use`` forces a backend, for tests.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType

from bm25rag.common.checks import check_choice

_MODULES = {"numba": "bm25rag.kernels", "numpy": "bm25rag.kernels_numpy"}
# Postings, documents or bytes of text that NumPy gets through in half a second or so.
_WORTH_COMPILING = 20_000_000

_forced: ContextVar[str | None] = ContextVar("bm25rag_backend", default=None)


def available() -> tuple[str, ...]:
    """Return the names of the backends that can run here, the fastest first."""
    from importlib.util import find_spec

    numba = find_spec("numba") is not None
    return tuple(_MODULES) if numba else ("numpy",)


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


def kernels(work: int = 0) -> ModuleType:
    """Return the module whose functions score and rank.

    Parameters
    ----------
    work
        How many postings, documents or bytes there are to go through.
    """
    name = _forced.get()
    if name is None:
        loaded = _MODULES["numba"] in sys.modules
        pays = loaded or (work >= _WORTH_COMPILING and "numba" in available())
        name = "numba" if pays else "numpy"
    return importlib.import_module(_MODULES[name])


@contextmanager
def use(name: str) -> Iterator[None]:
    """Force a backend within a ``with`` block, in this thread and those it starts.

    Parameters
    ----------
    name
        One of ``available()``.

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

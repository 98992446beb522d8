"""The one place that picks who runs the hot loops.

A backend is ``compiled`` or its twin in NumPy. Loading Numba takes a second or so, hence NumPy
answers until there is work that pays for it or ``warmup`` is called. ``use`` forces a backend,
for tests.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bm25rag.common.checks import check_choice
from bm25rag.kernels.boundary import Backend
from bm25rag.kernels.numpy_twin import NumpyBackend

_NUMPY = NumpyBackend()
# Postings, documents or bytes of text that NumPy gets through in half a second or so.
_WORTH_COMPILING = 20_000_000

_forced: ContextVar[str | None] = ContextVar("bm25rag_backend", default=None)


def available() -> tuple[str, ...]:
    """Return the names of the backends that can run here, the fastest first."""
    from importlib.util import find_spec

    return ("compiled", "numpy") if find_spec("numba") is not None else ("numpy",)


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


def current(work: int = 0) -> Backend:
    """Return the backend to use.

    Parameters
    ----------
    work
        How many postings, documents or bytes there are to go through.
    """
    name = _forced.get()
    if name is None:
        loaded = "bm25rag.kernels.compiled" in sys.modules
        pays = loaded or (work >= _WORTH_COMPILING and "compiled" in available())
        name = "compiled" if pays else "numpy"
    if name == "numpy":
        return _NUMPY
    from bm25rag.kernels.compiled import CompiledBackend

    return CompiledBackend()


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

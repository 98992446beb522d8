"""The one place that picks who runs the hot loops.

That is ``compiled``, or its twin in NumPy where no compiled code can be loaded, which is said
in a warning. ``use`` forces a backend, for tests. The environment variable ``BM25RAG_KERNELS``
does so for a process: ``numpy``, or ``interpreted`` to run the compiled backend from its
sources, a thousand times slower, for coverage and to step through it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from bm25rag.common.checks import check_choice
from bm25rag.kernels.boundary import Backend

_forced: ContextVar[Backend | None] = ContextVar("bm25rag_backend", default=None)
# What runs where none is forced, once it has been asked for.
_usual: Backend | None = None


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


def available() -> tuple[str, ...]:
    """Return the names of the backends that can run here, the fastest first."""
    return ("numpy",) if why_not_compiled() else ("compiled", "numpy")


def why_not_compiled() -> str | None:
    """Return why the compiled backend cannot run here; ``None`` if it can."""
    loaded = _load()
    return loaded if isinstance(loaded, str) else None


def current() -> Backend:
    """Return the backend to use."""
    return _forced.get() or _usual or _default()


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
    token = _forced.set(_named(check_choice("name", name, available())))
    try:
        yield
    finally:
        _forced.reset(token)


def chosen() -> str:
    """Return the name of the backend that runs where none is forced."""
    return "numpy" if _asks_for_numpy() else available()[0]


def _asks_for_numpy() -> bool:
    return os.environ.get("BM25RAG_KERNELS") == "numpy"


def _default() -> Backend:
    global _usual
    reason = None if _asks_for_numpy() else why_not_compiled()
    if reason is not None and sys.platform != "emscripten":  # which has nothing else
        message = f"bm25rag runs in NumPy, many times slower than compiled: {reason}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    _usual = _named(chosen())
    return _usual


@cache
def _named(name: str) -> Backend:
    loaded = _load()
    if name != "numpy" and not isinstance(loaded, str):
        return loaded
    from bm25rag.kernels.numpy_twin import NumpyBackend  # most processes do without

    return NumpyBackend()


@cache
def _load() -> Backend | str:
    """Return the compiled backend, or why it cannot be loaded."""
    try:
        from bm25rag.kernels.compiled import CompiledBackend
    except ImportError as error:
        return str(error)
    return CompiledBackend()

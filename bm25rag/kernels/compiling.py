"""How the kernels are compiled: the only place that imports Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

# A zero like any other int64: of a plain one Numba compiles all that it is given to once more.
ZERO = cast("int", np.int64(0))

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile on first call; keep the result on disk where a folder is writable."""
    try:
        dispatcher = njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # Numba found no place for its cache
        dispatcher = njit(nogil=True, error_model="numpy")(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT: NumPy warns where the compiled do not
        return np.errstate(over="ignore", divide="ignore")(function)
    return cast("_Function", dispatcher)

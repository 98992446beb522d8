"""What the kernels get their memory from, compiled or interpreted.

Compiled, they see NumPy's arrays as typed memoryviews of Cython. Interpreted, they see them as
``memoryview``, whose numbers are Python's: without overflow, and tested for bounds.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

# Whether to run the kernels from their sources, for coverage and to step through them.
INTERPRETED = os.environ.get("BM25RAG_KERNELS") == "interpreted"


def view(array: np.ndarray[Any, Any]) -> Any:
    """Return an array as the kernels see it."""
    return array.data if INTERPRETED else array


def empty(count: int, kind: type[np.generic] = np.float64) -> Any:
    """Return new memory for some numbers, as the kernels see it."""
    return view(np.empty(count, kind))


def zeros(count: int, kind: type[np.generic] = np.float64) -> Any:
    """Return the same, all zero."""
    return view(np.zeros(count, kind))

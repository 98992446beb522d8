"""Memory that goes back to the system as soon as it is dropped; what is freed elsewhere may not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from bm25rag.common.arrays import Array

_PRIVATE: dict[str, Any] | None = None
# Some builds of Python for WebAssembly have none.
with suppress(ImportError):
    import mmap

    # Where there are no flags, anonymous pages are private.
    _PRIVATE = (
        {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
    )
# Bytes that are worth pages of their own.
_LEAST = 1 << 16


def empty_apart(*shapes: tuple[int, type[np.generic]]) -> list[Array]:
    """Return arrays of so many zeros each; large ones share pages of their own."""
    sizes = [-(-count * np.dtype(kind).itemsize // 8) * 8 for count, kind in shapes]
    if sum(sizes) < _LEAST or _PRIVATE is None:
        return [np.zeros(count, kind) for count, kind in shapes]
    try:
        pages = mmap.mmap(-1, sum(sizes), **_PRIVATE)
    except OSError as error:
        raise MemoryError(f"no memory for {sum(sizes)} bytes") from error
    arrays, start = [], 0
    for (count, kind), size in zip(shapes, sizes, strict=True):
        arrays.append(np.frombuffer(pages, kind, count, start))
        start += size
    return arrays

"""A cache of filters' masks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Any

from bm25rag.common.arrays import Bool
from bm25rag.kernels.records import Allowed

# A segment, its changes and its view each keep at most twice as many bytes and masks.
MAX_BYTES, MAX_MASKS = 1 << 26, 1 << 10


class MaskCache:
    """The masks that were used last, by key; threads may share it."""

    def __init__(self) -> None:
        self._young: dict[Hashable, Allowed] = {}
        self._old: dict[Hashable, Allowed] = {}
        self._bytes = 0

    def __reduce__(self) -> tuple[type[MaskCache], tuple[()]]:
        return MaskCache, ()  # a copy starts empty

    def get(self, key: Hashable, make: Callable[[], Bool]) -> Allowed:
        """Return the mask of a key, made if it is not there; it must not be changed."""
        allowed = self._young.get(key)
        if allowed is None:
            allowed = self._old.get(key)
            allowed = Allowed(make()) if allowed is None else allowed
            size = allowed.nbytes + _size(key)
            if self._bytes + size > MAX_BYTES or len(self._young) >= MAX_MASKS:
                self._old, self._young, self._bytes = self._young, {}, 0
            self._bytes += size
            self._young[key] = allowed
        return allowed


def _size(key: Any) -> int:
    """Return about how many bytes a key takes."""
    size = sys.getsizeof(key)
    return size + sum(map(_size, key)) if isinstance(key, (tuple, frozenset)) else size

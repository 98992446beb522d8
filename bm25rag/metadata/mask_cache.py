"""Masks of filters, remembered."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Any

from bm25rag.common.arrays import Bool

# What a segment, its changes and its view each remember at most: twice so many bytes and masks.
MOST_BYTES, MOST_MASKS = 1 << 26, 1 << 10


class MaskCache:
    """Remembers masks by key, those used last; threads may share it."""

    def __init__(self) -> None:
        self._young: dict[Hashable, Bool] = {}
        self._old: dict[Hashable, Bool] = {}
        self._bytes = 0

    def __reduce__(self) -> tuple[type[MaskCache], tuple[()]]:
        return MaskCache, ()  # a copy begins without

    def get(self, key: Hashable, make: Callable[[], Bool]) -> Bool:
        """Return the mask of a key, not to be changed; made if it is not remembered."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            found = make() if found is None else found
            size = len(found) + _size(key)
            if self._bytes + size > MOST_BYTES or len(self._young) >= MOST_MASKS:
                self._old, self._young, self._bytes = self._young, {}, 0
            self._bytes += size
            self._young[key] = found
        return found


def _size(key: Any) -> int:
    """Return how many bytes a key takes, about."""
    own = sys.getsizeof(key)
    return own + sum(map(_size, key)) if isinstance(key, (tuple, frozenset)) else own

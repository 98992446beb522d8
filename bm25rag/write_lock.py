"""The lock of an index: one write at a time, while merges run in between."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from bm25rag.segments.segment import Segment


class WriteLock:
    """What the writes to one index hold.

    Attributes
    ----------
    merging
        A merge of several segments holds this from beginning to end; writes continue meanwhile.
    held
        The segments that are being merged, which writes leave alone.
    """

    merging: threading.Lock
    held: set[Segment]

    def __init__(self) -> None:
        self.renew()
        _LOCKS.add(self)

    def renew(self) -> None:
        """Forget who holds it: after a fork, that thread may not exist."""
        self._lock, self._busy = threading.RLock(), False
        self.merging, self.held = threading.Lock(), set()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the lock.

        Raises
        ------
        RuntimeError
            If this thread holds it already.
        """
        with self._lock:
            if self._busy:
                raise RuntimeError(
                    "the index cannot be changed from within add(), by what its texts come from"
                )
            self._busy = True
            try:
                yield
            finally:
                self._busy = False


_LOCKS: WeakSet[WriteLock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_LOCKS):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)

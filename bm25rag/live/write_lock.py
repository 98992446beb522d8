"""The lock of an index: one write at a time, while merges run in between."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from weakref import WeakSet

from bm25rag.segments.segment import Segment


class WriteLock:
    """What the writes to one index hold.

    A merge of several segments holds ``merge_lock`` from beginning to end. Writes continue
    meanwhile, and leave the segments alone that are ``merging``.
    """

    merge_lock: threading.Lock
    merging: set[Segment]

    def __init__(self) -> None:
        self.renew()
        _LOCKS.add(self)

    def renew(self) -> None:
        """Forget who holds it: after a fork, that thread may not exist."""
        self._lock = threading.RLock()
        self.merge_lock, self.merging = threading.Lock(), set()

    def taken(self) -> AbstractContextManager[bool]:
        """Return the lock, to be held by ``with``, unless this thread holds it already.

        It is Python's own: Ctrl-C comes before or after it is taken or given up, while it may
        come within a context manager that is written in Python, and leave the lock held.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]  # as threading.Condition asks it
            raise RuntimeError(
                "the index cannot be changed by a thread that is writing to it already: from "
                "within add(), by what its texts come from, in another `with folder.writing()`, or "
                "by a signal handler that has interrupted a write, which can end the program by "
                "sys.exit()"
            )
        return self._lock


_LOCKS: WeakSet[WriteLock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_LOCKS):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)

"""Releasing the GIL: long loops pause so that searches in other threads are not held up.

Python passes its global lock on after 5 ms at the earliest, and a search needs it several times.
So long loops pause for an instant, if another thread has read from an index recently.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

# Seconds of work between two pauses.
_INTERVAL = 0.0001
# Seconds after a read in which more reads are expected.
_RECENT = 10.0
# A call that sorts or hashes this many strings takes less than the interval.
BLOCK = 512

_Item = TypeVar("_Item")


# The thread that last read from an index, and when. All threads share this, as they share the GIL;
# no result depends on it.
_last = (0, -math.inf)
# In the worker threads of a build: the thread that they work for.
_works_for = threading.local()


def note_read() -> None:
    """Note that this thread begins to read from an index."""
    global _last
    _last = threading.get_ident(), time.perf_counter()


def work_for_thread(thread: int) -> None:
    """Count reads by a thread as reads by this one, because this one works for it."""
    _works_for.thread = thread


def others_read() -> bool:
    """Whether another thread has read from an index recently."""
    thread, when = _last
    current = getattr(_works_for, "thread", None) or threading.get_ident()
    return thread != current and time.perf_counter() < when + _RECENT


def release_gil() -> None:
    """Let readers in other threads run, if there are any."""
    if others_read():
        time.sleep(1e-6)  # after 0 seconds, this thread would get the lock again at once


def releasing_gil(items: Iterable[_Item]) -> Iterable[_Item]:
    """Return items for a loop that releases the GIL between them, if other threads read."""
    return _with_pauses(items) if others_read() else items


def in_blocks(items: Sequence[_Item], size: int | None = None) -> Iterator[Sequence[_Item]]:
    """Yield items in blocks, and release the GIL between calls that do not release it."""
    step = size or BLOCK
    for first in releasing_gil(range(0, len(items), step)):
        yield items[first : first + step]


def _with_pauses(items: Iterable[_Item]) -> Iterator[_Item]:
    end = time.perf_counter() + _INTERVAL
    for item in items:
        yield item
        if time.perf_counter() > end:
            time.sleep(1e-6)
            end = time.perf_counter() + _INTERVAL

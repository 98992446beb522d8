"""Taking turns: who works for long lets readers in other threads have the interpreter in between.

Python hands its lock on after 5 ms at the soonest, and a search asks for it several
times. So long loops pause for an instant, if anybody reads at all.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

# Seconds of work between two pauses.
_TURN = 0.0001
# Seconds for which a read tells that there may be more of them.
_RECENT = 10.0
# A call that sorts or hashes so many strings takes less than a turn.
BLOCK = 512

_Item = TypeVar("_Item")


# The thread that has read from an index last, and when. All threads share this, as they do the
# lock; no result depends on it.
_last = (0, -math.inf)
_helped = threading.local()


def note_read() -> None:
    """Note that this thread begins to read from an index."""
    global _last
    _last = threading.get_ident(), time.perf_counter()


def work_for_thread(thread: int) -> None:
    """Let this thread count as another, which it works for."""
    _helped.thread = thread


def others_read() -> bool:
    """Whether another thread has read from an index of late."""
    thread, when = _last
    own = getattr(_helped, "thread", None) or threading.get_ident()
    return thread != own and time.perf_counter() < when + _RECENT


def release_gil() -> None:
    """Let readers in other threads run, if there are any."""
    if others_read():
        time.sleep(1e-6)  # 0 would not do: the lock would be taken again at once


def releasing_gil(items: Iterable[_Item]) -> Iterable[_Item]:
    """Return items for a loop that shall give way in between."""
    return _in_turns(items) if others_read() else items


def in_blocks(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Yield items some at a time, for calls that let no other thread run; give way in between."""
    for first in releasing_gil(range(0, len(items), size)):
        yield items[first : first + size]


def _in_turns(items: Iterable[_Item]) -> Iterator[_Item]:
    end = time.perf_counter() + _TURN
    for item in items:
        yield item
        if time.perf_counter() > end:
            time.sleep(1e-6)
            end = time.perf_counter() + _TURN

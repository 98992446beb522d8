"""Taking turns: who works for long lets other threads have the interpreter in between.

Python hands its lock on after 5 ms at the soonest, and a search asks for it several
times. So long loops pause for an instant, if there are other threads at all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

# How the names of the threads begin that help a build: nobody waits for those, or for theirs.
HELPER = "bm25rag-build"
# Seconds of work between two pauses.
_TURN = 0.00025
# A call that sorts or hashes so many strings takes less than a turn.
BLOCK = 512

_Item = TypeVar("_Item")


def company() -> bool:
    """Whether there are threads beside the one that works and its helpers."""
    if threading.active_count() == 1:
        return False
    return sum(not one.name.startswith(HELPER) for one in threading.enumerate()) > 1


def give_way() -> None:
    """Let other threads run, if there are any."""
    if company():
        time.sleep(1e-6)  # 0 would not do: the lock would be taken again at once


def in_turns(items: Iterable[_Item]) -> Iterable[_Item]:
    """Return items for a loop that shall give way in between."""
    return _in_turns(items) if company() else items


def blocks(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """Yield items some at a time, for calls that let no other thread run; give way in between."""
    for first in in_turns(range(0, len(items), size)):
        yield items[first : first + size]


def _in_turns(items: Iterable[_Item]) -> Iterator[_Item]:
    end = time.perf_counter() + _TURN
    for item in items:
        yield item
        if time.perf_counter() > end:
            time.sleep(1e-6)
            end = time.perf_counter() + _TURN

"""Tells linear time from quadratic, on machines of any speed."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

__all__ = ["takes_linear_time"]

_TRIALS = 5


def takes_linear_time(run: Callable[[int], object], size: int) -> bool:
    """Tell whether four times the size takes less than ten times as long, at best of five trials.

    Quadratic time would be sixteen times as much; what takes less than 50 ms is not told apart.
    """
    for _ in range(_TRIALS):
        if _seconds(run, 4 * size) < max(10 * _seconds(run, size), 0.05):
            return True
    return False


def _seconds(run: Callable[[int], object], size: int) -> float:
    start = process_time()
    run(size)
    return process_time() - start

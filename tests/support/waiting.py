"""Waiting for what another thread or process will do, on machines of any speed."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep

__all__ = ["wait_until"]


def wait_until(holds: Callable[[], object], seconds: float = 180) -> None:
    """Wait until something holds; fail if it does not within so many seconds."""
    end = monotonic() + seconds
    while not holds():
        assert monotonic() < end, f"not within {seconds} seconds"
        sleep(0.01)

"""What every measurement needs: times, percentiles, memory, limits, and where it was."""

from __future__ import annotations

import gc
import os
import platform
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from bm25rag.kernels.backend import cores

_GIB = 1 << 30
_Query = TypeVar("_Query")


@contextmanager
def quiet() -> Iterator[None]:
    """Collect no garbage within the block, as in timeit."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def one_by_one(
    answer: Callable[[_Query], object], queries: Sequence[_Query], turn: int
) -> list[float]:
    """Answer each query by its own call, in the random order of a turn; seconds of each."""
    times = []
    with quiet():
        for query in random.Random(turn).sample(queries, len(queries)):
            start = perf_counter()
            answer(query)
            times.append(perf_counter() - start)
    return times


def percentile(values: Sequence[float], share: int) -> float:
    """Return the percentile by the nearest-rank method."""
    return sorted(values)[max(0, -(-len(values) * share // 100) - 1)]


def memory(name: str) -> int | None:
    """Return a memory figure of this process in bytes, on Linux; ``None`` elsewhere.

    ``"VmRSS"`` is what is in memory now, shared and mapped too; ``"VmHWM"`` the most. Linux itself
    is asked: what ``getrusage`` says is inherited from the parent.
    """
    kilobytes = _find_in("/proc/self/status", rf"{name}:\s*(\d+) kB")
    return int(kilobytes) * 1024 if kilobytes else None


def _find_in(file: str, pattern: str) -> str | None:
    """Return what the group of a pattern finds in a file of Linux; ``None`` elsewhere."""
    path = Path(file)
    match = re.search(pattern, path.read_text("utf-8")) if path.exists() else None
    return match[1] if match else None


def limit(cpus: int, gib: float | None = None) -> list[str]:
    """Set the limits of this process that the platform supports; return those that were set."""
    held = []
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))[-cpus:]
        os.sched_setaffinity(0, allowed)
        held.append(f"{len(allowed)} CPU")
    if gib is not None:
        with suppress(ImportError, ValueError, OSError):
            import resource

            # Limits data, not addresses: mapped files and reserved space cost nothing.
            size = int(gib * _GIB)
            resource.setrlimit(resource.RLIMIT_DATA, (size, size))
            held.append(f"{gib:g} GiB")
    return held


def machine() -> dict[str, Any]:
    """Return what results depend on; those from different machines must not be mixed."""
    kilobytes = _find_in("/proc/meminfo", r"MemTotal:\s*(\d+) kB")
    processor = _find_in("/proc/cpuinfo", r"model name[^:\n]*: *([^\n]*)")
    return {
        "processor": (processor or platform.processor()).strip(),
        "cores": cores(),
        "memory": f"{int(kilobytes) / (1 << 20):.0f} GiB" if kilobytes else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }

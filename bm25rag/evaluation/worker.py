"""The process of one system in a benchmark: ``python -m bm25rag.evaluation.worker JOB RESULT``.

It sets its own limits, builds, measures, and writes the results as JSON.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

from bm25rag.evaluation.collections import load_collection
from bm25rag.evaluation.systems import System, make_system

__all__ = ["main"]

_GIB = 1 << 30


def main(job_path: str, result_path: str) -> None:
    """Do a job and write the result."""
    job: dict[str, Any] = json.loads(Path(job_path).read_text(encoding="utf-8"))
    sys.path.insert(0, job["folder"])  # the user's own factories are there
    limits = _limit(job["cpus"], job["memory"])
    if "open" in job:
        _cold_start(job)
        return
    try:
        system = make_system(job["system"])
    except ImportError as error:
        result: dict[str, Any] = {"error": f"not installed: {error}"}
    else:
        about = {"limits": limits, "version": _version(job["system"])}
        result = about | _measure(system, job)
    Path(result_path).write_text(json.dumps(result), encoding="utf-8")


def _version(system: str) -> str | None:
    """Return the version of a system's package; ``None`` for a factory."""
    try:
        return version(system.partition(" ")[0])
    except PackageNotFoundError:
        return None


def _limit(cpus: int, memory: float | None) -> list[str]:
    """Set the limits that the platform supports; return those that were set."""
    held = []
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))[-cpus:]
        os.sched_setaffinity(0, allowed)
        held.append(f"{len(allowed)} CPU")
    if memory is not None:
        with suppress(ImportError, ValueError, OSError):
            import resource

            # Limits data, not addresses: mapped files and reserved space cost nothing.
            most = int(memory * _GIB)
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            held.append(f"{memory:g} GiB")
    return held


def _cold_start(job: dict[str, Any]) -> None:
    """Open a saved index and answer one query; the parent measures the time."""
    system = make_system(job["system"])
    system.load(Path(job["open"]))
    system.search(job["query"], job["k"])


def _measure(system: System, job: dict[str, Any]) -> dict[str, Any]:
    collection = load_collection(job["collection"])
    documents = list(collection.read())
    queries, k = collection.queries, job["k"]
    before = memory("VmRSS")
    start = perf_counter()
    system.build(documents)
    result: dict[str, Any] = {"build_seconds": perf_counter() - start}
    del documents
    gc.collect()
    for query in list(queries.values())[: job["warmup"]]:
        system.search(query, k)
    result["run"] = {id: system.search(text, job["depth"]) for id, text in queries.items()}
    result["trials"] = [_one_by_one(system, queries, k, turn) for turn in range(job["trials"])]
    result["throughput"] = {
        str(threads): _throughput(system, list(queries.values()), k, threads)
        for threads in job["threads"]
    }
    result |= {"resident": memory("VmRSS"), "before": before, "peak": memory("VmHWM")}
    if system.can_save:
        result["saved"] = job["saved"]
        system.save(Path(job["saved"]))
        files = [file for file in Path(job["saved"]).rglob("*") if file.is_file()]
        result["disk"] = sum(file.stat().st_size for file in files)
    return result


def _one_by_one(system: System, queries: dict[str, str], k: int, turn: int) -> list[float]:
    """Answer each query by its own call, in random order; return the milliseconds of each."""
    order = list(queries.values())
    random.Random(turn).shuffle(order)
    times = []
    gc.collect()
    gc.disable()
    for query in order:
        start = perf_counter()
        system.search(query, k)
        times.append(1000 * (perf_counter() - start))
    gc.enable()
    return times


def _throughput(system: System, queries: Sequence[str], k: int, threads: int) -> float:
    """Return queries per second in one batch, the best of three."""
    best = 0.0
    for _ in range(3):
        start = perf_counter()
        system.search_batch(queries, k, threads)
        best = max(best, len(queries) / (perf_counter() - start))
    return best


def memory(name: str) -> int | None:
    """Return a memory figure of this process in bytes, on Linux; ``None`` elsewhere."""
    path = Path("/proc/self/status")
    found = re.search(rf"{name}:\s*(\d+) kB", path.read_text("ascii")) if path.exists() else None
    return int(found[1]) * 1024 if found else None


if __name__ == "__main__":
    main(*sys.argv[1:])

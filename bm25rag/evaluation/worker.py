"""What is measured of one system, in its own process."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from bm25rag.evaluation.collections import load_collection
from bm25rag.evaluation.systems import make_system
from bm25rag.evaluation.systems.base import SavedSystem, System
from bm25rag.evaluation.timing import limit, memory, one_by_one

_LONG = 10.0  # seconds of batches


class Measurement:
    """A system, and the job that says what to do with it."""

    def __init__(self, job: dict[str, Any]) -> None:
        sys.path.insert(0, job["folder"])  # the user's own factories are there
        self._job = job
        self._limits = limit(job["cpus"], job["memory"])
        self._system = make_system(job["system"])

    def measure(self) -> str:
        """Build and measure; JSON, so that what a system returns stays in its process."""
        try:
            result = measured(self._system, self._job)
            about = {"limits": self._limits, "version": self._system.version()}
        finally:
            self._system.close()
        return json.dumps(about | result)

    def first(self) -> None:
        """Open the saved index, or else build it; answer a query. Time is taken from outside."""
        if isinstance(self._system, SavedSystem):
            self._system.load(Path(self._job["saved"]))
        else:
            self._system.build(list(load_collection(*self._job["collection"]).read()))
        self._system.search(self._job["query"], self._job["k"])
        self._system.close()


def measured(system: System, job: dict[str, Any]) -> dict[str, Any]:
    """Build and measure a system."""
    collection = load_collection(*job["collection"])
    documents: Any = collection.read() if system.streams else list(collection.read())
    queries, k = collection.queries, job["k"]
    asked = list(queries.values())
    start = perf_counter()
    system.build(documents)
    result: dict[str, Any] = {"build_seconds": perf_counter() - start}
    del documents
    gc.collect()
    _warm_up(system, asked[: job["warmup"]], k)
    result["trials"] = [
        [1000 * time for time in one_by_one(lambda query: system.search(query, k), asked, turn)]
        for turn in range(job["trials"])
    ]
    result["throughput"] = {
        str(threads): _throughput(system, asked, k, threads) for threads in job["threads"]
    }
    result["remote"] = system.remote
    result |= dict.fromkeys(("resident", "peak"))
    if not system.remote:
        result |= {"resident": memory("VmRSS"), "peak": memory("VmHWM")}
    # Only now, for these rankings, perhaps a thousand results deep, are not the system's memory.
    result["run"] = {id: system.search(text, job["depth"]) for id, text in queries.items()}
    if isinstance(system, SavedSystem):
        system.save(Path(job["saved"]))
        files = [file for file in Path(job["saved"]).rglob("*") if file.is_file()]
        result["disk"] = sum(file.stat().st_size for file in files)
    return result


def _warm_up(system: System, queries: Sequence[str], k: int) -> None:
    """Answer queries without counting, again and again for as long as the system needs it."""
    start = perf_counter()
    while True:
        for query in queries:
            system.search(query, k)
        if not queries or perf_counter() - start >= system.warmup:
            return


def _throughput(system: System, queries: Sequence[str], k: int, threads: int) -> float:
    """Return queries per second in one batch, the best of three; of fewer, if they take long."""
    best = spent = 0.0
    for _ in range(3):
        start = perf_counter()
        system.search_batch(queries, k, threads)
        took = perf_counter() - start
        best, spent = max(best, len(queries) / took), spent + took
        if spent > _LONG:
            break
    return best

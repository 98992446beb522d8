"""Benchmark systems on a collection: quality, latency, memory, disk, cold start, dollars.

Each system runs in its own process. A row is saved as soon as it is measured, so that an
interrupted benchmark continues where it stopped. A system that cannot run, or fails, has a row
that says why; it is tried again by the next call.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

from bm25rag.common.urls import from_home
from bm25rag.evaluation.collections import Collection, load_collection
from bm25rag.evaluation.cost import (
    PRICES,
    PRICES_OF,
    Instance,
    cheapest,
    cost_by_latency,
    cost_by_throughput,
)
from bm25rag.evaluation.measures import Evaluator
from bm25rag.evaluation.processes import FailedError, MissingError, Process
from bm25rag.evaluation.published import read_published
from bm25rag.evaluation.retrievers import ranks
from bm25rag.evaluation.systems import SYSTEMS
from bm25rag.evaluation.timing import machine, percentile

BENCH_MEASURES = ("nDCG@10", "RR@10", "R@100")

_GIB = 1 << 30
# What a row has as its process has said it.
_MEASURED = (
    *("throughput", "build_seconds", "resident", "peak", "disk", "cold_start", "limits"),
    "version",
)
# How many results measures of whole rankings use.
_DEPTH = 1000
_LONG = 10.0  # seconds of cold starts, after which no other is begun


def benchmark(
    collection: str,
    folder: str | PathLike[str],
    systems: Sequence[str] | None = None,
    *,
    split: str = "test",
    k: int = 10,
    measures: Sequence[str] = BENCH_MEASURES,
    cpus: int = 1,
    memory: float | None = 4.0,
    trials: int = 5,
    warmup: int = 20,
    timeout: float = 600.0,
    prices: Sequence[Instance] = PRICES,
    beside: str | PathLike[str] | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure systems, or continue where an earlier call was interrupted.

    Parameters
    ----------
    collection, split
        A BEIR folder and which of its judgements, or a name of ``ir_datasets``.
    folder
        The folder for the rows; systems that were measured there are not measured again.
    systems
        Names from ``SYSTEMS``, or ``module:factory``; ``None`` for all of ``SYSTEMS``.
    k, measures
        Results per query, and measures in the notation of ir-measures.
    cpus, memory, timeout
        Limits of each process: CPUs, GiB of data and seconds; 1 and 4 are the smallest machine of
        Santhanam et al. They are set where the platform allows it.
    trials, warmup
        How often all queries run one by one, and how many queries run first without counting.
    prices
        The machines that can be rented.
    beside
        A file of published rows, see ``read_published``, which the report shows as such.
    log
        Called with one line for each system.

    Returns
    -------
    report
        ``setting``, ``machine``, ``prices``, ``notes``, ``beside`` and ``rows``, JSON values; see
        ``bm25rag.evaluation.report``.

    Raises
    ------
    ValueError
        If the folder holds results from a different machine or setting, or ``beside`` is wrong.
    """
    published = None if beside is None else read_published(beside, measures[0])
    loaded = load_collection(collection, split)
    evaluator = Evaluator(loaded.qrels, measures)
    known, digest = _known(loaded)
    run = {"k": k, "cpus": cpus, "memory": memory, "trials": trials, "warmup": warmup}
    setting = {
        "collection": loaded.name,
        "documents": len(known),
        "queries": len(loaded.queries),
        "digest": digest,
        **run,
        "measures": list(measures),
    }
    output = Path(from_home(folder))
    _claim(output, {"setting": setting, "machine": machine()})
    job: dict[str, Any] = {
        "collection": (collection, split),
        "folder": str(Path.cwd()),
        **run,
        # Deep enough for all measures: recall at 100 needs 100 results.
        "depth": max(k, *(measure.cutoff or _DEPTH for measure in evaluator.measures.values())),
        "threads": sorted({1, cpus}),
        "query": next(iter(loaded.queries.values())),
        "saved": str(output.resolve() / "job.saved"),
    }
    rows = []
    for name in systems or list(SYSTEMS):
        file = output / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.row.json"
        row = _read(file) if file.exists() else {"error": ""}
        if "error" in row:  # also if it failed before: what was missing may be there now
            now = datetime.now(UTC).isoformat(timespec="seconds")
            raw = _run(job | {"system": name}, timeout)
            row = {"system": name, "date": now} | _summary(raw, evaluator, known)
            _write(file, row)
            log(f"{name}: {row.get('error') or 'measured'}")
        else:
            log(f"{name}: measured before, {row['date']}")
        rows.append(row | _costs(row, cpus, prices))
    shutil.rmtree(job["saved"], ignore_errors=True)
    return {
        "setting": setting,
        "machine": machine(),
        "prices": PRICES_OF if prices is PRICES else "your own",
        "notes": _notes(loaded, known),
        "beside": published,
        "rows": rows,
    }


def _known(collection: Collection) -> tuple[set[str], str]:
    """Return the ids of all documents, and a digest that tells this collection from any other."""
    digest, known = hashlib.sha256(), set[str]()
    whole = json.dumps([collection.queries, collection.qrels], sort_keys=True)
    digest.update(whole.encode("utf-8", "surrogatepass"))
    for document in collection.read():
        if document.id in known:
            raise ValueError(f"{collection.name}: two documents have the id {document.id!r}")
        known.add(document.id)
        digest.update(f"{document.id}\0{document.text}\0".encode("utf-8", "surrogatepass"))
    return known, digest.hexdigest()[:16]


def _notes(collection: Collection, known: set[str]) -> list[str]:
    """Return what is odd about the judgements."""
    graded = [(id, grade) for grades in collection.qrels.values() for id, grade in grades.items()]
    absent = [id for id, grade in graded if grade > 0 and id not in known]
    empty = [
        query
        for query, grades in collection.qrels.items()
        if not any(grade > 0 for grade in grades.values())
    ]
    left_out = (
        (absent, "documents that are judged relevant and not in the collection"),
        (empty, "judged queries without a relevant document, which count as 0"),
    )
    return [f"{what}: {len(ids):,} ({ids[0]!r} ...)" for ids, what in left_out if ids]


def _claim(folder: Path, now: dict[str, Any]) -> None:
    """Refuse a folder with results of a different machine or setting."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "setting.json"
    if not file.exists():
        _write(file, now)
        return
    then = _read(file)
    for part in now:
        for name in now[part]:
            old, new = then.get(part, {}).get(name), now[part][name]
            if old != new:
                raise ValueError(
                    f"{folder}: its results are from a different {part}: {name} was {old!r} and "
                    f"is {new!r}; use a different folder, results are never mixed"
                )


def _read(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as cause:
        message = f"{file}: not what a benchmark writes; remove it, or use a different folder"
        raise ValueError(message) from cause


def _write(file: Path, value: Any) -> None:
    """Write a file completely or not at all."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps(value, indent=1), encoding="utf-8")
    new.replace(file)


# --- processes ------------------------------------------------------------------------------


def _run(job: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Measure a system in a process; return a result, even if the process fails."""
    shutil.rmtree(job["saved"], ignore_errors=True)  # what another system has saved
    try:
        with _start(job, timeout) as process:
            result: dict[str, Any] = json.loads(process.call("measure"))
    except MissingError as error:
        return {"error": str(error)}
    except FailedError as error:
        return {"error": error.line}
    if not result["remote"]:  # a server has been started before
        result["cold_start"] = _cold_start(job, timeout)
    return result


def _start(job: dict[str, Any], timeout: float) -> Process:
    kind, environment = "bm25rag.evaluation.worker:Measurement", {"PYTHONHASHSEED": "0"}
    return Process(kind, job, environment=environment, timeout=timeout)


def _cold_start(job: dict[str, Any], timeout: float) -> float | None:
    """Return the median seconds of new processes until they have answered, if they do."""
    times: list[float] = []
    while len(times) < job["trials"] and sum(times) < _LONG:
        start = perf_counter()
        try:
            with _start(job, timeout) as process:
                process.call("first")
                times.append(perf_counter() - start)
        except (MissingError, FailedError):
            return None
    return statistics.median(times)


# --- rows -------------------------------------------------------------------------------------


def _summary(raw: dict[str, Any], evaluator: Evaluator, known: set[str]) -> dict[str, Any]:
    """Turn the output of a process into a row; nonsense becomes a row that says so."""
    if "error" in raw:
        return {"error": raw["error"]}
    try:
        run = {query: ranks(query, ranking, known) for query, ranking in raw["run"].items()}
        evaluation = evaluator.evaluate(run)
    except (ValueError, TypeError) as error:
        return {"error": f"returned nonsense: {error}"}
    each = [time for trial in raw["trials"] for time in trial]
    means = [statistics.fmean(trial) for trial in raw["trials"]]
    return {
        "measures": evaluation.mean,
        "latency": {
            "mean": statistics.fmean(each),
            "median": statistics.median(each),
            "p95": percentile(each, 95),
            "p99": percentile(each, 99),
            "least_trial": min(means),
            "largest_trial": max(means),
            "percentiles": [percentile(each, share) for share in range(0, 101, 2)],
        },
        **{name: raw.get(name) for name in _MEASURED},
    }


def _costs(row: dict[str, Any], cpus: int, prices: Sequence[Instance]) -> dict[str, Any]:
    """Return dollars for a million queries on the cheapest machine with the memory and CPUs."""
    peak = row.get("peak")
    instance = None if peak is None else cheapest(peak / _GIB, cpus, prices)
    if instance is None:
        return {"instance": None, "cost": None, "cost_in_batches": None}
    return {
        "instance": instance.name,
        "cost": cost_by_latency(instance, row["latency"]["mean"] / 1000),
        "cost_in_batches": cost_by_throughput(instance, max(row["throughput"].values())),
    }

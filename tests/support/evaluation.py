"""A collection in BEIR's layout, of four documents and four queries; the report of a benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TEXTS = {
    "apple": "A red apple hangs on the tree.",
    "boat": "A red boat sails on the deep sea.",
    "car": "A green car drives on the road to the sea.",
    "pear": "A green pear hangs on the tree by the road.",
}
QUERIES = {"1": "red apple", "2": "boat on the sea", "3": "green car", "4": "tree by the road"}
RELEVANT = {"1": "apple", "2": "boat", "3": "pear", "4": "pear"}


def write_tiny_collection() -> str:
    """Write it to a folder within the current one; its name."""
    folder = Path("tiny")
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": id, "text": text} for id, text in TEXTS.items()]
    queries = [{"_id": id, "text": text} for id, text in QUERIES.items()]
    for name, records in (("corpus", corpus), ("queries", queries)):
        lines = "\n".join(map(json.dumps, records))
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    rows = ["query-id\tcorpus-id\tscore", *(f"{q}\t{d}\t1" for q, d in RELEVANT.items())]
    (folder / "qrels" / "test.tsv").write_text("\n".join(rows), encoding="utf-8")
    return str(folder)


def row(system: str, accuracy: float, latency: float, cost: float | None) -> dict[str, Any]:
    """Make a row as a benchmark writes it."""
    times = {"mean": latency, "median": latency, "p95": 2 * latency, "p99": 3 * latency}
    spread = {"least_trial": latency, "largest_trial": latency, "percentiles": [latency] * 51}
    return {
        "system": system,
        "measures": {"nDCG@10": accuracy},
        "latency": times | spread,
        "throughput": {"1": 1000 / latency},
        "build_seconds": 1.0,
        "resident": 1 << 20,
        "peak": 1 << 20,
        "disk": None,
        "cold_start": None,
        "cost": cost,
        "cost_in_batches": cost,
        "limits": ["1 CPU", "4 GiB"],
        "version": "1.0",
        "date": "2026-11-22T10:00:00+00:00",
    }


GONE = {"system": "gone", "cost": None, "date": "2026-11-21T10:00:00+00:00"}
HOSTILE = "</script><script>document.title='taken'</script>|x"


def some_report(**change: Any) -> dict[str, Any]:
    """Make a report of three systems and one that failed."""
    rows = [
        row("fast", 0.30, 10.0, 1.0),
        row("good", 0.40, 110.0, 11.0),
        row(HOSTILE, 0.41, 400.0, 40.0),
        GONE | {"error": "not installed: <b>gone</b>"},
    ]
    setting = {"collection": "a <tiny> one", "documents": 4, "queries": 4, "k": 10, "trials": 2}
    setting |= {"cpus": 1, "memory": 4, "measures": ["nDCG@10"]}
    machine = {"processor": "P", "cores": 2, "memory": "8 GiB", "system": "Linux", "python": "3.11"}
    report = {"setting": setting, "machine": machine, "rows": rows, "prices": "some", "notes": []}
    return report | change

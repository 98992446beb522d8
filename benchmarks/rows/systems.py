"""Every system that ``bm25rag bench`` knows, as it measures them, on SciFact."""

from __future__ import annotations

import shutil

from benchmarks.corpora import COLLECTIONS, SCIFACT, WORK
from benchmarks.report import Report
from bm25rag.evaluation.bench import benchmark
from bm25rag.evaluation.systems import SYSTEMS

_QUICK = ["bm25rag lucene", "bm25s numba", "tantivy", "PISA", "Lucene"]
_SLOWEST = 300.0  # seconds for one of them


def measure(report: Report, quick: bool) -> None:
    """Measure all systems; quickly, one of each fast engine."""
    folder = WORK / "systems"
    shutil.rmtree(folder, ignore_errors=True)
    report.systems = benchmark(
        str(COLLECTIONS / SCIFACT.collection),
        folder,
        _QUICK if quick else list(SYSTEMS),
        trials=2 if quick else 5,
        timeout=_SLOWEST,
        log=report.say,
    )

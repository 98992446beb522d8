"""From ten thousand documents to a million: synthetic ones, with the statistics of real text."""

from __future__ import annotations

from statistics import mean, median

from benchmarks.corpora import ENWIKI, Corpus, read_queries
from benchmarks.engines import OURS
from benchmarks.report import Report, Row, raced
from benchmarks.rows.searching import field
from benchmarks.synthetic import PASSAGES, QUICK, Recipe, statistics
from benchmarks.workers import Figure, Worker
from bm25rag.evaluation.timing import percentile

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
_ENGINES = (OURS, "bm25s numba", "tantivy", "PISA", "Lucene")
_GROUP = "growth, synthetic passages"
_MICRO = 1e6


def measure(report: Report, quick: bool) -> None:
    """Measure building, memory and latency at every size, and how like real text it is."""
    sizes = (10_000, 100_000) if quick else SIZES
    recipe = QUICK if quick else PASSAGES
    recipe.prepare()
    report.growth["likeness"] = _likeness(recipe, ENWIKI, 20_000 if quick else 150_000)
    for size in sizes:
        _grow(report, recipe, size, 3 if quick else 9)
    if not quick:
        _curve(report)


def _likeness(recipe: Recipe, real: Corpus, documents: int) -> dict[str, dict[str, float]]:
    """Set the statistics of as many real passages and synthetic ones side by side."""
    real.prepare()
    return {
        name: statistics(folder, read_queries(folder, "questions"), documents)
        for name, folder in {real.name: real.folder, "synthetic": recipe.folder}.items()
    }


def _grow(report: Report, recipe: Recipe, size: int, rounds: int) -> None:
    with field(_ENGINES, recipe.folder, size) as engines:
        for what, value in (("build from terms", engines.seconds), ("peak memory", engines.peaks)):
            unit = "s" if value is engines.seconds else "MiB"
            once = {name: Figure(one, [one]) for name, one in value.items()}
            work = f"{size:,} documents, {what}"
            report.add(Row(_GROUP, work, unit, {**once, **engines.missing}))
        engines.choose(recipe.folder, "questions")
        for k in (10, 1000):
            figures = engines.race(rounds, k)
            work, unit = f"{size:,} documents, k={k}", "µs a query"
            report.add(raced(_GROUP, work, unit, figures, scale=_MICRO))
        for name, worker in engines.workers.items():
            report.growth.setdefault("one by one", {}).setdefault(name, {})[str(size)] = _latency(
                worker
            )


def _latency(worker: Worker) -> dict[str, float]:
    """Return mean and 99th percentile of queries by calls of their own, in microseconds."""
    rounds = [worker.call("one_by_one", 10, turn) for turn in range(3)]
    return {
        "mean": _MICRO * median(mean(times) for times in rounds),
        "p99": _MICRO * median(percentile(times, 99) for times in rounds),
    }


def _curve(report: Report) -> None:
    """Hold the growth of latency against its target."""
    times = {row.work: row.figures[OURS] for row in report.rows if row.group == _GROUP}
    few, many = (times[f"{size:,} documents, k=10"] for size in (100_000, 1_000_000))
    assert isinstance(few, Figure)
    assert isinstance(many, Figure)
    work, ratio = "k=10, from 100,000 to 1,000,000 documents", many.median / few.median
    report.add(Row(_GROUP, work, "µs a query", {OURS: many}, ratio, "x", "", 5, 5, at_least=False))

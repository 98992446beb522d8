"""What changes cost at a million documents: writes, commits, filters, readers beside a writer."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

import numpy as np

from benchmarks.corpora import WORK
from benchmarks.engines import ENGINES, OURS
from benchmarks.living import FILTERS, FIRST
from benchmarks.report import Report, Row
from benchmarks.synthetic import PASSAGES, QUICK, Recipe
from benchmarks.workers import Figure, Worker, start
from bm25rag.evaluation.timing import percentile

_GROUP = "updates"
_FILTERS = "filters"
_HAYSTACK = 30_000  # documents; it takes long to fill, and its writes do not depend on them
_SMALL = 30_000  # documents in quick mode
_NOTE = (
    "An addition lasts until it has been found by a search; bm25s must index all again, "
    f"Haystack's store in memory holds {_HAYSTACK:,} documents and is not searched."
)
_ALONE = ("unfiltered", "exhaustive")
_SLOWER = (
    "A filter's mask is known from the query before. What it costs is held against the slower, "
    "query by query, of the search without it and one that walks all postings of its terms; "
    "each query counts with its best round, or noise would make the slower slower."
)
_FEW, _FEW_TARGETS = "1 %", {10: (1.2, 1.0), 100: (1.5, 1.0)}
_MILLI = 1e3


def measure(report: Report, quick: bool) -> None:
    """Measure all rows of updates and filters."""
    recipe = QUICK if quick else PASSAGES
    recipe.prepare()
    size = _SMALL if quick else recipe.documents
    with Worker("benchmarks.living:Living", recipe.folder, size, WORK / "living") as ours:
        _additions(report, ours, recipe, size)
        _commits(report, recipe, size, ours)
        _filters(report, ours, 3 if quick else 5)
        _readers(report, ours)


def _take(worker: Worker, method: str, rounds: int) -> Figure:
    times = [worker.call(method, turn) * _MILLI for turn in range(-2, rounds)][2:]
    return Figure(median(times), times)


def _others(recipe: Recipe, size: int) -> dict[str, dict[str, Figure | str]]:
    """Measure a batch and a single addition elsewhere, in milliseconds."""
    found: dict[str, dict[str, Figure | str]] = {}
    for name, kind, most in (
        ("tantivy", "TantivyLiving", size),
        ("Haystack", "HaystackLiving", min(size, _HAYSTACK)),
    ):
        worker = start(f"benchmarks.living:{kind}", recipe.folder, most, WORK / kind)
        if isinstance(worker, str):
            found[name] = dict.fromkeys(("add_batch", "add_one"), worker)
            continue
        with worker:
            found[name] = {method: _take(worker, method, 5) for method in ("add_batch", "add_one")}
    name = "bm25s numba"
    with Worker(ENGINES[name], WORK) as worker:
        took = worker.call("index", recipe.folder, size) * _MILLI
    return {**found, name: dict.fromkeys(("add_batch", "add_one"), Figure(took, [took]))}


def _additions(report: Report, ours: Worker, recipe: Recipe, size: int) -> None:
    others = _others(recipe, size)
    on = f"at {size:,} documents"
    for method, work, rounds, targets in (
        ("add_batch", f"add 1,000 documents {on}", 9, (250, 250)),
        ("add_one", f"add one {on}", 200, (20, 20)),
        ("tune", f"tune {on}", 20, (50, 20)),
    ):
        own = _take(ours, method, rounds)
        work = f"{work}, then search"
        beside = {name: one[method] for name, one in others.items() if method in one}
        report.add(_at_most(_GROUP, work, {OURS: own, **beside}, own.median, *targets))
        if method == "add_one":
            tail = percentile(own.rounds, 99)
            report.add(_at_most(_GROUP, f"{work}, 99th percentile", {OURS: own}, tail, 100, 100))
    report.rows[-1].note = _NOTE


def _at_most(
    group: str,
    work: str,
    figures: Mapping[str, Figure | str],
    judged: float,
    required: float,
    goal: float,
    unit: str = "ms",
) -> Row:
    return Row(group, work, "ms", figures, judged, unit, "", required, goal, at_least=False)


def _commits(report: Report, recipe: Recipe, size: int, large: Worker) -> None:
    """Commit one document to indexes of several sizes."""
    for number in [one for one in (10_000, 100_000) if one < size]:
        folder = WORK / "living-small"
        with Worker("benchmarks.living:Living", recipe.folder, number, folder) as worker:
            _commit(report, worker, number)
    _commit(report, large, size)
    own = _take(large, "refresh", 9)
    report.add(Row(_GROUP, f"refresh a reader at {size:,} documents", "ms", {OURS: own}))


def _commit(report: Report, worker: Worker, size: int) -> None:
    taken = [worker.call("commit_one", turn) for turn in range(30)][5:]
    for place, (what, unit, scale) in enumerate(
        (("time", "ms", _MILLI), ("CPU", "ms", _MILLI), ("written", "KiB", 1 / 1024))
    ):
        values = [one[place] * scale for one in taken]
        work = f"commit one document at {size:,}, {what}"
        report.add(Row(_GROUP, work, unit, {OURS: Figure(median(values), values)}))


def _filters(report: Report, ours: Worker, rounds: int) -> None:
    """Compare with the slower of the unfiltered search and an exhaustive one of the same query."""
    for kind in FIRST:
        first = _take_first(ours, kind)
        work = f"first evaluation of a filter: {kind}"
        report.add(_at_most(_FILTERS, work, {OURS: first}, first.median, 100, 100))
    for k in (10, 100):
        times: dict[str, list[np.ndarray]] = {name: [] for name in (*_ALONE, *FILTERS)}
        for turn in range(-1, rounds):
            for name, own in times.items():
                own.append(np.array(ours.call("filtered", name, k, turn)) * 1e6)
        best = {name: np.min(own[1:], axis=0) for name, own in times.items()}
        slower = np.maximum(*(best[one] for one in _ALONE)).sum()
        figures_of = {}
        for name in FILTERS:
            shown = {
                one: [float(turn.mean()) for turn in times[one][1:]] for one in (name, *_ALONE)
            }
            figures = {one: Figure(median(own), own) for one, own in shown.items()}
            ratio = best[name].sum() / slower
            figures_of[name] = figures[name]
            work, unit = f"a filter that keeps {name}, k={k}", "µs a query"
            figures = {"filtered": figures.pop(name), **figures}
            row = Row(_FILTERS, work, unit, figures, ratio, "x", "the slower", 2, 2)
            row.at_least = False
            row.note = _SLOWER
            report.add(row)
        few = best[_FEW].sum() / best["unfiltered"].sum()
        at_most, (required, goal) = {_FEW: figures_of[_FEW]}, _FEW_TARGETS[k]
        work = f"a filter that keeps {_FEW}, k={k}, against no filter"
        against = "unfiltered", required, goal
        report.add(Row(_FILTERS, work, unit, at_most, few, "x", *against, at_least=False))


def _take_first(ours: Worker, kind: str) -> Figure:
    times = [ours.call("first", kind, turn) * _MILLI for turn in range(3)]
    return Figure(median(times), times)


def _readers(report: Report, ours: Worker) -> None:
    """Compare the 99th percentile of searches beside a bulk add and a compaction with the idle."""
    before = ours.call("readers", False, 3.0)
    busy = ours.call("readers", True, 0.0)
    idle = before + ours.call("readers", False, 3.0)
    tails = [percentile(one, 99) * _MILLI for one in (busy, idle)]
    figures = {"writing beside": Figure(tails[0], [tails[0]]), "idle": Figure(tails[1], [tails[1]])}
    work = "search, 99th percentile, beside a bulk add and a compaction"
    row = _at_most(_GROUP, work, figures, tails[0] / tails[1], 2, 2, "x")
    row.note = "Idle: for three seconds before, and for three after."
    report.add(row)

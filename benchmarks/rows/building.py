"""From raw text to searchable, and one raw question at a time."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.corpora import ENWIKI, SCIFACT, WORK, Corpus
from benchmarks.engines import ENGINES, OURS
from benchmarks.report import Report, raced
from benchmarks.workers import Figure, NotInstalledError, Worker, race

_NOTE = (
    "English, on one CPU each; tantivy's indexing thread has one to itself, "
    "beside that of the Python thread that feeds it. Ours stores the texts too."
)


def measure(report: Report, quick: bool) -> None:
    """Measure building, by one thread and by two, and single questions; quickly, SciFact alone."""
    if not quick:
        _one_thread(report, ENWIKI, 3, (8.0, 12.0))
    _one_thread(report, SCIFACT, 3 if quick else 7, None)
    _two_threads(report, SCIFACT if quick else ENWIKI, 3)


def _start(stack: ExitStack, names: tuple[str, ...]) -> tuple[dict[str, Worker], dict[str, str]]:
    workers, missing = {}, {}
    for name in names:
        try:
            workers[name] = stack.enter_context(Worker(ENGINES[name], WORK))
        except NotInstalledError:
            missing[name] = "not installed"
    return workers, missing


def _against(
    figures: dict[str, Figure], missing: dict[str, str], peer: str
) -> dict[str, Figure | str]:
    joined: dict[str, Figure | str] = {**figures, **missing}
    return {name: one for name, one in joined.items() if name in (OURS, peer)}


def _one_thread(
    report: Report, corpus: Corpus, rounds: int, targets: tuple[float, float] | None
) -> None:
    with ExitStack() as stack:
        workers, missing = _start(stack, (OURS, "bm25s numba", "tantivy"))
        for name, worker in workers.items():
            if name != "tantivy":
                worker.call("pin")
        figures = race(workers, rounds, "raw", corpus, 1)
        work = f"build {corpus.name}, 1 thread"
        for peer, (required, goal) in {
            "bm25s numba": targets or (None, None),
            "tantivy": (2.0, 3.0) if targets else (None, None),
        }.items():
            both = _against(figures, missing, peer)
            row = raced("building from raw text", work, "s", both, required, goal)
            row.note = _NOTE
            report.add(row)
        asking = {name: one for name, one in workers.items() if name != "tantivy"}
        answers = race(asking, 10, "question", corpus.questions(), 10)
        work, unit = f"search(raw question), {corpus.name}, k=10", "µs a question"
        report.add(raced("one question at a time", work, unit, answers, 2.0, 3.0, scale=1e6))


def _two_threads(report: Report, corpus: Corpus, rounds: int) -> None:
    with ExitStack() as stack:
        workers, missing = _start(stack, (OURS, "tantivy"))
        figures: dict[str, Figure | str] = {**race(workers, rounds, "raw", corpus, 2), **missing}
        work = f"build {corpus.name}, 2 threads"
        targets = (2.0, 3.0) if corpus is ENWIKI else (None, None)
        report.add(raced("building from raw text", work, "s", figures, *targets))

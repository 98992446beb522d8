"""From raw text to searchable, and one raw question at a time."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.corpora import ENWIKI, SCIFACT, WORK, Corpus
from benchmarks.engines import ENGINES, OURS
from benchmarks.engines.base import NEW_ROUNDS
from benchmarks.report import Report, raced
from benchmarks.workers import Figure, Worker, race, start

_PEERS = ("bm25s numba", "tantivy", "PISA", "Lucene")
_NOTE = (
    "English, on one CPU each; tantivy's indexing thread has one to itself, "
    "beside that of the Python thread that feeds it. Ours stores the texts too. "
    "Lucene's includes handing the texts over to Java."
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
        worker = start(ENGINES[name], WORK)
        if isinstance(worker, str):
            missing[name] = worker
        else:
            workers[name] = stack.enter_context(worker)
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
        workers, missing = _start(stack, (OURS, *_PEERS))
        for name, worker in workers.items():
            if name != "tantivy":
                worker.call("pin")
        figures = race(workers, rounds, "raw", corpus, 1)
        work = f"build {corpus.name}, 1 thread"
        wanted = {"bm25s numba": targets, "tantivy": (3.0, 4.0) if targets else None}
        for peer in _PEERS:
            both = _against(figures, missing, peer)
            required, goal = wanted.get(peer) or (None, None)
            row = raced("building from raw text", work, "s", both, required, goal)
            row.note = _NOTE
            report.add(row)
        asking = {name: one for name, one in workers.items() if name != "tantivy"}
        for kind, method in (("new", "new_question"), ("raw", "question")):
            answers = race(asking, NEW_ROUNDS, method, corpus.questions(), 10)
            work, unit = f"search({kind} question), {corpus.name}, k=10", "µs a question"
            for peer in _PEERS:
                if peer != "tantivy":
                    both = _against(answers, missing, peer)
                    required, goal = (3.0, 5.0) if peer == "bm25s numba" else (None, None)
                    group = "one question at a time"
                    report.add(raced(group, work, unit, both, required, goal, scale=1e6))


def _two_threads(report: Report, corpus: Corpus, rounds: int) -> None:
    with ExitStack() as stack:
        workers, missing = _start(stack, (OURS, "tantivy"))
        figures: dict[str, Figure | str] = {**race(workers, rounds, "raw", corpus, 2), **missing}
        work = f"build {corpus.name}, 2 threads"
        targets = (2.0, 3.0) if corpus is ENWIKI else (None, None)
        report.add(raced("building from raw text", work, "s", figures, *targets))

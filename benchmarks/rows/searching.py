"""Batches of queries: every engine on the same terms, and the top-k compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.corpora import ALL_WORDS, ENWIKI, LENGTHS, PASSAGES, SCIFACT, SMALL, WORK, Corpus
from benchmarks.engines import ENGINES, OURS
from benchmarks.report import SMALL_GROUP, Report, Row, raced
from benchmarks.workers import Figure, Worker, race, start
from bm25rag.evaluation.processes import FailedError

TARGETS = {
    ENWIKI: {10: (2.0, 3.0), 100: (1.5, 2.0), 1000: (1.2, 1.5)},
    SCIFACT: {10: (1.5, 2.0), 100: (1.5, 2.0), 1000: (1.5, 2.0)},
}
_SMALL_TARGETS = {10: (2.0, 3.0), 100: (1.5, 2.0), 1000: (1.5, 2.0)}
_BY_LENGTH = "batch search, short and long queries"
_LONG, _LONG_TARGET = 40, (2.0, 3.0)
_SLOW = ("rank_bm25", "bm25s numpy")
_MICRO = 1e6
_FEW = 7  # rounds of rows without targets
_CHECKED = 100  # queries of which the whole ranking is computed


class Field:
    """Engines that have indexed the same corpus, and those that are not here."""

    def __init__(self) -> None:
        self.workers: dict[str, Worker] = {}
        self.missing: dict[str, str] = {}
        #: Seconds of indexing, and MiB of memory at most.
        self.seconds: dict[str, float] = {}
        self.peaks: dict[str, float] = {}

    def choose(self, corpus: Path, name: str) -> None:
        for worker in self.workers.values():
            worker.call("choose", corpus, name)

    def race(self, rounds: int, k: int) -> dict[str, Figure | str]:
        return {**race(self.workers, rounds, "search", k, 1), **self.missing}

    def check(self, corpus: str, k: int) -> Iterator[dict[str, object]]:
        """Compare what the others return with the exact ranking."""
        for name, worker in self.workers.items():
            if name != OURS:
                variant, found = worker.call("found", k, _CHECKED)
                judged = self.workers[OURS].call("judge", found, k, variant)
                yield {"corpus": corpus, "k": k, "engine": name, "variant": variant, **judged}


@contextmanager
def field(names: Sequence[str], corpus: Path, limit: int | None = None) -> Iterator[Field]:
    """Start engines, one after the other, and let each index the corpus."""
    with ExitStack() as stack:
        engines = Field()
        for name in names:
            worker = start(ENGINES[name], WORK)
            if isinstance(worker, str):
                engines.missing[name] = worker
                continue
            stack.enter_context(worker)
            try:
                before = worker.call("resident")
                engines.seconds[name] = worker.call("index", corpus, limit)
            except FailedError as error:
                engines.missing[name] = error.line
                continue
            engines.peaks[name] = (worker.call("peak") - before) / 2**20
            engines.workers[name] = worker
        yield engines


def measure(report: Report, quick: bool) -> None:
    """Measure all rows of batch search; in quick mode those that have targets."""
    rounds = 3 if quick else 15
    _main(report, ENWIKI, rounds, quick)
    _main(report, SCIFACT, rounds, quick)
    for corpus in SMALL[:1] if quick else SMALL:
        _small(report, corpus, rounds)
    if not quick:
        _stop_words(report)


def _row(
    group: str,
    corpus: Corpus,
    work: str,
    figures: dict[str, Figure | str],
    targets: tuple[float, float] | tuple[None, None] = (None, None),
) -> Row:
    required, goal = targets
    work = f"{corpus.name}, {work}"
    return raced(group, work, "µs a query", figures, required, goal, scale=_MICRO)


def _main(report: Report, corpus: Corpus, rounds: int, quick: bool) -> None:
    corpus.prepare()
    names = [one for one in ENGINES if one not in _SLOW or corpus is SCIFACT]
    if corpus is ENWIKI and not quick:
        names.append("bm25s numpy")
    with field(names, corpus.folder) as engines:
        engines.choose(corpus.folder, "questions")
        for k, targets in TARGETS[corpus].items():
            figures = engines.race(rounds, k)
            report.add(_row("batch search", corpus, f"k={k}", figures, targets))
            report.checks += engines.check(corpus.name, k)
            for name in _SLOW:  # one k is enough of these
                if name in engines.workers:
                    engines.workers.pop(name).close()
        if not quick:
            _others(report, corpus, engines)


def _others(report: Report, corpus: Corpus, engines: Field) -> None:
    """Measure other k, short and long queries, and passages of 80 to 200 terms as queries."""
    for k in (1, 37, 5000):
        figures = engines.race(_FEW, k)
        report.add(_row("batch search, other k", corpus, f"k={k}", figures))
    for length in LENGTHS:
        engines.choose(corpus.folder, f"{length} terms")
        figures = engines.race(_FEW, 10)
        work = f"k=10, {length} term{'s' if length > 1 else ''}"
        targets = _LONG_TARGET if length == _LONG else (None, None)
        report.add(_row(_BY_LENGTH, corpus, work, figures, targets))
    engines.choose(corpus.folder, PASSAGES)
    figures = engines.race(_FEW, 10)
    targets = _LONG_TARGET if corpus is SCIFACT else (None, None)
    report.add(_row(_BY_LENGTH, corpus, "k=10, a passage as the query", figures, targets))


def _small(report: Report, corpus: Corpus, rounds: int) -> None:
    corpus.prepare()
    names = [one for one in ENGINES if one not in _SLOW]
    with field(names, corpus.folder) as engines:
        engines.choose(corpus.folder, "questions")
        for k, targets in _SMALL_TARGETS.items():
            figures = engines.race(rounds, k)
            report.add(_row(SMALL_GROUP, corpus, f"k={k}", figures, targets))
        report.checks += engines.check(corpus.name, 10)


def _stop_words(report: Report) -> None:
    corpus = ALL_WORDS
    corpus.prepare()
    with field([one for one in ENGINES if one not in _SLOW], corpus.folder) as engines:
        engines.choose(corpus.folder, "questions")
        for k in (10, 1000):
            figures = engines.race(_FEW, k)
            report.add(_row("batch search, stop words kept", corpus, f"k={k}", figures))

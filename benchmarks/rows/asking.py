"""From a person's words to hits: questions that are new, one by one and in a batch of texts.

Each round is a process of its own for each engine, which builds the corpus, answers a question of
other words, and then each question once. Another index in it then answers all in one call.
"""

from __future__ import annotations

import random
from statistics import median

from benchmarks.corpora import ENWIKI, SCIFACT, SMALL, WORK, Corpus
from benchmarks.engines import ENGINES, OURS
from benchmarks.report import Report, Row, raced
from benchmarks.workers import Figure, Worker, start

_PEER = "bm25s numba"
_GROUP = "new questions"
_MOST = 300
_NOTE = "Each engine with its own analysis, a new process each round; every question is asked once."
_CHANGED = "Ours was made by five additions, and one document was deleted; bm25s was built whole."
_NO_TARGETS = (None, None)
_LANGUAGES = {"german", "spanish", "russian"}
_FEW_WORDS, _PASSAGES = "3 words of a title", "a passage as the question"


def measure(report: Report, quick: bool) -> None:
    """Measure all rows; quickly, those of SciFact."""
    rounds = 3 if quick else 7
    language, many = (3.0, 4.0), _NO_TARGETS
    ask(report, SCIFACT, "questions", rounds, (3.0, 5.0), many)
    ask(report, SCIFACT, _FEW_WORDS, rounds, (4.0, 6.0), many)
    ask(report, SCIFACT, _PASSAGES, rounds, (3.0, 5.0), (3.0, 5.0))
    ask(report, SCIFACT, "questions", rounds, _NO_TARGETS, many, changed=True)
    _hits(report, SCIFACT, 5 * rounds)
    if not quick:
        ask(report, ENWIKI, "questions", 5, (5.0, 6.0), many)
        for corpus in SMALL:
            if corpus.language in _LANGUAGES:
                ask(report, corpus, "questions", rounds, language, language)


def asked_of(corpus: Corpus, kind: str) -> list[str]:
    """Return some texts to ask: questions, words of titles, or passages."""
    if kind == "questions":
        texts = corpus.questions()
    elif kind == _PASSAGES:
        texts = corpus.texts()
    else:
        words = ([one for one in text.split()[:9] if len(one) > 3] for text in corpus.texts())
        texts = [" ".join(some[:3]) for some in words]
    return random.Random(26).sample(texts, min(_MOST, len(texts)))


def ask(
    report: Report,
    corpus: Corpus,
    kind: str,
    rounds: int,
    new: tuple[float | None, float | None],
    many: tuple[float | None, float | None],
    changed: bool = False,
) -> None:
    """Add two rows: questions one by one, and in a batch; with their targets.

    ``changed``: to an index of several segments that has deleted documents, if there is such.
    """
    asked = asked_of(corpus, kind)
    times: dict[str, dict[str, list[float]]] = {"new": {}, "a batch of texts": {}}
    missing: dict[str, str] = {}
    for turn in range(rounds):
        names = [one for one in (OURS, _PEER) if one not in missing]
        for name in names if turn % 2 else reversed(names):
            worker = start(ENGINES[name], WORK)
            if isinstance(worker, str):
                missing[name] = worker
                continue
            with worker:
                for how, seconds in zip(times, _times(worker, corpus, asked, changed), strict=True):
                    times[how].setdefault(name, []).append(seconds)
    for how, targets in zip(times, (new, many), strict=True):
        own = {name: Figure(median(one), one) for name, one in times[how].items()}
        state = ", an index that has changed" if changed else ""
        work, unit = f"{corpus.name}, {kind}, k=10, {how}{state}", "µs a question"
        row = raced(_GROUP, work, unit, {**own, **missing}, *targets, scale=1e6)
        row.note = f"{_NOTE} {_CHANGED}" if changed else _NOTE
        report.add(row)


def _times(worker: Worker, corpus: Corpus, asked: list[str], changed: bool) -> tuple[float, float]:
    """Return seconds a question, one by one and in a batch, each by an index of its own."""
    build = "raw_changed" if changed else "raw"
    worker.call("pin")
    worker.call(build, corpus, 1, 0)
    worker.call("question", ["zzyzx"], 10, 0)
    one_by_one = worker.call("question", asked, 10, 0)
    worker.call(build, corpus, 1, 0)
    worker.call("question_batch", ["zzyzx"], 10)
    return one_by_one, worker.call("question_batch", asked, 10)


def _hits(report: Report, corpus: Corpus, rounds: int) -> None:
    """Measure what ten hits cost, of which nothing but ids and scores is read."""
    with Worker(ENGINES[OURS], WORK) as worker:
        worker.call("raw", corpus, 1, 0)
        times = [worker.call("hits", corpus.questions(), 10) * 1e6 for _ in range(rounds)]
    figures = {OURS: Figure(median(times), times)}
    row = Row("serving", "ten hits, made", "µs", figures, median(times), "µs", "", 2, 2)
    row.at_least = False
    report.add(row)

"""What it takes to serve: threads, memory, disk, and the start of a process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.corpora import ENWIKI, SCIFACT, WORK, Corpus
from benchmarks.engines import ENGINES, OURS
from benchmarks.report import Report, Row
from benchmarks.synthetic import UNLIKE
from benchmarks.workers import BM25S_ALONE, Figure, Worker, run_code

_GROUP = "serving"
_BM25S = "bm25s numba"


def measure(report: Report, quick: bool) -> None:
    """Measure all rows of serving; in quick mode on SciFact, too small for the targets."""
    corpus = SCIFACT if quick else ENWIKI
    corpus.prepare()
    _threads(report, corpus, 5 if quick else 15)
    _memory(report, corpus)
    _whole_process(report, corpus)
    _disk(report, corpus.name, WORK / "saved" / OURS, (6, 4))
    if not quick:
        _unlike(report)
    _start(report, 5 if quick else 15)


def _threads(report: Report, corpus: Corpus, rounds: int) -> None:
    with Worker(ENGINES[OURS], WORK) as one, Worker(ENGINES[OURS], WORK) as other:
        for worker in (one, other):
            worker.call("index", corpus.folder)
            worker.call("choose", corpus.folder, "questions")
        threads, processes = [], []
        for turn in range(-1, rounds):
            together = 1 / one.call("search", 10, 2, turn)
            for worker in (one, other):
                worker.ask("search", 10, 1, turn)
            apart = sum(1 / worker.answer() for worker in (one, other))
            if turn >= 0:
                threads.append(together)
                processes.append(apart)
    figures = {
        "two threads": Figure(median(threads), threads),
        "two processes": Figure(median(processes), processes),
    }
    share = 100 * median(a / b for a, b in zip(threads, processes, strict=True))
    work, unit = f"two threads, {corpus.name}, k=10", "queries a second"
    row = Row(_GROUP, work, unit, figures, share, "%", "two processes")
    if corpus is ENWIKI:
        row.required, row.goal = 90, 95
    report.add(row)


def _memory(report: Report, corpus: Corpus) -> None:
    used = {}
    for name in (OURS, _BM25S):
        folder = WORK / "saved" / name.replace(" ", "-")
        _save(name, corpus.folder, folder)
        used[name] = _figure([_serve(name, folder, corpus) / 2**20])
    ratio = used[OURS].median / used[_BM25S].median
    work = f"memory of 1,000 queries, {corpus.name}"
    row = Row(_GROUP, work, "MiB", used, ratio, "x", _BM25S, at_least=False)
    if corpus is ENWIKI:
        row.required, row.goal = 0.7, 0.5
    report.add(row)


_SERVER = """
import json
from bm25rag import BM25Index
index, questions, asked = BM25Index.open({folder!r}), json.load(open({questions!r})), 0
while asked < 1000:
    for question in questions:
        index.search(question)
    asked += len(questions)
status = open("/proc/self/status").read()  # a new process's ru_maxrss may be that of its parent
print(int(status.split("VmHWM:")[1].split()[0]) / 1024)
"""


def _whole_process(report: Report, corpus: Corpus) -> None:
    """Measure all that a process has had in memory at most, Python and NumPy included."""
    folder, questions = WORK / "saved" / "raw", WORK / "questions.json"
    shutil.rmtree(folder, ignore_errors=True)
    with Worker(ENGINES[OURS], WORK) as writer:
        writer.call("raw", corpus, 1, 0)
        writer.call("save", folder)
    questions.write_text(json.dumps(corpus.questions()))
    code = _SERVER.format(folder=str(folder), questions=str(questions))
    own = _figure([float(run_code(code)) for _ in range(3)])
    work = f"a process that serves raw questions, all its memory, {corpus.name}"
    row = Row(_GROUP, work, "MiB", {OURS: own}, own.median, "MiB", "", at_least=False)
    if corpus is ENWIKI:
        row.required, row.goal = 70, 50
    report.add(row)


def _save(name: str, corpus: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with Worker(ENGINES[name], WORK) as writer:
        writer.call("index", corpus)
        writer.call("save", folder)


def _unlike(report: Report) -> None:
    """Measure the disk that documents of very different lengths take."""
    UNLIKE.prepare()
    folder = WORK / "saved" / "unlike"
    _save(OURS, UNLIKE.folder, folder)
    _disk(report, "documents of very different lengths", folder, (8, 6))


def _disk(report: Report, name: str, folder: Path, targets: tuple[float, float]) -> None:
    with Worker(ENGINES[OURS], WORK) as reader:
        reader.call("load", folder)
        size = _figure([reader.call("posting_bytes", folder)])
    figures = {OURS: size, _BM25S: _figure([8.0])}
    work = f"a posting on disk, {name}"
    row = Row(_GROUP, work, "bytes", figures, size.median, "B", _BM25S, *targets, at_least=False)
    report.add(row)


def _serve(name: str, folder: Path, corpus: Corpus) -> int:
    """Return the bytes that a thousand queries bring into the memory of a new process."""
    with Worker(ENGINES[name], WORK) as server:
        server.call("choose", corpus.folder, "questions")
        before = int(server.call("resident"))
        server.call("load", folder)
        asked = 0
        while asked < 1000:
            asked += len(server.call("one_by_one", 10, asked))
        return int(server.call("resident")) - before


def _figure(values: list[float]) -> Figure:
    return Figure(median(values), values)


# --- the start of a process -----------------------------------------------------------

_CLOCK = "import time, numpy; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
_FIRST = """
from bm25rag import BM25Index
assert BM25Index.open({folder!r}).search({question!r})
"""
_THEIR_INDEX = """
import json
index = bm25s.BM25(backend="numpy")
texts = json.load(open({texts!r}))
index.index(bm25s.tokenize(texts, stemmer=stemmer, show_progress=False), show_progress=False)
index.save({folder!r}, show_progress=False)
"""
_THEIR_FIRST = """
index = bm25s.BM25.load({folder!r}, mmap=True)
asked = bm25s.tokenize({question!r}, stemmer=stemmer, show_progress=False)
assert index.retrieve(asked, k=10, show_progress=False).scores.any()
"""


def _start(report: Report, rounds: int) -> None:
    times = [float(run_code(_CLOCK.format("import bm25rag"))) * 1e3 for _ in range(rounds + 1)]
    own = _figure(times[1:])
    work = "import bm25rag, above import numpy"
    figures = {OURS: own}
    report.add(Row(_GROUP, work, "ms", figures, own.median, "ms", "", 50, 30, at_least=False))
    folder = WORK / "saved" / "scifact-raw"
    shutil.rmtree(folder, ignore_errors=True)
    with Worker(ENGINES[OURS], WORK) as writer:
        writer.call("raw", SCIFACT, 1, 0)
        writer.call("save", folder)
    theirs, texts = WORK / "saved" / "scifact-bm25s", WORK / "scifact-texts.json"
    texts.write_text(json.dumps(SCIFACT.texts()))
    shutil.rmtree(theirs, ignore_errors=True)
    run_code(BM25S_ALONE + _THEIR_INDEX.format(texts=str(texts), folder=str(theirs)))
    question = SCIFACT.questions()[0]
    codes = {
        OURS: _FIRST.format(folder=str(folder), question=question),
        "bm25s": BM25S_ALONE + _THEIR_FIRST.format(folder=str(theirs), question=question),
        "import numpy alone": "import numpy",
    }
    walls: dict[str, list[float]] = {name: [] for name in codes}
    for turn in range(-1, rounds):
        for name, code in codes.items():
            wall = _wall(code)
            if turn >= 0:
                walls[name].append(wall)
    figures = {name: _figure(times) for name, times in walls.items()}
    ratio = median(ours / other for ours, other in zip(walls[OURS], walls["bm25s"], strict=True))
    work = "a new process: import, open, first query, scifact"
    report.add(Row(_GROUP, work, "ms", figures, ratio, "x", "bm25s", 1.0, 0.7, at_least=False))


def _wall(code: str) -> float:
    start = perf_counter()
    run_code(code)
    return (perf_counter() - start) * 1e3

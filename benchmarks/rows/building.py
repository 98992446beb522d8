"""From raw text to searchable, and one raw question at a time."""

from __future__ import annotations

import json
from contextlib import ExitStack
from statistics import median

from benchmarks.corpora import ENWIKI, SCIFACT, WORK, Corpus
from benchmarks.engines import ENGINES, K1, OURS, B
from benchmarks.engines.base import NEW_ROUNDS
from benchmarks.report import Report, raced
from benchmarks.workers import BM25S_ALONE, Figure, Worker, race, run_code, start

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
    for size in () if quick else (60_000, 150_000):
        _new_process(report, ENWIKI, size, 5)
    if not quick:
        _from_terms(report, ENWIKI, 60_000, 5)
        _by_pattern(report, ENWIKI, 100_000, 5)


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


_CLOCK = """
import json, os, time
texts = json.load(open({texts!r}))[:{size}]
{before}
start = time.perf_counter()
{code}
print(time.perf_counter() - start)
"""
# tantivy's own thread has a CPU to itself.
_ONE_CPU = "os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])"
_TANTIVY = """
import tantivy
builder = tantivy.SchemaBuilder()
builder.add_text_field("text", tokenizer_name="{tokenizer}", index_option="freq")
builder.add_integer_field("row", fast=True)
index = tantivy.Index(builder.build())
writer = index.writer(1_000_000_000, 1)
for row, text in enumerate(texts):
    writer.add_document(tantivy.Document(text=text, row=row))
writer.commit()
index.reload()
"""
# What comes before the clock starts, and what is timed.
_BUILDS = {
    OURS: (_ONE_CPU, f"from bm25rag import BM25Index\nBM25Index.from_texts(texts, k1={K1}, b={B})"),
    "bm25s": (
        _ONE_CPU,
        BM25S_ALONE
        + f"""
tokens = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
bm25s.BM25(k1={K1}, b={B}, backend="numpy").index(tokens, show_progress=False)
""",
    ),
    "tantivy": ("", _TANTIVY.format(tokenizer="en_stem")),
}


_TERMS = _ONE_CPU + "\nterms = [text.split() for text in texts]\n"
_OURS = "from bm25rag import Analyzer, BM25Index"
# Several spaces are one, as they are to the pattern.
_SPLIT = _ONE_CPU + '\ntexts = [" ".join(text.split()) for text in texts]\n'
_BY_PATTERN = {
    OURS: (
        _SPLIT + _OURS,
        """
analyzer = Analyzer(None, token_pattern=r"\\S+", normalize=None, lowercase=False, cjk=False)
BM25Index.from_texts(texts, analyzer=analyzer)
""",
    ),
    "tantivy": (_SPLIT.replace(_ONE_CPU, ""), _TANTIVY.format(tokenizer="whitespace")),
}
_FROM_TERMS = {
    "lists of terms": (_TERMS + _OURS, f"BM25Index.from_texts(terms, k1={K1}, b={B})"),
    "a callable": (
        _ONE_CPU + "\n" + _OURS,
        f"BM25Index.from_texts(texts, analyzer=Analyzer(tokenizer=str.split), k1={K1}, b={B})",
    ),
    "bm25s": (
        _TERMS + BM25S_ALONE,
        f"bm25s.BM25(k1={K1}, b={B}, backend='numpy').index(terms, show_progress=False)",
    ),
}


def _new_process(report: Report, corpus: Corpus, size: int, rounds: int) -> None:
    """Measure the import and the build together, in a process that did neither before."""
    figures = _clocked(_BUILDS, corpus, size, rounds)
    work = f"a new process: import, and build {size:,} passages, 1 thread"
    for peer, targets in (("bm25s", (8.0, 12.0)), ("tantivy", (3.0, 4.0))):
        both = {name: figures[name] for name in (OURS, peer)}
        report.add(raced("building from raw text", work, "s", both, *targets))


def _from_terms(report: Report, corpus: Corpus, size: int, rounds: int) -> None:
    """Measure building without analysis: from lists of terms, and with a callable."""
    figures = _clocked(_FROM_TERMS, corpus, size, rounds)
    for given in ("lists of terms", "a callable"):
        both = {OURS: figures[given], "bm25s": figures["bm25s"]}
        work = f"build {size:,} passages, {given}, 1 thread"
        report.add(raced("building from terms", work, "s", both, 5.0, 8.0))


def _by_pattern(report: Report, corpus: Corpus, size: int, rounds: int) -> None:
    """Measure building from terms between blanks, by a pattern of one's own."""
    figures = _clocked(_BY_PATTERN, corpus, size, rounds)
    work = f"build {size:,} passages, \\S+ and whitespace, 1 thread"
    report.add(raced("building from terms", work, "s", figures, 1.5, 3.0))


def _clocked(
    builds: dict[str, tuple[str, str]], corpus: Corpus, size: int, rounds: int
) -> dict[str, Figure]:
    """Time each of some builds in a new process, in turns."""
    texts = WORK / "texts.json"
    texts.write_text(json.dumps(corpus.texts()))
    times: dict[str, list[float]] = {name: [] for name in builds}
    for _ in range(rounds):
        for name, (before, code) in builds.items():
            program = _CLOCK.format(texts=str(texts), size=size, before=before, code=code)
            times[name].append(float(run_code(program)))
    return {name: Figure(median(own), own) for name, own in times.items()}

"""Searches of many sparse vectors by bounds of strips, beside the walk of all postings.

``python -m benchmarks.strips 1000000 8800000`` measures, and writes the table of
``docs/sparse-vectors.md``. The vectors are those of ``topics``, with weights of 16 bits. Their
postings are made block by block, because adding 8.8 million vectors takes a quarter of an hour, and
put into an index of as many documents without text.

Measured is ``index.vectors.search`` in new processes that open the folder where the index was
saved, on one thread, in the processor's time, the least of three processes. Each question is asked
once, so that all are new, then some three times more. What a file holds is checked when it is used
first, of postings as of bounds, so the first questions take longer. In every second process all
postings are walked; its figures come first. All find the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import put_into, table
from benchmarks.topics import TERMS, Topics
from bm25rag import BM25Index
from bm25rag.columns.column import build_column
from bm25rag.kernels.records import Run
from bm25rag.segments import postings
from bm25rag.segments.doc_blocks import DOC_BLOCK
from bm25rag.segments.postings import Postings
from bm25rag.segments.postings_builder import TermColumn
from bm25rag.segments.vectors_builder import build_vectors

# How many others are asked before new questions.
_OTHERS = 300
# Bounds never pay if a question must have so many postings.
_NEVER = 1 << 40
# Processes of each kind, and rounds of questions that are asked again.
_TIMES = 3
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "sparse-vectors.md"


def postings_of(topics: Topics) -> Postings:
    """Return the postings of all vectors."""
    from scipy import sparse

    runs: list[Run] = []
    waiting: list[Any] = []
    for chunk in topics.passages():
        waiting.append(chunk)
        first = len(runs) * DOC_BLOCK
        count = sum(one.shape[0] for one in waiting)
        if count == min(DOC_BLOCK, topics.count - first):
            runs.append(_run(sparse.vstack(waiting), first))
            waiting = []
    terms = TermColumn(build_column(str(number).encode() for number in range(TERMS)))
    return build_vectors(terms, runs, topics.count)


def _run(vectors: Any, first: int) -> Run:
    columns = vectors.tocsc()
    columns.sort_indices()
    weights = np.maximum(columns.data.astype(np.float16), np.float16(2.0**-24))
    sizes = np.diff(columns.indptr).astype(np.uint32)
    used = np.flatnonzero(sizes).astype(np.uint32)
    bits = weights.astype(np.float32).view(np.uint32)
    return Run(used, sizes[used], columns.indices.astype(np.uint16), bits, first)


def measure(count: int, correlated: bool, k: int, number: int = 100) -> list[str]:
    """Return a row of the table."""
    topics = Topics(count, correlated)
    with tempfile.TemporaryDirectory(dir=ROOT / "benchmarks") as folder:
        bytes_of_rows = _save(topics, Path(folder) / "index")
        questions = topics.questions(number + _OTHERS)
        (Path(folder) / "questions.json").write_text(json.dumps(questions))
        runs = [[_run_process(folder, k, number, walk) for walk in (1, 0)] for _ in range(_TIMES)]
    if any(found != runs[0][0][1] for pair in runs for _, found in pair):
        raise AssertionError("the strips found something else")
    each = np.min([[took for took, _ in pair] for pair in runs], axis=0) * 1000
    asked, again = each[:, :-number], each[:, -number:].mean(1)
    first, hundred, new = asked[:, 0], asked[:, :number].mean(1), asked[:, -number:].mean(1)
    return [
        f"{count:,}" + ("" if correlated else ", without topics"),
        str(k),
        "{:.2f}, {:.2f} ms".format(*new),
        f"{new[0] / new[1]:.1f}",
        "{:.2f}, {:.2f} ms".format(*again),
        f"{again[0] / again[1]:.1f}",
        "{:.1f}, {:.1f} ms".format(*first),
        "{:.1f}, {:.1f} ms".format(*hundred),
        f"{bytes_of_rows / (1 << 20):.0f} MiB",
    ]


def _save(topics: Topics, folder: Path) -> int:
    """Save an index of the vectors; return how many bytes its bounds take."""
    index = BM25Index()
    index.add([[]] * topics.count)
    (view,) = index._snapshot.views
    view.segment.vectors = vectors = postings_of(topics)
    index.save(folder)
    return 0 if vectors.rows is None else vectors.rows.nbytes


def _run_process(folder: str, k: int, number: int, walk: int) -> tuple[list[float], Any]:
    """Return what ``ask`` prints in a process of its own."""
    code = (
        "import sys; from benchmarks.strips import ask; ask(sys.argv[1], *map(int, sys.argv[2:]))"
    )
    command = [sys.executable, "-c", code, folder, str(k), str(number), str(walk)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    took, found = json.loads(done.stdout)
    return took, found


def ask(folder: str, k: int, number: int, walk: int) -> None:
    """Print the times of all questions, then of the first ones again, and what these found."""
    questions = json.loads((Path(folder) / "questions.json").read_text())
    if walk:
        postings.STRIPS_WORTH = _NEVER
    index = BM25Index.open(Path(folder) / "index")
    took, _ = times(index, questions, k)
    rounds = [times(index, questions[:number], k) for _ in range(_TIMES)]
    again = np.min([each for each, _ in rounds], axis=0)
    print(json.dumps([[*took, *again.tolist()], rounds[0][1]]))


def times(index: BM25Index, questions: list[dict[str, float]], k: int) -> tuple[list[float], Any]:
    """Return the processor's time of each question, and what was found."""
    each, found = [], []
    for question in questions:
        start = time.thread_time()
        hits = index.vectors.search(question, k)
        each.append(time.thread_time() - start)
        found.append([[hit.id, hit.score.hex()] for hit in hits])
    return each, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", type=int, nargs="+", help="numbers of vectors")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--without-topics", action="store_true", help="the worst case as well")
    parser.add_argument("--print", action="store_true", help="print, not write")
    given = parser.parse_args()
    heads = ["vectors", "k", "new questions", "times as fast", "asked again", "times as fast"]
    heads += ["the first", "the first 100", "bounds"]
    lines = []
    for count in given.counts:
        for correlated in (True, False)[: 1 + given.without_topics]:
            lines.append(measure(count, correlated, given.k))
            print(*lines[-1], sep=" | ", flush=True)
    if not given.print:
        put_into(PAGE, "strips", [table(heads, lines)])


if __name__ == "__main__":
    main()

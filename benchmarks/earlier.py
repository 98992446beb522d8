"""Compare batches of queries with an earlier version of this library, row by row.

``git worktree add ../earlier COMMIT``, and there ``python setup.py build_ext --inplace`` if it
has a ``setup.py``; then ``python -m benchmarks.earlier ../earlier``. Both versions index the same
terms in a process each, and take turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.corpora import ALL_WORDS, ENWIKI, LENGTHS, SCIFACT, SMALL, Corpus
from benchmarks.engines import K1, B

_HERE = Path(__file__).parents[1]
# What both versions run, with what every version has; a line for each measurement.
_WORKER = f"""
import gc, json, random, sys
from pathlib import Path
from time import perf_counter
import bm25rag
if hasattr(bm25rag, "warmup"):
    bm25rag.warmup()
options = {{"analyzer": bm25rag.Analyzer(language=None, normalize=None), "k1": {K1}, "b": {B}}}
index = indexed = None
for line in sys.stdin:
    folder, name, k, turn = json.loads(line)
    if folder != indexed:
        lines = Path(folder, "terms.txt").read_text("ascii").splitlines()
        index = bm25rag.BM25Index.from_texts(lines, store_text=False, **options)
        queries, indexed = json.loads(Path(folder, "queries.json").read_text("ascii")), folder
    chance, spent, count = random.Random(turn), 0.0, 0
    gc.collect()
    gc.disable()
    while spent < 0.05:
        order = chance.sample(queries[name], len(queries[name]))
        start = perf_counter()
        index.search_batch(order, k=k, threads=1)
        spent, count = spent + perf_counter() - start, count + len(order)
    gc.enable()
    print(spent / count * 1e6, flush=True)
"""


class Version:
    """A version of the library in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(folder.resolve())},
        )

    def __enter__(self) -> Version:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # closes its input, which ends it

    def time(self, *what: Any) -> float:
        """Return microseconds a query."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit("a version has ended; what it said is above")
        return float(line)


def _rows() -> Iterator[tuple[Corpus, str, int]]:
    for corpus in (ENWIKI, SCIFACT):
        for k in (10, 100, 1000, 1, 37, 5000):
            yield corpus, "questions", k
        for length in LENGTHS:
            yield corpus, f"{length} terms", 10
    for corpus in SMALL:
        for k in (10, 100, 1000):
            yield corpus, "questions", k
    for k in (10, 1000):
        yield ALL_WORDS, "questions", k


def main() -> None:
    """Compare with the checkout that the command line names."""
    if len(sys.argv) != 2 or not Path(sys.argv[1], "bm25rag").is_dir():
        sys.exit("usage: python -m benchmarks.earlier FOLDER, a checkout of the earlier version")
    with Version(Path(sys.argv[1])) as earlier, Version(_HERE) as now:
        compare(earlier, now, _rows())


def compare(
    earlier: Version, now: Version, rows: Iterable[tuple[Corpus, str, int]], rounds: int = 11
) -> None:
    """Print a line for each row: both medians, and how many times as fast this version is."""
    print("| µs a query, median of turns | earlier | now | times as fast |\n|---|---|---|---|")
    for corpus, name, k in rows:
        corpus.prepare()
        times: dict[Version, list[float]] = {earlier: [], now: []}
        for turn in range(-1, rounds):
            for version in (earlier, now) if turn % 2 else (now, earlier):
                time = version.time(str(corpus.folder), name, k, turn)
                if turn >= 0:
                    times[version].append(time)
        ratio = median(a / b for a, b in zip(times[earlier], times[now], strict=True))
        row = f"{corpus.name}, {name}, k={k}"
        print(
            f"| {row} | {median(times[earlier]):.2f} | {median(times[now]):.2f} | {ratio:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

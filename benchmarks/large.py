"""As many passages as MS MARCO has, built and served in a process limited to 4 GiB.

    python -m benchmarks.large build ours 8841823
    python -m benchmarks.large serve ours 8841823
    python -m benchmarks.large rank ours 8841823

A build reads the passages from a file, one by one; a server answers questions on one core. Each
prints its figures as JSON: seconds, milliseconds, and MiB of memory. The limit is RLIMIT_DATA:
it counts what a process has for itself. Pages of mapped files are not counted: the system takes
them back when it needs them, so they are reported apart (``RssFile``).
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import mean
from time import perf_counter, process_time
from typing import Any

from benchmarks.corpora import read_queries
from benchmarks.large_peers import PEERS
from benchmarks.synthetic import Recipe
from bm25rag.evaluation.timing import limit, memory, one_by_one, percentile

PASSAGES = 8_841_823
_MIB, _GIB = 1 << 20, 1 << 30
_KINDS = ("RssAnon", "RssFile", "VmHWM")
_KS = (10, 100, 1000)


def recipe_of(documents: int) -> Recipe:
    """Return the recipe of so many passages with the lengths of MS MARCO's."""
    return Recipe(f"passages-{documents}", documents, median=56.0)


def passages(recipe: Recipe) -> Iterator[str]:
    """Yield the passages."""
    with (recipe.folder / "terms.txt").open(encoding="ascii") as file:
        yield from (line.rstrip("\n") for line in islice(file, recipe.documents))


class Ours:
    """Builds and opens our index."""

    def build(self, texts: Iterator[str], folder: Path, memory: int) -> None:
        """Build an index of the passages in a folder."""
        from bm25rag import BM25Index, Document

        documents = (Document(str(number), text) for number, text in enumerate(texts))
        BM25Index.build(documents, folder, memory=memory)

    def open(self, folder: Path) -> Callable[[str], object]:
        """Open it; return what answers a question with ten hits."""
        from bm25rag import BM25Index

        index = BM25Index.open(folder)
        return lambda question: [(hit.id, hit.text) for hit in index.search(question, k=10)]


ENGINES: dict[str, Callable[[], Any]] = {"ours": Ours, **PEERS}


class Peak(threading.Thread):
    """Notes the most memory of each kind that this process has had."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._done = threading.Event()
        self.most = dict.fromkeys(_KINDS, 0)

    def run(self) -> None:
        """Look every 20 ms."""
        while not self._done.wait(0.02):
            for kind in _KINDS:
                self.most[kind] = max(self.most[kind], memory(kind) or 0)

    def end(self) -> dict[str, float]:
        """Return the most of each kind, in MiB."""
        self._done.set()
        self.join()
        return {kind: round(most / _MIB, 1) for kind, most in self.most.items()}


def build(engine: Any, recipe: Recipe, folder: Path, memory_of_build: int) -> dict[str, Any]:
    """Build an index, and say what that took."""
    if folder.exists():
        shutil.rmtree(folder)
    before, peak = memory("RssAnon") or 0, Peak()
    peak.start()
    start, before_cpu = perf_counter(), process_time()
    engine.build(passages(recipe), folder, memory_of_build)
    seconds, spent = perf_counter() - start, process_time() - before_cpu
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "seconds": round(seconds, 1),
        "CPU seconds": round(spent, 1),
        "passages a second": round(recipe.documents / seconds),
        "index, MiB": round(size / _MIB),
        "before, MiB": round(before / _MIB, 1),
        "most, MiB": peak.end(),
    }


def serve(engine: Any, recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Answer questions, and say what that took; of the first round, data are not in memory yet."""
    questions = [" ".join(terms) for terms in read_queries(recipe.folder, "questions")]
    before, start = memory("RssAnon") or 0, perf_counter()
    answer = engine.open(folder)
    opened = perf_counter() - start
    peak = Peak()
    peak.start()
    gc.collect()
    gc.freeze()  # or each round's own collection would count as the processor's time for answers
    rounds, spent = [], []
    for turn in range(3):
        start = process_time()
        rounds.append(one_by_one(answer, questions, turn))
        spent.append(process_time() - start)
    return {
        "open, ms": round(1000 * opened, 1),
        "questions": len(questions),
        "mean, ms": [round(1000 * mean(times), 3) for times in rounds],
        "CPU, ms": [round(1000 * seconds / len(questions), 3) for seconds in spent],
        "p99, ms": [round(1000 * percentile(times, 99), 3) for times in rounds],
        "before, MiB": round(before / _MIB, 1),
        "after, MiB": {kind: round((memory(kind) or 0) / _MIB, 1) for kind in _KINDS},
        "most, MiB": peak.end(),
    }


def rank(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Rank our passages by terms, without ids and texts, for k = 10, 100 and 1,000.

    Of three rounds, after one in which the files are read, the best.
    """
    from bm25rag import BM25Index

    index, figures = BM25Index.open(folder), dict[str, Any]()
    questions = [[list(terms)] for terms in read_queries(recipe.folder, "questions")]
    gc.collect()
    gc.freeze()
    for k in _KS:
        answer = partial(index.search_batch, k=k, threads=1)
        rounds = [one_by_one(answer, questions, turn) for turn in range(4)]
        best = min(rounds[1:], key=mean)
        figures[f"k={k}: mean, p99, ms"] = [
            round(1000 * figure, 3) for figure in (mean(best), percentile(best, 99))
        ]
    return figures


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large")
    parser.add_argument("what", choices=("prepare", "build", "serve", "rank"))
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("passages", nargs="?", type=int, default=PASSAGES)
    parser.add_argument("--memory", type=float, default=2.0, help="GiB for a build")
    parser.add_argument("--limit", type=float, default=4.0, help="GiB of the process")
    given = parser.parse_args()
    if given.what == "rank" and given.engine != "ours":
        parser.error("rank is for ours: others are asked by serve")
    recipe = recipe_of(given.passages)
    recipe.prepare()
    if given.what == "prepare":
        return
    folder = recipe.folder / given.engine
    limit(64 if given.what == "build" else 1, given.limit)
    engine = ENGINES[given.engine]()
    if given.what == "build":
        figures = build(engine, recipe, folder, round(given.memory * _GIB))
    elif given.what == "serve":
        figures = serve(engine, recipe, folder)
    else:
        figures = rank(recipe, recipe.folder / "ours")
    held = resource.getrlimit(resource.RLIMIT_DATA)[0]
    named = {"what": given.what, "engine": given.engine, "passages": given.passages}
    print(json.dumps(named | {"limit, MiB": round(held / _MIB)} | figures))


if __name__ == "__main__":
    main()

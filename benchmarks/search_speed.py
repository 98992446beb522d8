"""Batch search and building, bm25rag beside bm25s, on the same analysed terms, one thread.

    python benchmarks/search_speed.py [--collection scifact] [--rounds 5] [--json FILE]

Both engines get the same lists of terms, k1 and b; each query is asked once a round, in
shuffled order; the engines take turns; the best round of each counts. Building is timed
from raw text, each engine with its own analysis (English, stop words, stemming).
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import random
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import bm25s
import Stemmer

from bm25rag import BM25Index, backend

COLLECTIONS = Path(__file__).parents[1].parent / "shared" / "collections"
K1, B = 1.2, 0.75


def read(collection: str) -> tuple[list[str], list[str]]:
    """Return texts and queries of a collection in BEIR's layout."""
    folder = COLLECTIONS / collection
    packed = folder / "corpus.jsonl.gz"
    plain = folder / "corpus.jsonl"
    corpus = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
    records = [json.loads(line) for line in corpus.splitlines()]
    lines = (folder / "queries.jsonl").read_bytes().splitlines()
    asked = [json.loads(line)["text"] for line in lines]
    return [f"{one.get('title', '')} {one['text']}".strip() for one in records], asked


def timed(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


def race(actions: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Let the actions take turns after a warm-up; return the best time of each."""
    for action in actions.values():
        action()
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            times[name].append(timed(action))
    return {name: min(own) for name, own in times.items()}


def race_search(
    index: BM25Index, rivals: dict[str, bm25s.BM25], terms: list[list[str]], k: int, rounds: int
) -> dict[str, float]:
    """Return microseconds a query."""
    random.Random(k).shuffle(terms)

    def ours(name: str) -> Callable[[], object]:
        def search() -> object:
            with backend.use(name):
                return index.search_batch(terms, k=k, threads=1)

        return search

    def theirs(name: str) -> Callable[[], object]:
        return lambda: rivals[name].retrieve(
            terms, k=k, n_threads=1, show_progress=False, backend_selection=name
        )

    actions = {f"bm25rag {name}": ours(name) for name in backend.available()}
    actions |= {f"bm25s {name}": theirs(name) for name in rivals}
    return {name: time / len(terms) * 1e6 for name, time in race(actions, rounds).items()}


def index_rivals(terms: list[list[str]]) -> dict[str, bm25s.BM25]:
    rivals = {name: bm25s.BM25(k1=K1, b=B, backend=name) for name in ("numba", "numpy")}
    for rival in rivals.values():
        rival.index(terms, show_progress=False)
    rivals["numba"].activate_numba_scorer()
    return rivals


def race_building(texts: list[str]) -> dict[str, float]:
    """Return seconds from raw text to a searchable index."""

    def theirs() -> None:
        stemmer = Stemmer.Stemmer("english")
        tokens = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
        bm25s.BM25(k1=K1, b=B).index(tokens, show_progress=False)

    with backend.use(backend.available()[0]):
        BM25Index.from_texts(texts[:2000])
        ours = timed(lambda: BM25Index.from_texts(texts))
    return {"bm25rag": ours, "bm25s": timed(theirs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collection", default="enwiki-150k")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    texts, queries = read(options.collection)
    result: dict[str, object] = {
        "collection": options.collection,
        "documents": len(texts),
        "queries": len(queries),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version(name) for name in ("bm25rag", "bm25s", "numba", "numpy")},
    }
    building = race_building(texts)
    result["build, s"] = building
    print(f"{options.collection}: {len(texts):,} documents, {len(queries):,} queries")
    print("build, s".ljust(12), *(f"{name} {value:.2f}" for name, value in building.items()))
    index = BM25Index.from_texts(texts, k1=K1, b=B)
    rivals = index_rivals([index.analyzer.terms(text) for text in texts])
    terms = [index.analyzer.terms(query) for query in queries]
    for k in (10, 100, 1000):
        times = race_search(index, rivals, terms, min(k, len(texts)), options.rounds)
        result[f"k={k}, us a query"] = times
        print(f"k={k}, us".ljust(12), *(f"{name} {value:.1f}" for name, value in times.items()))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

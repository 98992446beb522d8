"""What Ray costs: the same shards searched in this process and through actors of a local cluster.

Run it where bm25rag[ray] is installed: ``python -m benchmarks.cluster FOLDER``, where the folder
has a ``corpus.jsonl.gz`` and ``queries.jsonl`` in BEIR's format. It writes a table.
"""

from __future__ import annotations

import gzip
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from bm25rag import BM25Index, Document
from bm25rag.distributed.ray import build, serve, stop
from bm25rag.readers import read_jsonl, read_queries

SHARDS = (1, 2, 4)
ROUNDS = 5
CLIENTS = 8


def seconds(work: Callable[[], object]) -> float:
    begun = perf_counter()
    work()
    return perf_counter() - begun


def median_ms(search: Callable[[str], object], queries: list[str]) -> float:
    return 1e3 * statistics.median(seconds(partial(search, query)) for query in queries)


def rates(index: Any, queries: list[str], contents: dict[str, bool]) -> tuple[float, float, float]:
    """Return ms a query, queries a second by several threads, and in one batch."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        threads = seconds(lambda: list(pool.map(index.search, queries)))
    batch = seconds(lambda: index.search_batch(queries, **contents).ids())
    return median_ms(index.search, queries), len(queries) / threads, len(queries) / batch


def main(folder: Path) -> None:
    documents = list(read_jsonl(folder / "corpus.jsonl.gz"))
    queries = [query.text for query in read_queries(folder / "queries.jsonl")]
    print(f"{len(documents):,} documents, {len(queries)} queries, load {os.getloadavg()[0]:.1f}")
    print("| shards | where | build, s | ms a query | 8 threads, QPS | one batch, QPS |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        lines = [*_lines(folder / "corpus.jsonl.gz")]
        for part in range(max(SHARDS)):
            chosen = lines[len(lines) * part // 4 : len(lines) * (part + 1) // 4]
            (Path(work) / f"{part}.jsonl").write_bytes(b"".join(chosen))
        for shards in SHARDS:
            for row in _rows(Path(work), shards, documents, queries):
                print(row, flush=True)


def _rows(work: Path, shards: int, documents: list[Document], queries: list[str]) -> Iterator[str]:
    here, there = work / f"here-{shards}", work / f"there-{shards}"
    built = [
        seconds(lambda: BM25Index.build(iter(documents), here, shards=shards)),
        seconds(lambda: build(f"{work}/*.jsonl", there, shards)),
    ]
    index, served = BM25Index.open(here), serve(there)
    assert [index.search(query) for query in queries[:50]] == [
        served.search(query) for query in queries[:50]
    ]
    rounds = [
        (rates(index, queries, {}), rates(served, queries, {"contents": False}))
        for _ in range(ROUNDS)
    ]
    for place, name in enumerate(("in process", "Ray")):
        medians = [statistics.median(one[place][n] for one in rounds) for n in range(3)]
        row = f"{medians[0]:.2f} | {medians[1]:,.0f} | {medians[2]:,.0f}"
        yield f"| {shards} | {name} | {built[place]:.1f} | {row} |"
    stop()


def _lines(path: Path) -> list[bytes]:
    with gzip.open(path) as file:
        return file.readlines()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

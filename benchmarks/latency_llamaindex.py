"""Latency of LlamaIndex's `retrieve` on SciFact: ours, the existing package's, and doing nothing.

    python benchmarks/latency_llamaindex.py [COLLECTION] [--json]

Each query runs many times, and its best time counts; the figure is the median over the queries,
in microseconds. The retriever that does nothing returns ten fresh nodes, whatever is asked: what
LlamaIndex itself costs. "adapter" is what ours costs beyond that and beyond the search in the core.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.retrievers.bm25rag import BM25Retriever

TOP_K = 10
SCIFACT = Path(__file__).parents[1].parent / "shared" / "collections" / "scifact"
PACKAGES = ("bm25rag", "llama-index-core", "llama-index-retrievers-bm25", "bm25s", "numba")


class DoNothing(BaseRetriever):
    def __init__(self, nodes: list[TextNode]) -> None:
        self._fields = [(node.node_id, node.text, node.metadata) for node in nodes[:TOP_K]]
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(id_=id, text=text, metadata=dict(metadata)), score=1.0)
            for id, text, metadata in self._fields
        ]


def read_lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def best_times(calls: dict[str, Callable[[str], Any]], queries: list[str]) -> dict[str, float]:
    """Return the median over the queries of the best time of each call, in microseconds."""
    best = {name: [float("inf")] * len(queries) for name in calls}
    for _ in range(15):
        # By turns, so that a slow minute of the machine meets all; each with all queries, for of
        # two that answer the same query in a row the second finds everything in the caches.
        for name, call in calls.items():
            for place, query in enumerate(queries):
                start = time.perf_counter()
                call(query)
                best[name][place] = min(best[name][place], time.perf_counter() - start)
    return {name: median(times) * 1e6 for name, times in best.items()}


def existing(nodes: list[TextNode]) -> dict[str, Callable[[str], Any]]:
    """Return the class that ours replaces, if it is installed."""
    try:
        from llama_index.retrievers.bm25 import BM25Retriever as Existing
    except ImportError:
        return {}
    return {"existing": Existing.from_defaults(nodes=nodes, similarity_top_k=TOP_K).retrieve}


def measure(collection: Path, most: int) -> dict[str, Any]:
    nodes = [
        TextNode(id_=each["_id"], text=each["text"], metadata={"title": each["title"]})
        for each in read_lines(collection / "corpus.jsonl")
    ]
    queries = [each["text"] for each in read_lines(collection / "queries.jsonl")][:most]
    ours = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=TOP_K)
    calls: dict[str, Callable[[str], Any]] = {
        "nothing": DoNothing(nodes).retrieve,
        "core": lambda query: ours.bm25.search(query, TOP_K),
        "ours": ours.retrieve,
        **existing(nodes),
    }
    times = best_times(calls, queries)
    return {
        "documents": len(nodes),
        "queries": len(queries),
        "microseconds": times,
        "adapter": times["ours"] - times["nothing"] - times["core"],
        "existing / ours": times["existing"] / times["ours"] if "existing" in times else None,
        "versions": {"python": platform.python_version(), **versions()},
    }


def versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def show(report: dict[str, Any]) -> None:
    print(f"{report['documents']} documents, {report['queries']} queries, top {TOP_K}")
    for name, micros in report["microseconds"].items():
        print(f"{name:>16} {micros:9.1f} us")
    print(f"{'adapter':>16} {report['adapter']:9.1f} us  (ours - nothing - core)")
    ratio = report["existing / ours"]
    print(f"{'existing / ours':>16} {'not measured' if ratio is None else f'{ratio:9.2f}'}")
    print(", ".join(f"{name} {number}" for name, number in report["versions"].items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("collection", nargs="?", type=Path, default=SCIFACT)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    report = measure(arguments.collection, arguments.queries)
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        show(report)


if __name__ == "__main__":
    main()

"""Latency of invoke on SciFact: our retriever, the community's, one doing nothing, and the core.

    python benchmarks/latency_langchain.py [--json] [--queries 300] [--rounds 15]

Needs langchain-bm25rag[bench] and the shared collections. Every figure is the median over the
queries of a round, the best of many rounds; the rounds of all take turns, so that a slow minute
of the machine hits them alike.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_bm25rag import BM25Retriever
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from bm25rag import BM25Index

COLLECTION = Path(__file__).parents[1].parent / "shared" / "collections" / "scifact"
K = 10
TARGET = 100  # microseconds above the retriever that does nothing, the core's share taken out


class Nothing(BaseRetriever):
    """Returns ten fresh documents, whatever is asked."""

    documents: list[Document]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [
            Document(id=one.id, page_content=one.page_content, metadata=dict(one.metadata))
            for one in self.documents
        ]


def read(name: str) -> list[dict[str, Any]]:
    lines = (COLLECTION / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def median(call: Callable[[str], object], queries: list[str]) -> float:
    """Time each query once; microseconds."""
    times = []
    for query in queries:
        start = time.perf_counter_ns()
        call(query)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1000


def community(texts: list[str], ids: list[str]) -> BaseRetriever | None:
    """Make the class that ours replaces, if it is installed."""
    warnings.simplefilter("ignore")
    try:
        import rank_bm25  # noqa: F401 - what it needs
        from langchain_community.retrievers import BM25Retriever as CommunityRetriever
    except ImportError:
        return None
    made: BaseRetriever = CommunityRetriever.from_texts(texts, ids=ids, k=K)
    return made


def measure(count: int, rounds: int) -> dict[str, float]:
    corpus = read("corpus.jsonl")
    queries = [one["text"] for one in read("queries.jsonl")][:count]
    texts, ids = [f"{one['title']} {one['text']}" for one in corpus], [one["_id"] for one in corpus]
    index = BM25Index.from_texts(texts, ids)
    ours = BM25Retriever.from_index(index, k=K)
    nothing = Nothing(documents=[Document(text) for text in texts[:K]])
    calls: dict[str, tuple[Callable[[str], object], int]] = {
        "nothing": (nothing.invoke, count),
        "core": (lambda query: index.search(query, K), count),
        "bm25rag": (ours.invoke, count),
    }
    if (theirs := community(texts, ids)) is not None:
        calls["community"] = (theirs.invoke, max(count // 10, 10))  # milliseconds each
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, (call, asked) in calls.items():
            best[name] = min(best[name], median(call, queries[:asked]))
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if not COLLECTION.is_dir():
        print("skipped: the SciFact collection is not here", file=sys.stderr)
        return 0
    best = measure(options.queries, options.rounds)
    added = best["bm25rag"] - best["core"] - best["nothing"]
    ratio = best["community"] / best["bm25rag"] if "community" in best else None
    packages = ("bm25rag", "langchain-bm25rag", "langchain-core")
    report = {
        "microseconds": {name: round(value, 1) for name, value in best.items()},
        "above_nothing_without_core": round(added, 1),
        "above_nothing": round(best["bm25rag"] - best["nothing"], 1),
        "target": TARGET,
        "times_faster": None if ratio is None else round(ratio, 1),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "date": time.strftime("%Y-%m-%d"),
        "versions": {name: version(name) for name in packages},
    }
    if options.json:
        print(json.dumps(report, indent=2))
        return 0
    print(f"{'SciFact, k=10':<44}{'µs a query':>14}")
    labels = {
        "nothing": "a retriever that does nothing, invoke",
        "core": "bm25rag core, index.search",
        "bm25rag": "langchain-bm25rag, invoke",
        "community": "langchain-community, invoke",
    }
    for name, label in labels.items():
        figure = f"{best[name]:.1f}" if name in best else "not installed"
        print(f"{label:<44}{figure:>14}")
    print(f"{'above doing nothing, without the core':<44}{added:>14.1f}  (target {TARGET})")
    if ratio is not None:
        print(f"{'times faster than langchain-community':<44}{ratio:>14.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

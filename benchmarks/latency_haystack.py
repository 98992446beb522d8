"""What a query costs in Haystack: ours, Haystack's own, and a retriever that does nothing.

    python benchmarks/latency_haystack.py [--queries 50] [--rounds 20] [--json]

Needs bm25rag-haystack and the SciFact collection. A figure is the best of many rounds of
the median over the queries, in microseconds; ten documents a query, one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when Haystack is imported

from haystack import Document, component
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import BM25Index

SCIFACT = Path(__file__).parents[1].parent / "shared" / "collections" / "scifact"
ROUNDS_OF_HAYSTACKS_OWN = 2  # some 40 ms a query


@component
class NothingRetriever:
    """Returns ten fresh documents, whatever is asked."""

    def __init__(self, documents: list[Document]) -> None:
        self.fields = [(one.id, one.content, one.meta) for one in documents[:10]]

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
    ) -> dict[str, list[Document]]:
        return {
            "documents": [
                Document(id=id, content=content, meta=dict(meta), score=1.0)
                for id, content, meta in self.fields
            ]
        }


def read(name: str) -> list[dict[str, str]]:
    lines = (SCIFACT / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def best_median(search: Callable[[str], object], queries: list[str], rounds: int) -> float:
    """Time a search: the best median of all rounds, in microseconds."""
    medians = []
    for _ in range(rounds):
        times = []
        for query in queries:
            start = time.perf_counter_ns()
            search(query)
            times.append(time.perf_counter_ns() - start)
        medians.append(statistics.median(times))
    return min(medians) / 1000


def measure(count: int, rounds: int) -> dict[str, float]:
    documents = [
        Document(
            id=one["_id"], content=f"{one['title']} {one['text']}", meta={"title": one["title"]}
        )
        for one in read("corpus.jsonl")
    ]
    queries = [one["text"] for one in read("queries.jsonl")][:count]
    store, theirs = BM25DocumentStore(), InMemoryDocumentStore()
    store.write_documents(documents)
    theirs.write_documents(documents)
    index = BM25Index.from_texts(
        [one.content or "" for one in documents],
        ids=[one.id for one in documents],
        metadata=[one.meta for one in documents],
    )
    ours, own = BM25Retriever(store), InMemoryBM25Retriever(theirs)
    nothing = NothingRetriever(documents)
    return {
        "nothing": best_median(nothing.run, queries, rounds),
        "core": best_median(index.search, queries, rounds),
        "BM25Retriever": best_median(ours.run, queries, rounds),
        "InMemoryBM25Retriever": best_median(own.run, queries, ROUNDS_OF_HAYSTACKS_OWN),
    }


def report(figures: dict[str, float]) -> str:
    ours, theirs = figures["BM25Retriever"], figures["InMemoryBM25Retriever"]
    rows = [
        ("a retriever that does nothing, .run", figures["nothing"]),
        ("bm25rag alone, index.search", figures["core"]),
        ("BM25Retriever.run", ours),
        ("  less the core's share", ours - figures["core"]),
        ("  and less nothing's", ours - figures["core"] - figures["nothing"]),
        ("InMemoryBM25Retriever.run", theirs),
    ]
    lines = [f"{name:<38}{figure:>10.1f} µs" for name, figure in rows]
    return "\n".join([*lines, f"{'times as fast':<38}{theirs / ours:>10.1f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=50, help="how many of SciFact's")
    parser.add_argument("--rounds", type=int, default=20, help="how often to ask them all")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    chosen = parser.parse_args()
    if not SCIFACT.is_dir():
        parser.exit(1, f"cannot measure: {SCIFACT} is missing\n")
    figures = measure(chosen.queries, chosen.rounds)
    versions = {name: version(name) for name in ("bm25rag", "haystack-ai", "numpy")}
    versions |= {"python": platform.python_version()}
    if chosen.json:
        print(json.dumps({"microseconds": figures, "versions": versions}))
    else:
        print(report(figures))
        print(", ".join(f"{name} {number}" for name, number in versions.items()))


if __name__ == "__main__":
    main()

"""Titles with weights: quality on judged collections, and what fields cost beside joined texts.

``python -m benchmarks.fields`` measures, and writes the tables of ``docs/fields.md``.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any

from benchmarks.corpora import COLLECTIONS
from benchmarks.report import put_into, table
from bm25rag import BM25Index
from bm25rag.evaluation import compare, evaluate, load_beir, run_of
from bm25rag.readers import Fields, find_beir_corpus, read_jsonl, read_queries
from bm25rag.readers.lines import find_packed

JUDGED, TIMED = ("scifact", "cranfield"), ("scifact", "enwiki-150k")
WEIGHTS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0)
K = 10
PAGE = Path(__file__).parents[1] / "docs" / "fields.md"


def texts(name: str) -> list[dict[str, str]]:
    """Return the title and the text of each document."""
    corpus = find_beir_corpus(COLLECTIONS / name)
    assert corpus is not None
    read = read_jsonl(corpus, Fields(texts=("text",), metadata=("title",)))
    return [{"title": one.metadata.get("title") or "", "text": one.text or ""} for one in read]


def quality() -> Iterator[list[str]]:
    """Yield a row for each weight of the title, with what it gains over the joined text."""
    columns = []
    for name in JUDGED:
        collection = load_beir(COLLECTIONS / name)
        joined = BM25Index()
        ids = joined.add_documents(collection.read())
        index = BM25Index.from_texts(texts(name), ids, fields={"title": 1.0})

        def judged(one: BM25Index, of: Any = collection) -> Any:
            return evaluate(run_of(one, of.queries, K), of.qrels, ["nDCG@10"])

        before = judged(joined)
        cells = [f"{100 * before.mean['nDCG@10']:.2f}"]
        for weight in WEIGHTS:
            after = judged(index.tune(fields={"title": weight}))
            found = compare(after, before, "nDCG@10")
            cells.append(f"{100 * found.mean:.2f} (p = {found.p_value:.2f})")
        columns.append(cells)
    names = ["title and text joined", *(f"title={weight:g}" for weight in WEIGHTS)]
    yield from (list(row) for row in zip(names, *columns, strict=True))


def best(tasks: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Return the CPU time of each, the least of some rounds in which they take turns."""
    times: list[list[float]] = [[] for _ in tasks]
    for _ in range(rounds):
        for own, task in zip(times, tasks, strict=True):
            start = thread_time()
            task()
            own.append(thread_time() - start)
    return list(map(min, times))


def search_each(index: BM25Index, asked: Sequence[str]) -> None:
    for query in asked:
        index.search(query, K)


def costs(name: str, most: int) -> Iterator[list[str]]:
    """Yield a row for the joined text and one for fields."""
    given = texts(name)[:most]
    joined = [f"{one['title']} {one['text']}" for one in given]
    path = find_packed(COLLECTIONS / name / "queries.jsonl")
    assert path is not None
    asked = [query.text for query in read_queries(path)][:1000]
    made: list[BM25Index] = []
    builds = best(
        [
            lambda: made.append(BM25Index.from_texts(joined, threads=1)),
            lambda: made.append(BM25Index.from_texts(given, threads=1, fields={"title": 3.0})),
        ],
        2,
    )
    indexes = made[-2:]
    single = best([partial(search_each, one, asked) for one in indexes], 5)
    batch = best([partial(one.search_batch, asked, K, threads=1) for one in indexes], 5)
    tuned = best([lambda: indexes[1].tune(fields={"title": 2.0}).search(asked[0])], 3)
    none = best([lambda: indexes[1].tune(fields={"title": 0.0}).search(asked[0])], 1)
    for place, index in enumerate(indexes):
        with tempfile.TemporaryDirectory() as folder:
            index.save(folder)
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
        yield [
            f"{name}, {('joined', 'fields')[place]}",
            f"{index.stats()['impact_codes']:,}",
            f"{size / (1 << 20):.1f} MiB",
            f"{builds[place]:.2f} s",
            f"{single[place] / len(asked) * 1e6:.0f} us",
            f"{batch[place] / len(asked) * 1e6:.0f} us",
            f"{tuned[0] * 1e3:.1f} ms, {none[0] * 1e3:.0f} ms" if place else "",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, metavar="N", help="so many documents; print, not write")
    only = parser.parse_args().only
    heads = ["", "codes", "folder", "build", "a search", "in a batch", "tune and search: 2, 0"]
    rows = [row for name in TIMED for row in costs(name, only or 1 << 30)]
    parts = [table(["weights", *JUDGED], quality()), table(heads, rows)]
    print(*parts, sep="\n\n", flush=True)
    if only is None:
        put_into(PAGE, "quality", parts[:1])
        put_into(PAGE, "costs", parts[1:])


if __name__ == "__main__":
    main()

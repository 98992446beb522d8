"""bm25rag."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.corpora import Corpus
from benchmarks.engines import K1, B
from benchmarks.engines.base import Found, RawBatchEngine
from bm25rag import Analyzer, BatchResult, BM25Index
from bm25rag.evaluation.timing import quiet
from bm25rag.scoring.variants import VariantName

# Additions that make an index that has changed.
_SEGMENTS = 5
_STRINGS = ("terms", "ids", "texts", "metadata", "payloads")


class Ours(RawBatchEngine):
    """The library as its users have it."""

    _index: BM25Index

    def build(self, lines: Iterable[str]) -> None:
        plain = Analyzer(language=None, normalize=None, cjk=False)
        self._index = BM25Index.from_texts(lines, analyzer=plain, k1=K1, b=B, store_text=False)

    def save(self, folder: Path) -> None:
        self._index.save(folder)

    def load(self, folder: Path) -> None:
        self._index = BM25Index.open(folder)

    def posting_bytes(self, folder: Path) -> float:
        """Return the bytes a posting takes on disk, with all that leads to it but strings.

        The format is that of ``docs/format.md``: a header names the arrays of a file.
        """
        total = 0
        for path in folder.glob("segment-*.bin"):
            with path.open("rb") as file:
                file.seek(8)
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            for name, (kind, count, _) in header["arrays"].items():
                if name == "terms.keys" or name.split(".")[0] not in _STRINGS:
                    total += count * int(kind[1:])
        return total / int(self._index.stats()["postings"])

    def answer(self, queries: list[Any], k: int, threads: int) -> BatchResult:
        return self._index.search_batch(queries, k=k, threads=threads)

    def results(self, queries: list[Any], k: int) -> Found:
        batch = self.answer(queries, k, 1)
        return batch.rows, batch.scores

    def build_raw(self, texts: list[str], threads: int) -> None:
        self._index = BM25Index.from_texts(texts, analyzer=Analyzer(self.language), k1=K1, b=B)

    def raw_changed(self, corpus: Corpus, threads: int, turn: int) -> float:
        texts = corpus.texts()
        self.language = corpus.language
        step = -(-len(texts) // _SEGMENTS)
        with quiet():
            start = perf_counter()
            self.build_raw(texts[:step], threads)
            for first in range(step, len(texts), step):
                self._index.add(texts[first : first + step])
            self._index.delete(self._index.ids()[:1])
            return perf_counter() - start

    def answer_raw(self, question: str, k: int) -> Any:
        return self._index.search(question, k=k)

    def answer_raw_batch(self, questions: list[str], k: int) -> Any:
        return self._index.search_batch(questions, k=k, threads=1)

    def hits(self, questions: list[str], k: int) -> float:
        """Make the hits of questions that have been answered; seconds a question."""
        batch = self._index.search_batch(questions, k=k, threads=1)
        with quiet():
            start = perf_counter()
            batch.hits()
            return (perf_counter() - start) / len(questions)

    def judge(self, found: Found, k: int, variant: VariantName) -> dict[str, float]:
        """Compare what another engine found with the exact ranking.

        Returns
        -------
        overlap
            The share of our best k that it found too; a document with the same exact score
            as our last counts as it.
        difference
            The largest difference of a score, as a share of the query's best.
        """
        view = self._index.tune(variant=variant)
        same, expected, difference = 0, 0, 0.0
        for query, rows, scores in zip(self.queries, *found, strict=False):
            exact = view.scores(query)
            best = view.search_batch([query], k=k, threads=1).scores[0]
            best = best[np.isfinite(best)]
            if not best.size or best[0] <= 0:
                continue
            rows, scores = rows[scores > 0], scores[scores > 0]
            last = best[-1] - 1e-6 * best[0]
            same += min(int((exact[rows] >= last).sum()), best.size)
            expected += best.size
            if rows.size:
                difference = max(difference, float(np.abs(exact[rows] - scores).max() / best[0]))
        return {"overlap": same / max(expected, 1), "difference": difference}

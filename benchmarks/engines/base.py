"""What every engine can be asked to do, in its own process."""

from __future__ import annotations

import gc
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from benchmarks.corpora import Corpus, Queries, read_lines, read_queries
from bm25rag.evaluation.timing import limit, memory, one_by_one, quiet
from bm25rag.scoring.variants import VariantName

#: Rounds of questions that were never asked.
NEW_ROUNDS = 10
_SHORTEST = 0.05  # seconds of a round
# Rows (q, k) and scores (q, k) of the documents found; row -1 where there are fewer than k.
Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


class Engine(ABC):
    """An index of prepared terms, and queries that are ready to be asked.

    Parameters
    ----------
    folder
        Where it may write.
    """

    #: The variant whose ranking it gives, and what its scores are multiples of.
    variant: ClassVar[VariantName] = "lucene"
    scale: ClassVar[float] = 1.0
    #: Questions that it is asked a round; the slow ones get few.
    most: ClassVar[int | None] = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.queries: Queries = []
        self.ready: list[Any] = []

    def index(self, corpus: Path, limit: int | None = None) -> float:
        """Index the prepared terms of the first documents; seconds."""
        start = perf_counter()
        self.build(read_lines(corpus, limit))
        return perf_counter() - start

    def choose(self, corpus: Path, name: str) -> int:
        """Get a set of queries ready; how many."""
        self.queries = read_queries(corpus, name)[: self.most]
        self.ready = self.prepare(self.queries)
        return len(self.queries)

    def search(self, k: int, threads: int, turn: int) -> float:
        """Answer each query once, in a new order, and again while that was too short to time.

        Returns
        -------
        float
            Seconds a query.
        """
        chance, count = random.Random(turn), 0
        with quiet():
            spent = 0.0
            while spent < _SHORTEST:
                order = chance.sample(self.ready, len(self.ready))
                start = perf_counter()
                self.answer(order, k, threads)
                spent += perf_counter() - start
                count += len(order)
        return spent / count

    def one_by_one(self, k: int, turn: int) -> list[float]:
        """Answer each query by a call of its own; seconds of each."""
        return one_by_one(lambda query: self.answer([query], k, 1), self.ready, turn)

    def found(self, k: int, most: int) -> tuple[str, Found]:
        """Return whose ranking it is, and rows and scores of the first queries, scaled to ours."""
        rows, scores = self.results(self.ready[:most], k)
        return self.variant, (rows, np.where(rows < 0, -np.inf, scores * self.scale))

    def resident(self) -> int:
        """Return the bytes of this process that are in memory, shared and mapped ones too."""
        gc.collect()
        return memory("VmRSS") or 0

    def peak(self) -> int:
        """Return the most bytes of memory that this process has had."""
        return memory("VmHWM") or 0

    def pin(self) -> None:
        """Stay on one CPU."""
        limit(1)

    # --- what an engine must know ---------------------------------------------------

    @abstractmethod
    def build(self, lines: Iterable[str]) -> None:
        """Index documents that are lines of terms, and get ready to search them."""

    def prepare(self, queries: Queries) -> list[Any]:
        """Turn terms into what ``answer`` takes, in advance: terms, unless it has its own."""
        return queries

    @abstractmethod
    def answer(self, queries: list[Any], k: int, threads: int) -> Any:
        """Return the best k of each query, in whatever form the engine gives."""

    @abstractmethod
    def results(self, queries: list[Any], k: int) -> Found:
        """Return the best k of each query as arrays."""


class RawBuilder(Engine):
    """An engine that has an analysis of its own for English texts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.texts: list[str] = []
        self.language = "english"

    def raw(self, corpus: Corpus, threads: int, turn: int) -> float:
        """Build from raw text until it can be searched; seconds. A warm-up takes some texts."""
        if not self.texts:
            self.texts = corpus.texts()
        texts = self.texts if turn >= 0 else self.texts[:2000]
        self.language = corpus.language
        with quiet():
            start = perf_counter()
            self.build_raw(texts, threads)
            return perf_counter() - start

    def raw_changed(self, corpus: Corpus, threads: int, turn: int) -> float:
        """Do as ``raw``, in several steps, and delete a document, if that can be done."""
        return self.raw(corpus, threads, turn)

    @abstractmethod
    def build_raw(self, texts: list[str], threads: int) -> None:
        """Index raw texts of ``language``."""


class RawEngine(RawBuilder):
    """One that answers raw questions, too."""

    def question(self, questions: list[str], k: int, turn: int) -> float:
        """Answer raw questions one by one, on what ``raw`` built; seconds a question."""
        return fmean(one_by_one(lambda question: self.answer_raw(question, k), questions, turn))

    def new_question(self, questions: list[str], k: int, turn: int) -> float:
        """Do as ``question`` for some that it was never asked; a warm-up takes half of all."""
        half = len(questions) // 2
        size = half // NEW_ROUNDS
        first = half + turn * size
        return self.question(questions[:half] if turn < 0 else questions[first:][:size], k, turn)

    @abstractmethod
    def answer_raw(self, question: str, k: int) -> Any:
        """Answer a raw question."""


class RawBatchEngine(RawEngine):
    """One that answers many raw questions in one call, too."""

    def question_batch(self, questions: list[str], k: int) -> float:
        """Answer raw questions in one call, on what ``raw`` built; seconds a question."""
        with quiet():
            start = perf_counter()
            self.answer_raw_batch(questions, k)
            return (perf_counter() - start) / len(questions)

    @abstractmethod
    def answer_raw_batch(self, questions: list[str], k: int) -> Any:
        """Answer raw questions in one call."""


def padded(found: list[tuple[list[int], list[float]]], k: int) -> Found:
    """Make arrays out of lists of rows and scores."""
    rows = np.full((len(found), k), -1, np.int64)
    scores = np.full((len(found), k), -np.inf)
    for place, (own_rows, own_scores) in enumerate(found):
        rows[place, : len(own_rows)] = own_rows
        scores[place, : len(own_scores)] = own_scores
    return rows, scores

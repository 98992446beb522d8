"""The backend whose loops are compiled. They release the GIL and share nothing."""

from __future__ import annotations

import numpy as np

from bm25rag._types import Bool, Int64, UInt32, UInt64, Unsigned
from bm25rag.kernels.boundary import (
    Backend,
    CodedRun,
    Limits,
    Matches,
    Queries,
    Run,
    Scanned,
    Scanner,
    SegmentArrays,
    TermArrays,
    Texts,
    WordTable,
)
from bm25rag.kernels.loading import load

load("selecting")
building, searching = load("building"), load("searching")
try:  # until they are ported
    from bm25rag.kernels import scanning, words
except ImportError:
    scanning = words = None  # type: ignore[assignment]


class CompiledScanner(Scanner):
    """The compiled scanner."""

    def new_words(self, room: int) -> WordTable:
        """Return an empty table with room for some words, a power of two."""
        return WordTable(*words.new_words(room))

    def add_words(self, scanned: Scanned, words_: WordTable) -> tuple[WordTable, UInt32]:
        """Give the words of a scan numbers in a table."""
        slots, entries, pool, numbers = words.adopt(scanned.entries, scanned.pool, *words_)
        return WordTable(slots, entries, pool, words_.used), numbers

    def _find_peculiar(self, texts: Texts, fold_table: UInt64) -> Bool:
        peculiar = np.empty(len(texts.ends), np.bool_)
        scanning.find_peculiar(*texts, fold_table, peculiar)
        return peculiar

    def _scan(self, texts: Texts, fold_table: UInt64, least: int, possessives: bool) -> Scanned:
        return Scanned(*scanning.scan(*texts, fold_table, least, possessives))

    def _expand(
        self, tokens: UInt32, counts: UInt32, words_: UInt32, starts: Int64, terms: UInt32
    ) -> tuple[UInt32, UInt32]:
        return words.expand(tokens, counts, words_, starts, terms)


class CompiledBackend(Backend):
    """Compiled code."""

    name = "compiled"
    scanner = CompiledScanner() if scanning else None  # type: ignore[truthy-bool]

    def _search(
        self,
        segment: SegmentArrays,
        terms: TermArrays,
        queries: Queries,
        limits: Limits,
        matches: Matches,
    ) -> None:
        searching.search(segment, terms, queries, limits, matches)

    def _count(self, tokens: UInt32, counts: UInt32, terms: int, first: int) -> tuple[Run, UInt32]:
        found, documents, tf, lengths = building.count(tokens, counts, terms, first)
        return Run(found, documents, tf), lengths

    def _tally(self, terms: UInt32, frequencies: Int64) -> None:
        building.tally(terms, frequencies)

    def _fill(self, run: CodedRun, cursors: Int64, documents: Unsigned, codes: Unsigned) -> None:
        building.fill(run, cursors, documents, codes)

"""The backend whose loops are compiled. They release the GIL and share nothing."""

from __future__ import annotations

from typing import Any

from bm25rag.common.arrays import Bool, Int64, UInt8, UInt32, UInt64, Unsigned
from bm25rag.kernels.boundary import (
    Backend,
    Limits,
    Matches,
    Places,
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

# In this order: what another one imports comes first.
for _name in ("selecting", "signs", "bigrams"):
    load(_name)
building, searching = load("building"), load("searching")
words, scanning = load("words"), load("scanning")


class CompiledScanner(Scanner):
    """The compiled scanner."""

    def new_words(self, room: int) -> WordTable:
        """Return an empty table with room for some words, a power of two."""
        table: WordTable = words.empty_table(room)
        return table

    def add_words(self, scanned: Scanned, table: WordTable) -> tuple[WordTable, UInt32]:
        """Give the words of a scan numbers in a table."""
        larger, numbers = words.adopt(scanned, table)
        return larger, numbers

    def _add_strings(self, texts: Texts, table: WordTable) -> tuple[WordTable, UInt32]:
        larger, numbers = scanning.add_strings(texts, table)
        return larger, numbers

    def _find_peculiar(self, texts: Texts, fold_table: UInt64) -> tuple[Bool, Int64]:
        peculiar, pages = scanning.find_peculiar(texts, fold_table)
        return peculiar, pages

    def _scan(
        self, texts: Texts, fold_table: UInt64, least: int, possessives: bool, spare: list[Any]
    ) -> Scanned:
        return Scanned(*scanning.scan(texts, fold_table, least, possessives, spare))

    def _expand(
        self, tokens: UInt32, counts: UInt32, starts: Int64, terms: UInt32
    ) -> tuple[UInt32, UInt32]:
        found, found_counts = words.expand(tokens, counts, starts, terms)
        return found, found_counts


class CompiledBackend(Backend):
    """Compiled code."""

    name = "compiled"
    scanner = CompiledScanner()

    def _search(
        self,
        segment: SegmentArrays,
        terms: TermArrays,
        queries: Queries,
        limits: Limits,
        matches: Matches,
    ) -> None:
        if segment.prepared is None:
            segment.prepared = searching.prepare_segment(segment)
        if terms.prepared is None:
            terms.prepared = searching.prepare_terms(terms)
        searching.search(segment.prepared, terms.prepared, queries, limits, matches)

    def _checksums(self, data: UInt8, offsets: UInt64) -> UInt32:
        checksums: UInt32 = building.checksums(data, offsets)
        return checksums

    def _count(self, tokens: UInt32, counts: UInt32, terms: int, first: int) -> tuple[Run, UInt32]:
        found, sizes, documents, tf, lengths = building.count(tokens, counts, terms)
        return Run(found, sizes, documents, tf, first), lengths

    def _fill(self, run: Run, codes: Unsigned, places: Places) -> None:
        building.fill(run, codes, places)

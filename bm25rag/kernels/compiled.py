"""The backend whose loops are compiled. They release the GIL and share nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bm25rag.common.arrays import Bool, Float64, Int64, UInt8, UInt16, UInt32, UInt64, Unsigned
from bm25rag.kernels.boundary import (
    Backend,
    Limits,
    Matches,
    Places,
    PostingsArrays,
    Queries,
    Run,
    Scanned,
    Scanner,
    SegmentArrays,
    StringArrays,
    TermArrays,
    Texts,
    WordTable,
)
from bm25rag.kernels.loading import load

# In this order: what another one imports comes first.
for _name in ("selecting", "signs", "bigrams"):
    load(_name)
building, reading, searching = load("building"), load("reading"), load("searching")
strings, words, scanning = load("strings"), load("words"), load("scanning")


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
        floors: Float64,
        limits: Limits,
        matches: Matches,
    ) -> None:
        searching.search(*_prepare(segment, terms), queries, floors, limits, matches)

    def _search_one(
        self,
        segment: SegmentArrays,
        terms: TermArrays,
        query: Sequence[int],
        weights: Sequence[float],
        floor: float,
        limits: Limits,
    ) -> tuple[list[int], list[float]]:
        found: tuple[list[int], list[float]] = searching.search_one(
            *_prepare(segment, terms), query, weights, floor, limits
        )
        return found

    def _find_wrong(
        self, documents: UInt16, starts: Int64, block_size: int, size: int
    ) -> str | None:
        wrong: str | None = reading.find_wrong(documents, starts, block_size, size)
        return wrong

    def find_plain_words(self, text: str) -> list[str] | None:
        """Find the words of a text in ASCII; see ``Backend``."""
        found: list[str] | None = strings.find_plain_words(text)
        return found

    def _decode(self, arrays: StringArrays, numbers: Sequence[int]) -> list[str] | None:
        found: list[str] | None = reading.decode(_prepare_strings(arrays), numbers)
        return found

    def find_term(self, postings: PostingsArrays, term: bytes, key: int) -> Int64 | None:
        """Find where the postings of a term begin; see ``Backend``."""
        if postings.prepared is None:
            terms = _prepare_strings(postings.terms)
            postings.prepared = reading.prepare_postings(postings, terms)
        starts: Int64 | None = reading.find_term(postings.prepared, term, key)
        return starts

    def _checksums(self, data: UInt8, offsets: UInt64) -> UInt32:
        checksums: UInt32 = building.checksums(data, offsets)
        return checksums

    def _count(self, tokens: UInt32, counts: UInt32, terms: int, first: int) -> tuple[Run, UInt32]:
        found, sizes, documents, tf, lengths = building.count(tokens, counts, terms)
        return Run(found, sizes, documents, tf, first), lengths

    def _fill(self, run: Run, codes: Unsigned, places: Places) -> None:
        building.fill(run, codes, places)


def _prepare_strings(arrays: StringArrays) -> Any:
    if arrays.prepared is None:
        arrays.prepared = reading.prepare_strings(arrays)
    return arrays.prepared


def _prepare(segment: SegmentArrays, terms: TermArrays) -> tuple[Any, Any]:
    """Return what the kernels have made of a segment and of terms, once for all searches."""
    if segment.prepared is None:
        segment.prepared = searching.prepare_segment(segment)
    if terms.prepared is None:
        terms.prepared = searching.prepare_terms(terms)
    return segment.prepared, terms.prepared

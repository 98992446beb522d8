"""What the compiled backend needs to write an index, and not to search one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bm25rag.common.arrays import Bool, Int64, UInt8, UInt32, UInt64
from bm25rag.kernels.loading import WRITING, load
from bm25rag.kernels.scanner import Scanned, Scanner, Texts, WordTable

building, _, _, words, scanning, packing = map(load, WRITING)


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

    def encode(self, texts: Sequence[str]) -> tuple[UInt8, UInt64]:
        """Return the UTF-8 of strings; see ``Scanner``."""
        data, lengths = scanning.encode(texts)
        return data, lengths

    def _add_strings(self, texts: Texts, table: WordTable) -> tuple[WordTable, UInt32]:
        larger, numbers = scanning.add_strings(texts, table)
        return larger, numbers

    def _find_peculiar(self, texts: Texts, fold_table: UInt64) -> tuple[Bool, Int64]:
        peculiar, pages = scanning.find_peculiar(texts, fold_table)
        return peculiar, pages

    def _scan(
        self,
        texts: Texts,
        fold_table: UInt64,
        least: int,
        possessives: bool,
        question: bool,
        spare: list[Any],
    ) -> Scanned:
        return Scanned(*scanning.scan(texts, fold_table, least, possessives, question, spare))

    def _expand(
        self, tokens: UInt32, counts: UInt32, plain: UInt32, starts: Int64, terms: UInt32
    ) -> tuple[UInt32, UInt32]:
        found, found_counts = words.expand(tokens, counts, plain, starts, terms)
        return found, found_counts


SCANNER = CompiledScanner()

"""The backend whose loops are compiled. They release the GIL, and share nothing then."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from bm25rag.common.arrays import Float64, Int64, UInt8, UInt16, UInt32, UInt64, Unsigned
from bm25rag.kernels.boundary import Backend, KnownWords, Otherwise, WordRules
from bm25rag.kernels.checks import require
from bm25rag.kernels.loading import WRITING, find, load
from bm25rag.kernels.records import (
    Matches,
    Pieces,
    PostingsArrays,
    PostingsTarget,
    Queries,
    Run,
    SearchPlan,
    SegmentArrays,
    StringArrays,
    TermArrays,
    TermNumbers,
    TermTable,
)
from bm25rag.kernels.term_lists import TermLists, WordTerms

if TYPE_CHECKING:
    from bm25rag.kernels.scanner_interface import FoldArrays, Scanned, Scanner, Texts

find("shared")  # which all import
checksum = load("checksum")  # which others import
load("selecting")
known_words = load("known_words")  # which `analyzing` imports
scratch = load("scratch")
for _name in ("collecting", "planning", "exact", "coarse", "filtered", "strips", "lookup"):
    load(_name)  # which `searching` imports
analyzing, lookup, searching = load("analyzing"), load("lookup"), load("searching")
making = load("making")
for _name in WRITING:
    find(_name)  # or a build would be the first to miss it


class CompiledBackend(Backend):
    """Compiled code."""

    name = "compiled"
    make_hits, make_models = staticmethod(making.make_hits), staticmethod(making.make_models)

    @property
    def scanner(self) -> Scanner:
        """The compiled scanner."""
        from bm25rag.kernels.compiled_writing import SCANNER  # a megabyte that searches do not use

        return SCANNER

    def _search(
        self,
        segment: SegmentArrays,
        terms: TermArrays,
        queries: Queries,
        floors: Float64,
        plan: SearchPlan,
        matches: Matches,
    ) -> None:
        searching.search(*_prepare(segment, terms), queries, floors, plan, matches)

    def _search_one(
        self,
        segment: SegmentArrays,
        terms: TermArrays,
        query: Sequence[int],
        weights: Sequence[float],
        floor: float,
        plan: SearchPlan,
    ) -> tuple[list[int], list[float]]:
        prepared, own = segment.prepared, terms.prepared
        if prepared is None or own is None:
            prepared, own = _prepare(segment, terms)
        matches: tuple[list[int], list[float]] = searching.search_one(
            prepared, own, query, weights, floor, plan
        )
        return matches

    def crc32(self, data: bytes | memoryview, before: int = 0) -> int:
        """Return the CRC-32 of bytes; see ``Backend``."""
        crc: int = checksum.crc32(data, before)
        return crc

    def _find_wrong(
        self, documents: UInt16, starts: Int64, block_size: int, size: int
    ) -> str | None:
        wrong: str | None = lookup.find_wrong(documents, starts, block_size, size)
        return wrong

    def _find_words(
        self, table: FoldArrays, text: str, least: int, question: bool, folded: bool
    ) -> list[str] | int | None:
        if table.prepared is None:
            from bm25rag.kernels.compiled_writing import scanning

            table.prepared = scanning.Finder(table.entries)
        words: list[str] | int = table.prepared.find(text, least, question, folded)
        return words

    def find_ascii_words(self, text: str) -> list[str] | None:
        """Find the words of a text in ASCII; see ``Backend``."""
        require(text.isascii(), "the text is not ASCII")
        words: list[str] = analyzing.find_ascii_words(text)
        return words

    def known_words(self) -> KnownWords:
        """Return what remembers the terms of words; see ``Backend``."""
        remembered: KnownWords = known_words.KnownWords()
        return remembered

    def analyze_text(
        self,
        text: str,
        rules: WordRules,
        otherwise: Otherwise | None = None,
    ) -> list[str] | None:
        """Return the terms of a text in ASCII; see ``Backend``."""
        if not text.isascii():
            require(False, "the text is not ASCII")
        terms: list[str] = analyzing.analyze_text(text, rules, otherwise)
        return terms

    def analyze_words(
        self,
        words: list[str],
        rules: WordRules,
        otherwise: Otherwise | None = None,
        text: str = "",
    ) -> list[str]:
        """Return the terms of words, one after another; see ``Backend``."""
        terms: list[str] = analyzing.analyze_words(words, rules, otherwise, text)
        return terms

    def _analyze_texts(
        self,
        texts: Sequence[str],
        utf8: Texts,
        scanned: Scanned,
        rules: WordRules,
        otherwise: Otherwise | None,
    ) -> tuple[list[WordTerms], dict[int, list[str]], list[int]]:
        analyzed: tuple[list[WordTerms], dict[int, list[str]], list[int]]
        analyzed = analyzing.analyze_texts(texts, utf8, scanned, rules, otherwise)
        return analyzed

    def _number_terms(
        self, queries: Sequence[Collection[str]], numbers: TermNumbers
    ) -> tuple[Int64, Int64]:
        table = _prepare_table(numbers.table)
        find = searching.number_lists if type(queries) is TermLists else searching.number_terms
        numbered: tuple[Int64, Int64] = find(queries, numbers, table)
        return numbered

    def number_query(self, query: Collection[str], numbers: TermNumbers) -> list[int]:
        """Return the numbers of the terms of one query; see ``Backend``."""
        table = numbers.table
        prepared = None if table is None else table.prepared or _prepare_table(table)
        term_numbers: list[int] = searching.number_query(query, numbers, prepared)
        return term_numbers

    def decode(self, strings: StringArrays, numbers: Sequence[int]) -> list[str] | None:
        """Decode some strings; see ``Backend``."""
        prepared = strings.prepared or _prepare_strings(strings)
        decoded: list[str] | None = lookup.decode(prepared, numbers)
        return decoded

    def _unpack(
        self, pieces: UInt64, numbers: UInt16, starts: Int64, stops: Int64
    ) -> tuple[UInt8, Int64] | None:
        unpacked: tuple[UInt8, Int64] | None = lookup.unpack(pieces, numbers, starts, stops)
        return unpacked

    def _find_pieces(self, data: UInt8, offsets: Int64, often: int) -> Pieces | None:
        from bm25rag.kernels.compiled_writing import packing

        return Pieces(*packing.find_pieces(data, offsets, often))

    def _pack(self, pieces: Pieces, data: UInt8, offsets: Int64) -> tuple[UInt16, Int64]:
        from bm25rag.kernels.compiled_writing import packing

        numbers, ends = packing.pack(*pieces, data, offsets)
        return numbers, ends

    def _checksums(self, data: UInt8, offsets: UInt64) -> UInt32:
        from bm25rag.kernels.compiled_writing import building

        checksums: UInt32 = building.checksums(data, offsets)
        return checksums

    def _count(
        self, tokens: UInt32, counts: UInt32, terms: int, first: int, spare: list[Any]
    ) -> tuple[Run, UInt32]:
        from bm25rag.kernels.compiled_writing import building

        run_terms, sizes, documents, tf, lengths = building.count(tokens, counts, terms, spare)
        return Run(run_terms, sizes, documents, tf, first), lengths

    def _divide(self, run: Run, groups: UInt8, count: int) -> tuple[Run, Int64]:
        from bm25rag.kernels.compiled_writing import building

        terms, sizes, documents, tf, edges = building.divide(run, groups, count)
        return Run(terms, sizes, documents, tf, run.first), edges

    def _fill(self, run: Run, codes: Unsigned, target: PostingsTarget) -> None:
        from bm25rag.kernels.compiled_writing import building

        building.fill(run, codes, target)

    def _strip_row(
        self,
        documents: UInt16,
        codes: UInt16,
        starts: Int64,
        levels: UInt8,
        in_block: int,
        limit: int,
    ) -> UInt8:
        from bm25rag.kernels.compiled_writing import building

        row: UInt8 = building.strip_row(documents, codes, starts, levels, in_block, limit)
        return row


def _prepare_strings(arrays: StringArrays) -> Any:
    if arrays.prepared is None:
        arrays.prepared = lookup.prepare_strings(arrays)
    return arrays.prepared


def _prepare_postings(arrays: PostingsArrays) -> Any:
    if arrays.prepared is None:
        arrays.prepared = lookup.prepare_postings(arrays, _prepare_strings(arrays.terms))
    return arrays.prepared


def _prepare_table(table: TermTable | None) -> Any:
    if table is not None and table.prepared is None:
        postings = list(map(_prepare_postings, table.postings))
        table.prepared = searching.prepare_table(table, postings)
    return None if table is None else table.prepared


def _prepare(segment: SegmentArrays, terms: TermArrays) -> tuple[Any, Any]:
    """Return what the kernels have made of a segment and of terms, once for all searches."""
    if segment.prepared is None:
        segment.prepared = scratch.prepare_segment(segment)
    if terms.prepared is None:
        terms.prepared = scratch.prepare_terms(terms, segment.prepared)
    return segment.prepared, terms.prepared

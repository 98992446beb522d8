"""The backend whose loops are compiled. They release the GIL, and share nothing then."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from bm25rag.common.arrays import Int64, UInt8, UInt16, UInt32
from bm25rag.kernels.boundary import Backend
from bm25rag.kernels.loading import WRITING, find, load
from bm25rag.kernels.records import Pieces, Run, TermNumbers
from bm25rag.kernels.term_lists import TermLists

if TYPE_CHECKING:
    from bm25rag.kernels.scanner_interface import FoldArrays, Scanner

find("shared")  # which all import
checksum = load("checksum")  # which others import
load("selecting")
known_words = load("known_words")  # which `analyzing` imports
scratch = load("scratch")
rows = load("rows")
for _name in ("collecting", "planning", "exact", "coarse", "filtered", "strips", "lookup"):
    load(_name)  # which `searching` imports
analyzing, lookup, searching = load("analyzing"), load("lookup"), load("searching")
making = load("making")
for _name in WRITING:
    find(_name)  # or a build would be the first to miss it


def _of_building(name: str) -> Any:
    """Return a loop of ``building``, which is loaded when it is first called."""

    def call(_: Backend, *arguments: Any) -> Any:
        from bm25rag.kernels.compiled_writing import building

        return getattr(building, name)(*arguments)

    return call


class CompiledBackend(Backend):
    """Compiled code."""

    name = "compiled"
    make_hits, make_models = staticmethod(making.make_hits), staticmethod(making.make_models)
    crc32, known_words = staticmethod(checksum.crc32), staticmethod(known_words.KnownWords)
    analyze_text = staticmethod(analyzing.analyze_text)
    analyze_words = staticmethod(analyzing.analyze_words)
    find_ascii_words = staticmethod(analyzing.find_ascii_words)
    _analyze_texts = staticmethod(analyzing.analyze_texts)
    _find_wrong, _unpack = staticmethod(lookup.find_wrong), staticmethod(lookup.unpack)
    _search, _search_one = staticmethod(searching.search), staticmethod(searching.search_one)
    number_query, locate = staticmethod(searching.number_query), staticmethod(rows.locate)
    decode, decode_each = staticmethod(lookup.decode), staticmethod(lookup.decode_each)
    _checksums, _fill, _strip_row = map(_of_building, ("checksums", "fill", "strip_row"))

    @property
    def scanner(self) -> Scanner:
        """The compiled scanner."""
        from bm25rag.kernels.compiled_writing import SCANNER  # a megabyte that searches do not use

        return SCANNER

    def _find_words(
        self, table: FoldArrays, text: str, least: int, question: bool, folded: bool
    ) -> list[str] | int | None:
        if table.prepared is None:
            from bm25rag.kernels.compiled_writing import scanning

            table.prepared = scanning.Finder(table.entries)
        words: list[str] | int = table.prepared.find(text, least, question, folded)
        return words

    def _number_terms(
        self, queries: Sequence[Collection[str]], numbers: TermNumbers
    ) -> tuple[Int64, Int64]:
        find = searching.number_lists if type(queries) is TermLists else searching.number_terms
        numbered: tuple[Int64, Int64] = find(queries, numbers)
        return numbered

    def _find_pieces(self, data: UInt8, offsets: Int64, often: int) -> Pieces | None:
        from bm25rag.kernels.compiled_writing import packing

        return Pieces(*packing.find_pieces(data, offsets, often))

    def _pack(self, pieces: Pieces, data: UInt8, offsets: Int64) -> tuple[UInt16, Int64]:
        from bm25rag.kernels.compiled_writing import packing

        numbers, ends = packing.pack(*pieces, data, offsets)
        return numbers, ends

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

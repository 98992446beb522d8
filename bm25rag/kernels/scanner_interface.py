"""The scanner, which turns texts into numbers of words, and the records that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from bm25rag.common.arrays import (
    Int64,
    UInt8,
    UInt32,
    UInt64,
)
from bm25rag.kernels.checks import check_array, check_rising, lowest_and_highest, require

# The term of a token that is a stop word.
STOPPED = 0xFFFFFFFF
# From here on up to STOPPED: words that are several terms, or none. Terms are below.
SEVERAL = 0x80000000
# Code points that the fold table has entries for.
CODE_POINTS = 0x110000
# Of which so many at a time are entered.
PAGE = 256
# What ``Backend.find_words`` returns for a text that needs more than the table.
PECULIAR_TEXT = -1
# Bytes that may be read and written beyond the last one of a word.
BEYOND = 16


class FoldArrays:
    """The fold table: an entry for every code point, (0x110000,), uint64; see ``fold_bits``.

    0 if there is none; it may be written at any time.
    """

    __slots__ = ("entries", "prepared")

    def __init__(self, entries: UInt64) -> None:
        _check_table(entries)
        self.entries: UInt64 = entries
        # What a backend has made of this.
        self.prepared: Any = None


class Texts:
    """Texts in UTF-8, one after the other, uint8, and where each ends, int64 (n,)."""

    __slots__ = ("data", "ends")

    def __init__(self, data: UInt8, ends: Int64) -> None:
        check_array("data", data, np.uint8)
        check_array("ends", ends, np.int64)
        check_rising("ends", ends, len(data))
        self.data: UInt8 = data
        self.ends: Int64 = ends


class Scanned(NamedTuple):
    """What a scan found; of bigrams that were sorted the pool has nothing."""

    tokens: UInt32  # the word of every token
    counts: UInt32  # how many tokens each text has, (n,)
    entries: UInt64  # the words, as in ``WordTable``
    pool: UInt8


class WordTable(NamedTuple):
    """A hash table from byte strings to numbers."""

    # Open addressing, at most half full: half a hash above, a word's number plus one below; a power
    # of two of them.
    slots: UInt64
    # A row for each word, in the order in which they came: the two numbers of its key, where it
    # begins in the pool, and its length; (w, 4).
    entries: UInt64
    pool: UInt8  # the words, with a line feed after each
    used: Int64  # how many words there are, and bytes in the pool, (2,)


class Scanner:
    """Finds the words of texts, and numbers them, by loops that only compiled code has."""

    def __init__(self, scanning: ModuleType, word_table: ModuleType) -> None:
        self._scanning, self._words = scanning, word_table

    def encode(self, texts: Sequence[str]) -> Texts:
        """Return the UTF-8 of strings, lone surrogates included."""
        utf8 = object.__new__(Texts)  # whose ends ascend
        utf8.data, utf8.ends = self._scanning.encode(texts, 0)
        return utf8

    def find_peculiar(self, texts: Texts, fold_table: UInt64) -> tuple[Int64, list[int]]:
        """Return which pieces of texts need more than the fold table, if it lacks no characters.

        That is where each begins and ends, int64 (n, 2): at a text's ends, or at a space or control
        character of ASCII. And which pages of the table texts need that have no entries; see
        ``FoldArrays``.
        """
        _check_table(fold_table)
        pieces, pages = self._scanning.find_peculiar(texts, fold_table)
        return pieces, pages

    def scan(
        self,
        texts: Texts,
        fold_table: UInt64,
        least: int,
        possessives: bool,
        joins: bool,
        question: bool,
        spare: list[Any],
    ) -> Scanned:
        """Turn texts into numbers of their words.

        Parameters
        ----------
        texts, fold_table
            As for ``find_peculiar``.
        least
            Of how many characters a word is, at least: 1, 2 or 3.
        possessives
            Whether to leave the ends of possessives out, of which nothing would remain.
        joins
            Whether to find what is also one word, behind the words of each text.
        question
            Whether they are questions, of which fewer characters and clusters are words.
        spare
            Memory of earlier scans, to be used again; any threads may share it. Fresh memory
            takes a quarter of a scan to map.
        """
        _check_table(fold_table)
        require(least in (1, 2, 3), "least is not 1, 2 or 3")
        rules = least, possessives, joins, question
        return Scanned(*self._scanning.scan(texts, fold_table, *rules, spare))

    def new_words(self, room: int) -> WordTable:
        """Return an empty table with room for some words, a power of two."""
        table: WordTable = self._words.empty_table(room)
        return table

    def add_words(self, scanned: Scanned, words: WordTable) -> tuple[WordTable, UInt32]:
        """Give the words of a scan numbers in a table; return the number of each, uint32.

        And, before them, the table, perhaps larger now: the one given is used up.
        """
        larger, numbers = self._words.adopt(scanned, words)
        return larger, numbers

    def add_strings(self, texts: Texts, words: WordTable) -> tuple[WordTable, UInt32]:
        """Do as ``add_words``, which may use the same table, for strings.

        A byte is left out behind each in ``texts``, and ``BEYOND`` bytes come after the last.
        """
        # Each begins behind the byte left out, so that the ends themselves ascend by one or more.
        check_rising("ends", texts.ends - np.arange(len(texts.ends)), len(texts.data) - BEYOND)
        larger, numbers = self._scanning.add_strings(texts.data, texts.ends, 1, words)
        return larger, numbers

    def add_terms(self, terms: Sequence[str], words: WordTable) -> tuple[WordTable, UInt32]:
        """Do the same for a list of strings; raise ``TypeError`` for others."""
        data, ends = self._scanning.encode(terms, BEYOND)
        larger, numbers = self._scanning.add_strings(data, ends, 0, words)
        return larger, numbers

    def expand(
        self, tokens: UInt32, counts: UInt32, plain: UInt32, starts: Int64, terms: UInt32
    ) -> tuple[UInt32, UInt32]:
        """Put terms in the place of words, and nothing in that of stop words.

        ``tokens`` and ``counts`` are words, and how many each text has, see ``Scanned``; the same
        for terms is returned. ``plain`` is the term of each word, or ``STOPPED``, uint32;
        ``SEVERAL`` and a number n for a word that is several terms or none, which are those from
        ``starts[n]`` on, int64, to the next in ``terms``.
        """
        of_words = (("tokens", tokens), ("counts", counts), ("plain", plain), ("terms", terms))
        for name, array in of_words:
            check_array(name, array, np.uint32)
        check_array("starts", starts, np.int64)
        require(lowest_and_highest(tokens, -1)[1] < len(plain), "a token is no word")
        require(int(counts.sum(dtype=np.int64)) == len(tokens), "counts are not of the tokens")
        several = plain[(plain >= SEVERAL) & (plain != STOPPED)]
        require(int(several.max(initial=0)) < SEVERAL + len(starts) - 1, "a word has no terms")
        check_rising("starts", starts, len(terms))
        expanded, expanded_counts = self._words.expand(tokens, counts, plain, starts, terms)
        return expanded, expanded_counts


def _check_table(entries: UInt64) -> None:
    check_array("fold_table", entries, np.uint64)
    require(len(entries) == CODE_POINTS, "the fold table is not of all code points")

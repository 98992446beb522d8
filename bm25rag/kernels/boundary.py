"""What runs the hot loops: the backend, the records that it takes, and what is checked of them.

Compiled loops test no bounds. So every call goes through the public methods of ``Backend``,
which check what they are given, the same for every backend, and pass it on to the methods
with an underscore, which are the loops. A record checks its arrays' types and shapes when it
is made, and a method how records fit together. What is too long to be looked at in every call
is right by construction; this is the whole list:

- Postings, score tables and the places where postings begin are checked when they are read
  from a file ("What is checked" in ``docs/format.md``): documents ascend for each term within
  a block and are below ``block_size`` and the number of documents; codes are below the length
  of the table; places ascend and lie within the postings.
- Texts are UTF-8, perhaps with surrogates, because ``str.encode`` made them. The words of a
  scan and the table of words are what ``scan`` and ``add_words`` left there.
- ``fill`` gets as many postings of each term as there is room for behind its cursor, because
  ``build_postings`` counted the same runs. The documents of a run are those that it was counted
  of, and ``DocBlockBuilder`` made the places of their blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bm25rag.common.arrays import (
    Bool,
    Float32,
    Float64,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Unsigned,
)

# The term of a token that is a stop word.
STOPPED = 0xFFFFFFFF
# From here on up to STOPPED: words that are several terms, or none. Terms are below.
SEVERAL = 0x80000000
# Code points that the fold table has entries for.
CODE_POINTS = 0x110000
# Of which so many at a time are entered.
PAGE = 256
# Bytes that may be read and written beyond the last one of a word.
BEYOND = 16
# Values that Python looks through sooner than NumPy.
_FEW = 48


class SegmentArrays:
    """What a search reads of one segment.

    Parameters
    ----------
    documents, codes
        The postings, (P,); documents uint16, numbered within their blocks, codes uint16 or
        uint32.
    weights
        ``f(tf, |d|)`` of every impact code, (C,), float32.
    size
        Number n of documents, at least 1.
    block_size
        How many documents a block has.
    """

    __slots__ = (
        *("block_size", "blocks", "codes", "documents", "highest", "lowest", "prepared", "size"),
        "weights",
    )

    def __init__(
        self, documents: UInt16, codes: Unsigned, weights: Float32, size: int, block_size: int
    ) -> None:
        _check_array("documents", documents, np.uint16)
        _check_array("codes", codes, np.uint16, np.uint32)
        _check_array("weights", weights, np.float32)
        _require(len(documents) == len(codes), "documents and codes differ in length")
        _require(size >= 1 and 1 <= block_size <= 1 << 16, "wrong numbers of documents")
        self.documents, self.codes, self.weights = documents, codes, weights
        self.size, self.block_size = size, block_size
        # The least and the largest weight; infinite and 0 if there is none.
        self.lowest = float(weights.min(initial=np.inf))
        self.highest = float(weights.max(initial=0.0))
        # How many blocks of documents there are.
        self.blocks = -(-size // block_size)
        # What a backend has made of this.
        self.prepared: Any = None


class TermArrays:
    """Terms that queries refer to by number, as one segment has them.

    Parameters
    ----------
    starts
        Where the postings of u terms begin in each of s blocks, and where they end,
        (u, s + 1), int64.
    idf
        Their inverse document frequencies, (u,), float32.
    absent
        f(0): the weight of a term that a document lacks, float32.
    """

    __slots__ = ("absent", "idf", "prepared", "starts")

    def __init__(self, starts: Int64, idf: Float32, absent: np.float32) -> None:
        _check_array("starts", starts, np.int64, dimensions=2)
        _check_array("idf", idf, np.float32)
        _require(len(starts) == len(idf), "starts and idf differ in length")
        self.starts, self.idf, self.absent = starts, idf, absent
        self.prepared: Any = None


class FileBlocks(NamedTuple):
    """Where some arrays lie in a file, and which blocks of that have been checked.

    Parameters
    ----------
    flags
        1 for each block that has been checked, else 0, uint8; read anew by each call. Empty: the
        arrays need no check.
    size
        How many bytes a block has.
    places
        Where each array begins, in bytes.
    """

    flags: UInt8
    size: int
    places: Sequence[int]


class StringArrays:
    """Strings in UTF-8, one after another.

    Parameters
    ----------
    offsets
        Where each begins, and where the last ends, uint32 or uint64 (n + 1,).
    data
        Their bytes, uint8.
    file
        Where ``offsets`` and ``data`` lie; ``None``: in no file.
    """

    __slots__ = ("data", "file", "offsets", "prepared")

    def __init__(self, offsets: Unsigned, data: UInt8, file: FileBlocks | None = None) -> None:
        _check_array("offsets", offsets, np.uint32, np.uint64)
        _check_array("data", data, np.uint8)
        self.offsets, self.data = offsets, data
        self.file = _check_blocks(file, (offsets, data))
        self.prepared: Any = None


class PostingsArrays:
    """What a look-up of a term reads of the postings of n documents.

    Parameters
    ----------
    terms
        The V terms, sorted by their keys, then by bytes.
    keys
        Their CRC-32, uint32 (V,).
    indptr
        Where each term's postings begin, uint32 (V + 1,).
    documents, codes
        As in ``SegmentArrays``.
    code_count
        How many codes there are.
    size, block_size
        As in ``SegmentArrays``; s is the number of blocks.
    frequent, edges, before, high
        As in ``DocBlocks``; uint32 (m,), uint32 (m, s - 1), uint32 (m,), uint16.
    file
        Where ``indptr``, ``documents``, ``codes``, ``edges`` and ``high`` lie; ``None``: in no
        file. The other arrays have been checked.
    """

    __slots__ = (
        *("before", "block_size", "code_count", "codes", "documents", "edges", "file", "frequent"),
        *("high", "indptr", "keys", "prepared", "size", "terms"),
    )

    def __init__(
        self,
        terms: StringArrays,
        keys: UInt32,
        indptr: UInt32,
        documents: UInt16,
        codes: Unsigned,
        code_count: int,
        size: int,
        block_size: int,
        frequent: UInt32,
        edges: UInt32,
        before: UInt32,
        high: UInt16,
        file: FileBlocks | None = None,
    ) -> None:
        for name, array in (("keys", keys), ("indptr", indptr), ("frequent", frequent)):
            _check_array(name, array, np.uint32)
        _check_array("edges", edges, np.uint32, dimensions=2)
        _check_array("before", before, np.uint32)
        _check_array("documents", documents, np.uint16)
        _check_array("codes", codes, np.uint16, np.uint32)
        _check_array("high", high, np.uint16)
        _require(len(terms.offsets) == len(keys) + 1 == len(indptr), "not as many terms as keys")
        _require(len(documents) == len(codes), "documents and codes differ in length")
        _require(size >= 1 and 1 <= block_size <= 1 << 16, "wrong numbers of documents")
        blocks = -(-size // block_size)
        if blocks > 1:
            _require(edges.shape == (len(frequent), blocks - 1), "edges are not of the blocks")
            _require(len(before) == len(frequent), "frequent and before differ in length")
            _require(_range(frequent, -1)[1] < len(keys), "a frequent term is none of the terms")
        self.terms, self.keys, self.indptr = terms, keys, indptr
        self.documents, self.codes, self.code_count = documents, codes, code_count
        self.size, self.block_size = size, block_size
        self.frequent, self.edges, self.before, self.high = frequent, edges, before, high
        self.file = _check_blocks(file, (indptr, documents, codes, edges, high))
        self.prepared: Any = None


class Queries:
    """The terms of q queries.

    Parameters
    ----------
    pointers
        Where each query begins in ``terms``, (q + 1,), int64.
    terms
        The terms of each query, repeats included, int64; -1 for one of no document.
    weights
        Their weights, one for each of ``terms``, finite, float64; empty: each counts once.
    """

    __slots__ = ("most", "pointers", "terms", "weights")

    def __init__(self, pointers: Int64, terms: Int64, weights: Float64) -> None:
        _check_array("pointers", pointers, np.int64)
        _check_array("terms", terms, np.int64)
        _check_array("weights", weights, np.float64)
        _require(len(weights) in (0, len(terms)), "terms and weights differ in length")
        _check_rising("pointers", pointers, len(terms))
        least, self.most = _range(terms, -1)
        _require(least >= -1, "a term has a negative number")
        self.pointers, self.terms, self.weights = pointers, terms, weights

    def __len__(self) -> int:
        return len(self.pointers) - 1

    def between(self, first: int, last: int) -> Queries:
        """Return the queries from ``first`` to before ``last``."""
        some = object.__new__(Queries)
        some.pointers, some.most = self.pointers[first : last + 1], self.most
        some.terms, some.weights = self.terms, self.weights
        return some


class Limits(NamedTuple):
    """Which matches are wanted, and how to look for them.

    Parameters
    ----------
    k
        How many matches at most, >= 1.
    allowed
        Which documents may be returned, (n,), bool; ``None``: all.
    window
        How many documents to walk at a time, >= 1. This and the next two change no result.
    heavy
        Postings of frequent terms from which to look some terms up.
    sparse
        How many times fewer postings than documents are few.
    """

    k: int
    allowed: Bool | None
    window: int
    heavy: int
    sparse: int


class Matches(NamedTuple):
    """Takes what a search finds; unused cells become -1 and -inf.

    Parameters
    ----------
    numbers
        Documents by score descending, then number ascending, int64 (q, k).
    scores
        Their scores, float64 (q, k).
    counts
        How many matches each query has, int64 (q,).
    """

    numbers: Int64
    scores: Float64
    counts: Int64


class Run(NamedTuple):
    """Postings of some documents, grouped by term; numbers are as narrow as they can be.

    Parameters
    ----------
    terms
        Distinct terms in any order, uint32 (u,).
    sizes
        How many postings each has, uint32 (u,).
    documents
        Their documents, less ``first``, ascending for each term; uint16 or uint32 (p,).
    tf
        Their term frequencies; uint8, uint16 or uint32 (p,).
    first
        The number of the first document.
    """

    terms: UInt32
    sizes: UInt32
    documents: Unsigned
    tf: Unsigned
    first: int


class Places(NamedTuple):
    """Where ``fill`` puts postings.

    Parameters
    ----------
    cursors
        Where the next posting of each term goes, int64 (v,); moved on.
    documents
        Takes documents within their blocks, uint16.
    codes
        Takes impact codes, uint16 or uint32.
    block_size
        How many documents a block has.
    targets
        Where the blocks of each term's postings go, int64 (v,), if there are several blocks:
        -1 - r for row r of ``cells``, else what a posting's place in ``high`` is less.
    cells
        Counts postings by row and block, uint32 (m, s).
    high
        Takes the block of each posting of the other terms, uint16.
    """

    cursors: Int64
    documents: UInt16
    codes: Unsigned
    block_size: int
    targets: Int64
    cells: UInt32
    high: UInt16


class Texts(NamedTuple):
    """Texts in UTF-8, one after the other, uint8, and where each ends, int64 (n,)."""

    data: UInt8
    ends: Int64


class Scanned(NamedTuple):
    """What a scan found.

    Parameters
    ----------
    tokens
        The word of every token, uint32.
    counts
        How many tokens each text has, uint32 (n,).
    entries, pool
        The words; see ``WordTable``. Of bigrams that were sorted the pool has nothing.
    """

    tokens: UInt32
    counts: UInt32
    entries: UInt64
    pool: UInt8


class WordTable(NamedTuple):
    """A hash table from byte strings to numbers.

    Parameters
    ----------
    slots
        Open addressing, at most half full: half a hash above, a word's number plus one
        below; a power of two of them, uint64.
    entries
        A row for each word, in the order in which they came: the two numbers of its key,
        where it begins in the pool, and its length; uint64 (w, 4).
    pool
        The words, with a line feed after each, uint8.
    used
        How many words there are, and bytes in the pool, int64 (2,).
    """

    slots: UInt64
    entries: UInt64
    pool: UInt8
    used: Int64


class Scanner(ABC):
    """Finds the words of texts, and numbers them; only compiled code has one."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> tuple[UInt8, UInt64]:
        """Return the UTF-8 of strings, lone surrogates included.

        Returns
        -------
        data
            All strings, one after another.
        lengths
            The bytes of each, uint64 (n,).
        """

    def find_peculiar(self, texts: Texts, fold_table: UInt64) -> tuple[Bool, Int64]:
        """Find texts that need more than the fold table, or of which it lacks characters.

        Parameters
        ----------
        texts
            The texts.
        fold_table
            An entry for every code point, (0x110000,), uint64; see ``fold_bits``. 0 if there
            is none.

        Returns
        -------
        peculiar
            Which texts need more than the table, bool (n,), if it lacks none.
        pages
            Which pages of the table they need that have no entries.
        """
        _check_texts(texts, fold_table)
        return self._find_peculiar(texts, fold_table)

    def scan(
        self, texts: Texts, fold_table: UInt64, least: int, possessives: bool, spare: list[Any]
    ) -> Scanned:
        """Turn texts into numbers of their words.

        Parameters
        ----------
        texts, fold_table
            As for ``find_peculiar``.
        least
            Of how many characters a word is, at least: 1 or 2.
        possessives
            Whether to leave the ends of possessives out, of which nothing would remain.
        spare
            Memory of earlier scans, to be used again; any threads may share it. Fresh memory
            takes a quarter of a scan to map.
        """
        _check_texts(texts, fold_table)
        _require(least in (1, 2), "least is neither 1 nor 2")
        return self._scan(texts, fold_table, least, possessives, spare)

    @abstractmethod
    def new_words(self, room: int) -> WordTable:
        """Return an empty table with room for some words, a power of two."""

    @abstractmethod
    def add_words(self, scanned: Scanned, words: WordTable) -> tuple[WordTable, UInt32]:
        """Give the words of a scan numbers in a table.

        Returns
        -------
        words
            The table, perhaps larger now; the one given is used up.
        numbers
            The number of each word of the scan, uint32.
        """

    def add_strings(self, texts: Texts, words: WordTable) -> tuple[WordTable, UInt32]:
        """Give strings numbers in a table.

        Parameters
        ----------
        texts
            The strings, with a byte left out behind each, and ``BEYOND`` bytes after the last.
        words
            As for ``add_words``, which may use the same table.

        Returns
        -------
        words, numbers
            As ``add_words`` returns them.
        """
        _check_array("data", texts.data, np.uint8)
        _check_array("ends", texts.ends, np.int64)
        # Each begins behind the byte left out, so that the ends themselves ascend by one or more.
        _check_rising("ends", texts.ends - np.arange(len(texts.ends)), len(texts.data) - BEYOND)
        return self._add_strings(texts, words)

    def expand(
        self, tokens: UInt32, counts: UInt32, plain: UInt32, starts: Int64, terms: UInt32
    ) -> tuple[UInt32, UInt32]:
        """Put terms in the place of words, and nothing in that of stop words.

        Parameters
        ----------
        tokens, counts
            Words, and how many each text has; see ``Scanned``.
        plain
            The term of each word, or ``STOPPED``, uint32; ``SEVERAL`` and a number n for a word
            that is several terms or none.
        starts, terms
            The terms of these words: from ``starts[n]`` on, int64, to the next in ``terms``.

        Returns
        -------
        tokens, counts
            The same for terms.
        """
        of_words = (("tokens", tokens), ("counts", counts), ("plain", plain), ("terms", terms))
        for name, array in of_words:
            _check_array(name, array, np.uint32)
        _check_array("starts", starts, np.int64)
        _require(_range(tokens, -1)[1] < len(plain), "a token is no word")
        _require(int(counts.sum(dtype=np.int64)) == len(tokens), "counts are not of the tokens")
        several = plain[(plain >= SEVERAL) & (plain != STOPPED)]
        _require(int(several.max(initial=0)) < SEVERAL + len(starts) - 1, "a word has no terms")
        _check_rising("starts", starts, len(terms))
        return self._expand(tokens, counts, plain, starts, terms)

    @abstractmethod
    def _find_peculiar(self, texts: Texts, fold_table: UInt64) -> tuple[Bool, Int64]: ...

    @abstractmethod
    def _add_strings(self, texts: Texts, words: WordTable) -> tuple[WordTable, UInt32]: ...

    @abstractmethod
    def _scan(
        self, texts: Texts, fold_table: UInt64, least: int, possessives: bool, spare: list[Any]
    ) -> Scanned: ...

    @abstractmethod
    def _expand(
        self, tokens: UInt32, counts: UInt32, plain: UInt32, starts: Int64, terms: UInt32
    ) -> tuple[UInt32, UInt32]: ...


class Backend(ABC):
    """Runs the hot loops; every backend gives the same ids, order and bits.

    Its methods raise ``TypeError`` or ``ValueError`` for what no caller of ours passes.
    """

    name: ClassVar[str]

    @property
    def scanner(self) -> Scanner | None:
        """The scanner; ``None`` if texts are analysed word by word in Python."""
        return None

    def search(
        self,
        segment: SegmentArrays,
        terms: TermArrays,
        queries: Queries,
        floors: Float64,
        limits: Limits,
        matches: Matches,
    ) -> None:
        """Find the best k matches of each query in one segment.

        Parameters
        ----------
        segment
            Where to search.
        terms
            What the numbers in ``queries`` stand for.
        queries, limits
            What to search for.
        floors
            What the scores of each query must exceed, (q,), float64.
        matches
            Takes what is found.
        """
        count = len(queries)
        _check_search(segment, terms, limits, queries.most)
        _check_array("floors", floors, np.float64)
        _check_array("numbers", matches.numbers, np.int64, dimensions=2)
        _check_array("scores", matches.scores, np.float64, dimensions=2)
        _check_array("counts", matches.counts, np.int64)
        _require(floors.shape == matches.counts.shape == (count,), "floors or counts")
        shape = (count, limits.k)
        _require(matches.numbers.shape == matches.scores.shape == shape, "matches of another k")
        self._search(segment, terms, queries, floors, limits, matches)

    def search_one(
        self,
        segment: SegmentArrays,
        terms: TermArrays,
        query: Sequence[int],
        weights: Sequence[float],
        floor: float,
        limits: Limits,
    ) -> tuple[list[int], list[float]]:
        """Find the best k matches of one query in one segment: ``search`` without arrays.

        Parameters
        ----------
        segment, terms, limits
            As for ``search``.
        query, weights
            The terms and their weights, as ``Queries`` has them.
        floor
            What scores must exceed.

        Returns
        -------
        numbers
            Documents by score descending, then number ascending.
        scores
            Their scores.
        """
        _check_search(segment, terms, limits, max(query, default=-1))
        _require(min(query, default=-1) >= -1, "a term has a negative number")
        _require(len(weights) in (0, len(query)), "terms and weights differ in length")
        return self._search_one(segment, terms, query, weights, floor, limits)

    def find_wrong(
        self, documents: UInt16, starts: Int64, block_size: int, size: int
    ) -> str | None:
        """Say what is wrong with the documents of a term, of which there is one at least.

        Parameters
        ----------
        documents
            Its postings' documents, numbered within their blocks, uint16.
        starts
            Where those of each block begin, and where the last end, int64; the first counts as 0.
        block_size, size
            How many documents a block and the segment have.

        Returns
        -------
        wrong
            ``"block"`` if one is beyond its block, ``"documents"`` if they do not ascend or one is
            beyond the segment; ``None`` if all is well.
        """
        _check_array("documents", documents, np.uint16)
        _check_array("starts", starts, np.int64)
        places = (starts - starts[0]).tolist()
        _require(places == sorted(places) and places[-1] == len(documents) > 0, "wrong starts")
        return self._find_wrong(documents, starts, block_size, size)

    def decode(self, strings: StringArrays, numbers: Sequence[int]) -> list[str] | None:
        """Decode some strings, of which lone surrogates may be part.

        Parameters
        ----------
        strings
            The strings.
        numbers
            Which of them.

        Returns
        -------
        texts
            The strings; ``None`` if one is not known to be right, or there is none of a number.

        Raises
        ------
        UnicodeDecodeError
            If one is not UTF-8.
        """
        return self._decode(strings, numbers)

    def find_term(self, postings: PostingsArrays, term: bytes, key: int) -> Int64 | None:
        """Find where the postings of a term begin in each block of documents, and where they end.

        Parameters
        ----------
        postings
            The postings.
        term
            The term.
        key
            Its CRC-32.

        Returns
        -------
        starts
            As from ``Postings.find``; ``None`` if what that reads is not known to be right, or
            this backend does not look for terms.
        """
        return None

    def find_plain_words(self, text: str) -> list[str] | None:
        """Find the words of a text in ASCII: runs of letters, digits and underscores.

        Parameters
        ----------
        text
            The text.

        Returns
        -------
        words
            The words; ``None`` if a sign may be inside one of them, or this backend does not
            look for words.
        """
        return None

    def number_terms(
        self, queries: Sequence[Iterable[str]], numbers: dict[str, int]
    ) -> tuple[Int64, Int64] | None:
        """Look up the terms of queries.

        Parameters
        ----------
        queries
            The terms of each query.
        numbers
            The number of each term, at least -1.

        Returns
        -------
        pointers, terms
            As ``Queries`` takes them; ``None`` if not all queries are lists or tuples, or this
            backend does not look for terms.

        Raises
        ------
        KeyError
            If a term has no number.
        """
        return None

    def checksums(self, data: UInt8, offsets: UInt64) -> UInt32:
        """Return the CRC-32 of byte strings.

        Parameters
        ----------
        data
            The strings, one after another.
        offsets
            Where each begins, and where the last ends, (n + 1,), uint64.

        Returns
        -------
        checksums
            One for each string, uint32.
        """
        _check_array("data", data, np.uint8)
        _check_array("offsets", offsets, np.uint64)
        _check_rising("offsets", offsets, len(data))
        return self._checksums(data, offsets)

    def count(
        self, tokens: UInt32, counts: UInt32, terms: int, first: int, spare: list[Any]
    ) -> tuple[Run, UInt32]:
        """Count the tokens of some documents.

        Parameters
        ----------
        tokens
            The term of every token, uint32; ``STOPPED`` for a stop word.
        counts
            How many tokens each document has, stop words too, uint32.
        terms
            How many terms there are.
        first
            The number of the first document.
        spare
            Memory of earlier calls, to be used again; any threads may share it.

        Returns
        -------
        run
            The postings.
        lengths
            |d| of each document, uint32.
        """
        _check_array("tokens", tokens, np.uint32)
        _check_array("counts", counts, np.uint32)
        _require(int(counts.sum(dtype=np.int64)) == len(tokens), "counts are not of the tokens")
        # STOPPED is -1 there.
        least, most = _range(tokens.view(np.int32), -1)
        _require(least >= -1 and most < terms, "a token has no term")
        _require(len(tokens) < 1 << 32, "more tokens than can be counted together")
        return self._count(tokens, counts, terms, first, spare)

    def fill(self, run: Run, codes: Unsigned, places: Places) -> None:
        """Put the postings of a run into their places.

        Parameters
        ----------
        run
            The postings.
        codes
            Their impact codes, of the type of ``places.codes``.
        places
            Where they go.
        """
        _check_array("terms", run.terms, np.uint32)
        _check_array("sizes", run.sizes, np.uint32)
        _check_array("documents", run.documents, np.uint16, np.uint32)
        _check_array("cursors", places.cursors, np.int64)
        _check_array("documents", places.documents, np.uint16)
        _check_array("codes", places.codes, np.uint16, np.uint32)
        _check_array("codes", codes, places.codes.dtype.type)
        _check_array("targets", places.targets, np.int64)
        _check_array("cells", places.cells, np.uint32, dimensions=2)
        _check_array("high", places.high, np.uint16)
        total = int(run.sizes.sum(dtype=np.int64))
        _require(len(run.terms) == len(run.sizes), "a run is ragged")
        _require(total == len(run.documents) == len(codes), "a run is ragged")
        _require(_range(run.terms, -1)[1] < len(places.cursors), "a term has no cursor")
        _require(len(places.targets) in (0, len(places.cursors)), "a term has no target")
        self._fill(run, codes, places)

    @abstractmethod
    def _search(
        self,
        segment: SegmentArrays,
        terms: TermArrays,
        queries: Queries,
        floors: Float64,
        limits: Limits,
        matches: Matches,
    ) -> None: ...

    @abstractmethod
    def _search_one(
        self,
        segment: SegmentArrays,
        terms: TermArrays,
        query: Sequence[int],
        weights: Sequence[float],
        floor: float,
        limits: Limits,
    ) -> tuple[list[int], list[float]]: ...

    @abstractmethod
    def _find_wrong(
        self, documents: UInt16, starts: Int64, block_size: int, size: int
    ) -> str | None: ...

    @abstractmethod
    def _decode(self, arrays: StringArrays, numbers: Sequence[int]) -> list[str] | None: ...

    @abstractmethod
    def _checksums(self, data: UInt8, offsets: UInt64) -> UInt32: ...

    @abstractmethod
    def _count(
        self, tokens: UInt32, counts: UInt32, terms: int, first: int, spare: list[Any]
    ) -> tuple[Run, UInt32]: ...

    @abstractmethod
    def _fill(self, run: Run, codes: Unsigned, places: Places) -> None: ...


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(f"{message}; please report this as a bug of bm25rag")


def _check_array(
    name: str, array: np.ndarray[Any, Any], *types: type[np.generic], dimensions: int = 1
) -> None:
    if array.dtype.type in types and array.ndim == dimensions and array.flags.c_contiguous:
        return
    expected = " or ".join(one.__name__ for one in types)
    raise TypeError(
        f"{name} must be a contiguous array of {expected} with {dimensions} dimensions,"
        f" got {array.dtype} {array.shape}; please report this as a bug of bm25rag"
    )


def _check_search(segment: SegmentArrays, terms: TermArrays, limits: Limits, most: int) -> None:
    """Check what a search is given; ``most`` is the largest number of a term in it."""
    _require(most < len(terms.idf), "a query's term has no postings")
    _require(terms.starts.shape[1] == segment.blocks + 1, "starts are not of this segment")
    _require(limits.k >= 1 <= limits.window, "k and window must be at least 1")
    if limits.allowed is not None:
        _check_array("allowed", limits.allowed, np.bool_)
        _require(len(limits.allowed) == segment.size, "allowed is not of this segment")


def _check_blocks(file: FileBlocks | None, arrays: Sequence[np.ndarray[Any, Any]]) -> FileBlocks:
    """Check that arrays lie within the blocks of their file."""
    if file is None:
        return FileBlocks(np.empty(0, np.uint8), 1, [0] * len(arrays))
    _check_array("flags", file.flags, np.uint8)
    _require(len(file.places) == len(arrays) and file.size >= 1, "not a place for each array")
    for place, array in zip(file.places, arrays, strict=True):
        end = place + array.nbytes if array.nbytes else 0
        _require(place >= 0 and end <= len(file.flags) * file.size, "an array is beyond its file")
    return file


def _check_texts(texts: Texts, fold_table: UInt64) -> None:
    _check_array("data", texts.data, np.uint8)
    _check_array("ends", texts.ends, np.int64)
    _check_array("fold_table", fold_table, np.uint64)
    _require(len(fold_table) == CODE_POINTS, "the fold table is not of all code points")
    _check_rising("ends", texts.ends, len(texts.data))


def _check_rising(name: str, values: Int64 | UInt64, end: int) -> None:
    """Check that values ascend from 0 on, and do not exceed ``end``."""
    if len(values) < _FEW:
        few = values.tolist()
        rising = few == sorted(few)
    else:
        rising = bool((values[1:] >= values[:-1]).all())
    within = not len(values) or (values[0] >= 0 and values[-1] <= end)
    _require(rising and bool(within), f"{name} do not ascend from 0 to {end}")


def _range(values: np.ndarray[Any, Any], empty: int) -> tuple[int, int]:
    """Return the least and the largest value; ``empty`` twice if there is none."""
    if len(values) < _FEW:
        few = values.tolist() or [empty]
        return min(few), max(few)
    return int(values.min()), int(values.max())

"""The records that the backend takes: arrays, checked once, that belong together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

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
    as_index,
)
from bm25rag.kernels.checks import check_array, check_rising, lowest_and_highest, require

# How many documents a strip has, and the largest gap of a pair of a row of strips.
STRIP, STRIP_GAP = 32, 255


class SegmentArrays:
    """What a search reads of one segment of ``size`` documents, at least 1.

    The postings are ``documents``, uint16, numbered within their blocks of ``block_size``, and
    ``codes``, uint16 or uint32, (P,). ``weights`` are ``f(tf, |d|)`` of every impact code, (C,),
    float32; ``bounds`` the least and the largest of them, if they are known.
    """

    __slots__ = (
        *("block_size", "blocks", "codes", "documents", "highest", "lowest", "prepared", "size"),
        *("strips", "weights"),
    )

    def __init__(
        self,
        documents: UInt16,
        codes: Unsigned,
        weights: Float32,
        size: int,
        block_size: int,
        bounds: tuple[float, float] | None = None,
        strips: StripBounds | None = None,
    ) -> None:
        check_array("documents", documents, np.uint16)
        check_array("codes", codes, np.uint16, np.uint32)
        check_array("weights", weights, np.float32)
        require(len(documents) == len(codes), "documents and codes differ in length")
        require(size >= 1 and 1 <= block_size <= 1 << 16, "wrong numbers of documents")
        self.documents, self.codes, self.weights = documents, codes, weights
        self.size, self.block_size = size, block_size
        # The least and the largest weight; infinite and 0 if there is none.
        if bounds is None:
            bounds = float(weights.min(initial=np.inf)), float(weights.max(initial=0.0))
        self.lowest, self.highest = bounds
        # How many blocks of documents there are.
        self.blocks: int = -(-size // block_size)
        if strips is not None:
            sizes = strips.size, strips.block_size, strips.postings
            require(sizes == (size, block_size, len(documents)), "strips of other postings")
        self.strips = strips
        # What a backend has made of this.
        self.prepared: Any = None


def strip_cells(size: int, block_size: int) -> tuple[int, int]:
    """Return how many strips a block of documents has, and all blocks of so many documents.

    They are in whole chunks of 64, which are looked at together.
    """
    in_block = -(-block_size // (64 * STRIP)) * 64
    return in_block, -(-size // block_size) * in_block


def shares(weights: Float32, highest: float) -> UInt16:
    """Return each weight as a share of the largest in 16 bits, rounded down."""
    positive: Float64 = np.maximum(weights, 0).astype(np.float64)
    return (positive * (65535.0 / highest)).astype(np.uint16)


def strip_levels(weights: Float32, highest: float) -> UInt8:
    """Return each weight as a level of a row: a share of the largest in 8 bits, rounded up.

    No share is less than that of 16 bits was before it was rounded down. A weight is less than
    (share + 1) / 65535 of the largest, and what is returned is at least 253 times that: if
    ``share`` is less than 254, that is less than 1, and else 254 / 65536 of ``share``, which is
    rounded up here, is as much already.
    """
    levels: UInt32 = (shares(weights, highest).astype(np.uint32) * np.uint32(254)) >> np.uint32(16)
    return (levels + np.uint32(1)).astype(np.uint8)


class StripBounds:
    """Rows of levels: what the postings of frequent terms reach in strips of 32 documents.

    Of ``postings`` in all, those of the terms with rows begin at ``starts``, ascending, (R,),
    int64. ``levels`` are their rows, uint8: of ``cells`` bytes the largest level of each strip, see
    ``strip_levels``; others have pairs for strips where the term is, how many strips further on
    than the last, and the level. Gaps of a row are less than ``cells`` together, and none but the
    first is 0. ``offsets`` are where each row begins, ascending, and where the last ends, (R + 1,),
    int64.

    ``cost`` is how many postings are walked in the time in which a strip is looked at, ``worth``
    for how many postings of a query, for each match wanted, bounds pay. ``check`` is given where a
    row begins and ends in ``levels``, and whether its pairs, if it has any, are right, and raises
    an error if it is damaged; ``None``: none can be. Levels that are not those of the postings hide
    documents, and do no other harm.
    """

    __slots__ = (
        *("block_size", "cells", "check", "cost", "in_block", "levels", "offsets", "postings"),
        *("size", "starts", "worth"),
    )

    def __init__(
        self,
        size: int,
        block_size: int,
        postings: int,
        starts: Int64,
        levels: UInt8,
        offsets: Int64,
        cost: int,
        worth: int,
        check: Callable[[int, int, bool], object] | None = None,
    ) -> None:
        require(size >= 1 and 1 <= block_size <= 1 << 16, "wrong numbers of documents")
        check_array("starts", starts, np.int64)
        check_array("levels", levels, np.uint8)
        self.size, self.block_size, self.postings = size, block_size, postings
        self.in_block, self.cells = strip_cells(size, block_size)
        check_array("offsets", offsets, np.int64)
        check_rising("offsets", offsets, len(levels))
        require(len(offsets) == len(starts) + 1, "starts and offsets differ in rows")
        self.starts, self.levels, self.offsets = starts, levels, offsets
        self.cost, self.worth, self.check = cost, worth, check


class TermArrays:
    """Terms that queries refer to by number, as one segment has them.

    ``starts`` are where the postings of u terms begin in each of s blocks, and where they end,
    (u, s + 1), int64; ``idf`` their inverse document frequencies, (u,), float32; ``absent`` f(0),
    the weight of a term that a document lacks, float32.
    """

    __slots__ = ("absent", "blocks", "idf", "prepared", "starts")

    def __init__(self, starts: Int64, idf: Float32, absent: np.float32) -> None:
        check_array("starts", starts, np.int64, dimensions=2)
        check_array("idf", idf, np.float32)
        require(len(starts) == len(idf), "starts and idf differ in length")
        self.starts, self.idf, self.absent = starts, idf, absent
        self.blocks = starts.shape[1] - 1
        self.prepared: Any = None


class TermNumbers(dict[str, int], ABC):
    """Maps a term to its number; to -1 if no document has it.

    Threads may share it; only what has the number -1 is ever removed.
    """

    @property
    @abstractmethod
    def table(self) -> TermTable | None:
        """Where the kernels look up terms that have no number; ``None`` if they cannot."""

    @abstractmethod
    def __missing__(self, term: str) -> int:
        """Look up a term that the kernels have left, and return its number."""

    @abstractmethod
    def count(self, term: str, places: Int64) -> int:
        """Return the document frequency of a term.

        ``places`` are its ``starts`` in all segments, one after another.
        """

    @abstractmethod
    def idf_of(self, frequency: int) -> float:
        """Return the idf of a term of this document frequency."""

    @abstractmethod
    def remember_unknown(self, terms: Sequence[str]) -> None:
        """Take note of terms that no document has."""


class SegmentRows:
    """The rows of a segment's living documents, which are their places among each other.

    They are all of ``size`` but those of ``numbers``, or if ``kept``, these: ascending, uint32.
    """

    __slots__ = ("_living", "_living_before", "count", "kept", "numbers", "size")

    def __init__(self, numbers: UInt32, size: int, kept: bool = False) -> None:
        _check_documents("rows", numbers, size)
        self.numbers, self.size, self.kept = numbers, size, kept
        self.count: int = len(numbers) if kept else size - len(numbers)
        self._living: Bool | None = None
        self._living_before: UInt32 | None = None

    @property
    def living(self) -> Bool | None:
        """Which documents live, bool (n,); ``None`` if all do."""
        if self.count == self.size or self._living is not None:
            return self._living
        living = np.full(self.size, not self.kept)
        living[as_index(self.numbers)] = self.kept
        if not self.kept:  # a part keeps nothing of the others
            self._living = living
        return living

    def ranks(self, numbers: Int64) -> Int64:
        """Return the rows of living documents by their numbers."""
        if not len(self.numbers) and not self.kept:
            return numbers
        # NumPy would convert all of ``self.numbers`` to another type.
        places = self.numbers.searchsorted(numbers.astype(np.uint32))
        return places if self.kept else numbers - places

    def numbers_at(self, ranks: Int64) -> Int64:
        """Return the numbers of the living documents at some rows."""
        if self.kept:
            return self.numbers[ranks].astype(np.int64)
        if not len(self.numbers):
            return ranks
        if self._living_before is None:  # how many living documents come before each deleted one
            deleted = np.arange(len(self.numbers), dtype=np.uint32)
            self._living_before = np.subtract(self.numbers, deleted)
        return ranks + self._living_before.searchsorted(ranks.astype(np.uint32), side="right")


class Rows:
    """The rows of living documents of segments: their places among those of all, in order.

    ``bases`` are the first of each segment, and how many there are in all.
    """

    __slots__ = ("bases", "prepared", "segments")

    def __init__(self, segments: Sequence[SegmentRows]) -> None:
        self.segments = segments
        self.bases = tuple(accumulate((one.count for one in segments), initial=0))
        self.prepared: Any = None


class TermTable:
    """Where terms without a number are looked up, in the ``postings`` of each segment.

    The data of a new one are written to ``terms``, the numbered terms of each segment, u of them,
    and to ``frequencies``, their document frequencies, (u,), int64. ``idfs`` are the idf of the
    least document frequencies, from 1 on, float32. ``free`` yields each number below u that is not
    used yet, once. ``rows`` are those of each segment, if living documents are counted; ``None``:
    Python knows the document frequencies.
    """

    __slots__ = (*("free", "frequencies", "idf", "idfs", "postings", "prepared", "rows", "terms"),)

    def __init__(
        self,
        postings: Sequence[PostingsArrays],
        terms: Sequence[TermArrays],
        frequencies: Int64,
        idf: Float32,
        idfs: Float32,
        free: Iterator[int],
        rows: Sequence[SegmentRows] | None,
    ) -> None:
        check_array("frequencies", frequencies, np.int64)
        check_array("idf", idf, np.float32)
        check_array("idfs", idfs, np.float32)
        require(len(postings) == len(terms), "not as many postings as terms")
        require(len(idf) == len(frequencies), "idf and frequencies differ in length")
        for own, numbered in zip(postings, terms, strict=True):
            shape = (len(frequencies), own.blocks + 1)
            require(numbered.starts.shape == shape, "starts are not of these postings")
        self.postings, self.terms, self.frequencies = postings, terms, frequencies
        if rows is not None:
            sizes = [one.size for one in rows]
            require(sizes == [one.size for one in postings], "rows are not of these postings")
        self.idf, self.idfs, self.free, self.rows = idf, idfs, free, rows
        self.prepared: Any = None


class FileBlocks(NamedTuple):
    """Where some arrays lie in a file, and which blocks of that have been checked."""

    # 1 for each block that has been checked, else 0; read anew by each call, which may check more.
    # Empty: the arrays need no check.
    flags: UInt8
    size: int  # of a block, in bytes
    places: Sequence[int]  # where each array begins, in bytes
    data: UInt8 = np.empty(0, np.uint8)  # all blocks
    # The CRC-32 that each block must have; empty: the kernels check none.
    sums: UInt32 = np.empty(0, np.uint32)


class StringArrays:
    """Strings in UTF-8, one after another.

    ``offsets`` are where each begins, and where the last ends, uint32 or uint64 (n + 1,). ``data``
    are their bytes, uint8, or the numbers of their ``pieces``, uint16, see ``Pieces``. ``file`` is
    where all of these lie; ``None``: in no file.
    """

    __slots__ = ("data", "file", "offsets", "pieces", "prepared")

    def __init__(
        self,
        offsets: Unsigned,
        data: UInt8 | UInt16,
        file: FileBlocks | None = None,
        pieces: UInt64 | None = None,
    ) -> None:
        check_array("offsets", offsets, np.uint32, np.uint64)
        check_array("data", data, np.uint8 if pieces is None else np.uint16)
        self.offsets, self.data = offsets, data
        self.pieces: UInt64 = np.empty(0, np.uint64) if pieces is None else pieces
        check_array("pieces", self.pieces, np.uint64)
        arrays = (offsets, data) if pieces is None else (offsets, data, pieces)
        self.file: FileBlocks = _check_blocks(file, arrays)
        self.prepared: Any = None


class Pieces(NamedTuple):
    """Byte strings that are frequent in some texts, and a table to find them in.

    The first 256 are single bytes; no other piece has a zero among its bytes.
    """

    bytes: UInt64  # those of each piece, the first lowest, (c,)
    slots: UInt32  # what a backend finds them in


class PostingsArrays:
    """What a look-up of a term reads of the postings of ``size`` documents, in s blocks.

    The V ``terms`` are sorted by their ``keys``, CRC-32, uint32 (V,), then by bytes; the postings
    of each begin at ``indptr``, uint32 (V + 1,). ``documents`` and ``codes`` are as in
    ``SegmentArrays``, and of ``code_count`` codes. ``frequent``, ``edges``, ``before`` and ``high``
    are as in ``DocBlocks``: uint32 (m,), uint32 (m, s - 1), uint32 (m,), uint16. ``file`` is where
    ``indptr``, ``documents``, ``codes``, ``edges`` and ``high`` lie; ``None``: in no file. The
    other arrays have been checked.
    """

    __slots__ = (
        *("before", "block_size", "blocks", "code_count", "codes", "documents", "edges", "file"),
        *("frequent", "high", "indptr", "keys", "prepared", "size", "terms"),
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
            check_array(name, array, np.uint32)
        check_array("edges", edges, np.uint32, dimensions=2)
        check_array("before", before, np.uint32)
        check_array("documents", documents, np.uint16)
        check_array("codes", codes, np.uint16, np.uint32)
        check_array("high", high, np.uint16)
        require(len(terms.offsets) == len(keys) + 1 == len(indptr), "not as many terms as keys")
        require(len(documents) == len(codes), "documents and codes differ in length")
        require(size >= 1 and 1 <= block_size <= 1 << 16, "wrong numbers of documents")
        blocks = -(-size // block_size)
        self.blocks: int = blocks
        if blocks > 1:
            require(edges.shape == (len(frequent), blocks - 1), "edges are not of the blocks")
            require(len(before) == len(frequent), "frequent and before differ in length")
            require(
                lowest_and_highest(frequent, -1)[1] < len(keys),
                "a frequent term is none of the terms",
            )
        self.terms, self.keys, self.indptr = terms, keys, indptr
        self.documents, self.codes, self.code_count = documents, codes, code_count
        self.size, self.block_size = size, block_size
        self.frequent, self.edges, self.before, self.high = frequent, edges, before, high
        self.file: FileBlocks = _check_blocks(file, (indptr, documents, codes, edges, high))
        self.prepared: Any = None


class Queries:
    """The terms of q queries, which a search checks.

    ``pointers`` are where each query begins in ``terms``, ascending, (q + 1,), int64. Terms may be
    repeated, int64; -1 is one of no document. Each has a weight, finite, float64; if ``weights``
    are empty, each counts once.
    """

    __slots__ = ("pointers", "terms", "weights")

    def __init__(self, pointers: Int64, terms: Int64, weights: Float64) -> None:
        check_array("pointers", pointers, np.int64)
        check_array("terms", terms, np.int64)
        check_array("weights", weights, np.float64)
        require(len(weights) in (0, len(terms)), "terms and weights differ in length")
        self.pointers, self.terms, self.weights = pointers, terms, weights

    def __len__(self) -> int:
        return len(self.pointers) - 1

    def between(self, first: int, last: int) -> Queries:
        """Return the queries from ``first`` to before ``last``."""
        some = object.__new__(Queries)
        some.pointers = self.pointers[first : last + 1]
        some.terms, some.weights = self.terms, self.weights
        return some


class Allowed:
    """Which of the n documents of a segment may be returned: a mask, bool (n,), not changed."""

    __slots__ = ("_bits", "_mask", "_numbers", "count", "size")

    def __init__(self, mask: Bool) -> None:
        check_array("allowed", mask, np.bool_)
        self.size, self.count = len(mask), int(np.count_nonzero(mask))
        self._mask: Bool | None = mask
        self._numbers: UInt32 | None = None
        self._bits: UInt64 | None = None

    @classmethod
    def of_numbers(cls, numbers: UInt32, size: int) -> Allowed:
        """Make it of the numbers of the documents, which ascend, uint32."""
        _check_documents("allowed", numbers, size)
        allowed = object.__new__(cls)
        allowed.size, allowed.count = size, len(numbers)
        allowed._mask, allowed._numbers, allowed._bits = None, numbers, None
        return allowed

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes at most: numbers are only asked for where they are few."""
        return self.size + min(4 * self.count, self.size) + self.size // 8

    @property
    def mask(self) -> Bool:
        """Whether each document may be returned, bool (n,)."""
        if self._mask is None:
            self._mask = self._new_mask()
        return self._mask

    def _new_mask(self) -> Bool:
        mask = np.zeros(self.size, np.bool_)
        mask[as_index(self.numbers)] = True
        return mask

    @property
    def numbers(self) -> UInt32:
        """The numbers of those that may, ascending, uint32."""
        if self._numbers is None:
            self._numbers = np.flatnonzero(self.mask).astype(np.uint32)
        return self._numbers

    def bits(self, block_size: int) -> UInt64:
        """Whether each may, a bit each from the lowest on, whole words for each block, uint64.

        ``block_size``, of the segment, is the same each time.
        """
        if self._bits is None:
            # A view of a tenant keeps no mask for them, which is eight times as large.
            mask = self._new_mask() if self._mask is None else self._mask
            firsts = range(0, self.size, block_size)
            bits = np.zeros((len(firsts), -(-min(block_size, self.size) // 64)), "<u8")
            for own, first in zip(bits.view(np.uint8), firsts, strict=True):
                packed = np.packbits(mask[first : first + block_size], bitorder="little")
                own[: len(packed)] = packed
            self._bits = bits.ravel().astype(np.uint64, copy=False)
        return self._bits


class SearchPlan:
    """Which matches are wanted, ``k`` >= 1 at most, of what is ``allowed``, and how to find them.

    ``None`` allows all documents.
    The rest changes no result: ``window`` is how many documents to walk at a time, >= 1,
    ``sparse`` how many times fewer postings than documents are few, ``coarse`` the postings for
    each term and document wanted from which sums may be coarse at first, and ``filtered_first`` how
    many times fewer documents than all may be returned if these are looked at first.
    """

    __slots__ = ("allowed", "coarse", "filtered_first", "k", "prepared", "sparse", "window")

    def __init__(
        self,
        k: int,
        allowed: Allowed | None,
        window: int,
        sparse: int,
        coarse: int,
        filtered_first: int,
    ) -> None:
        require(k >= 1 <= window, "k and window must be at least 1")
        self.k, self.allowed, self.window = k, allowed, window
        self.sparse, self.coarse, self.filtered_first = sparse, coarse, filtered_first
        # What a backend has made of this.
        self.prepared: Any = None


class Matches(NamedTuple):
    """Takes what a search finds; unused cells become -1 and -inf."""

    rows: Int64  # of documents by score descending, then ascending, (q, k)
    scores: Float64  # (q, k)
    counts: Int64  # how many matches each query has, (q,)


class Run(NamedTuple):
    """Postings of some documents, grouped by term; numbers are as narrow as they can be."""

    terms: UInt32  # distinct ones in any order, (u,)
    sizes: UInt32  # how many postings each has, (u,)
    documents: Unsigned  # less ``first``, ascending for each term, uint16 or uint32 (p,)
    tf: Unsigned  # uint8, uint16 or uint32 (p,)
    first: int  # the number of the first document


class PostingsTarget(NamedTuple):
    """Where ``fill`` puts postings."""

    cursors: Int64  # where the next posting of each term goes, (v,); moved on
    documents: UInt16  # takes documents within their blocks
    codes: Unsigned  # takes impact codes, uint16 or uint32
    block_size: int
    # Where the blocks of each term's postings go, (v,), if there are several blocks: -1 - r for row
    # r of ``cells``, else what a posting's place in ``high`` is less.
    targets: Int64
    cells: UInt32  # counts postings by row and block, (m, s)
    high: UInt16  # takes the block of each posting of the other terms


def _check_documents(name: str, numbers: UInt32, size: int) -> None:
    """Check that numbers of documents ascend, and are below ``size``."""
    check_array(name, numbers, np.uint32)
    rises = not len(numbers) or (numbers[-1] < size and (numbers[1:] > numbers[:-1]).all())
    require(bool(rises), f"{name} do not ascend to {size}")


def _check_blocks(file: FileBlocks | None, arrays: Sequence[np.ndarray[Any, Any]]) -> FileBlocks:
    """Check that arrays lie within the blocks of their file."""
    if file is None:
        return FileBlocks(np.empty(0, np.uint8), 1, [0] * len(arrays))
    check_array("flags", file.flags, np.uint8)
    check_array("data", file.data, np.uint8)
    check_array("sums", file.sums, np.uint32)
    require(file.flags.flags.writeable, "the flags cannot be written")
    require(len(file.sums) in (0, len(file.flags)), "not a checksum for each block")
    require(len(file.places) == len(arrays) and file.size >= 1, "not a place for each array")
    for place, array in zip(file.places, arrays, strict=True):
        end = place + array.nbytes if array.nbytes else 0
        require(place >= 0 and end <= len(file.flags) * file.size, "an array is beyond its file")
    return file

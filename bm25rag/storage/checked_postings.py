"""Postings of a file, checked term by term before they are used, or as a whole."""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from itertools import pairwise

import numpy as np

from bm25rag.common.arrays import Float64, Int64, UInt32, Unsigned, as_index
from bm25rag.common.checks import LARGEST_STORED
from bm25rag.common.lazy import lazy_property
from bm25rag.kernels import backend
from bm25rag.kernels.records import PostingsArrays, StripBounds, strip_cells
from bm25rag.segments.doc_blocks import DocBlocks
from bm25rag.segments.postings import STRIP_ARRAYS, VECTORS, Postings, StripRows
from bm25rag.storage.checked_columns import CheckedStringTable
from bm25rag.storage.checksummed_file import ArraysFile, CheckedArray, file_blocks

# Postings that are compared in one step.
AT_ONCE = 1 << 17
_WRONG = {
    "block": "points beyond its block",
    "documents": "does not ascend within the documents",
    "codes": "points beyond the table of codes",
}


class CheckedDocBlocks(DocBlocks):
    """Document blocks of a file; the parameters are those of ``DocBlocks``."""

    def __init__(
        self,
        count: int,
        terms: CheckedArray,
        edges: CheckedArray,
        before: CheckedArray,
        high: CheckedArray,
    ) -> None:
        by_term = edges.values.reshape(len(terms), count - 1)
        super().__init__(count, terms.values, by_term, before.values, high.values)
        self._file_terms, self._file_edges = terms, edges
        self._file_before, self._file_high = before, high

    @property
    def by_posting(self) -> tuple[CheckedArray, CheckedArray]:
        """The arrays that have a part for each posting or block: ``edges`` and ``high``."""
        return self._file_edges, self._file_high

    def check_terms(self, term_count: int) -> None:
        """Check the small arrays."""
        self._file_before.check(0, len(self.before))
        self._file_terms.ascending(term_count, "terms")

    def check_starts(self, number: int, indptr: CheckedArray) -> None:
        """Check what ``starts`` reads for a term."""
        if self.count == 1:
            return
        bounds: memoryview = indptr.values.data
        row, width = self._row_of(number), self.count - 1
        frequency = int(bounds[number + 1]) - int(bounds[number])
        if row >= 0:
            edges = self._file_edges[row * width : (row + 1) * width]
            _check_rising(self._file_edges, edges, frequency)
            return
        nearest = bisect_left(self._terms, number) - 1
        if nearest >= 0:
            indptr.check(self._terms[nearest] + 1, self._terms[nearest] + 2)
        first = self._first_high(number, bounds)
        if not 0 <= first <= first + frequency <= len(self.high):
            raise self._file_before.reject("points beyond the postings")
        _check_rising(self._file_high, self._file_high[first : first + frequency], width)

    def check_between(self, first: int, last: int, indptr: CheckedArray) -> None:
        """Check what ``between`` reads, given that ``indptr`` ascends there."""
        if self.count == 1 or first == last:
            return
        bounds, width = indptr.values, self.count - 1
        low, high = np.searchsorted(self.terms, (first, last)).tolist()
        if low:
            indptr.check(int(self.terms[low - 1]) + 1, int(self.terms[low - 1]) + 2)
        sizes = np.diff(bounds[first : last + 1].astype(np.int64))
        counts = sizes[self.terms[low:high].astype(np.int64) - first]
        start, rest = self._first_high(first, bounds.data), int(sizes.sum() - counts.sum())
        if not 0 <= start <= start + rest <= len(self.high):
            raise self._file_before.reject("points beyond the postings")
        self._file_high.check(start, start + rest)
        edges = self._file_edges[low * width : high * width].reshape(-1, width)
        ends = np.column_stack((edges, counts)).astype(np.int64)
        if np.any(ends[:, 1:] < ends[:, :-1]):
            raise self._file_edges.reject("does not ascend within the postings")

    def check_all(self, indptr: Int64) -> None:
        """Check every array against the postings' bounds."""
        self._file_edges.check(0, self.edges.size)
        high = self._file_high[:]
        counts = np.diff(indptr).take(as_index(self.terms))
        total = int(indptr[-1]) if self.count > 1 else 0
        if len(high) + int(counts.sum()) != total:
            raise self._file_high.reject("does not agree with the postings")
        if not np.array_equal(
            indptr.take(as_index(self.terms)) - (np.cumsum(counts) - counts), self.before
        ):
            raise self._file_before.reject("does not agree with the postings")
        ends = np.column_stack((self.edges, counts)).astype(np.int64)
        if np.any(ends[:, 1:] < ends[:, :-1]):
            raise self._file_edges.reject("does not ascend within the postings")
        if np.any(high >= self.count):
            raise self._file_high.reject("points beyond the blocks")


def _check_row(levels: CheckedArray, start: int, stop: int, ascends: bool) -> None:
    """Check a row of bounds; the kernels say whether its pairs ascend within the strips."""
    levels.check(start, stop)
    if not ascends:
        raise levels.reject("does not ascend within the strips")


def _check_rising(array: CheckedArray, values: Unsigned, limit: int) -> None:
    few = values.tolist()  # of most terms
    if few != sorted(few) or few[-1] > limit:
        raise array.reject("does not ascend within its limit")


class CheckedPostings(Postings):
    """Postings of a file, of which ``terms`` and ``doc_blocks`` have been read already.

    ``tokens`` is the sum of the lengths by field, as the manifest has it. ``file`` is ``None`` once
    everything has been checked.
    """

    file: ArraysFile | None
    # Whether each posting has its own code.
    _is_wide = False

    def __init__(
        self,
        file: ArraysFile,
        terms: CheckedStringTable,
        doc_blocks: CheckedDocBlocks,
        tokens: tuple[int, ...],
    ) -> None:
        self._code_tf = file.array("code_tf", "u4")
        self._code_length = file.array("code_length", "u4", count=len(self._code_tf))
        self._lengths, self._tokens = file.array("lengths", "u4"), tokens
        self._open(file, "", terms, doc_blocks, self._code_length.values, self._lengths.values)

    def _open(
        self,
        file: ArraysFile,
        prefix: str,
        terms: CheckedStringTable,
        doc_blocks: CheckedDocBlocks,
        code_length: UInt32,
        lengths: UInt32,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        """Take the arrays whose names have a prefix in the file."""
        self._indptr = file.array(f"{prefix}indptr", "u4", "u8", count=len(terms) + 1)
        self._documents = file.array(f"{prefix}documents", "u2")
        self._codes = file.array(f"{prefix}codes", "u2", "u4", count=len(self._documents))
        super().__init__(
            terms,
            self._indptr.values,
            self._documents.values,
            doc_blocks,
            self._codes.values,
            self._code_tf.values,
            code_length,
            lengths,
            bounds,
        )
        self.file, self._file_blocks = file, doc_blocks
        self._passed = np.zeros(len(terms), np.uint8).data
        self._pairs_passed = self._arrays_passed = False

    @lazy_property
    def arrays(self) -> PostingsArrays | None:
        """As in ``Postings``; what the kernels do not check has been checked."""
        if self._is_wide:  # they do not check weights
            return None
        self._check_small()
        self.terms.check_keys()
        some = (self._indptr, self._documents, self._codes, *self._file_blocks.by_posting)
        return self._arrays(file_blocks(*some))

    def starts(self, number: int) -> Int64:
        if self.file is None or self._passed[number]:
            return super().starts(number)
        starts = self._check_term(number)
        self._passed[number] = 1
        return starts

    def between(self, first: int, last: int) -> tuple[Int64, UInt32, Unsigned]:
        """Return the postings of consecutive terms, checked as far as a merge relies on it."""
        if self.file is None:
            return super().between(first, last)
        self._check_small()
        bounds = self._indptr[first : last + 1].astype(np.int64)
        if np.any(bounds[1:] <= bounds[:-1]) or bounds[-1] > len(self.documents):
            raise self._indptr.reject("does not ascend within the postings")
        self._documents.check(int(bounds[0]), int(bounds[-1]))
        self._check_codes(int(bounds[0]), int(bounds[-1]))
        self._file_blocks.check_between(first, last, self._indptr)
        sizes, documents, codes = super().between(first, last)
        if int(documents.max(initial=0)) >= len(self.lengths):
            raise self._documents.reject(_WRONG["documents"])
        return sizes, documents, codes

    def _check_codes(self, start: int, stop: int) -> None:
        """Check the codes of some postings."""
        codes = self._codes[start:stop]
        if len(codes) and int(codes.max()) >= len(self.code_tf):
            raise self._codes.reject(_WRONG["codes"])

    def pairs(self) -> tuple[UInt32, UInt32]:
        self._check_small()
        return super().pairs()

    def length_of(self, documents: Unsigned) -> Int64:
        if len(documents):
            self._lengths.check(int(documents.min()), int(documents.max()) + 1)
        return super().length_of(documents)

    def frequencies(self) -> Int64:
        if self.file is not None:
            bounds = self._indptr[:].astype(np.int64)
            self._check_bounds(bounds)
        return super().frequencies()

    def _check_bounds(self, bounds: Int64) -> None:
        if bounds[0] != 0 or bounds[-1] != len(self.documents) or np.any(bounds[1:] <= bounds[:-1]):
            raise self._indptr.reject("does not ascend and cover the postings")

    def _check_term(self, number: int) -> Int64:
        """Check a term, and return where its postings begin."""
        self._check_small()
        start, stop = self._indptr[number : number + 2].tolist()
        if not start < stop <= len(self.documents):
            raise self._indptr.reject("does not ascend within the postings")
        documents = self._documents[start:stop]
        self._file_blocks.check_starts(number, self._indptr)
        starts = super().starts(number)
        limits = self.doc_blocks.size, len(self.lengths)
        wrong = backend.current().find_wrong(documents, starts, *limits)
        if wrong is not None:
            raise self._documents.reject(_WRONG[wrong])
        self._check_codes(start, stop)
        return starts

    def _check_small(self) -> None:
        if self._pairs_passed:
            return
        self._check_pairs()
        self._file_blocks.check_terms(len(self.terms))
        self._pairs_passed = True

    def _check_pairs(self) -> None:
        code_tf, code_length = self._code_tf[:], self._code_length[:]
        if np.any(code_tf < 1) or np.any(code_length < code_tf):
            raise self._code_tf.reject("holds an impossible term frequency")

    def check_arrays(self) -> None:
        if self.file is None or self._arrays_passed:
            return
        self._check_small()
        self._check_bounds(self._indptr[:].astype(np.int64))
        for array in (self._documents, *self._file_blocks.by_posting):
            array.check(0, len(array))
        self._check_codes(0, len(self._codes))
        self._arrays_passed = True

    def check_all(self) -> None:
        if self.file is None:
            return
        self.terms.check_all()
        self.check_arrays()
        bounds = self.indptr.astype(np.int64)
        self._file_blocks.check_all(bounds)
        if self.documents.max(initial=0) >= self.doc_blocks.size:
            raise self._documents.reject(_WRONG["block"])
        documents = self.all_documents()
        ascending = documents[1:] > documents[:-1]
        ascending[bounds[1:-1] - 1] = True  # a new term begins again
        if not ascending.all() or np.any(documents >= len(self.lengths)):
            raise self._documents.reject(_WRONG["documents"])
        self._check_sums(documents)
        self.file = None

    def _check_sums(self, documents: UInt32) -> None:
        """Check that codes and lengths say the same of every document."""
        self._check_lengths(documents)
        if not np.array_equal(self._tokens_of_each(documents, self.code_tf), self.lengths):
            raise self._lengths.reject("does not agree with the postings")
        if (int(self.lengths.sum(dtype=np.int64)),) != self._tokens:
            raise self._lengths.reject("does not agree with the manifest")

    def _tokens_of_each(self, documents: UInt32, of_codes: Unsigned) -> Float64:
        """Add up what the codes of each document stand for, some postings at a time.

        All of them at once would take some 30 bytes of memory each, and two to ten times as long.
        """
        size = len(self.lengths)
        step, tokens = max(AT_ONCE, size), np.zeros(size)
        for first in range(0, len(documents), step):
            some = slice(first, first + step)
            counts = of_codes.take(as_index(self.codes[some]))
            tokens += np.bincount(as_index(documents[some]), counts, size)
        return tokens

    def _check_lengths(self, documents: UInt32) -> None:
        """Check that the codes of each document have its length."""
        self._lengths.check(0, len(self._lengths))
        for first in range(0, len(documents), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            lengths = self.code_length.take(as_index(self.codes[some]))
            if np.any(lengths != self.lengths.take(as_index(documents[some]))):
                raise self._codes.reject("does not agree with the lengths")


class CheckedVectors(CheckedPostings):
    """Postings of vectors in a file, which have weights and no lengths; ``count`` documents."""

    def __init__(
        self, file: ArraysFile, terms: CheckedStringTable, doc_blocks: CheckedDocBlocks, count: int
    ) -> None:
        self._code_tf = file.array(f"{VECTORS}code_weight", "u4")
        self._file_bounds = file.array(f"{VECTORS}bounds", "u4", count=2)
        smallest, largest = self._file_bounds[:].view(np.float32).tolist()
        if not -LARGEST_STORED <= smallest <= largest <= LARGEST_STORED:
            raise self._file_bounds.reject("are no bounds of weights")
        no_lengths = np.zeros(len(self._code_tf), np.uint32), np.zeros(count, np.uint32)
        self._open(file, VECTORS, terms, doc_blocks, *no_lengths, (smallest, largest))
        self._is_wide = self.codes.dtype == np.uint32
        if self._is_wide and len(self._code_tf) != len(self.codes):
            raise self._code_tf.reject("has not a weight for each posting")
        _, self._cells = strip_cells(count, doc_blocks.size)
        if any(name in file for name in STRIP_ARRAYS):
            self._row_terms = file.array(STRIP_ARRAYS[0], "u4")
            self._levels = file.array(STRIP_ARRAYS[1], "u1")
            self._offsets = file.array(STRIP_ARRAYS[2], "u4", "u8", count=len(self._row_terms) + 1)
            rows = self._row_terms.values, self._levels.values, self._offsets.values
            self.rows = StripRows(*rows)

    @lazy_property
    def strips(self) -> StripBounds | None:
        """As in ``Postings``; a row is checked when a search asks for it."""
        if self.rows is None:
            return None
        starts = self._indptr[:].take(as_index(self._checked_rows().terms))
        if np.any(starts[1:] <= starts[:-1]):
            raise self._indptr.reject("does not ascend within the postings")
        return self._strips(partial(_check_row, self._levels))

    def length_of(self, documents: Unsigned) -> Int64:
        return np.zeros(len(documents), np.int64)

    def _check_pairs(self) -> None:
        if not self._is_wide:
            self._check_weights(0, len(self._code_tf))

    def _check_codes(self, start: int, stop: int) -> None:
        if not self._is_wide:
            super()._check_codes(start, stop)
            return
        if not np.array_equal(self._codes[start:stop], np.arange(start, stop)):
            raise self._codes.reject("does not number the postings")
        self._check_weights(start, stop)

    def _check_weights(self, start: int, stop: int) -> None:
        assert self.bounds is not None
        weights = self._code_tf[start:stop].view(np.float32)
        smallest, largest = self.bounds
        if not np.all((weights >= smallest) & (weights <= largest) & (weights != 0)):
            raise self._code_tf.reject("holds an impossible weight")

    def _check_sums(self, documents: UInt32) -> None:
        """Check that bounds and rows are those of the weights; there are no lengths."""
        weights = self.code_tf.view(np.float32)
        if self.bounds != (float(weights.min()), max(float(weights.max()), 0.0)):
            raise self._file_bounds.reject("are not those of the weights")
        if self.rows is not None:
            self._check_rows(self.bounds)

    def _check_rows(self, bounds: tuple[float, float]) -> None:
        from bm25rag.segments.strip_rows import RowMaker  # few segments have rows

        terms, _, offsets = self._checked_rows()
        weights = None if self._is_wide else self.code_tf
        maker = RowMaker(weights, bounds, len(self.lengths), self.doc_blocks.size)
        if not maker.fits:
            raise self._levels.reject("belongs to weights that are not all positive")
        for number, (start, stop) in zip(terms.tolist(), pairwise(offsets.tolist()), strict=True):
            row = maker.like(self, number, stop - start)
            if not np.array_equal(self._levels[start:stop], row):
                raise self._levels.reject("does not agree with the weights")

    def _checked_rows(self) -> StripRows:
        """Return the rows, of which a search may ask for any."""
        terms = self._row_terms.ascending(len(self.terms), "terms")
        offsets = self._offsets[:].astype(np.int64)
        sizes = np.diff(offsets)
        are_pairs = (sizes > 0) & (sizes < self._cells) & (sizes % 2 == 0)
        if offsets[0] != 0 or offsets[-1] != len(self._levels):
            raise self._offsets.reject("does not cover the rows")
        if not np.all(are_pairs | (sizes == self._cells)):
            raise self._offsets.reject("has an impossible row")
        return StripRows(terms, self._levels.values, self._offsets.values)

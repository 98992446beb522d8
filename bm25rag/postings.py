"""The CSC store: for every term its documents, ascending, with an impact code each.

An impact code numbers a distinct pair (tf, |d|). A corpus holds few of them, so a
posting takes (mostly) 16 bits of it, and every score the corpus can give is a small
table of f(tf, |d|), recomputed when a parameter or a statistic changes, times one
idf per term. A document number takes 16 bits too: documents are counted within
stripes of 65,536, and ``stripes`` says where the postings of each begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from bm25rag._types import Bool, Int64, UInt16, UInt32, Unsigned
from bm25rag.columns import Guard
from bm25rag.joining import JoinedTerms
from bm25rag.kernels import backend
from bm25rag.kernels.boundary import CodedRun, Run
from bm25rag.spelling import Spelling
from bm25rag.stripes import Stripes, cut, pointer_type, spans, stripe_count
from bm25rag.tables import StringTable, build_table
from bm25rag.turns import in_turns

# Most codes that 16-bit arrays hold; tests set it small.
NARROW = 65_536
# Cells (tf, |d|) of the largest grid in which pairs are numbered; beyond it they are sorted.
_LARGEST_GRID = 1 << 24
# Postings that are compared at a time.
_AT_ONCE = 1 << 17


class Postings:
    """Immutable postings of the n documents of one segment.

    Parameters
    ----------
    terms
        The V terms.
    indptr
        Where each term's postings begin, (V + 1,), unsigned.
    documents
        Document numbers within their stripes, ascending for each term and stripe, (P,), uint16.
    stripes
        Which stripe each posting is in.
    codes
        Impact codes, (P,), uint16 or uint32.
    code_tf, code_length
        The pair (tf, |d|) that each code stands for, (C,), uint32, sorted.
    lengths
        |d| of every document, (n,), uint32.
    guard
        Who checks the arrays before their first use, if they come from a file.
    """

    def __init__(
        self,
        terms: StringTable,
        indptr: Unsigned,
        documents: UInt16,
        stripes: Stripes,
        codes: Unsigned,
        code_tf: UInt32,
        code_length: UInt32,
        lengths: UInt32,
        guard: Guard | None = None,
    ) -> None:
        self.terms, self.indptr = terms, indptr
        self.documents, self.stripes, self.codes = documents, stripes, codes
        self.code_tf, self.code_length, self.lengths = code_tf, code_length, lengths
        self.guard = guard
        self._bounds = self.indptr.data
        self._checked = np.zeros(0 if self.guard is None else len(self.terms), np.uint8).data
        self._small_checked = False

    def __reduce__(self) -> tuple[type[Postings], tuple[object, ...]]:
        self.check_all()
        arrays = (self.codes, self.code_tf, self.code_length, self.lengths)
        return Postings, (self.terms, self.indptr, self.documents, self.stripes, *arrays)

    def find(self, term: bytes) -> Int64:
        """Return where the postings of a term begin in each of s stripes, and where they end.

        Returns
        -------
        starts
            Places in ``documents`` and ``codes``, ascending, int64 (s + 1,); all equal if
            no document contains the term.

        Raises
        ------
        CorruptIndexError
            If the postings come from a file that is damaged there.
        """
        number = self.terms.find(term)
        if number < 0:
            return np.zeros(self.stripes.count + 1, np.int64)
        if (guard := self.guard) is not None and not self._checked[number]:
            self._check(guard, number)
            self._checked[number] = 1
        return self.stripes.starts(number, self._bounds)

    def documents_of(self, starts: Int64) -> Int64:
        """Return the documents of a term that ``find`` has found, ascending, int64."""
        documents = self.documents[starts[0] : starts[-1]].astype(np.int64)
        if self.stripes.count > 1:
            documents += np.repeat(self.stripes.firsts, np.diff(starts))
        return documents

    def all_documents(self) -> UInt32:
        """Return the document of every posting, uint32 (P,); the postings have been checked."""
        documents, indptr = self.documents.astype(np.uint32), self.indptr.astype(np.int64)
        for first, last in spans(indptr):
            documents[indptr[first] : indptr[last]] = self._documents_between(first, last, indptr)
        return documents

    def _documents_between(self, first: int, last: int, indptr: Int64) -> UInt32:
        """Return the document of every posting of the terms from ``first`` to before ``last``."""
        documents = self.documents[indptr[first] : indptr[last]].astype(np.uint32)
        if self.stripes.count > 1:
            stripe = self.stripes.between(first, last, indptr)
            documents += stripe * np.uint32(self.stripes.size)
        return documents

    def runs(self, numbers: UInt32, living: Bool | None, offset: int) -> Iterator[Run]:
        """Yield all postings of living documents, those of some terms at a time.

        Parameters
        ----------
        numbers
            The new number of each term.
        living
            Which documents live; ``None``: all.
        offset
            The new number of the first of them.
        """
        indptr, new = self.indptr.astype(np.int64), None
        if living is not None:
            new = np.cumsum(living, dtype=np.uint32) - np.uint32(1)
        for first, last in spans(indptr):
            terms = np.repeat(numbers[first:last], np.diff(indptr[first : last + 1]))
            documents = self._documents_between(first, last, indptr)
            codes = self.codes[indptr[first] : indptr[last]]
            if living is not None and new is not None:
                kept = living[documents]
                terms, codes, documents = terms[kept], codes[kept], new[documents[kept]]
            yield Run(terms, documents + np.uint32(offset), self.code_tf[codes])

    def _check(self, guard: Guard, number: int) -> None:
        self._check_small(guard)
        guard.check("indptr", number, number + 2)
        start, stop = self._bounds[number], self._bounds[number + 1]
        if not start < stop <= len(self.documents):
            raise guard.reject("indptr", "does not ascend within the postings")
        guard.check("documents", start, stop)
        guard.check("codes", start, stop)
        self.stripes.check(guard, number, self._bounds)
        self._check_stripe(guard, self.documents[start:stop])
        documents = self.documents_of(self.stripes.starts(number, self._bounds))
        if not np.all(documents[1:] > documents[:-1]) or int(documents[-1]) >= len(self.lengths):
            raise guard.reject("documents", "does not ascend within the documents")
        if int(self.codes[start:stop].max()) >= len(self.code_tf):
            raise guard.reject("codes", "points beyond the table of codes")

    def _check_stripe(self, guard: Guard, documents: UInt16) -> None:
        if documents.max(initial=0) >= self.stripes.size:
            raise guard.reject("documents", "points beyond its stripe")

    def check_all(self) -> None:
        """Check everything that the guard has not yet passed.

        Raises
        ------
        CorruptIndexError
            If the postings come from a file that is damaged.
        """
        guard = self.guard
        if guard is None:
            return
        self.terms.check_all()
        self._check_small(guard)
        for name in ("indptr", "documents", "codes", "lengths"):
            guard.check(name, 0, len(getattr(self, name)))
        bounds = self.indptr.astype(np.int64)
        if bounds[0] != 0 or bounds[-1] != len(self.documents) or np.any(bounds[1:] <= bounds[:-1]):
            raise guard.reject("indptr", "does not ascend and cover the postings")
        self.stripes.check_all(guard, bounds)
        self._check_stripe(guard, self.documents)
        documents = self.all_documents()
        ascending = documents[1:] > documents[:-1]
        ascending[bounds[1:-1] - 1] = True  # a new term begins again
        if not ascending.all() or np.any(documents >= len(self.lengths)):
            raise guard.reject("documents", "does not ascend within the documents")
        if np.any(self.codes >= len(self.code_tf)):
            raise guard.reject("codes", "points beyond the table of codes")
        for first in range(0, len(documents), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            own = self.code_length.take(self.codes[some])
            if np.any(own != self.lengths.take(documents[some])):
                raise guard.reject("codes", "does not agree with the lengths")
        tokens = np.bincount(
            documents, weights=self.code_tf[self.codes], minlength=len(self.lengths)
        )
        if not np.array_equal(tokens, self.lengths):
            raise guard.reject("lengths", "does not agree with the postings")
        self.guard = None

    def pairs(self) -> tuple[UInt32, UInt32]:
        """Return tf and |d| of every code, checked; (C,), uint32."""
        if self.guard is not None:
            self._check_small(self.guard)
        return self.code_tf, self.code_length

    def _check_small(self, guard: Guard) -> None:
        if self._small_checked:
            return
        guard.check("code_tf", 0, len(self.code_tf))
        guard.check("code_length", 0, len(self.code_length))
        if np.any(self.code_tf < 1) or np.any(self.code_length < self.code_tf):
            raise guard.reject("code_tf", "holds an impossible term frequency")
        self.stripes.check_terms(guard, len(self.terms))
        self._small_checked = True

    def length_of(self, documents: Unsigned) -> Int64:
        """Return |d| of some documents, checked, int64."""
        guard = self.guard
        if guard is not None and len(documents):
            guard.check("lengths", int(documents.min()), int(documents.max()) + 1)
        return self.lengths[documents].astype(np.int64)

    @cached_property
    def spelling(self) -> Spelling:
        """The terms, to be found by how they are spelt; made when first asked for."""
        return Spelling(self.terms.column)

    def frequencies(self) -> Int64:
        """Return how many postings each term has, (V,), int64."""
        bounds = self.indptr.astype(np.int64)
        return bounds[1:] - bounds[:-1]

    def term_numbers(self) -> UInt32:
        """Return the term of every posting, (P,), uint32."""
        counts = self.frequencies()
        return np.repeat(np.arange(len(self.terms), dtype=np.uint32), counts)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, the terms' included."""
        arrays = (self.indptr, self.documents, self.codes, self.code_tf, self.code_length)
        terms = self.terms.column.nbytes + self.terms.keys.nbytes
        return sum(part.nbytes for part in (*arrays, self.stripes, self.lengths)) + terms


class Terms(Protocol):
    """The terms in the numbering of some runs."""

    def __len__(self) -> int: ...

    def table(self, used: Int64) -> tuple[StringTable, Int64 | UInt32]:
        """Make the table of some terms; and return where each of ``used`` went."""


class TermList(list[bytes]):
    """Distinct terms in any order."""

    def table(self, used: Int64) -> tuple[StringTable, UInt32]:
        """Make the table of some terms; and return where each of ``used`` went."""
        return build_table([self[number] for number in in_turns(used.tolist())])


def build_postings(terms: Terms, runs: Sequence[Run], lengths: UInt32) -> Postings:
    """Make the store of some documents.

    Peak memory beyond the result is 4 bytes a posting and a few arrays of the size of the
    longest run.

    Parameters
    ----------
    terms
        The terms in the numbering of the runs; those that no run has are left out.
    runs
        The postings; of one term, a later run has only later documents.
    lengths
        |d| of every document, uint32.
    """
    hot = backend.current()
    frequencies = np.zeros(len(terms), np.int64)
    for run in runs:
        hot.tally(run.terms, frequencies)
    used = np.flatnonzero(frequencies)
    table, ranks = terms.table(used)
    ordered = np.zeros(len(table), np.int64)
    ordered[ranks] = frequencies[used]
    indptr = np.concatenate(([0], np.cumsum(ordered)))

    pairs, run_codes = _encode_pairs(runs, lengths)
    documents = np.empty(indptr[-1], np.uint16 if stripe_count(len(lengths)) == 1 else np.uint32)
    codes = np.empty(indptr[-1], np.uint16 if len(pairs) <= NARROW else np.uint32)
    cursors = np.zeros(len(terms), np.int64)
    cursors[used] = indptr[ranks]
    for run, own in zip(runs, run_codes, strict=True):
        hot.fill(CodedRun(run.terms, run.documents, own), cursors, documents, codes)
    low, stripes = cut(documents, indptr, len(lengths))
    return Postings(
        table,
        indptr.astype(pointer_type(indptr)),
        low,
        stripes,
        codes,
        (pairs >> np.uint64(32)).astype(np.uint32),
        pairs.astype(np.uint32),
        lengths,
    )


def _encode_pairs(runs: Sequence[Run], lengths: UInt32) -> tuple[Unsigned, Iterable[UInt32]]:
    """Give the pairs (tf, |d|) numbers in their order.

    Returns
    -------
    pairs
        ``tf << 32 | |d|`` of every code, uint64.
    codes
        The codes of each run, uint32; made one by one, as they are asked for.
    """
    tallest, longest = max([int(run.tf.max(initial=0)) for run in runs], default=0), 0
    if len(lengths):
        longest = int(lengths.max())
    if (tallest + 1) * (longest + 1) > _LARGEST_GRID:
        keys = [run.tf.astype(np.uint64) << np.uint64(32) | lengths[run.documents] for run in runs]
        pairs = _distinct(np.concatenate([_distinct(own) for own in keys]))
        return pairs, (np.searchsorted(pairs, own).astype(np.uint32) for own in keys)
    width = np.uint32(longest + 1)
    cells = [run.tf * width + lengths[run.documents] for run in runs]
    present = np.zeros((tallest + 1) * (longest + 1), np.bool_)
    for own in cells:
        present[own] = True
    used = np.flatnonzero(present).astype(np.uint64)
    code_of = np.empty(len(present), np.uint32)
    code_of[used] = np.arange(len(used), dtype=np.uint32)
    pairs = (used // width << np.uint64(32)) | used % width
    return pairs, (code_of[own] for own in cells)


def _distinct(values: Unsigned) -> Unsigned:
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))[: ordered.size]]


def merge_postings(parts: Iterable[tuple[Postings, Bool | None]]) -> Postings:
    """Join the stores of consecutive segments, without the documents that have gone.

    Parameters
    ----------
    parts
        A store and which of its documents live (``None``: all), in document order.
    """
    stores = list(parts)
    for postings, _ in stores:
        postings.check_all()
    terms = JoinedTerms([postings.terms for postings, _ in stores])
    runs: list[Run] = []
    lengths: list[UInt32] = []
    offset = 0
    for (postings, living), own in zip(stores, terms.numbers, strict=True):
        runs.extend(postings.runs(own, living, offset))
        lengths.append(postings.lengths if living is None else postings.lengths[living])
        offset += len(lengths[-1])
    return build_postings(terms, runs, np.concatenate(lengths))

"""Postings: for every term its documents, ascending, each with an impact code.

An impact code numbers a distinct pair (tf, |d|). A corpus has few of them, so a code
mostly takes 16 bits, and every score that the corpus can give is an entry of a small
table of f(tf, |d|), which is computed anew when a parameter or a statistic changes,
times one idf per term. A document number takes 16 bits too: documents are counted
within blocks of 65,536, and ``doc_blocks`` says where the postings of each begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from bm25rag.columns.string_table import StringTable
from bm25rag.common.arrays import Bool, Float64, Int64, UInt8, UInt16, UInt32, Unsigned, as_index
from bm25rag.common.lazy import lazy_property
from bm25rag.kernels.records import FileBlocks, PostingsArrays, Run, StripBounds
from bm25rag.segments.doc_blocks import DocBlocks, spans

if TYPE_CHECKING:
    from bm25rag.segments.similar_terms import Spelling
    from bm25rag.segments.text_fields import TextFields

# Keeps some of the postings of consecutive terms, which are as ``Postings.between`` returns them.
Keep: TypeAlias = Callable[[Int64, UInt32, Unsigned], tuple[Int64, UInt32, Unsigned]]

# How many postings are walked in the time in which a strip is looked at; and from how many postings
# of a question on, for each match wanted, bounds pay. Measured at 1 to 8.8 million vectors: with
# 10,000 a search takes a tenth to a fifth longer, with 100,000 half of the time.
STRIP_COST, STRIPS_WORTH = 400, 32_000

# What the names of arrays of vectors begin with in a file.
VECTORS = "vectors."
# Those of ``StripRows`` there.
STRIP_ARRAYS = tuple(f"{VECTORS}strips.{name}" for name in ("terms", "levels", "offsets"))


class StripRows(NamedTuple):
    """The numbers of the terms with rows, ascending; the rows, and where each begins.

    A row of ``cells`` bytes has a level for each strip, see ``strip_levels``. Others have pairs:
    how many strips to go further on, at first from strip 0, and the level there, which is 0 only
    if the next strip with the term is too far away.
    """

    terms: UInt32
    levels: UInt8
    offsets: Unsigned

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return sum(array.nbytes for array in self)


class Postings:
    """Immutable postings of the n documents of one segment, with V ``terms``.

    ``indptr`` is where each term's postings begin, (V + 1,), unsigned. ``documents`` are numbers
    within blocks, ascending for each term and block, (P,), uint16; ``doc_blocks`` says which block
    each posting is in. ``codes`` are impact codes, (P,), uint16 or uint32, ``code_tf`` and
    ``code_length`` the pair (tf, |d|) that each stands for, (C,), uint32, sorted; ``lengths`` is
    |d| of every document, (n,), uint32. If codes stand for weights, see ``vectors_builder``,
    ``bounds`` are the least and the largest, and ``rows`` bounds of them, if walking takes time. If
    texts have fields, ``text_fields`` says what numbers in place of tf and |d| stand for.
    """

    def __init__(
        self,
        terms: StringTable,
        indptr: Unsigned,
        documents: UInt16,
        doc_blocks: DocBlocks,
        codes: Unsigned,
        code_tf: UInt32,
        code_length: UInt32,
        lengths: UInt32,
        bounds: tuple[float, float] | None = None,
        text_fields: TextFields | None = None,
        rows: StripRows | None = None,
    ) -> None:
        self.terms = terms
        self.indptr = indptr
        self.documents = documents
        self.doc_blocks = doc_blocks
        self.codes = codes
        self.code_tf = code_tf
        self.code_length = code_length
        self.lengths = lengths
        self.bounds = bounds
        self.text_fields = text_fields
        self._places = indptr.data
        self.rows = rows

    def __reduce__(self) -> tuple[type[Postings], tuple[object, ...]]:
        self.check_all()
        arrays = (self.codes, self.code_tf, self.code_length, self.lengths)
        rest = (*arrays, self.bounds, self.text_fields, self.rows)
        return Postings, (self.terms, self.indptr, self.documents, self.doc_blocks, *rest)

    @lazy_property
    def arrays(self) -> PostingsArrays | None:
        """What the kernels find terms in; ``None`` if they do not take it."""
        return self._arrays(None)

    def _arrays(self, file: FileBlocks | None) -> PostingsArrays | None:
        strings, blocks = self.terms.column.strings, self.doc_blocks
        if strings is None or self.indptr.dtype != np.uint32 or blocks.before.dtype != np.uint32:
            return None
        return PostingsArrays(
            strings,
            self.terms.keys,
            self.indptr,
            self.documents,
            self.codes,
            len(self.code_tf),
            len(self.lengths),
            blocks.size,
            blocks.terms,
            blocks.edges,
            blocks.before,
            blocks.high,
            file,
        )

    @lazy_property
    def strips(self) -> StripBounds | None:
        """The rows as a search takes them."""
        return self._strips(None)

    def _strips(self, check: Callable[[int, int, bool], object] | None) -> StripBounds | None:
        if self.rows is None:
            return None
        terms, levels, offsets = self.rows
        starts = self.indptr.take(as_index(terms)).astype(np.int64)
        rows = starts, levels, offsets.astype(np.int64)
        sizes = len(self.lengths), self.doc_blocks.size, len(self.documents)
        return StripBounds(*sizes, *rows, STRIP_COST, STRIPS_WORTH, check)

    def find(self, term: bytes) -> Int64:
        """Return where the postings of a term begin in each of s blocks, and where they end.

        These are places in ``documents`` and ``codes``, ascending, int64 (s + 1,); all equal if no
        document contains the term. A ``CorruptIndexError`` says that the file is damaged there. The
        kernels do the same (``lookup``) where all that they read is known to be right.
        """
        number = self.terms.find(term)
        if number < 0:
            return np.zeros(self.doc_blocks.count + 1, np.int64)
        return self.starts(number)

    def starts(self, number: int) -> Int64:
        """Return the same for a term by its number; raise as ``find``."""
        return self.doc_blocks.starts(number, self._places)

    def documents_of(self, starts: Int64) -> Int64:
        """Return the documents of a term, given its ``starts``, ascending, int64."""
        documents = self.documents[starts[0] : starts[-1]].astype(np.int64)
        if self.doc_blocks.count > 1:
            documents += np.repeat(self.doc_blocks.firsts, as_index(np.diff(starts)))
        return documents

    def place_of(self, number: int, starts: Int64) -> int | None:
        """Return where the posting of a document is, given a term's ``starts``, if it has one."""
        documents = self.documents_of(starts)
        place = int(np.searchsorted(documents, number))
        is_there = place < len(documents) and documents[place] == number
        return int(starts[0]) + place if is_there else None

    def all_documents(self) -> UInt32:
        """Return the document of every posting, uint32 (P,); the postings have been checked."""
        documents, indptr = self.documents.astype(np.uint32), self.indptr.astype(np.int64)
        for first, last in spans(indptr):
            documents[indptr[first] : indptr[last]] = self._documents_between(first, last)
        return documents

    def between(self, first: int, last: int) -> tuple[Int64, UInt32, Unsigned]:
        """Return the postings of the terms from ``first`` to before ``last``; raise as ``find``.

        These are the number of each term's, int64, their documents, uint32, and their codes.
        """
        bounds = self.indptr[first : last + 1].astype(np.int64)
        codes = self.codes[bounds[0] : bounds[-1]]
        return np.diff(bounds), self._documents_between(first, last), codes

    def _documents_between(self, first: int, last: int) -> UInt32:
        """Return the document of every posting of the terms from ``first`` to before ``last``."""
        start, stop = int(self.indptr[first]), int(self.indptr[last])
        documents = self.documents[start:stop].astype(np.uint32)
        if self.doc_blocks.count > 1:
            doc_block = self.doc_blocks.between(first, last, self.indptr)
            documents += doc_block * np.uint32(self.doc_blocks.size)
        return documents

    def runs(
        self, numbers: UInt32, keep: Keep | None, first: int = 0, offset: int = 0
    ) -> Iterator[Run]:
        """Yield the postings of consecutive terms from ``first`` on, those of a few at a time.

        ``numbers`` has the new number of each of the terms. ``keep`` keeps some postings, say those
        of living documents, which are numbered from ``offset``; ``None``: all. In place of tf, a
        run has codes. It raises what ``find`` does.
        """
        for start, stop in spans(self.indptr[first : first + len(numbers) + 1]):
            postings = self.between(first + start, first + stop)
            sizes, documents, codes = postings if keep is None else keep(*postings)
            yield Run(numbers[start:stop], sizes.astype(np.uint32), documents, codes, offset)

    def check_arrays(self) -> None:
        """Check that postings and their places are as written, with codes that there are.

        Whether they are in order is not checked, which takes most of the time of ``check_all``.
        """

    def check_all(self) -> None:
        """Check everything that comes from a file; raise ``CorruptIndexError``."""

    def pairs(self) -> tuple[UInt32, UInt32]:
        """Return tf and |d| of every code, (C,), uint32; raise as ``find``."""
        return self.code_tf, self.code_length

    def weighted_pairs(self, weights: Sequence[float]) -> tuple[Float64, Float64]:
        """Return tf and |d| of every code under weights of the fields; raise as ``find``."""
        tf, lengths = self.pairs()
        if self.text_fields is None:
            return tf.astype(np.float64), lengths.astype(np.float64)
        return self.text_fields.weigh(tf, lengths, weights)

    def weighted_tf(self, weights: Sequence[float]) -> UInt32 | Float64:
        """Return tf of every code, with fields the weighted one; raise as ``find``."""
        tf, _ = self.weighted_pairs(weights) if self.text_fields is not None else self.pairs()
        return tf

    def tokens_of(self, documents: Unsigned) -> tuple[int, ...]:
        """Return how many terms some documents have in each field; raise as ``find``."""
        lengths = self.length_of(documents)
        if self.text_fields is None:
            return (int(lengths.sum()),)
        return self.text_fields.tokens(lengths)

    def length_of(self, documents: Unsigned) -> Int64:
        """Return |d| of some documents, int64; raise as ``find``."""
        return self.lengths.take(as_index(documents)).astype(np.int64)

    @lazy_property
    def spelling(self) -> Spelling:
        """Finds terms by their spelling; made when it is first needed."""
        from bm25rag.segments.similar_terms import Spelling  # to correct queries only

        return Spelling(self.terms.column)

    def frequencies(self) -> Int64:
        """Return how many postings each term has, (V,), int64."""
        bounds = self.indptr.astype(np.int64)
        return bounds[1:] - bounds[:-1]

    def term_numbers(self) -> UInt32:
        """Return the term of every posting, (P,), uint32."""
        counts = self.frequencies()
        return np.repeat(np.arange(len(self.terms), dtype=np.uint32), as_index(counts))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, the terms' included."""
        arrays = (self.indptr, self.documents, self.codes, self.code_tf, self.code_length)
        terms = self.terms.column.nbytes + self.terms.keys.nbytes
        own = sum(array.nbytes for array in (*arrays, self.doc_blocks, self.lengths)) + terms
        own += 0 if self.rows is None else self.rows.nbytes
        return own if self.text_fields is None else own + self.text_fields.nbytes


class LivingPostings:
    """Keeps the postings of living documents, and gives these their ranks among the living."""

    def __init__(self, living: Bool) -> None:
        self._living = living
        self._ranks = np.cumsum(living, dtype=np.uint32) - np.uint32(1)

    def __call__(
        self, sizes: Int64, documents: UInt32, codes: Unsigned
    ) -> tuple[Int64, UInt32, Unsigned]:
        """Return the same of some terms, as from ``Postings.between``."""
        lives = self._living.take(as_index(documents))
        ends = np.cumsum(np.concatenate(([False], lives)))[np.cumsum(sizes)]
        return np.diff(ends, prepend=0), self._ranks.take(as_index(documents[lives])), codes[lives]

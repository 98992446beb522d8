"""Postings of a file whose texts have fields, or several analyses."""

from __future__ import annotations

import numpy as np

from bm25rag.common.arrays import Bool, Int64, UInt32, Unsigned, as_index
from bm25rag.segments.text_fields import TextFields
from bm25rag.segments.view import add_tokens
from bm25rag.storage.checked_columns import CheckedColumn, CheckedStringTable
from bm25rag.storage.checked_postings import AT_ONCE, CheckedDocBlocks, CheckedPostings
from bm25rag.storage.checksummed_file import ArraysFile


class CheckedFieldPostings(CheckedPostings):
    """Postings whose codes stand for pairs of numbers; see ``segments/text_fields.py``."""

    def __init__(
        self,
        file: ArraysFile,
        terms: CheckedStringTable,
        doc_blocks: CheckedDocBlocks,
        tokens: tuple[int, ...],
    ) -> None:
        super().__init__(file, terms, doc_blocks, tokens)
        names = _read_names(file)
        self._counts = file.array("text_fields.counts", "u4")
        self._row_lengths = file.array("text_fields.lengths", "u4")
        for name, array in (("counts", self._counts), ("lengths", self._row_lengths)):
            if len(array) % len(names):
                raise file.reject(f"text_fields.{name}", "has not a number for each field")
        tables = (
            array.values.reshape(-1, len(names)) for array in (self._counts, self._row_lengths)
        )
        self.text_fields: TextFields = TextFields(names, *tables)

    def length_of(self, documents: Unsigned) -> Int64:
        self._check_small()
        lengths = super().length_of(documents)
        self._check_numbers(lengths)
        return lengths

    def _check_numbers(self, lengths: Unsigned | Int64) -> None:
        if int(lengths.max(initial=0)) >= len(self.text_fields.lengths):
            raise self._lengths.reject("points beyond the rows of lengths")

    def _check_pairs(self) -> None:
        """Check the rows, and that each code stands for a possible pair of them."""
        for array in (self._counts, self._row_lengths):
            array.check(0, len(array))
        fields = self.text_fields
        if not _ascend(fields.counts) or not np.all(fields.counts.any(axis=1)):
            raise self._counts.reject("does not ascend by rows that are not 0")
        if not _ascend(fields.lengths):
            raise self._row_lengths.reject("does not ascend by rows")
        code_tf, code_length = self._code_tf[:], self._code_length[:]
        if int(code_tf.max(initial=0)) >= max(len(fields.counts), 1):
            raise self._code_tf.reject("points beyond the rows of counts")
        self._check_numbers(code_length)
        counts, lengths = fields.counts[as_index(code_tf)], fields.lengths[as_index(code_length)]
        wrong = bool(np.any(counts > lengths))
        if fields.are_analyses:  # a code is of one alone
            wrong = wrong or not np.array_equal(counts > 0, lengths > 0)
            wrong = wrong or bool(np.any(np.count_nonzero(counts, axis=1) != 1))
        if wrong:
            raise self._code_tf.reject("holds an impossible term frequency")

    def _check_lengths(self, documents: UInt32) -> None:
        """Check that the codes of each document have its length, by their analysis."""
        fields = self.text_fields
        if not fields.are_analyses:
            super()._check_lengths(documents)
            return
        self._lengths.check(0, len(self._lengths))
        analyses = fields.analyses_of(self.code_tf)
        own = fields.lengths[as_index(self.code_length), analyses]
        for first in range(0, len(documents), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            codes = as_index(self.codes[some])
            rows = as_index(self.lengths.take(as_index(documents[some])))
            if np.any(own.take(codes) != fields.lengths[rows, analyses.take(codes)]):
                raise self._codes.reject("does not agree with the lengths")

    def _check_sums(self, documents: UInt32) -> None:
        """Check that codes and lengths say the same of every field of every document."""
        fields = self.text_fields
        self._check_numbers(self._lengths[:])
        self._check_lengths(documents)
        for field in range(len(fields.names)):
            counts = fields.counts[:, field].take(as_index(self.code_tf))
            tokens = self._tokens_of_each(documents, counts)
            if not np.array_equal(tokens, fields.lengths[:, field].take(as_index(self.lengths))):
                raise self._lengths.reject("does not agree with the postings")
        if add_tokens([fields.tokens(self.lengths)]) != self._tokens:
            raise self._lengths.reject("does not agree with the manifest")


def _read_names(file: ArraysFile) -> tuple[str, ...]:
    """Read the names of the fields, which the settings of the index have too."""
    offsets = file.array("text_fields.names.offsets", "u4")
    data = file.array("text_fields.names.data", "u1")
    null = file.array("text_fields.names.null", "b1", count=0)
    count = len(offsets) - 1
    if count < 1:
        raise file.reject("text_fields.names", "has no name")
    names = CheckedColumn(offsets, data, null, count)
    names.check_all()
    names.check_text()  # else an error would name no file
    return tuple([name or "" for name in names.texts(range(count))])


def _ascend(rows: UInt32) -> bool:
    """Whether each row is greater than the one before."""
    rises: Bool = np.zeros(max(len(rows) - 1, 0), np.bool_)
    equal: Bool = ~rises
    for before, after in zip(rows[:-1].T, rows[1:].T, strict=True):
        rises |= equal & (after > before)
        equal &= after == before
    return bool(rises.all())

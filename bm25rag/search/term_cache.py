"""The query terms that a snapshot has seen, by number, with what the kernels need of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bm25rag.common.strings import utf8
from bm25rag.kernels.boundary import TermArrays
from bm25rag.scoring.variants import Parameters
from bm25rag.segments.view import SegmentView

if TYPE_CHECKING:
    from bm25rag.segments.statistics import Statistics

# Limits of the number and the length of remembered terms that no living document contains, because
# clients may send any terms.
MOST_UNKNOWN, _LONGEST_UNKNOWN = 1 << 14, 100


class TermCacheFullError(Exception):
    """A term cache has no numbers left."""


class TermCache(dict[str, int]):
    """Maps a term to its number; to -1 if no living document contains it.

    Missing terms are looked up. A number is assigned once, and its data are written before another
    thread can see it, so threads need no lock: if two threads miss a term at the same time, one
    assigns its number, and the other's number is never used.

    Parameters
    ----------
    views
        The segments of the snapshot.
    parameters
        The variant and its parameters.
    documents
        Number of documents in the statistics.
    capacity
        How many terms can have a number.
    statistics
        Has the document frequencies; ``None`` to count the living documents.
    """

    def __init__(
        self,
        views: Sequence[SegmentView],
        parameters: Parameters,
        documents: int,
        capacity: int,
        statistics: Statistics | None,
    ) -> None:
        self._views = views
        self._statistics = statistics
        self._parameters = parameters
        self._documents = documents
        self.capacity = capacity
        self._next = iter(range(capacity))
        self._unknown: list[str] = []
        self._idf_of: dict[int, np.float32] = {}
        self.idf = np.zeros(capacity, np.float32)
        self.frequencies = np.zeros(capacity, np.int64)
        # For each segment, as ``Postings.find`` gives them.
        self.starts = [
            np.zeros((capacity, view.segment.postings.doc_blocks.count + 1), np.int64)
            for view in views
        ]
        absent = parameters.absent_weight
        self.arrays = [TermArrays(starts, self.idf, absent) for starts in self.starts]

    def numbers(self, terms: Iterable[str]) -> list[int]:
        """Return the numbers of terms.

        Raises
        ------
        TermCacheFullError
            If there are not enough numbers left for the missing terms.
        """
        return list(map(self.__getitem__, terms))

    def __missing__(self, term: str) -> int:
        number = self._look_up(utf8(term))
        if number >= 0:
            # A repeated term must have one number, or its parts of a score would be added apart.
            return self.setdefault(term, number)
        if len(term) <= _LONGEST_UNKNOWN:
            self[term] = number
            self._bound_unknown(term)
        return number

    def _bound_unknown(self, term: str) -> None:
        """Remember an unknown term, and forget all unknown terms if there are too many."""
        unknown = self._unknown
        unknown.append(term)
        if unknown is not self._unknown:  # another thread has just forgotten them
            self.pop(term, None)
        elif len(unknown) > MOST_UNKNOWN:
            self._unknown = []
            for old in unknown:
                self.pop(old, None)

    def _look_up(self, term: bytes) -> int:
        found = [view.segment.postings.find(term) for view in self._views]
        if self._statistics is None:
            pairs = zip(self._views, found, strict=True)
            frequency = sum(view.frequency(starts) for view, starts in pairs)
        else:
            frequency = self._statistics.frequency(term)
        if not frequency:
            return -1
        number = next(self._next, -1)
        if number < 0:
            raise TermCacheFullError
        for table, starts in zip(self.starts, found, strict=True):
            table[number] = starts
        self.frequencies[number] = frequency
        idf = self._idf_of.get(frequency)  # that of a rare term was asked for before
        if idf is None:
            (idf,) = self._parameters.idf(self._documents, np.array([frequency], np.float64))
            self._idf_of[frequency] = idf
        self.idf[number] = idf
        return number

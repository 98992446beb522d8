"""The query terms that a snapshot has seen, by number, with what the kernels need of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bm25rag.common.arrays import Float32
from bm25rag.common.lazy import lazy_property
from bm25rag.common.strings import utf8
from bm25rag.kernels.records import TermArrays
from bm25rag.scoring.variants import Parameters
from bm25rag.segments.view import SegmentView

if TYPE_CHECKING:
    from bm25rag.segments.statistics import Statistics

# Limits of the number and the length of remembered terms that no living document contains, because
# clients may send any terms.
MOST_UNKNOWN, _LONGEST_UNKNOWN = 1 << 14, 100

# Document frequencies of which the idf is computed at once.
_TABLED = 1 << 10


class TermCacheFullError(Exception):
    """A term cache has no numbers left."""


class TermCache(dict[str, int]):
    """Maps a term to its number; to -1 if no living document contains it.

    A number is assigned once, and its data are written before another thread can see it, so
    threads need no lock: if two threads miss a term at the same time, one assigns its number, and
    the other's number is never used.

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
        self.idf = np.zeros(capacity, np.float32)
        self.frequencies = np.zeros(capacity, np.int64)
        # For each segment, as ``Postings.find`` gives them.
        self.starts = [
            np.zeros((capacity, view.segment.postings.doc_blocks.count + 1), np.int64)
            for view in views
        ]
        absent = parameters.absent_weight
        self.arrays = [TermArrays(starts, self.idf, absent) for starts in self.starts]

    @property
    def bytes_per_term(self) -> int:
        """Bytes of the places of one term in all segments."""
        return 8 * sum(table.shape[1] for table in self.starts) + 1

    def larger(self, capacity: int, wanted: int) -> TermCache:
        """Return a cache of another capacity, with the same terms if ``wanted`` more have room."""
        cache = TermCache(
            self._views, self._parameters, self._documents, capacity, self._statistics
        )
        known = {term: number for term, number in self.copy().items() if number >= 0}
        used = max(known.values(), default=-1) + 1
        if used + wanted <= capacity:
            cache.update(known)
            cache._next = iter(range(used, capacity))
            cache.idf[:used], cache.frequencies[:used] = self.idf[:used], self.frequencies[:used]
            for table, own in zip(cache.starts, self.starts, strict=True):
                table[:used] = own[:used]
        return cache

    def numbers(self, terms: Collection[str]) -> list[int]:
        """Return the numbers of terms; those that are missing are looked up.

        Raises
        ------
        TermCacheFullError
            If there are not enough numbers left for the missing terms.
        """
        try:
            return list(map(self.__getitem__, terms))
        except KeyError:
            if not self.capacity:  # as that of a new snapshot, or all would be looked up twice
                raise TermCacheFullError from None
            known = {term: number for term in terms if (number := self.get(term)) is not None}
            found = self._add([term for term in dict.fromkeys(terms) if term not in known]) | known
            return [found[term] for term in terms]

    def _add(self, terms: Sequence[str]) -> dict[str, int]:
        """Look up terms, all at once; return the number of each."""
        numbers: dict[str, int] = dict.fromkeys(terms, -1)
        keys = [utf8(term) for term in terms]
        places = [view.segment.postings.find(keys) for view in self._views]
        if self._statistics is not None:
            frequencies = list(map(self._statistics.frequency, keys))
        else:
            pairs = zip(self._views, places, strict=True)
            counts = [view.count_living(starts) for view, starts in pairs]
            # Without segments, there is nothing to sum.
            frequencies = [sum(own) for own in zip(*counts, strict=True)] or [0] * len(terms)
        for row, (term, frequency) in enumerate(zip(terms, frequencies, strict=True)):
            if not frequency:
                if len(term) <= _LONGEST_UNKNOWN:
                    self[term] = -1
                    self._bound_unknown(term)
                continue
            number = next(self._next, -1)
            if number < 0:
                raise TermCacheFullError
            for table, starts in zip(self.starts, places, strict=True):
                table[number] = starts[row]
            self.frequencies[number], self.idf[number] = frequency, self._idf_of(frequency)
            # A repeated term must have one number, or its parts of a score would be added apart.
            numbers[term] = self.setdefault(term, number)
        return numbers

    @lazy_property
    def _idfs(self) -> Float32:
        """The idf of the least document frequencies, which most terms have, from 1 on."""
        tabled = min(_TABLED, self._documents)
        return self._parameters.idf(self._documents, np.arange(1.0, tabled + 1))

    def _idf_of(self, frequency: int) -> float:
        if frequency <= len(self._idfs):
            return float(self._idfs[frequency - 1])
        return float(self._parameters.idf(self._documents, np.array([float(frequency)]))[0])

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

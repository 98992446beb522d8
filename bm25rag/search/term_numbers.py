"""The query terms that a snapshot has seen, by number, with what the kernels need of each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from bm25rag.common.arrays import Float32, Int64
from bm25rag.common.lazy import lazy_property
from bm25rag.common.strings import utf8
from bm25rag.kernels.records import TermArrays, TermNumbers, TermTable
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


class TermCache(TermNumbers):
    """Maps a term to its number; to -1 if no living document contains it.

    A number is assigned once, and its data are written before another thread can see it, so
    threads need no lock: if two threads miss a term at the same time, one assigns its number, and
    the other's number is never used.

    ``statistics``, of so many ``documents``, have the document frequencies; if they are ``None``,
    living documents are counted. ``capacity`` is how many terms can have a number; those that will
    be copied from another cache have ``used`` some.
    """

    def __init__(
        self,
        views: Sequence[SegmentView],
        parameters: Parameters,
        documents: int,
        capacity: int,
        statistics: Statistics | None,
        used: int = 0,
    ) -> None:
        self._views = views
        self._statistics = statistics
        self._parameters = parameters
        self._documents = documents
        self.capacity = capacity
        self._free = iter(range(used, capacity))
        self._unknown: list[str] = []
        self.idf: Float32 = np.zeros(capacity, np.float32)
        self.frequencies: Int64 = np.zeros(capacity, np.int64)
        # For each segment, as ``Postings.find`` gives them.
        self.starts: list[Int64] = [
            np.zeros((capacity, view.segment.postings.doc_blocks.count + 1), np.int64)
            for view in views
        ]
        absent = parameters.absent_weight
        self.arrays: list[TermArrays] = [
            TermArrays(starts, self.idf, absent) for starts in self.starts
        ]

    @property
    def bytes_per_term(self) -> int:
        """Bytes of the places of one term in all segments."""
        return int(8 * sum(table.shape[1] for table in self.starts) + 1)

    def larger(self, capacity: int, wanted: int) -> TermCache:
        """Return a cache of another capacity, with the same terms if ``wanted`` more have room."""
        known = {term: number for term, number in self.copy().items() if number >= 0}
        used = max(known.values(), default=-1) + 1
        if used + wanted > capacity:
            known, used = {}, 0
        settings = self._parameters, self._documents, capacity, self._statistics, used
        cache = TermCache(self._views, *settings)
        cache.update(known)
        cache.idf[:used], cache.frequencies[:used] = self.idf[:used], self.frequencies[:used]
        for table, own in zip(cache.starts, self.starts, strict=True):
            table[:used] = own[:used]
        return cache

    @lazy_property
    def table(self) -> TermTable | None:
        """Where the kernels look terms up; ``None`` if they cannot."""
        postings = [view.segment.postings.arrays for view in self._views]
        arrays = [own for own in postings if own is not None]
        if not self.capacity or len(arrays) < len(postings):
            return None
        rows = [view.rows for view in self._views] if self._statistics is None else None
        return TermTable(
            arrays, self.arrays, self.frequencies, self.idf, self._idfs, self._free, rows
        )

    def __missing__(self, term: str) -> int:
        """Look up a term that the kernels have left, and return its number."""
        if not self.capacity:  # as that of a new snapshot, or all would be looked up twice
            raise TermCacheFullError
        key = utf8(term)
        starts = [view.segment.postings.find(key) for view in self._views]
        places = np.concatenate([np.empty(0, np.int64), *starts])
        frequency = self.count(term, places)
        if not frequency:
            self.remember_unknown([term])
            return -1
        number = next(self._free, -1)
        if number < 0:
            raise TermCacheFullError
        for table, own in zip(self.starts, starts, strict=True):
            table[number] = own
        self.frequencies[number], self.idf[number] = frequency, self.idf_of(frequency)
        # A repeated term must have one number, or its parts of a score would be added apart.
        return self.setdefault(term, number)

    def count(self, term: str, places: Int64) -> int:
        """Return the document frequency of a term; see ``TermNumbers``."""
        if self._statistics is not None:
            return self._statistics.frequency(utf8(term))
        ends = pairwise(accumulate((table.shape[1] for table in self.starts), initial=0))
        each = zip(self._views, ends, strict=True)
        return sum(view.count_living(places[first:last]) for view, (first, last) in each)

    @lazy_property
    def _idfs(self) -> Float32:
        """The idf of the lowest document frequencies, from 1 on: most terms have one of these."""
        tabled = min(_TABLED, self._documents)
        return self._parameters.idf(self._documents, np.arange(1.0, tabled + 1))

    def idf_of(self, frequency: int) -> float:
        """Return the idf of a term of this document frequency."""
        if frequency <= len(self._idfs):
            return float(self._idfs[frequency - 1])
        return self._parameters.idf_of(self._documents, frequency)

    def remember_unknown(self, terms: Sequence[str]) -> None:
        """Remember terms unless they are long; forget all such terms if there are too many."""
        unknown = self._unknown
        short = [term for term in terms[:MOST_UNKNOWN] if len(term) <= _LONGEST_UNKNOWN]
        unknown += short
        self.update(dict.fromkeys(short, -1))
        if unknown is not self._unknown:  # another thread has just forgotten them
            unknown = [*terms]
        elif len(unknown) > MOST_UNKNOWN:
            self._unknown = []
        else:
            return
        for old in unknown:
            self.pop(old, None)

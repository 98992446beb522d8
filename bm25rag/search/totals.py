"""How many matches a query has, and how many documents of each group: counted when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bm25rag.common.arrays import Int64, as_index
from bm25rag.common.lazy import lazy_property
from bm25rag.kernels.records import Allowed
from bm25rag.search.finding import Finder, Wanted, warn_of_cut
from bm25rag.search.query_terms import RestrictedTerms, Terms
from bm25rag.search.snapshot import Snapshot

if TYPE_CHECKING:
    from bm25rag.search.shaping import Groups


class Totals:
    """The matches of a query, counted.

    Parameters
    ----------
    snapshot, terms, wanted
        As for ``find``.
    rows
        The matches, if they are known.
    """

    def __init__(
        self, snapshot: Snapshot, terms: Terms, wanted: Wanted, rows: Int64 | None = None
    ) -> None:
        self._snapshot, self._terms, self._wanted = snapshot, terms, wanted
        self._known = rows

    @lazy_property
    def _groups(self) -> Groups | None:
        shaping = self._wanted.shaping
        return None if shaping is None else shaping.groups()

    @property
    def total(self) -> int:
        """How many groups there are, or documents in a search without groups."""
        if self._groups is None:
            return len(self._rows)
        sizes, alone = self._sizes
        return int(np.count_nonzero(sizes)) + alone

    def group_size(self, row: int) -> int | None:
        """Return how many documents of a row's group match; ``None`` without groups."""
        if self._groups is None:
            return None
        group = int(self._groups.of(np.array([row]))[0])
        sizes, _ = self._sizes
        # Of a count that was cut, the row's group may be missing.
        return max(1, int(sizes[group])) if 0 <= group < len(sizes) else 1

    @lazy_property
    def _sizes(self) -> tuple[Int64, int]:
        """How many documents each group has, and how many are groups of their own."""
        assert self._groups is not None
        groups = self._groups.of(self._rows)
        shared = groups[groups >= 0]
        return np.bincount(as_index(shared)), len(groups) - len(shared)

    @lazy_property
    def _rows(self) -> Int64:
        if self._known is not None:
            return self._known
        snapshot, terms, wanted = self._snapshot, self._terms, self._wanted
        finder = Finder(snapshot, wanted)
        if not snapshot.count:
            return np.empty(0, np.int64)
        if type(terms) is not RestrictedTerms and wanted.min_score is None and not finder.asks:
            return snapshot.rows_of(self._with_terms(finder))
        ranked = finder.matches(terms).rank(snapshot.count, wanted.min_score, None)
        warn_of_cut([terms])  # the search may have had enough in time
        shaping = wanted.shaping
        return ranked.rows if shaping is None else shaping.matching(ranked, wanted.min_score)

    def _with_terms(self, finder: Finder) -> list[Allowed]:
        """Return the documents that have a term of the query."""
        cache, numbers = self._snapshot.term_numbers(self._terms)
        known = sorted({number for number in numbers if number >= 0})
        matching = []
        for view, mask, starts in zip(
            self._snapshot.views, finder.masks, cache.starts, strict=True
        ):
            has = np.zeros(len(view.segment), np.bool_)
            for number in known:
                has[view.segment.postings.documents_of(starts[number])] = True
            matching.append(Allowed(has if mask is None else has & mask.mask))
        return matching

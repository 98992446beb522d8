"""What searches return: the result of a batch, and how many matches a query has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from bm25rag.common.arrays import Float64, Int64, as_index
from bm25rag.common.lazy import lazy_property
from bm25rag.documents import Hit
from bm25rag.kernels.records import Allowed, Matches
from bm25rag.search.finding import Finder, Wanted, cut_of, warn_of_cut
from bm25rag.search.plain_terms import RestrictedTerms, Terms
from bm25rag.search.snapshot import Snapshot, note_corrections

if TYPE_CHECKING:
    from bm25rag.search.shaping import Groups


@dataclass(eq=False)
class BatchResult:
    """The matches of a batch of q queries, in w = min(k, N - offset) columns, or none.

    ``BM25Index.search_batch`` makes it.

    Parameters
    ----------
    rows
        Rows of the documents, int64 (q, w); -1 in unused cells.
    scores
        Their scores, float64 (q, w); -inf in unused cells.
    counts
        How many cells each query uses, int64 (q,).
    corrections
        What was replaced in each query; empty if the search did not correct queries.
    cut
        The numbers of the queries whose ``timeout`` was over, so that matches may be missing.
    """

    rows: Int64
    scores: Float64
    counts: Int64
    corrections: list[dict[str, str]] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    # The state of the index that was searched, the terms of each query by which words are marked,
    # those by which it was searched, and what was wanted.
    _snapshot: Snapshot = field(init=False)
    _terms: Sequence[Terms] = field(init=False)
    _asked: Sequence[Terms] = field(init=False)
    _wanted: Wanted = field(init=False)

    def ids(self) -> list[list[str]]:
        """Return the ids of the matches of each query."""
        # Most of a thousand hits are other queries' too.
        distinct = np.unique(self.rows[self.rows >= 0])
        id_of = dict(zip(distinct.tolist(), self._snapshot.ids_at(distinct), strict=True))
        used = zip(self.rows.tolist(), self.counts.tolist(), strict=True)
        return [[id_of[row] for row in rows[:count]] for rows, count in used]

    def hits(self) -> list[list[Hit]]:
        """Return the matches of each query as fresh hits."""
        snapshot, wanted, used = self._snapshot, self._wanted, self.rows >= 0
        totals: Sequence[Totals | None] = [None] * len(self.counts)
        if wanted.shaping is not None:
            totals = [totals_of(snapshot, one, wanted) for one in self._asked]
        found = self.rows[used], self.scores[used].tolist(), self.counts.tolist()
        each: list[list[Hit]] = [*snapshot.hits_of_each(*found, self._terms, totals)]
        for hits, corrected in zip(each, self.corrections, strict=False):
            if corrected:
                note_corrections(hits, corrected)
        return each

    def totals(self) -> Int64:
        """Count all matches of each query, those that are not returned too, int64 (q,).

        In a search with ``group``, count groups. For a phrase, all texts that have its words are
        looked at; for a callable as a filter, all matches.
        """
        totals = (Totals(self._snapshot, terms, self._wanted).total for terms in self._asked)
        return np.fromiter(totals, np.int64, len(self.counts))

    def __copy__(self) -> BatchResult:
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a BatchResult cannot be pickled: ids() and hits() read the index that was searched; "
            "pickle what these return, or its arrays rows, scores and counts"
        )

    def _repr_html_(self) -> str:
        from bm25rag.common.tables import table

        id_at = self._snapshot.id_at
        rows = (
            (query, int(count), ", ".join(map(id_at, row[: min(count, 5)].tolist())))
            for query, (row, count) in enumerate(zip(self.rows, self.counts, strict=True))
        )
        return table(repr(self), ("query", "matches", "first ids"), rows, len(self.counts))

    def __repr__(self) -> str:
        queries, width = self.rows.shape
        return f"BatchResult({queries} queries, up to {width} matches each)"


def batch_result(
    snapshot: Snapshot,
    matches: Matches,
    terms: Sequence[Terms],
    wanted: Wanted,
    corrections: list[dict[str, str]] | None = None,
    asked: Sequence[Terms] | None = None,
) -> BatchResult:
    """Return what was found in a snapshot as users get it.

    ``asked`` are the queries, if their terms are no words: those of vectors.
    """
    result = BatchResult(*matches, [] if corrections is None else corrections, cut_of(terms))
    result._snapshot, result._terms, result._wanted = snapshot, terms, wanted
    result._asked = terms if asked is None else asked
    return result


class Totals:
    """The matches of a query, and the documents of each group, counted when asked for.

    ``rows`` are the matches, if they are known.
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


def totals_of(snapshot: Snapshot, terms: Terms, wanted: Wanted) -> Totals | None:
    """Return what counts the documents of groups, in a search with groups."""
    if wanted.shaping is None or wanted.shaping.group is None:
        return None
    return Totals(snapshot, terms, wanted)

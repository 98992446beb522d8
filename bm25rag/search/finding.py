"""Finding the matches of queries: what a search asks for, checked, and its best matches.

A filter is a mask as far as it can be looked up; matches are asked about the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bm25rag.common.checks import check_count, check_real
from bm25rag.common.threads import share
from bm25rag.errors import IncompleteWarning
from bm25rag.kernels import backend
from bm25rag.kernels.records import Allowed, Matches
from bm25rag.search import ranking
from bm25rag.search.plain_terms import RestrictedTerms, Terms, having_parts
from bm25rag.search.ranking import Masks, Ranked
from bm25rag.search.snapshot import Snapshot

if TYPE_CHECKING:
    from bm25rag.decay import DecayLike
    from bm25rag.filters import Filter, FilterSpec
    from bm25rag.search.parts import PartsMatches
    from bm25rag.search.shaping import Shaping


class Wanted(NamedTuple):
    """Which matches of a query are wanted: the best k behind the first ``offset``.

    They pass the filter and reach ``min_score``, where these are not ``None``. With a ``shaping``,
    which lowers scores or groups documents, ``k`` and ``offset`` are of groups.
    """

    k: int
    filter: Filter | None = None
    min_score: float | None = None
    offset: int = 0
    shaping: Shaping | None = None

    @property
    def depth(self) -> int:
        """How many matches to find: those to return, and those before them that are left out."""
        return self.k + self.offset if self.k else 0


def check_wanted(
    snapshot: Snapshot,
    k: int,
    filter: FilterSpec | None,
    min_score: float | None,
    offset: int,
    group: str | None = None,
    per_group: int = 1,
    decay: DecayLike | None = None,
) -> Wanted:
    """Check the arguments that all searches share; raise as ``BM25Index.search``."""
    unshaped = group is None and decay is None and type(per_group) is int and per_group == 1
    are_counts = type(k) is type(offset) is int and k >= 0 <= offset
    if unshaped and are_counts and filter is None and min_score is None:  # most of them
        return _best_of_all(k, offset)
    floor = None if min_score is None else check_real("min_score", min_score, -np.inf, np.inf)
    parsed = parse_filter(filter, snapshot)
    k, offset = check_count("k", k), check_count("offset", offset)
    if unshaped:
        return Wanted(k, parsed, floor, offset)
    from bm25rag.search.shaping import Shaping  # most searches do without

    shaping = Shaping(snapshot, group, per_group, decay)
    is_shaped = group is not None or decay is not None
    return Wanted(k, parsed, floor, offset, shaping if is_shaped else None)


@lru_cache(maxsize=64)
def _best_of_all(k: int, offset: int) -> Wanted:
    return Wanted(k, offset=offset)


def parse_filter(filter: FilterSpec | None, snapshot: Snapshot) -> Filter | None:
    """Parse a filter, and check that documents have the fields that it relies on."""
    if filter is None:  # nothing to import
        return None
    from bm25rag.filters import parse_filter

    parsed = parse_filter(filter)
    # Other parts of a collection may have a field, and nothing has one if it is empty.
    if parsed is not None and parsed.demands and snapshot.count and not snapshot.is_part:
        from bm25rag.search.known_fields import check_demands, fields_of, has_field

        check_demands(parsed.demands, partial(has_field, snapshot), partial(fields_of, snapshot))
    return parsed


def check_threads(threads: int | None) -> int:
    """Return how many threads a search may use, before any work; ``None`` is for one a core."""
    return backend.cores() if threads is None else check_count("threads", threads, least=1)


def find_one(snapshot: Snapshot, terms: Terms, wanted: Wanted) -> tuple[list[int], list[float]]:
    """Find the matches of one query, as ``find`` does: rows and scores, in half the time."""
    k, filter, min_score, offset, shaping = wanted
    restricts = type(terms) is RestrictedTerms
    if (filter is not None and filter.per_document) or shaping is not None or restricts:
        matches = Finder(snapshot, wanted).find(terms)
        warn_of_cut([terms])
        return matches
    masks = snapshot.masks(filter)
    if not offset:
        return ranking.rank_one(snapshot, terms, k, masks, min_score)
    rows, scores = ranking.rank_one(snapshot, terms, wanted.depth, masks, min_score)
    return rows[offset:], scores[offset:]


def find(snapshot: Snapshot, queries: Sequence[Terms], wanted: Wanted, threads: int) -> Matches:
    """Find the matches of each query, in at most so many threads.

    Callables are asked about the matches that pass the rest of the filter, best first, until
    enough have passed. They are asked once about each document, however many queries match it.
    """
    # There are no matches behind the last document; NumPy takes no longer integers than int64.
    finder, first = Finder(snapshot, wanted), min(wanted.offset, snapshot.count)
    single, plain = finder.found_by(queries), queries
    if single:
        plain = list(queries)
        for number in single:
            plain[number] = ()
    if len(single) < len(queries):
        depth, floor = wanted.depth, wanted.min_score
        rows, scores, counts = ranking.rank(snapshot, plain, depth, finder.masks, floor, threads)
        if first:
            rows, scores = rows[:, first:].copy(), scores[:, first:].copy()
            counts = np.maximum(counts - first, 0)
    else:
        shape = len(queries), finder.width
        rows, scores = np.full(shape, -1, np.int64), np.full(shape, -np.inf)
        counts = np.zeros(len(queries), np.int64)

    def fill(number: int) -> None:
        best, their_scores = finder.find(queries[number])
        rows[number, : len(best)], scores[number, : len(best)] = best, their_scores
        counts[number] = len(best)

    if single:
        # Functions of users are called by the calling thread alone.
        share(single, fill, 1 if finder.asks else min(threads, len(single)))
    warn_of_cut(queries)
    return Matches(rows, scores, counts)


def cut_of(queries: Sequence[Terms]) -> list[int]:
    """Return the numbers of the queries whose time was over."""
    return [number for number, one in having_parts(queries).items() if one.cut]


def warn_of_cut(queries: Sequence[Terms]) -> None:
    """Warn if the time of a query was over."""
    if cut_of(queries):
        from bm25rag.common.caller import warn
        from bm25rag.search.query import OVER  # most queries have no parts

        warn(OVER, IncompleteWarning)


class Finder:
    """Finds the matches of queries one by one, where texts, functions or groups decide."""

    masks: tuple[Allowed | None, ...]

    def __init__(self, snapshot: Snapshot, wanted: Wanted) -> None:
        known = asked = None
        if wanted.filter is not None:
            from bm25rag.filters import split  # as in ``Snapshot.masks``

            known, asked = split(wanted.filter)
        self._snapshot, self._wanted, self.masks = snapshot, wanted, snapshot.masks(known)
        self._answers = None if asked is None else _Answers(snapshot, asked)
        self.asks: bool = asked is not None

    @property
    def width(self) -> int:
        """How many matches a query has at most."""
        (k, _, _, offset, shaping), documents = self._wanted, self._snapshot.count
        left = max(documents - offset, 0)
        return min(k, left) if shaping is None or not k else shaping.width(k, left)

    def found_by(self, queries: Sequence[Terms]) -> Sequence[int]:
        """Return the numbers of the queries whose matches it must find."""
        if self.asks or (self._wanted.shaping is not None and self._wanted.k > 0):
            return range(len(queries))
        return [*having_parts(queries)]

    def find(
        self, terms: Terms, snapshot: Snapshot | None = None, ranked_by: Terms | None = None
    ) -> tuple[list[int], list[float]]:
        """Return the rows and scores of the best matches.

        ``snapshot`` has the same documents; ``ranked_by`` is the query that ranks them, if that is
        another one.
        """
        matches = self.matches(terms, snapshot, ranked_by)
        k, _, min_score, offset, shaping = self._wanted
        if not k or not self._snapshot.count:
            return [], []
        if shaping is not None:
            return shaping.results(matches.rank, k, offset, min_score)
        # ``islice`` takes no longer integers than NumPy.
        rows, scores = matches.best(min(k + offset, self._snapshot.count), min_score)
        return rows[offset:], scores[offset:]

    def matches(
        self, terms: Terms, snapshot: Snapshot | None = None, ranked_by: Terms | None = None
    ) -> _PlainMatches | PartsMatches:
        """Return what ranks the matches of a query; as in ``find``."""
        ranked_in = self._snapshot if snapshot is None else snapshot
        by = terms if ranked_by is None else ranked_by
        if type(terms) is not RestrictedTerms:
            return _PlainMatches(ranked_in, by, self.masks, self._answers)
        from bm25rag.search.parts import PartsMatches  # most queries have no parts

        within = self._snapshot, self.masks, self._answers
        return PartsMatches(ranked_in, by, terms, *within)


class _PlainMatches(NamedTuple):
    """The matches of a query without parts."""

    snapshot: Snapshot
    terms: Terms
    masks: Masks
    answers: _Answers | None

    def rank(self, width: int, floor: float | None, among: Filter | None) -> Ranked:
        """Rank so many of at least that score among the documents that pass a filter.

        There are fewer where functions reject some.
        """
        snapshot, terms, masks, answers = self
        if among is not None:
            masks = snapshot.narrowed(masks, among)
        best, their_scores = ranking.rank_one(snapshot, terms, width, masks, floor)
        complete = len(best) < width or width >= snapshot.count
        rows, scores = np.array(best, np.int64), np.array(their_scores, np.float64)
        if answers is not None:
            # What is behind the last of the ranking is behind the last that passes, too.
            passing = np.array([answers[row] for row in best], np.bool_)
            rows, scores = rows[passing], scores[passing]
        return Ranked(rows, scores, complete)

    def best(self, depth: int, floor: float | None) -> tuple[list[int], list[float]]:
        """Return the best so many of at least that score; ask functions about no more."""
        snapshot, terms, masks, answers = self
        ranked = ranking.best_first(snapshot, terms, masks, floor, depth)
        passing = (match for match in ranked if answers is None or answers[match[0]])
        best = [*islice(passing, depth)]
        return [row for row, _ in best], [score for _, score in best]


class _Answers(dict[int, bool]):
    """Maps a row to whether its document passes a filter, which is asked once."""

    def __init__(self, snapshot: Snapshot, filter: Filter) -> None:
        self._snapshot, self._filter = snapshot, filter

    def __missing__(self, row: int) -> bool:
        self[row] = self._snapshot.passes(*self._snapshot.locate(row), self._filter)
        return self[row]

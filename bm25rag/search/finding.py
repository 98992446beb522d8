"""Finding the matches of queries: what a search asks for, checked, and its best matches.

A filter is a mask as far as it can be looked up; matches are asked about the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bm25rag.common.checks import check_count, check_real
from bm25rag.kernels.records import Matches
from bm25rag.search import ranking
from bm25rag.search.queries import RestrictedTerms, Terms
from bm25rag.search.snapshot import Snapshot

if TYPE_CHECKING:
    from bm25rag.decay import DecayLike
    from bm25rag.filters import Filter, FilterSpec
    from bm25rag.search.shaping import Shaping

# How many times more matches are looked at if too few of those before have passed.
_GROWTH = 4
# The most matches that are held at once when there are many queries.
_CELLS = 1 << 22


class Wanted(NamedTuple):
    """Which matches of a query are wanted.

    Parameters
    ----------
    k
        How many at most, >= 0.
    filter
        The filter that they must pass; ``None``: no filter.
    min_score
        The least score; ``None``: any.
    offset
        How many of the best are left out, >= 0.
    shaping
        What lowers scores or groups documents; ``k`` and ``offset`` are then of groups.
    """

    k: int
    filter: Filter | None = None
    min_score: float | None = None
    offset: int = 0
    shaping: Shaping | None = None

    @property
    def depth(self) -> int:
        """How many must be found, with those that are left out."""
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
    floor = None if min_score is None else check_real("min_score", min_score, -np.inf, np.inf)
    parsed = None if filter is None else parse_filter(filter, snapshot)
    wanted = Wanted(check_count("k", k), parsed, floor, check_count("offset", offset))
    if group is None and decay is None and per_group == 1:
        return wanted
    from bm25rag.search.shaping import Shaping  # most searches do without

    shaping = Shaping(snapshot, group, per_group, decay)
    return wanted._replace(shaping=shaping if group is not None or decay is not None else None)


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


def find_one(snapshot: Snapshot, terms: Terms, wanted: Wanted) -> tuple[list[int], list[float]]:
    """Find the matches of one query, as ``find`` does: as lists, in half the time.

    Returns
    -------
    rows
        The rows of the matches, by score descending, then ascending.
    scores
        Their scores.
    """
    if type(terms) is RestrictedTerms:
        from bm25rag.search.restriction import find_restricted  # most queries have no parts

        return find_restricted(snapshot, terms, wanted, terms, snapshot)
    k, filter, min_score, offset, shaping = wanted
    known, asked = (None, None) if filter is None else _split(filter)
    if asked is None and shaping is None:
        masks = snapshot.masks(known)
        if not offset:
            return ranking.rank_one(snapshot, terms, k, masks, min_score)
        rows, scores = ranking.rank_one(snapshot, terms, wanted.depth, masks, min_score)
        return rows[offset:], scores[offset:]
    matches = find(snapshot, [terms], wanted, 1)
    count = int(matches.counts[0])
    return matches.numbers[0, :count].tolist(), matches.scores[0, :count].tolist()


def page_of(wanted: Wanted, fused: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    """Return what is wanted of all rows that were fused, with their scores, best first."""
    rows, scores = [row for row, _ in fused], [score for _, score in fused]
    if wanted.shaping is None or not wanted.k:
        page = slice(wanted.offset, wanted.depth)
        return rows[page], scores[page]
    shaped = wanted.shaping.shape(rows, scores, True, wanted.k, wanted.offset, -np.inf)
    assert shaped is not None  # there are no others
    return shaped


def find_both(
    snapshot: Snapshot, terms: Terms, vector: Terms, wanted: Wanted
) -> tuple[tuple[list[int], list[float]], tuple[list[int], list[float]]]:
    """Find the matches of a query and those of a vector, each as ``find_one`` does.

    What the query restricts its matches to holds for those of the vector, too.
    """
    by_words, other = find_one(snapshot, terms, wanted), snapshot.by_vectors
    if type(terms) is not RestrictedTerms:
        return by_words, find_one(other, vector, wanted)
    from bm25rag.search.restriction import find_restricted  # as in ``find_one``

    return by_words, find_restricted(other, vector, wanted, terms, snapshot)


def find(
    snapshot: Snapshot, queries: Sequence[Terms], wanted: Wanted, threads: int | None
) -> Matches:
    """Find the matches of each query.

    Callables are asked about the matches that pass the rest of the filter, best first, until
    enough have passed. They are asked once about each document, however many queries match it.

    Parameters
    ----------
    snapshot
        Where to search.
    queries
        The terms of each query, or their weights.
    wanted
        Which matches.
    threads
        How many to use at most; ``None``: as many as there are cores for this process.
    """
    if RestrictedTerms in set(map(type, queries)):
        return _find_mixed(snapshot, queries, wanted, threads)
    known, asked = (None, None) if wanted.filter is None else _split(wanted.filter)
    masks, first = snapshot.masks(known), wanted.offset
    if wanted.k and (asked is not None or wanted.shaping is not None):
        answers = None if asked is None else _Answers(snapshot, asked)
        return _ask(snapshot, queries, wanted, masks, answers, threads)
    matches = ranking.rank(snapshot, queries, wanted.depth, masks, wanted.min_score, threads)
    if not first:
        return matches
    rows, scores = matches.numbers[:, first:].copy(), matches.scores[:, first:].copy()
    return Matches(rows, scores, np.maximum(matches.counts - first, 0))


def _find_mixed(
    snapshot: Snapshot, queries: Sequence[Terms], wanted: Wanted, threads: int | None
) -> Matches:
    """Find the matches of each query; of those with restrictions one by one."""
    plain = [() if type(terms) is RestrictedTerms else terms for terms in queries]
    matches = find(snapshot, plain, wanted, threads)
    for number, terms in enumerate(queries):
        if type(terms) is RestrictedTerms:
            rows, scores = find_one(snapshot, terms, wanted)
            matches.numbers[number, : len(rows)] = rows
            matches.scores[number, : len(rows)] = scores
            matches.counts[number] = len(rows)
    return matches


def _ask(
    snapshot: Snapshot,
    queries: Sequence[Terms],
    wanted: Wanted,
    masks: ranking.Masks,
    answers: _Answers | None,
    threads: int | None,
) -> Matches:
    """Find the best matches of each query that pass when they are asked about, and shape them.

    So many are ranked, best first, that no other can change the result.
    """
    k, shaping = wanted.k, wanted.shaping
    left = max(snapshot.count - wanted.offset, 0)
    shape = (len(queries), min(k, left) if shaping is None else shaping.width(k, left))
    counts = np.zeros(len(queries), np.int64)
    result = Matches(np.full(shape, -1, np.int64), np.full(shape, -np.inf), counts)
    pending = list(range(len(queries)))
    width = wanted.depth if shaping is None else shaping.first(wanted.depth)
    while pending:
        unfinished: list[int] = []
        step = max(1, _CELLS // width)
        for first in range(0, len(pending), step):
            numbers = pending[first : first + step]
            some = [queries[number] for number in numbers]
            ranked = ranking.rank(snapshot, some, width, masks, wanted.min_score, threads)
            for found_row, number in enumerate(numbers):
                count = int(ranked.counts[found_row])
                rows = ranked.numbers[found_row, :count].tolist()
                scores = ranked.scores[found_row, :count].tolist()
                complete = count < ranked.numbers.shape[1] or count == snapshot.count
                if not _fill(result, number, rows, scores, complete, wanted, answers):
                    unfinished.append(number)
        pending, width = unfinished, min(_GROWTH * width, max(snapshot.count, 1))
    return result


def _split(filter: Filter) -> tuple[Filter | None, Filter | None]:
    from bm25rag.filters import split  # as in ``Snapshot.masks``

    return split(filter)


class _Answers(dict[int, bool]):
    """Maps a row to whether its document passes a filter, which is asked once."""

    def __init__(self, snapshot: Snapshot, filter: Filter) -> None:
        self._snapshot, self._filter = snapshot, filter

    def __missing__(self, row: int) -> bool:
        self[row] = self._snapshot.passes(*self._snapshot.locate(row), self._filter)
        return self[row]


def _fill(
    result: Matches,
    number: int,
    rows: list[int],
    scores: list[float],
    complete: bool,
    wanted: Wanted,
    answers: _Answers | None,
) -> bool:
    """Put what a query has found into the result; return whether no more need be found."""
    shaping, depth = wanted.shaping, wanted.depth
    if answers is not None:
        passing = (cell for cell, row in enumerate(rows) if answers[row])
        cells = list(islice(passing, depth)) if shaping is None else list(passing)
        complete = complete or (shaping is None and len(cells) == depth)
        # What is behind the last of the ranking is behind the last that passes, too.
        rows, scores = [rows[cell] for cell in cells], [scores[cell] for cell in cells]
    if shaping is None:
        if not complete:
            return False
        rows, scores = rows[wanted.offset :], scores[wanted.offset :]
    else:
        floor = -np.inf if wanted.min_score is None else wanted.min_score
        shaped = shaping.shape(rows, scores, complete, wanted.k, wanted.offset, floor)
        if shaped is None:
            return False
        rows, scores = shaped
    result.numbers[number, : len(rows)] = rows
    result.scores[number, : len(scores)] = scores
    result.counts[number] = len(rows)
    return True

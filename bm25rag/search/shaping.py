"""What a search makes of its ranking: scores that fall with age, and the best of each group.

Matches come best first. A score never rises, so what has not come yet is behind what has: once the
next match can change nothing, no more are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from bm25rag.common.arrays import Float64, Int64
from bm25rag.common.checks import check_count
from bm25rag.decay import Decay, DecayLike, Prior, multiplied_each, read_decay
from bm25rag.documents import Hit
from bm25rag.filters import Condition, Filter, Not
from bm25rag.filters.operators import In
from bm25rag.filters.parse import parse_path
from bm25rag.filters.values import canonical, value_at
from bm25rag.metadata.instants import NO_MOMENT
from bm25rag.search.ranking import Ranked
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.metadata_values import PathValues
from bm25rag.segments.view import SegmentView

# The group of documents with equal texts.
TEXT = "$text"
# How many matches are ranked at first, at least; and how many times more where that is too few.
_FIRST, _GROWTH = 64, 8


Rank: TypeAlias = Callable[[int, float | None, Filter | None], Ranked]
"""Ranks so many matches, of at least that score, among documents that pass a filter."""


class Shaping:
    """What is made of the rankings of one search: groups, by a path, ``"$text"`` or not, and decay.

    ``per_group`` is how many of a group are wanted at most.
    """

    group: str | None

    def __init__(
        self, snapshot: Snapshot, group: str | None, per_group: int, decay: DecayLike | None
    ) -> None:
        self._snapshot, self.group = snapshot, group
        self._path = check_group(group, per_group)
        self.per_group = per_group
        self.decay: Decay | Prior | None = None if decay is None else read_decay(decay)
        self._decay_path = () if self.decay is None else parse_path(self.decay.path, "path")

    def width(self, k: int, documents: int) -> int:
        """Return how many documents ``k`` results have at most."""
        return min(k * self.per_group, documents)

    def results(
        self, rank: Rank, k: int, offset: int, min_score: float | None
    ) -> tuple[list[int], list[float]]:
        """Return the results: rows and scores, best first, of what ``rank`` ranks.

        ``k`` and ``offset`` count documents or groups; ``min_score`` is after what lowers scores.
        """
        depth, floor, groups = k + offset, min_score, self.groups()
        if groups is not None and groups.most is not None:
            depth = min(depth, groups.most)
        width = max(_FIRST, 2 * depth)
        ranked = rank(width, floor, None)
        has_all = True  # whether what is ranked lacks no match that is as good
        while True:
            rows, scores, sure = self._lowered(ranked, floor, min_score)
            bests = own = np.arange(len(rows))
            if groups is not None:  # the places at which they occur first
                own = groups.of(rows)
                bests = np.sort(np.unique(own, return_index=True)[1])
            enough = len(bests) >= depth
            if ranked.complete or (enough and bests[depth - 1] < sure):
                break
            if enough:  # what cannot reach that score even if nothing lowers it is no result
                floor = float(scores[bests[depth - 1]])
            width *= _GROWTH
            if not enough and self.decay is None and groups is not None and groups.are_looked_up:
                ranked = _with_other_groups(ranked, groups, own[bests], width, rank, floor)
                has_all = False
            else:
                ranked = rank(width, floor, None)
        wanted = bests[offset:depth]
        if groups is None or self.per_group == 1:
            return rows[wanted].tolist(), scores[wanted].tolist()
        taken = _Members(groups.of(rows[wanted]).tolist(), self.per_group)
        taken.take(groups.of(rows[:sure]), rows, scores)
        done = ranked.complete and floor == min_score and has_all
        while taken.open and not done:
            among = None if self._path is None else groups.filter(taken.open)
            ranked = rank(width, min_score, among)
            rows, scores, sure = self._lowered(ranked, min_score, min_score)
            taken.take(groups.of(rows[:sure]), rows, scores)
            done, width = ranked.complete, width * _GROWTH
        return taken.ranked()

    def of_all(
        self, rows: Sequence[int], scores: Sequence[float], k: int, offset: int
    ) -> tuple[list[int], list[float]]:
        """Return the results if these are all matches, best first; equal ones keep their order."""
        every, lowered = np.array(rows, np.int64), np.array(scores, np.float64)
        if self.decay is not None:
            lowered = multiplied_each(lowered, self._multipliers(every))
            order = np.argsort(-lowered, kind="stable")
            every, lowered = every[order], lowered[order]
        groups = self.groups()
        own = np.arange(len(every)) if groups is None else groups.of(every)
        places = best_places(own.tolist(), k, self.per_group, offset)
        return every[places].tolist(), lowered[places].tolist()

    def matching(self, ranked: Ranked, min_score: float | None) -> Int64:
        """Return which of all matches have at least some score, after what lowers it."""
        return self._lowered(ranked, min_score, min_score)[0]

    def groups(self) -> Groups | None:
        """Return the groups of documents, if these are grouped."""
        return None if self.group is None else Groups(self._snapshot, self._path)

    def _lowered(
        self, ranked: Ranked, floor: float | None, min_score: float | None
    ) -> tuple[Int64, Float64, int]:
        """Lower scores; return what is left of the matches, best first, and how many are sure.

        ``floor`` is the least score of what was ranked.
        """
        rows, scores, complete = ranked
        if self.decay is None:
            return rows, scores, len(rows)
        lowered = multiplied_each(scores, self._multipliers(rows))
        order = np.lexsort((rows, -lowered))
        rows, lowered = rows[order], lowered[order]
        if min_score is not None:
            kept = int(np.count_nonzero(lowered >= min_score))
            rows, lowered = rows[:kept], lowered[:kept]
        if complete:  # all of at least that score
            sure = lowered >= (-math.inf if floor is None else floor)
        elif not len(ranked.rows):
            return rows, lowered, 0
        else:  # what has not come yet is behind the last
            last, score = ranked.rows[-1], scores[-1]
            sure = (lowered > score) | ((lowered == score) & (rows <= last))
        return rows, lowered, int(np.count_nonzero(sure))

    def _multipliers(self, rows: Int64) -> Float64:
        decay, multipliers = self.decay, np.empty(len(rows))
        for view, places, numbers in self._snapshot.by_segment(rows):
            values = PathValues(view, self._decay_path)
            if isinstance(decay, Decay):
                instants = values.instants(numbers)
                multipliers[places] = decay._of_each(instants, instants != NO_MOMENT)
            elif decay is not None:
                multipliers[places] = decay._of_each(values.numbers(numbers))
        return multipliers


def _with_other_groups(
    ranked: Ranked, groups: Groups, known: Int64, width: int, rank: Rank, floor: float | None
) -> Ranked:
    """Add the best of other groups to the best matches.

    Documents of the known groups are left out: of few large groups they are most.
    """
    others = rank(width, floor, Not(groups.filter(known[known >= 0].tolist())))
    new = ~np.isin(others.rows, ranked.rows)  # without a value, documents are not left out
    rows = np.concatenate((ranked.rows, others.rows[new]))
    scores = np.concatenate((ranked.scores, others.scores[new]))
    return Ranked(rows, scores, others.complete)


def check_group(group: object, per_group: int) -> tuple[str, ...] | None:
    """Return the path by whose values documents are grouped, if any; raise as ``Shaping``."""
    if check_count("per_group", per_group, least=1) != 1 and group is None:
        raise ValueError(f"per_group is for searches with group, got {per_group!r} without")
    if group is None or (isinstance(group, str) and group == TEXT):
        return None
    return parse_path(group, "group")


class _Members:
    """The best documents of some groups, as far as they are known."""

    def __init__(self, groups: Iterable[int], per_group: int) -> None:
        self._per_group = per_group
        self._known: dict[int, list[tuple[float, int]]] = {group: [] for group in groups}
        # The groups that may have more.
        self.open = list(self._known)

    def take(self, groups: Int64, rows: Int64, scores: Float64) -> None:
        """Take the members of the open groups from the best matches."""
        for group in self.open:
            self._known[group] = []
        for place in np.flatnonzero(np.isin(groups, self.open)).tolist():
            members = self._known[int(groups[place])]
            if len(members) < self._per_group:
                members.append((-float(scores[place]), int(rows[place])))
        # A document without a value is the only one of its group.
        self.open = [
            group for group in self.open if group >= 0 and len(self._known[group]) < self._per_group
        ]

    def ranked(self) -> tuple[list[int], list[float]]:
        """Return all members, best first."""
        members = sorted(member for group in self._known.values() for member in group)
        return [row for _, row in members], [-score for score, _ in members]


class Groups:
    """Numbers of groups, by values at a path or, without one, by texts.

    Those of documents without a value, each a group, are negative.
    """

    def __init__(self, snapshot: Snapshot, path: tuple[str, ...] | None) -> None:
        self._snapshot, self._path = snapshot, path
        self._numbers: dict[Any, int] = {}
        self._values: dict[int, Any] = {}
        self._new = count()
        views = [view for view in snapshot.views if view.count]
        values = PathValues(views[0], path) if len(views) == 1 and path is not None else None
        # The values, if their codes tell groups apart.
        self._coded = values if values is not None and values.are_coded else None

    @property
    def most(self) -> int | None:
        """How many groups there are at most, >= 1, if that is known."""
        return None if self._coded is None else self._coded.most

    @property
    def are_looked_up(self) -> bool:
        """Whether ``filter`` needs the metadata of no documents but those that writes changed."""
        if self._path is None:
            return False
        return all(PathValues(view, self._path).are_looked_up for view in self._snapshot.views)

    def of(self, rows: Int64) -> Int64:
        """Return the group of each document."""
        groups = np.full(len(rows), -1)
        for view, places, numbers in self._snapshot.by_segment(rows):
            if self._coded is not None:
                groups[places] = self._coded.codes(numbers)
            else:
                groups[places] = self._numbered(view, numbers)
        return np.where(groups < 0, -1 - rows, groups)

    def filter(self, groups: Iterable[int]) -> Filter:
        """Return a filter that the documents of some groups pass, which have values."""
        value = self._values.__getitem__ if self._coded is None else self._coded.value
        assert self._path is not None
        return Condition(self._path, In(tuple(map(value, groups))))

    def _numbered(self, view: SegmentView, numbers: Int64) -> Int64:
        if self._path is None:
            texts = view.segment.texts.texts(numbers.tolist())
            groups = (-1 if text is None else self._number(text, text) for text in texts)
            return np.fromiter(groups, np.int64, len(numbers))
        places, values = PathValues(view, self._path).distinct(numbers)
        keys = [(group_key(value), value) for value in values]
        known = [-1 if key is None else self._number(key, value) for key, value in keys]
        return np.array([*known, -1])[places]

    def _number(self, key: str, value: Any) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = next(self._new)
            self._values[number] = value
        return number


def group_key(value: Any) -> str | None:
    """Return what values have in common if they make one group; ``None`` for no group."""
    if value is None or (type(value) is float and not math.isfinite(value)):
        return None
    return canonical(value)


def group_value(hit: Hit, group: str) -> Any:
    """Return what the hits of one group have in common; see ``group_key``."""
    return hit.text if group == TEXT else value_at(hit.metadata, parse_path(group, "group"))


def best_places(groups: Sequence[Hashable], k: int, per_group: int, offset: int = 0) -> list[int]:
    """Return the places of up to ``per_group`` matches of each of the best k groups.

    ``groups`` are those of the matches, best first; ``offset`` groups are left out.
    """
    chosen = dict.fromkeys(list(dict.fromkeys(groups))[offset : offset + k], per_group)
    places = []
    for place, group in enumerate(groups):
        if chosen.get(group, 0):
            chosen[group] -= 1
            places.append(place)
    return places

"""What a search makes of its ranking: scores that fall with age, and the best of each group.

Matches come best first. A score never rises, so what has not come yet is behind what has: once the
next match can change nothing, no more are asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from bm25rag.common.checks import check_count
from bm25rag.decay import Decay, DecayLike, Prior, multiplied, read_decay
from bm25rag.documents import Hit
from bm25rag.filters.parse import parse_path
from bm25rag.filters.values import canonical, value_at
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.metadata_values import values_at

# The group of documents with equal texts.
_TEXT = "$text"
# How many matches are ranked at first, at least.
_FIRST = 64


class Shaping:
    """What is made of the rankings of one search.

    Parameters
    ----------
    snapshot
        The documents; rows are theirs.
    group
        The path by whose values documents are grouped, or ``"$text"``; ``None``: not at all.
    per_group
        How many of a group are wanted at most.
    decay
        What lowers scores; ``None``: nothing.

    Raises
    ------
    TypeError, ValueError, FilterError
        If an argument is wrong.
    """

    def __init__(
        self, snapshot: Snapshot, group: str | None, per_group: int, decay: DecayLike | None
    ) -> None:
        self._snapshot, self.group = snapshot, group
        self.per_group = check_count("per_group", per_group, least=1)
        if group is None and self.per_group != 1:
            raise ValueError(f"per_group is for searches with group, got {per_group!r} without")
        self._path = None if group in (None, _TEXT) else parse_path(group, "group")
        self.decay = None if decay is None else read_decay(decay)
        decay_path = () if self.decay is None else parse_path(self.decay.path, "path")
        self._multipliers = _ByRow(lambda rows: self._multipliers_at(rows, decay_path))
        self._groups = _ByRow(self._groups_at)

    def width(self, k: int, documents: int) -> int:
        """Return how many documents ``k`` results have at most."""
        return min(k * self.per_group, documents)

    def first(self, depth: int) -> int:
        """Return how many matches to rank at first for so many results."""
        return max(_FIRST, 2 * depth * self.per_group)

    def shape(
        self,
        rows: Sequence[int],
        scores: Sequence[float],
        complete: bool,
        k: int,
        offset: int,
        min_score: float,
    ) -> tuple[list[int], list[float]] | None:
        """Return the results, or ``None`` if matches behind these can change them.

        Parameters
        ----------
        rows, scores
            The best matches, best first.
        complete
            Whether there are no others.
        k, offset
            How many results are wanted, documents or groups, behind how many that are left out.
        min_score
            The least score, after what lowers it.
        """
        ranked = [(-score, row) for row, score in zip(rows, scores, strict=True)]
        last = ranked[-1] if ranked else None
        if self.decay is not None:
            each = zip(ranked, self._multipliers.of(rows), strict=True)
            ranked = sorted((-multiplied(-score, by), row) for (score, row), by in each)
            end = bisect_right(ranked, -min_score, key=itemgetter(0))
            if not complete and last is not None:  # what has not come yet is behind the last
                end = min(end, bisect_right(ranked, last))
            del ranked[end:]
        depth = k + offset
        if self.group is not None:
            return self._best_of_groups(ranked, complete, depth, offset)
        if len(ranked) < depth and not complete:
            return None
        return _unzipped(ranked[offset:depth])

    def _best_of_groups(
        self, ranked: Sequence[tuple[float, int]], complete: bool, depth: int, offset: int
    ) -> tuple[list[int], list[float]] | None:
        full = 0
        groups: dict[Hashable, list[int]] = {}
        for place, key in enumerate(self._groups.of([row for _, row in ranked])):
            members = groups.get(key)
            if members is None:
                if len(groups) == depth:
                    continue
                members = groups[key] = []
            if len(members) < self.per_group:
                members.append(place)
                full += len(members) == self.per_group or type(key) is int
            if full == depth:
                complete = True
                break
        if not complete:
            return None
        wanted = list(groups.values())[offset:]
        return _unzipped([ranked[place] for place in sorted(chain.from_iterable(wanted))])

    def _multipliers_at(self, rows: Sequence[int], path: tuple[str, ...]) -> list[float]:
        decay: Decay | Prior | None = self.decay
        assert decay is not None
        return [decay.of(value) for value in self._values(rows, path)]

    def _groups_at(self, rows: Sequence[int]) -> list[Hashable]:
        values = self._values(rows, self._path)
        pairs = zip(values, rows, strict=True)
        # A number stands for a document without a value, which is a group of its own.
        return [row if value is None else canonical(value) for value, row in pairs]

    def _values(self, rows: Sequence[int], path: tuple[str, ...] | None) -> list[Any]:
        """Return the value at a path of each document, or its text."""
        values: dict[int, Any] = {}
        places = sorted((*self._snapshot.locate(row), row) for row in rows)
        for segment_index, found in groupby(places, itemgetter(0)):
            _, numbers, some = zip(*found, strict=True)
            view = self._snapshot.views[segment_index]
            texts = view.segment.texts
            read = texts.texts(numbers) if path is None else values_at(view, numbers, path)
            values.update(zip(some, read, strict=True))
        return [values[row] for row in rows]


def group_of(hit: Hit, group: str) -> str | None:
    """Return a key for the group of a hit; ``None`` if it is the only one."""
    found = hit.text if group == _TEXT else value_at(hit.metadata, parse_path(group, "group"))
    return None if found is None else canonical(found)


class _ByRow(dict[int, Any]):
    """What is computed for many documents at once, and kept by row."""

    def __init__(self, compute: Callable[[Sequence[int]], Sequence[Any]]) -> None:
        self._compute = compute

    def of(self, rows: Sequence[int]) -> list[Any]:
        """Return the value of each row."""
        missing = [row for row in dict.fromkeys(rows) if row not in self]
        if missing:
            self.update(zip(missing, self._compute(missing), strict=True))
        return [self[row] for row in rows]


def _unzipped(ranked: Sequence[tuple[float, int]]) -> tuple[list[int], list[float]]:
    return [row for _, row in ranked], [-score for score, _ in ranked]

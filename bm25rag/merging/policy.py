"""Which segments to merge, and when.

A write merges little; the rest is left to ``BM25Index.maintain()``, which works on the
segments of one moment while others search and write. ``carry`` then applies to the new
segment what has been deleted and changed in the meantime.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from bm25rag.common.arrays import as_index
from bm25rag.merging.merge import merge_segments
from bm25rag.segments.changes import Changes
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView

# A write may merge this many bytes (about 20 ms), or this share of the index if that is more:
# it bounds the number of segments, whatever is written.
LEAST = 1 << 22
SHARE = 16


class Group(NamedTuple):
    """Consecutive segments, the bytes of their living documents, and whether to merge them."""

    views: list[SegmentView]
    size: int
    due: bool


def plan(
    views: Sequence[SegmentView], limit: float = math.inf, held: Collection[Segment] = ()
) -> list[Group]:
    """Return which consecutive segments to merge; empty ones are left out.

    A segment is merged with those behind it if it is at most twice as large as all of them
    together. So without a limit, N documents make at most log3(N) segments, and a document is
    copied O(log N) times. With ``limit``, the bytes of a merge, as a sixteenth of the index, there
    are at most 32 segments more. Segments that are ``held`` are being merged elsewhere, and left
    alone.
    """
    groups: list[Group] = []
    behind = 0
    for view in reversed(views):
        free = view.segment not in held
        if free and not view.count:
            continue
        last = groups[-1] if groups and groups[-1].views[0].segment not in held else None
        if last and free and view.size <= 2 * behind and view.size + last.size <= limit:
            groups[-1] = Group([view, *last.views], view.size + last.size, True)
        else:
            groups.append(Group([view], view.size, free and _is_worn(view) and view.size <= limit))
        behind += view.size
    return groups[::-1]


def _is_worn(view: SegmentView) -> bool:
    """Whether more than half of a segment has been deleted or has new metadata."""
    return 2 * view.count < len(view.segment) or 2 * view.changed_count > len(view.segment)


def tidy(
    views: Sequence[SegmentView], held: Collection[Segment], room: float = math.inf
) -> list[SegmentView]:
    """Merge as much as one write may, of what makes no more than ``room`` bytes in all."""
    limit = max(LEAST, sum(view.size for view in views) // SHARE)
    tidied: list[SegmentView] = []
    for group in plan(views, limit, held):
        if group.due and group.size <= room:
            room -= group.size
            tidied.append(SegmentView(merge_segments(group.views)))
        else:
            tidied += group.views
    return tidied


def carry(
    merged: Segment, before: Sequence[SegmentView], now: Sequence[SegmentView]
) -> list[SegmentView] | None:
    """Replace segments, as they were ``before``, by the one ``merged`` from them.

    Return all segments as they are ``now``, or ``None`` if a rollback has undone some of ``before``
    in the meantime.
    """
    segments = [view.segment for view in now]
    first = segments.index(before[0].segment) if before[0].segment in segments else 0
    last = first + len(before)
    if segments[first:last] != [view.segment for view in before]:
        return None
    deleted, offset = [np.empty(0, np.int64)], 0
    changed: dict[int, bytes] = {}
    for old, new in zip(before, now[first:last], strict=True):
        since = (
            new.deleted
            if old.living is None
            else new.deleted[old.living.take(as_index(new.deleted))]
        )
        if len(since) != len(new.deleted) - len(old.deleted) or not all(
            number in new.changed or not new.lives(number) for number in old.changed
        ):
            return None
        deleted.append(old.rows.ranks(since.astype(np.int64)) + offset)
        metadata = new.changed
        numbers = [n for n, data in metadata.items() if old.changed.get(n) is not data]
        ranks = old.rows.ranks(np.array(numbers, np.int64)) + offset
        changed |= dict(zip(ranks.tolist(), map(metadata.__getitem__, numbers), strict=True))
        offset += old.count
    changes = Changes(np.concatenate(deleted).astype(np.uint32), changed)
    view = SegmentView(merged, (changes,) if len(changes) else ())
    return [*now[:first], view, *now[last:]]

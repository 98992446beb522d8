"""Segments joined into fewer: how, and when that is worth its price.

A write merges little, and the rest waits for ``BM25Index.maintain()``, which works on
the segments of one moment while others search and write; ``carry`` brings what has been
deleted and changed in the meantime into what it made.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from bm25rag.merging.merge import merge_segments
from bm25rag.segments.changes import Changes
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView

# What a write may merge at once: so many bytes (20 ms or so), or this share of the index, which
# bounds the number of segments whatever is written.
LEAST = 1 << 22
SHARE = 16


class Group(NamedTuple):
    """Consecutive segments, ``size`` bytes of living documents, and whether to merge them."""

    views: list[SegmentView]
    size: int
    due: bool


def plan(
    views: Sequence[SegmentView], most: float = math.inf, held: Collection[Segment] = ()
) -> list[Group]:
    """Say which consecutive segments to merge; the empty are left out.

    A segment goes together with what follows while it is not more than twice as large as all
    behind it. So without a limit N documents make at most log3(N) segments and a document is
    copied O(log N) times on the way; with the limit ``most``, a sixteenth of the whole,
    there are at most 32 segments more.

    Parameters
    ----------
    views
        All segments, in document order.
    most
        Bytes that one merge may take in.
    held
        Segments that are being merged elsewhere, to be left alone.
    """
    groups: list[Group] = []
    behind = 0
    for view in reversed(views):
        free = view.segment not in held
        if free and not view.count:
            continue
        last = groups[-1] if groups and groups[-1].views[0].segment not in held else None
        if last and free and view.size <= 2 * behind and view.size + last.size <= most:
            groups[-1] = Group([view, *last.views], view.size + last.size, True)
        else:
            groups.append(Group([view], view.size, free and _is_worn(view) and view.size <= most))
        behind += view.size
    return groups[::-1]


def _is_worn(view: SegmentView) -> bool:
    """Whether more than half of a segment has been deleted or has new metadata."""
    return 2 * view.count < len(view.segment) or 2 * view.changed_count > len(view.segment)


def tidy(views: Sequence[SegmentView], held: Collection[Segment]) -> list[SegmentView]:
    """Merge as much as a single write may."""
    most = max(LEAST, sum(view.size for view in views) // SHARE)
    return [
        SegmentView(merge_segments(group.views)) if group.due else group.views[0]
        for group in plan(views, most, held)
    ]


def carry(
    merged: Segment, before: Sequence[SegmentView], now: Sequence[SegmentView]
) -> list[SegmentView] | None:
    """Put a segment in the place of the segments it was made of, as they are now.

    Parameters
    ----------
    merged
        What ``merge_segments`` made of ``before``.
    before, now
        The segments that were merged, and all segments of the index as they are now.

    Returns
    -------
    views
        All segments, or ``None`` if something of ``before`` was undone in the meantime.
    """
    segments = [view.segment for view in now]
    first = segments.index(before[0].segment) if before[0].segment in segments else 0
    last = first + len(before)
    if segments[first:last] != [view.segment for view in before]:
        return None
    deleted, offset = [np.empty(0, np.int64)], 0
    changed: dict[int, bytes] = {}
    for old, new in zip(before, now[first:last], strict=True):
        died = new.deleted if old.living is None else new.deleted[old.living[new.deleted]]
        if len(died) != len(new.deleted) - len(old.deleted) or not all(
            number in new.changed or not new.lives(number) for number in old.changed
        ):
            return None
        deleted.append(old.ranks(died.astype(np.int64)) + offset)
        data = new.changed
        numbers = [number for number in data if old.changed.get(number) is not data[number]]
        ranks = old.ranks(np.array(numbers, np.int64)) + offset
        changed |= {
            rank: data[number] for rank, number in zip(ranks.tolist(), numbers, strict=True)
        }
        offset += old.count
    since = Changes(np.concatenate(deleted).astype(np.uint32), changed)
    view = SegmentView(merged, (since,) if len(since) else ())
    return [*now[:first], view, *now[last:]]

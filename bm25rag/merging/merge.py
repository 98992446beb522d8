"""Several segments made into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bm25rag.columns.column import Column, build_column
from bm25rag.columns.merge import LivingStrings, join_columns, join_tables, take_strings
from bm25rag.common.arrays import Int64
from bm25rag.metadata.field_merge import merge_fields
from bm25rag.metadata.fields import Fields
from bm25rag.segments.postings import merge_postings
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView


def merge_segments(views: Sequence[SegmentView]) -> Segment:
    """Make one segment of consecutive segments, without their dead."""
    for view in views:
        view.segment.check_all()
    return Segment(
        merge_postings((view.segment.postings, view.living) for view in views),
        join_tables([(view.segment.ids, view.living) for view in views]),
        join_columns([LivingStrings(view.segment.texts, view.living) for view in views]),
        join_columns([LivingStrings(_metadata_of(view), view.living) for view in views]),
        join_columns([LivingStrings(view.segment.payloads, view.living) for view in views]),
        sum(view.tokens for view in views),
        _merge_fields(views),
    )


def _merge_fields(views: Sequence[SegmentView]) -> Fields:
    sources: list[Fields] = []
    places: list[Int64] = []
    base = 0
    for view in views:
        place = np.full(len(view.segment), -1, np.int64)
        living = slice(None) if view.living is None else view.living
        place[living] = np.arange(base, base + view.count)
        for change in reversed(view.changes):  # what has changed last counts
            if change.changed:
                sources.append(change.fields)
                places.append(place[change.numbers])
                place[change.numbers] = -1
        sources.append(view.segment.fields)
        places.append(place)
        base += view.count
    return merge_fields(sources, places, base)


def _metadata_of(view: SegmentView) -> Column:
    stored = view.segment.metadata
    if not view.changed:
        return stored
    changed = build_column(data or None for data in view.changed.values())
    numbers = np.arange(len(stored))
    numbers[list(view.changed)] = len(stored) + np.arange(len(changed))
    return take_strings(
        join_columns([LivingStrings(stored, None), LivingStrings(changed, None)]), numbers
    )

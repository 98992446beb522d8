"""Several segments made into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bm25rag.columns.column import Column, build_column
from bm25rag.columns.merge import Kept, join_columns, join_tables, take
from bm25rag.common.arrays import Int64
from bm25rag.metadata.field_merge import merge_fields
from bm25rag.metadata.fields import Fields
from bm25rag.segments.postings import merge_postings
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import Part


def merge_parts(parts: Sequence[Part]) -> Segment:
    """Make one segment of consecutive parts, without their dead."""
    for part in parts:
        part.segment.check_all()
    return Segment(
        merge_postings((part.segment.postings, part.living) for part in parts),
        join_tables([(part.segment.ids, part.living) for part in parts]),
        join_columns([Kept(part.segment.texts, part.living) for part in parts]),
        join_columns([Kept(_metadata_of(part), part.living) for part in parts]),
        join_columns([Kept(part.segment.payloads, part.living) for part in parts]),
        sum(part.tokens for part in parts),
        _merge_fields(parts),
    )


def _merge_fields(parts: Sequence[Part]) -> Fields:
    sources: list[Fields] = []
    places: list[Int64] = []
    base = 0
    for part in parts:
        place = np.full(len(part.segment), -1, np.int64)
        living = slice(None) if part.living is None else part.living
        place[living] = np.arange(base, base + part.count)
        for layer in reversed(part.layers):  # what has changed last counts
            if layer.changed:
                sources.append(layer.fields)
                places.append(place[layer.numbers])
                place[layer.numbers] = -1
        sources.append(part.segment.fields)
        places.append(place)
        base += part.count
    return merge_fields(sources, places, base)


def _metadata_of(part: Part) -> Column:
    stored = part.segment.metadata
    if not part.changed:
        return stored
    changes = build_column(data or None for data in part.changed.values())
    numbers = np.arange(len(stored))
    numbers[list(part.changed)] = len(stored) + np.arange(len(changes))
    return take(join_columns([Kept(stored, None), Kept(changes, None)]), numbers)

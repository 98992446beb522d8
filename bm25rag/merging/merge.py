"""Several segments made into one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bm25rag.columns.column import Column, build_column, select_strings
from bm25rag.columns.merge import (
    JoinedTerms,
    LivingStrings,
    join_columns,
    join_tables,
)
from bm25rag.common.arrays import Int64
from bm25rag.kernels.records import Run
from bm25rag.metadata.field_merge import merge_fields
from bm25rag.metadata.fields import Fields
from bm25rag.segments.postings import Postings
from bm25rag.segments.postings_builder import build_postings
from bm25rag.segments.segment import Segment
from bm25rag.segments.vectors_builder import build_vectors
from bm25rag.segments.view import SegmentView


def merge_segments(views: Sequence[SegmentView]) -> Segment:
    """Make one segment of consecutive segments, without their deleted documents."""
    for view in views:
        view.segment.check_all()
    return Segment(
        _merge_postings(views),
        join_tables([(view.segment.ids, view.living) for view in views]),
        join_columns([LivingStrings(view.segment.texts, view.living) for view in views]),
        join_columns([LivingStrings(_metadata_of(view), view.living) for view in views]),
        join_columns([LivingStrings(view.segment.payloads, view.living) for view in views]),
        sum(view.tokens for view in views),
        _merge_fields(views),
        _merge_vectors(views),
    )


def _merge_vectors(views: Sequence[SegmentView]) -> Postings | None:
    if all(view.segment.vectors is None for view in views):
        return None
    terms, runs = _join_runs([view.by_vectors for view in views])
    merged = build_vectors(terms, runs, sum(view.count for view in views))
    return merged if len(merged.documents) else None


def _merge_postings(views: Sequence[SegmentView]) -> Postings:
    each = [(view.segment.postings.lengths, view.living) for view in views]
    lengths = [some if living is None else some[living] for some, living in each]
    return build_postings(*_join_runs(views), np.concatenate(lengths))


def _join_runs(views: Sequence[SegmentView]) -> tuple[JoinedTerms, list[Run]]:
    """Return the terms of all segments, and the postings of their living documents."""
    terms = JoinedTerms([view.segment.postings.terms for view in views])
    runs: list[Run] = []
    offset = 0
    for view, term_numbers in zip(views, terms.numbers, strict=True):
        runs.extend(view.segment.postings.runs(term_numbers, view.living, offset))
        offset += view.count
    return terms, runs


def _merge_fields(views: Sequence[SegmentView]) -> Fields:
    sources: list[Fields] = []
    new_numbers: list[Int64] = []
    offset = 0
    for view in views:
        # The new number of each document, -1 if it is deleted or has newer metadata elsewhere.
        renumbered = np.full(len(view.segment), -1, np.int64)
        living = slice(None) if view.living is None else view.living
        renumbered[living] = np.arange(offset, offset + view.count)
        for changes in reversed(view.changes):  # the last change of a document counts
            if changes.changed:
                sources.append(changes.fields)
                new_numbers.append(renumbered[changes.numbers])
                renumbered[changes.numbers] = -1
        sources.append(view.segment.fields)
        new_numbers.append(renumbered)
        offset += view.count
    return merge_fields(sources, new_numbers, offset)


def _metadata_of(view: SegmentView) -> Column:
    stored = view.segment.metadata
    if not view.changed:
        return stored
    changed = build_column(data or None for data in view.changed.values())
    numbers = np.arange(len(stored))
    numbers[list(view.changed)] = len(stored) + np.arange(len(changed))
    return select_strings(
        join_columns([LivingStrings(stored, None), LivingStrings(changed, None)]), numbers
    )

"""Several segments made into one, in memory or on the way to a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bm25rag.columns.column import Column, build_column, select_strings
from bm25rag.columns.merge import chunk_columns, chunk_tables, join_columns, join_tables
from bm25rag.columns.packing import pack_columns
from bm25rag.common.arrays import Int64
from bm25rag.common.chunks import Growing, Spool, Spools
from bm25rag.common.logs import tell
from bm25rag.common.strings import TEXT
from bm25rag.merging.merged_postings import Arrays, MergedPostings, MergedVectors
from bm25rag.metadata.field_merge import Source, living_source, merge_fields
from bm25rag.metadata.fields import Assembler, Fields
from bm25rag.segments.postings import Postings
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView, add_tokens


def merge_segments(views: Sequence[SegmentView]) -> Segment:
    """Make one segment of consecutive segments, without their deleted documents."""
    for view in views:
        view.segment.check_all()
    count = sum(view.count for view in views)
    tell("merges", "merging %d segments into one of %d documents", len(views), count)
    return Segment(
        MergedPostings(views).postings(),
        join_tables([(view.segment.ids, view.living) for view in views]),
        _join_texts(views, TEXT),
        join_columns([(_metadata_of(view), view.living) for view in views]),
        join_columns([(view.segment.payloads, view.living) for view in views]),
        add_tokens(view.tokens for view in views),
        _merged_fields(views, Growing).fields(),
        _merge_vectors(views),
        {name: _join_texts(views, name) for name in views[0].segment.other_texts},
    )


def merge_in_chunks(
    views: Sequence[SegmentView],
    spools: Spools,
    room: int,
    threads: int = 1,
    note: Callable[[int], object] = lambda postings: None,
) -> Arrays:
    """Return the arrays of ``merge_segments(views)``, as a file has them and in its order.

    They need not fit into memory: ``room`` is about how many bytes to use, and ``spools`` hold what
    waits to be written. The segments are of files and have no new metadata. ``threads`` may work on
    postings and texts; ``note`` is told how many postings have been merged since the last time. If
    a file is damaged, ``CorruptIndexError`` is raised, for some arrays not before their chunks are
    read.
    """

    def column(name: str, columns: Sequence[Column]) -> Arrays:
        return {**chunk_columns(name, [*zip(columns, living, strict=True)])}

    segments, living = [view.segment for view in views], [view.living for view in views]
    of_one = room // (threads + 1)
    merged = MergedPostings(views)
    arrays = merged.arrays(spools, of_one, threads, note)
    arrays |= column("ids", [segment.ids.column for segment in segments])
    arrays["lengths"] = merged.lengths()
    ids = [(view.segment.ids, view.living) for view in views]
    arrays["ids.keys"], arrays["ids.order"] = chunk_tables(ids, spools, room)
    fields, field_columns = _chunk_fields(views, spools)
    arrays |= fields
    texts = [(view.segment.texts, view.living) for view in views]
    arrays |= pack_columns("texts", texts, spools.new, threads)
    for place, name in enumerate(segments[0].other_texts):
        own = [segment.other_texts[name] for segment in segments]
        arrays |= column(f"text_fields.texts.{place}", own)
    arrays |= column("metadata", [segment.metadata for segment in segments])
    arrays |= column("payloads", [segment.payloads for segment in segments])
    arrays |= field_columns
    if any(segment.vectors is not None for segment in segments):
        arrays |= MergedVectors(views).arrays(spools, of_one, threads, note)
    return arrays


def _join_texts(views: Sequence[SegmentView], name: str) -> Column:
    return join_columns([(view.segment.texts_of(name), view.living) for view in views])


def _merge_vectors(views: Sequence[SegmentView]) -> Postings | None:
    if all(view.segment.vectors is None for view in views):
        return None
    merged = MergedVectors(views).postings()
    return merged if len(merged.documents) else None


def _chunk_fields(views: Sequence[SegmentView], spools: Spools) -> tuple[Arrays, Arrays]:
    """Return the arrays of the fields, and those of their two columns; none without metadata."""
    arrays, paths, (offsets_of_strings, strings) = _merged_fields(views, spools.new).finish()
    if not len(paths):
        return {}, {}
    return {f"fields.{name}": array for name, array in arrays.items()}, {
        **paths.arrays("fields.paths"),
        "fields.strings.offsets": offsets_of_strings,
        "fields.strings.data": strings,
        "fields.strings.null": np.empty(0, np.bool_),
    }


def _merged_fields(
    views: Sequence[SegmentView], new: Callable[[type[np.generic]], Growing | Spool]
) -> Assembler:
    sources: list[Source] = []
    offset = 0
    for view in views:
        fields, living = view.segment.fields, view.living
        if not view.changed:
            sources.append(living_source(fields, living, offset))
        else:
            # The new number of each document, -1 if it is deleted or has newer metadata elsewhere.
            renumbered = np.full(len(view.segment), -1, np.int64)
            renumbered[slice(None) if living is None else living] = np.arange(view.count) + offset
            for changes in reversed(view.changes):  # the last change of a document counts
                if changes.changed:
                    sources.append(_numbered(changes.fields, renumbered[changes.numbers]))
                    renumbered[changes.numbers] = -1
            sources.append(_numbered(fields, renumbered))
        offset += view.count
    merged = Assembler(offset, new)
    merge_fields(sources, merged, ordered=not any(view.changed for view in views))
    return merged


def _numbered(fields: Fields, new_numbers: Int64) -> Source:
    return Source(fields, new_numbers.__getitem__, bool(np.all(new_numbers >= 0)))


def _metadata_of(view: SegmentView) -> Column:
    stored = view.segment.metadata
    if not view.changed:
        return stored
    changed = build_column(data or None for data in view.changed.values())
    numbers = np.arange(len(stored))
    numbers[list(view.changed)] = len(stored) + np.arange(len(changed))
    return select_strings(join_columns([(stored, None), (changed, None)]), numbers)

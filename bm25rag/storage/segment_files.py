"""The files of a commit, read and written: each is written once, and the manifest last.

Nothing is unpickled, nothing that a file names is imported, and no path leads out of the
folder. ``docs/format.md`` describes the files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bm25rag.columns.column import build_column
from bm25rag.common.arrays import Array
from bm25rag.common.chunks import Chunks
from bm25rag.common.clock import now
from bm25rag.common.strings import TEXT
from bm25rag.segments.changes import Changes
from bm25rag.segments.doc_blocks import doc_block_count
from bm25rag.segments.postings import VECTORS, Postings
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView
from bm25rag.storage.checked_columns import CheckedColumn, CheckedStringTable
from bm25rag.storage.checked_postings import CheckedDocBlocks, CheckedPostings, CheckedVectors
from bm25rag.storage.checksummed_file import (
    ArraysFile,
    CheckedArray,
    FileRecord,
    damage,
    is_whole,
    refuse,
    write_arrays,
)
from bm25rag.storage.fs import flush_folder
from bm25rag.storage.kept_commits import find_commit
from bm25rag.storage.manifest import Manifest, Stored

if TYPE_CHECKING:
    from bm25rag.segments.statistics import Statistics
    from bm25rag.storage.checked_fields import CheckedFields

_RETRIES = 20


class Commit(NamedTuple):
    """A commit as it is on disk; ``statistics`` are those of a sharded index."""

    manifest: Manifest
    views: list[SegmentView]
    statistics: Statistics | None


def read_index(
    folder: str,
    mapped: bool,
    known: Mapping[Stored, SegmentView],
    id: str | None = None,
    only: int | None = None,
) -> Commit:
    """Read the commit of an id, or the last one, of a folder; what is ``known`` is there already.

    ``only`` is the one shard to read. It raises as ``find_commit``, and ``CorruptIndexError`` if a
    file is damaged.
    """
    for attempt in range(_RETRIES):
        manifest = find_commit(folder, id)
        try:
            views = read_views(folder, manifest.only(only, folder), mapped, known)
            return Commit(manifest, views, read_statistics(folder, manifest, mapped))
        except FileNotFoundError as error:
            # A writer may have committed and cleaned up in between: read again.
            if find_commit(folder, id) == manifest or attempt == _RETRIES - 1:
                raise refuse(
                    f"{error.filename}: is missing; restore the folder from a copy"
                ) from None
    raise AssertionError("unreachable")


def read_statistics(folder: str, manifest: Manifest, mapped: bool) -> Statistics | None:
    """Return the statistics of a sharded index; raise as ``read_views``.

    Each part is checked before its first use.
    """
    if (shards := manifest.shards) is None:
        return None
    from bm25rag.segments.statistics import Statistics  # few indexes are sharded

    file = ArraysFile(os.path.join(folder, shards.statistics.name), shards.statistics, mapped)
    terms = read_terms(file, "")
    frequencies = file.array("frequencies", "u4", "u8", count=len(terms))
    counts = sum(shards.documents), shards.tokens
    return Statistics(*counts, terms, frequencies.values, frequencies.check)


def read_views(
    folder: str, manifest: Manifest, mapped: bool, known: Mapping[Stored, SegmentView]
) -> list[SegmentView]:
    """Return the segments of a commit; raise ``FileNotFoundError`` or ``CorruptIndexError``."""
    segments = {stored.segment: view.segment for stored, view in known.items()}
    all_changes = {
        record: changes
        for stored, view in known.items()
        for record, changes in zip(stored.changes, view.changes, strict=True)
    }
    views = []
    for stored, tokens in zip(manifest.stored, manifest.tokens, strict=True):
        view, segment = known.get(stored), segments.get(stored.segment)
        if segment is None:
            file = ArraysFile(os.path.join(folder, stored.segment.name), stored.segment, mapped)
            segment = read_segment(file, tokens)
        views.append(_read_view(folder, stored, segment, all_changes) if view is None else view)
    return views


def _read_view(
    folder: str, stored: Stored, segment: Segment, known: Mapping[FileRecord, Changes]
) -> SegmentView:
    all_changes = []
    for record in stored.changes:
        changes = known.get(record)
        all_changes.append(
            _read_changes(folder, record, len(segment)) if changes is None else changes
        )
    view = SegmentView(segment, tuple(all_changes))
    if np.any(view.deleted[1:] == view.deleted[:-1]):
        path = os.path.join(folder, stored.changes[-1].name)
        raise damage(path, "deleted", "has what is deleted already")
    if min(view.tokens) < 0:
        path = os.path.join(folder, stored.segment.name)
        raise damage(path, "lengths", "does not agree with the manifest")
    return view


def read_segment(file: ArraysFile, tokens: tuple[int, ...]) -> Segment:
    """Return the segment in a file; raise ``CorruptIndexError``."""
    count = len(file.array("lengths", "u4"))
    if not count:
        raise file.reject("lengths", "has no document")
    ids = CheckedStringTable(
        _read_column(file, "ids", count, full=True),
        file.array("ids.keys", "u4", count=count),
        file.array("ids.order", "u4", count=count),
    )
    postings = _postings_type(file)(
        file, read_terms(file, ""), _read_doc_blocks(file, "", count), tokens
    )
    fields = postings.text_fields
    names = () if fields is None or fields.are_analyses else fields.names
    others = [name for name in names if name != TEXT]
    return Segment(
        postings,
        ids,
        _read_texts(file, count),
        _read_column(file, "metadata", count),
        _read_column(file, "payloads", count),
        tokens,
        _read_fields(file, count),
        _read_vectors(file, count),
        {
            name: _read_column(file, f"text_fields.texts.{n}", count)
            for n, name in enumerate(others)
        },
    )


def _postings_type(file: ArraysFile) -> type[CheckedPostings]:
    """Return how postings are read."""
    if "text_fields.counts" not in file:
        return CheckedPostings
    from bm25rag.storage.checked_text_fields import CheckedFieldPostings  # few indexes have fields

    return CheckedFieldPostings


def _read_texts(file: ArraysFile, count: int) -> CheckedColumn:
    if "texts.pieces" not in file:
        return _read_column(file, "texts", count)
    from bm25rag.storage.checked_packed import CheckedPackedColumn  # small indexes have none

    pieces, numbers = file.array("texts.pieces", "u8"), file.array("texts.numbers", "u2")
    offsets = file.array("texts.offsets", "u4", "u8", count=count + 1)
    null = file.array("texts.null", "b1")
    if len(null) not in (0, count):
        raise file.reject("texts.null", f"has {len(null)} elements")
    return CheckedPackedColumn(offsets, numbers, pieces, null, count)


def _read_vectors(file: ArraysFile, count: int) -> CheckedVectors | None:
    if f"{VECTORS}indptr" not in file:
        return None
    terms = read_terms(file, VECTORS)
    return CheckedVectors(file, terms, _read_doc_blocks(file, VECTORS, count), count)


def read_terms(file: ArraysFile, prefix: str) -> CheckedStringTable:
    """Return the table of terms whose arrays have names with a prefix."""
    keys = file.array(f"{prefix}terms.keys", "u4")
    return CheckedStringTable(_read_column(file, f"{prefix}terms", len(keys), full=True), keys)


def _read_doc_blocks(file: ArraysFile, prefix: str, documents: int) -> CheckedDocBlocks:
    count, terms = doc_block_count(documents), file.array(f"{prefix}doc_blocks.terms", "u4")
    edges = file.array(f"{prefix}doc_blocks.edges", "u4", count=len(terms) * (count - 1))
    high = file.array(f"{prefix}doc_blocks.high", "u2")
    if count == 1 and len(terms) + len(high):
        raise file.reject(f"{prefix}doc_blocks.terms", "names blocks where there is only one")
    before = file.array(f"{prefix}doc_blocks.before", "u4", "u8", count=len(terms))
    return CheckedDocBlocks(count, terms, edges, before, high)


def _read_fields(file: ArraysFile, count: int) -> CheckedFields | None:
    """Read the fields of the metadata; a segment without metadata has none."""
    if "fields.counts" not in file:
        return None
    paths, strings = (
        _read_column(file, name, max(len(_offsets(file, name)) - 1, 0), full=True)
        for name in ("fields.paths", "fields.strings")
    )
    from bm25rag.storage.checked_fields import CheckedFields  # many indexes have no metadata

    return CheckedFields(file, count, paths, strings)


def _read_column(file: ArraysFile, name: str, count: int, full: bool = False) -> CheckedColumn:
    offsets = _offsets(file, name)
    null = file.array(f"{name}.null", "b1")
    if len(offsets) != count + 1 and (full or len(offsets)):
        raise file.reject(f"{name}.offsets", f"has {len(offsets)} elements, expected {count + 1}")
    if len(null) and (full or len(null) != count or not len(offsets)):
        raise file.reject(f"{name}.null", f"has {len(null)} elements")
    return CheckedColumn(offsets, file.array(f"{name}.data", "u1"), null, count)


def _offsets(file: ArraysFile, name: str) -> CheckedArray:
    return file.array(f"{name}.offsets", "u4", "u8")


def _read_changes(folder: str, record: FileRecord, count: int) -> Changes:
    path = os.path.join(folder, record.name)
    file = ArraysFile(path, record, mapped=False)
    file.check_all()
    deleted, numbers = (
        file.array(name, "u4").ascending(count, "documents") for name in ("deleted", "changed")
    )
    column = _read_column(file, "metadata", len(numbers))
    changed = zip(numbers.tolist(), (bytes(data or b"") for data in column), strict=True)
    return Changes(deleted, dict(changed), path)


def write_files(
    folder: str,
    commit: int,
    settings: dict[str, Any],
    views: Sequence[SegmentView],
    known: Mapping[Segment | Changes, FileRecord],
    packed: bool = True,
) -> Manifest:
    """Write what is not on disk yet of a commit; return its manifest, which makes it visible.

    The caller holds the lock. ``known`` are the files of segments and sets of changes that are in
    the folder already. ``packed`` is whether texts are.
    """
    written: list[str] = []

    def write(of: Segment | Changes) -> FileRecord:
        record = known.get(of)
        if record is not None:
            return record
        if isinstance(of, Segment):
            path, arrays = new_path(folder, "segment"), _segment_arrays(of, packed)
        else:
            path, arrays = new_path(folder, "changes"), _changes_arrays(of)
        record = write_arrays(path, arrays)
        written.append(path)
        return record

    try:
        stored = [Stored(write(view.segment), tuple(map(write, view.changes))) for view in views]
        flush_folder(folder)
    except BaseException:
        for path in written:
            with suppress(OSError):
                os.unlink(path)
        raise
    tokens = tuple(view.segment.tokens for view in views)
    return Manifest(commit, settings, tuple(stored), tokens, now())


def write_segment(
    folder: str, arrays: Mapping[str, Array | Chunks], tokens: tuple[int, ...]
) -> tuple[Segment, FileRecord]:
    """Write the file of a segment, which no commit names yet, and map it."""
    path = new_path(folder, "segment")
    record = write_arrays(path, arrays)
    return read_segment(ArraysFile(path, record, mapped=True), tokens), record


def new_path(folder: str, kind: str) -> str:
    """Return the path of a new file, a ``segment``, ``changes`` or ``statistics``."""
    return os.path.join(folder, f"{kind}-{os.urandom(8).hex()}.bin")


def _segment_arrays(segment: Segment, packed: bool) -> dict[str, Array | Chunks]:
    segment.check_all()
    # First what searches read: where one page is touched, the system maps 64 KiB around it.
    arrays: dict[str, Array | Chunks] = {**_postings_arrays(segment.postings)}
    arrays |= segment.ids.column.arrays("ids")
    arrays["lengths"] = segment.postings.lengths
    arrays["ids.keys"], arrays["ids.order"] = segment.ids.keys, segment.ids.order
    columns = {
        f"text_fields.texts.{number}": column
        for number, column in enumerate(segment.other_texts.values())
    }
    columns |= {"metadata": segment.metadata, "payloads": segment.payloads}
    fields = segment.fields
    if len(fields.paths):
        arrays |= {f"fields.{name}": values for name, values in fields.arrays.items()}
        columns |= {"fields.paths": fields.paths, "fields.strings": fields.strings}
    if packed:
        from bm25rag.columns.packing import pack_columns  # for writes only

        arrays |= pack_columns("texts", [(segment.texts, None)])
    else:
        arrays |= segment.texts.arrays("texts")
    for name, column in columns.items():
        arrays |= column.arrays(name)
    if segment.vectors is not None:
        from bm25rag.segments.vectors_builder import vector_arrays

        vectors = segment.vectors
        # Parts of a build are not searched.
        rows = vectors.rows if packed else None
        arrays |= vector_arrays(_postings_arrays(vectors), vectors.bounds, rows)
    return arrays


def _postings_arrays(postings: Postings) -> dict[str, Array]:
    names = ("indptr", "documents", "codes", "code_tf", "code_length")
    arrays = {name: getattr(postings, name) for name in names}
    if postings.text_fields is not None:
        arrays |= postings.text_fields.arrays
    blocks = postings.doc_blocks
    arrays["doc_blocks.terms"], arrays["doc_blocks.before"] = blocks.terms, blocks.before
    arrays["doc_blocks.edges"], arrays["doc_blocks.high"] = blocks.edges.ravel(), blocks.high
    arrays["terms.keys"] = postings.terms.keys
    return arrays | postings.terms.column.arrays("terms")


def _changes_arrays(changes: Changes) -> dict[str, Array | Chunks]:
    numbers = sorted(changes.changed)
    column = build_column(changes.changed[number] for number in numbers)
    arrays: dict[str, Array | Chunks] = {"deleted": changes.deleted}
    arrays["changed"] = np.array(numbers, np.uint32)
    return arrays | column.arrays("metadata")


class SavedCopy(NamedTuple):
    """What an index has read from, or saved in, a folder that it is not the writer of."""

    folder: str
    manifest: Manifest
    views: Sequence[SegmentView]

    def files_in(self, folder: str, manifest: Manifest) -> dict[Segment | Changes, FileRecord]:
        """Return the files of a folder that need not be written again: saving may repair one."""
        if (self.folder, self.manifest) != (folder, manifest):
            return {}
        files = files_of(self.views, manifest).items()
        return {of: one for of, one in files if is_whole(os.path.join(folder, one.name), one, True)}


def files_of(
    views: Sequence[SegmentView], manifest: Manifest
) -> dict[Segment | Changes, FileRecord]:
    """Return the file of each segment and set of changes of a commit."""
    files: dict[Segment | Changes, FileRecord] = {}
    for view, stored in zip(views, manifest.stored, strict=True):
        files[view.segment] = stored.segment
        files.update(zip(view.changes, stored.changes, strict=True))
    return files

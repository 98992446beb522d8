"""The folder that a sharded index is read from and written to.

A commit is a folder of its own, with all shards: files that stay as they were are linked
into it. So a reader has all shards of one commit, and a crash leaves the last one whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from bm25rag.analysis import Tokenizer
from bm25rag.building.folder import remove
from bm25rag.common.clock import now
from bm25rag.errors import CorruptIndexError, NotAnIndexError
from bm25rag.segments.changes import Changes
from bm25rag.segments.segment import Segment
from bm25rag.segments.statistics import Statistics
from bm25rag.segments.view import SegmentView
from bm25rag.sharded.manifest import (
    STATISTICS,
    ShardedManifest,
    ShardRecord,
    check_shard,
    clean_sharded,
    commit_folder,
    manifest_checksum,
    read_sharded,
    replace_sharded,
    shard_folder,
    shard_receipt,
)
from bm25rag.sharded.statistics import (
    LocalStatistics,
    merge_statistics,
    read_statistics,
    statistics_id,
    write_statistics,
)
from bm25rag.storage.attachment import MergeSome
from bm25rag.storage.checksummed_file import FileRecord
from bm25rag.storage.folder_lock import lock_folder
from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.fs import flush_folder, link_file
from bm25rag.storage.kept_commits import drop_expired, find_commit
from bm25rag.storage.manifest import SHARDED, Manifest, replace_manifest
from bm25rag.storage.segment_files import SavedCopy, files_of, read_index, write_files
from bm25rag.storage.state import State, parse_settings
from bm25rag.storage.verify import verify_commit

_RETRIES = 20


class Shard(NamedTuple):
    """A shard of a commit, as it is on disk."""

    manifest: Manifest
    views: list[SegmentView]


class ShardedReader(FolderReader):
    """A folder that a sharded index is read from, or ``only`` one shard of it.

    ``sharded`` and ``shards`` are what was read last; without ``only``, of every shard.
    """

    manifest: Manifest

    description = "a sharded index opened with mode='r'"
    manifest_name = SHARDED

    def __init__(
        self,
        folder: str,
        mapped: bool,
        tokenizer: Tokenizer | None,
        untrusted: bool,
        only: int | None = None,
    ) -> None:
        super().__init__(folder, mapped, tokenizer, untrusted)
        self._only = only
        self.sharded: ShardedManifest
        self.shards: list[Shard] = []

    @property
    def shard_count(self) -> int:
        return len(self.sharded.shards)

    def read(self) -> State:
        mark = self._make_mark()
        sharded, shards, statistics = self.read_files()
        views = [view for shard in shards for view in shard.views]
        manifest = Manifest(sharded.commit, sharded.settings, (), (), sharded.time)
        state = self._interpret(manifest, views)
        if self._untrusted and self._only is None:
            check_statistics(self.folder, sharded, shards, statistics)
        part = "" if self._only is None else f"/{self._only}"
        state = state._replace(statistics=statistics, commit_id=sharded.commit_id + part)
        self.sharded, self.shards = sharded, shards
        self.manifest, self._state, self._mark = manifest, state, mark
        return state

    def verify(self, state: State) -> None:
        super().verify(state)
        assert state.statistics is not None
        check_statistics(self.folder, self.sharded, self.shards, state.statistics)

    def read_files(self) -> tuple[ShardedManifest, list[Shard], Statistics]:
        """Read all files of the last commit; raise as ``BM25Index.open``."""
        for attempt in range(_RETRIES):
            sharded = self._read_sharded()
            try:
                return sharded, self._read_shards(sharded), self._read_statistics(sharded)
            except (FileNotFoundError, NotAnIndexError, CorruptIndexError) as error:
                # A writer may have committed and cleaned up in between: read again.
                if self._read_sharded() != sharded and attempt < _RETRIES - 1:
                    continue
                if isinstance(error, CorruptIndexError):
                    raise
                message = f"{error.filename or error}; restore the folder from a copy"
                raise CorruptIndexError(f"a part is missing: {message}") from None
        raise AssertionError("unreachable")

    def _read_sharded(self) -> ShardedManifest:
        return find_commit(self.folder, self.commit, read_sharded)

    def _read_shards(self, sharded: ShardedManifest) -> list[Shard]:
        known = {
            stored: view
            for shard in ([] if self._is_damaged() else self.shards)
            for stored, view in zip(shard.manifest.stored, shard.views, strict=True)
        }
        shards = []
        for number in sharded.numbers(self._only):
            folder = shard_folder(self.folder, sharded.commit, number)
            shard = Shard(*read_index(folder, self._mapped, known))
            check_shard(folder, number, shard.manifest.settings, sharded)
            shards.append(shard)
        return shards

    def _read_statistics(self, sharded: ShardedManifest) -> Statistics:
        before = None if self._state is None else self._state.statistics
        same = before is not None and self.sharded.statistics == sharded.statistics
        if before is not None and same and not self._is_damaged():
            return before
        folder = commit_folder(self.folder, sharded.commit)
        return read_statistics(
            folder, sharded.file, self._mapped, sharded.documents, sharded.tokens
        )

    def saved_copy(self) -> SavedCopy | None:
        """Return nothing: a plain index shares no files with a sharded one."""
        return None

    def _was_read(self) -> bool:
        return read_sharded(self.folder) == self.sharded


def check_statistics(
    folder: str, sharded: ShardedManifest, shards: Sequence[Shard], stored: Statistics
) -> None:
    """Check that stored statistics are those of the shards; raise ``CorruptIndexError``.

    They have been read with the shards: a writer may have removed the file meanwhile.
    """
    parameters = parse_settings(folder, sharded.settings).parameters
    merged = merge_statistics([LocalStatistics(shard.views, parameters) for shard in shards])
    stored.terms.check_all()
    if not sharded.statistics == statistics_id(merged) == statistics_id(stored):
        raise CorruptIndexError(
            f"{os.path.join(commit_folder(folder, sharded.commit), STATISTICS)}: does not agree "
            "with the shards; restore the folder from a copy"
        )


def verify_sharded(folder: str) -> None:
    """Check everything in a folder; needs neither its stemmer nor its tokenizer."""
    reader = ShardedReader(folder, mapped=True, tokenizer=None, untrusted=False)
    sharded, shards, statistics = reader.read_files()
    views = [view for shard in shards for view in shard.views]
    verify_commit(folder, sharded.commit, sharded.settings, views)
    check_statistics(folder, sharded, shards, statistics)


class _Stored(NamedTuple):
    """A file of the last commit, and the folder that it is in."""

    file: FileRecord
    folder: str


class ShardedWriter(FolderWriter):
    """The writer of a sharded index: it knows which shard a segment belongs to."""

    description = "a sharded index that is changed here"

    manifest_name = SHARDED

    _manifest: ShardedManifest  # type: ignore[assignment]
    # Those of the last commit, and of one that is written, by their numbers.
    _shards: dict[int, list[Shard]]
    _shard_of: WeakKeyDictionary[Segment, int]

    @classmethod
    def lock(
        cls, folder: str, timeout: float, empty: Callable[[], State] | None = None
    ) -> ShardedWriter:
        """Take the lock of a folder that holds a sharded index; ``empty`` makes none."""
        read_sharded(folder, writing=True)
        return cls(folder, lock_folder(folder, timeout))

    def take_over(self, reader: FolderReader, state: State) -> None:
        assert isinstance(reader, ShardedReader)
        self.start_from_shards(reader.sharded, reader.shards, state)

    def start_from_shards(
        self, sharded: ShardedManifest, shards: list[Shard], state: State
    ) -> None:
        """Start from the last commit."""
        self._manifest, self._state, self._shards = sharded, state, {sharded.commit: shards}
        self.keep = sharded.settings.get("keep", 0)
        self._shard_of = WeakKeyDictionary()
        for number, shard in enumerate(shards):
            self.assign(shard.views, number)

    @property
    def shard_count(self) -> int:
        return len(self._manifest.shards)

    def assign(self, views: Sequence[SegmentView], shard: int) -> Sequence[SegmentView]:
        """Let segments belong to a shard; return them."""
        for view in views:
            self._shard_of[view.segment] = shard
        return views

    def room(self, views: Sequence[SegmentView]) -> float:
        """Return how many bytes of merged segments the disk has room for in each shard."""
        return super().room(views) / self.shard_count

    def tidy(self, views: Sequence[SegmentView], merge_some: MergeSome) -> Sequence[SegmentView]:
        tidied: list[SegmentView] = []
        for shard, group in enumerate(self.group(views)):
            tidied += self.assign(merge_some(group), shard)
        return tidied

    def replace(self, views: Sequence[SegmentView], merged: Segment) -> None:
        self._shard_of[merged] = self._shard_of[views[0].segment]

    def group(self, views: Sequence[SegmentView]) -> Sequence[list[SegmentView]]:
        """Divide all segments into shards.

        New segments, which are the last ones, belong to the last shard; if that has reached
        its capacity, to a new one.
        """
        groups: list[list[SegmentView]] = [[] for _ in self._manifest.shards]
        for view in views:
            shard = self._shard_of.get(view.segment)
            if shard is None:
                full = sum(one.count for one in groups[-1]) >= self._manifest.capacity
                shard = len(groups) if full else len(groups) - 1
                self._shard_of[view.segment] = shard
            while shard >= len(groups):
                groups.append([])
            groups[shard].append(view)
        return groups

    def _write(self, commit: int, state: State, known: object) -> ShardedManifest:  # type: ignore[override]
        try:
            return self._write_shards(commit, state)
        except BaseException:
            remove(commit_folder(self.folder, commit))  # the disk may be full
            raise

    def _write_shards(self, number: int, state: State) -> ShardedManifest:
        settings = self.settings_of(state)
        groups = self.group(state.views)
        target = commit_folder(self.folder, number)
        remove(target)  # of a commit that was interrupted
        os.makedirs(target)
        each = [LocalStatistics(group, state.parameters) for group in groups]
        statistics = merge_statistics(each)
        id, stored, last = statistics_id(statistics), self._stored(), self._manifest
        written: list[Shard] = []
        for shard, group in enumerate(groups):
            folder = shard_folder(self.folder, number, shard)
            os.mkdir(folder)
            known = _link(group, stored, folder)
            receipt = settings | {"extra": shard_receipt(shard, id)}
            manifest = write_files(folder, number, receipt, group, known)
            replace_manifest(folder, manifest)
            written.append(Shard(manifest, group))
            flush_folder(folder)
        self._shards = {last.commit: self._shards[last.commit], number: written}
        counts = [one.documents for one in each]
        return write_rest(self.folder, number, settings, statistics, id, counts, last.capacity)

    def _replace(self, manifest: ShardedManifest) -> None:  # type: ignore[override]
        replace_sharded(self.folder, manifest)

    def _read(self) -> ShardedManifest:  # type: ignore[override]
        return read_sharded(self.folder)

    def _clean(self) -> None:
        # Or segments that were replaced would take memory, and their files the disk.
        self._shards = {self._manifest.commit: self._shards[self._manifest.commit]}
        kept = drop_expired(self.folder, self._manifest, self.keep, read_sharded)
        clean_sharded(self.folder, self._manifest.commit, *kept)

    def _stored(self) -> dict[Segment | Changes, _Stored]:
        """Return the files of the last commit."""
        stored: dict[Segment | Changes, _Stored] = {}
        for number, shard in enumerate(self._shards[self._manifest.commit]):
            folder = shard_folder(self.folder, self._manifest.commit, number)
            for of, record in files_of(shard.views, shard.manifest).items():
                stored[of] = _Stored(record, folder)
        return stored


def write_rest(
    folder: str,
    commit: int,
    settings: dict[str, Any],
    statistics: Statistics,
    id: str,
    counts: Sequence[int],
    capacity: int,
) -> ShardedManifest:
    """Write the statistics of shards that are written, of so many documents each.

    Return the manifest of the commit, which makes it visible. ``id`` is that of the statistics.
    """
    target = os.path.join(commit_folder(folder, commit), STATISTICS)
    remove(target)  # of a build that was interrupted
    documents, tokens = statistics.documents, statistics.tokens
    file = write_statistics(target, statistics)
    folders = [shard_folder(folder, commit, number) for number in range(len(counts))]
    shards = tuple(map(ShardRecord, counts, map(manifest_checksum, folders)))
    return ShardedManifest(commit, settings, id, documents, tokens, file, shards, capacity, now())


def _link(
    views: Sequence[SegmentView], stored: Mapping[Segment | Changes, _Stored], folder: str
) -> dict[Segment | Changes, FileRecord]:
    """Link the files of segments that are on disk into a folder; return them."""
    known: dict[Segment | Changes, FileRecord] = {}
    for view in views:
        parts: list[Segment | Changes] = [view.segment, *view.changes]
        for of in parts:
            if of in stored:
                record, source = stored[of]
                link_file(os.path.join(source, record.name), os.path.join(folder, record.name))
                known[of] = record
    return known

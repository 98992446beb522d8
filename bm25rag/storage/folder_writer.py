"""The folder that an index is written to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from bm25rag.common.logs import tell
from bm25rag.errors import NotAnIndexError, ReadOnlyError
from bm25rag.segments.changes import Changes
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView
from bm25rag.storage.attachment import Attachment, MergeSome
from bm25rag.storage.checksummed_file import FileRecord
from bm25rag.storage.file_identity import FileMark
from bm25rag.storage.folder_lock import FolderLock, check_target, folder_to_fill, lock_folder
from bm25rag.storage.fs import flush_folder, free_bytes, is_same
from bm25rag.storage.kept_commits import drop_expired, keep_manifest
from bm25rag.storage.manifest import (
    BUILDING,
    Manifest,
    clean,
    manifest_path,
    read_manifest,
    replace_manifest,
)
from bm25rag.storage.segment_files import SavedCopy, files_of, write_files
from bm25rag.storage.state import State, parse_settings

if TYPE_CHECKING:
    from bm25rag.storage.folder_reader import FolderReader


class FolderWriter(Attachment):
    """The writer of a folder: it holds the lock and knows what is on disk."""

    description = "an index that is changed here"
    read_only = False
    packed = True  # whether texts are

    def __init__(self, folder: str, held: FolderLock) -> None:
        self.folder = self.source = folder
        self._file_lock = held
        self._process = os.getpid()
        self._mark = FileMark(folder)
        self._state: State | None = None
        # The shard of each segment, in a sharded index.
        self._shard_of: WeakKeyDictionary[Segment, int] = WeakKeyDictionary()
        # For how many milliseconds commits are kept after a later one has replaced them.
        self.keep: int = 0

    @classmethod
    def lock(
        cls, folder: str, timeout: float, empty: Callable[[], State] | None = None
    ) -> FolderWriter:
        """Take the lock of an index; with ``empty``, make the index first if there is none."""
        try:
            read_manifest(folder, writing=True)
            return cls(folder, lock_folder(folder, timeout))
        except NotAnIndexError:
            if empty is None:
                raise
        check_target(folder)
        state = empty()  # raises what is wrong with it before the folder is made
        with folder_to_fill(folder):
            writer = cls(folder, lock_folder(folder, timeout))
            try:
                check_target(folder)
                if not os.path.exists(manifest_path(folder)):  # or another process was faster
                    writer.commit(state)
            except BaseException:
                writer.close()
                raise
        return writer

    @classmethod
    def write(
        cls, folder: str, state: State, overwrite: bool, saved: SavedCopy | None
    ) -> SavedCopy:
        """Save a state in a folder; files that ``saved`` has there are not written again."""
        check_target(folder)
        with folder_to_fill(folder):
            return cls(folder, lock_folder(folder))._fill(state, overwrite, saved)

    def _fill(self, state: State, overwrite: bool, saved: SavedCopy | None) -> SavedCopy:
        folder, known = self.folder, dict[Segment | Changes, FileRecord]()
        try:
            check_target(folder)
            if os.path.exists(manifest_path(folder)):
                if not overwrite:
                    raise FileExistsError(f"{folder} holds an index; overwrite=True replaces it")
                manifest = read_manifest(folder)
                known = {} if saved is None else saved.files_in(folder, manifest)
                self.start_from(manifest._replace(stored=(), tokens=()))
            self.commit(state, known)
            return SavedCopy(folder, self.manifest, state.views)
        finally:
            self.close()

    def room(self, views: Sequence[SegmentView]) -> float:
        """Return how many bytes of merged segments the disk has room for, and as many again.

        A full disk must not keep anybody from deleting: what is not merged is so later. The file
        of a segment may take a seventh more than is known before, and a commit has other files.
        """
        stored = {view.segment for view in self.last.views}
        new = sum(view.segment.nbytes for view in views if view.segment not in stored)
        return (free_bytes(self.folder) - new) / 2 / max(1, self.manifest.shard_count)

    def tidy(self, views: Sequence[SegmentView], merge_some: MergeSome) -> Sequence[SegmentView]:
        """Merge as much as a write may in each shard, given the segments that it has left."""
        if self.manifest.shards is None:
            return merge_some(views)
        each = [merge_some(group) for group in self.group(views)]
        for shard, group in enumerate(each):
            self._assign(group, shard)
        return [*chain.from_iterable(each)]

    def replace(self, views: Sequence[SegmentView], merged: Segment) -> None:
        if views[0].segment in self._shard_of:
            self._shard_of[merged] = self._shard_of[views[0].segment]

    def group(self, views: Sequence[SegmentView]) -> Sequence[Sequence[SegmentView]]:
        """Divide all segments into shards.

        New segments, which are the last ones, belong to the last shard; if that has reached its
        capacity, to a new one.
        """
        if (shards := self.manifest.shards) is None:
            return [views]
        groups: list[list[SegmentView]] = [[] for _ in shards.segments]
        for view in views:
            shard = self._shard_of.get(view.segment)
            if shard is None:
                full = sum(one.count for one in groups[-1]) >= shards.capacity
                shard = len(groups) if full else len(groups) - 1
                self._shard_of[view.segment] = shard
            while shard >= len(groups):
                groups.append([])
            groups[shard].append(view)
        return groups

    def _assign(self, views: Sequence[SegmentView], shard: int) -> None:
        for view in views:
            self._shard_of[view.segment] = shard

    @property
    def last(self) -> State:
        """The state of the last commit."""
        if self._state is None:
            raise AssertionError("a folder is read before it is written to")
        return self._state

    def take_over(self, reader: FolderReader, state: State) -> None:
        """Start from what has been read of the folder while it was locked."""
        self.start_from(reader.manifest, state.views)
        self._state = state
        if os.path.isdir(os.path.join(self.folder, BUILDING)):
            from bm25rag.storage.leftovers import remove_building  # few builds are killed

            remove_building(self.folder)

    def start_from(self, manifest: Manifest, views: Sequence[SegmentView] = ()) -> None:
        """Start from the manifest of the last commit, and its segments."""
        self.manifest = manifest
        if manifest.shards is not None:
            for shard, (first, last) in enumerate(pairwise(manifest.shards.edges)):
                self._assign(views[first:last], shard)
        self.keep = manifest.settings.get("keep", 0)

    def holds(self, folder: str) -> bool:
        """Whether this is the writer of ``folder``."""
        return is_same(self.folder, folder)

    def commit(
        self, state: State, known: Mapping[Segment | Changes, FileRecord] | None = None
    ) -> None:
        """Make a state durable; the ``known`` files (``None``: the last commit's) are there."""
        self.check_place()
        if self.keep and self.manifest.commit:
            keep_manifest(self.folder, self.manifest.commit)
        manifest = self._write(self.manifest.commit + 1, state, known)
        # From here on the commit may be visible, so its files stay, whatever fails.
        try:
            replace_manifest(self.folder, manifest)
        except BaseException:
            # An interrupt may have come after the commit became visible.
            with suppress(OSError):
                if read_manifest(self.folder).commit == manifest.commit:
                    self._install(manifest, state)
            raise
        # It is visible now, so a rollback goes back to it even if the flush fails.
        self._install(manifest, state)
        flush_folder(self.folder)
        kept = drop_expired(self.folder, self.manifest, self.keep)
        clean(self.folder, self.manifest, *kept.values())

    def _write(
        self, commit: int, state: State, known: Mapping[Segment | Changes, FileRecord] | None
    ) -> Manifest:
        """Write everything of a commit but its manifest."""
        if known is None:
            known = {} if self._state is None else files_of(self._state.views, self.manifest)
        written = (self.settings_of(state), state.views, known, self.packed)
        if (before := self.manifest.shards) is None:
            return write_files(self.folder, commit, *written)
        from bm25rag.storage.shard_statistics import count_shards  # few indexes are sharded

        segments = tuple(map(len, self.group(state.views)))
        shards = count_shards(self.folder, state, segments, before.capacity)
        try:
            return write_files(self.folder, commit, *written)._replace(shards=shards)
        except BaseException:
            with suppress(OSError):  # the disk may be full
                os.unlink(os.path.join(self.folder, shards.statistics.name))
            raise

    def check_place(self) -> None:
        """Raise if this is another process or another folder than the one that took the lock."""
        if not self.ours:
            raise ReadOnlyError("this writer was opened by another process, before a fork")
        try:
            other = None if self._mark.is_in_place() else "another folder than this writer opened"
        except (FileNotFoundError, NotADirectoryError):
            other = "not there any more"
        if other is not None:
            raise NotAnIndexError(
                f"{self.folder} is {other}: that was moved or removed; what was committed before "
                "is where it was moved to: move it back and commit() again, or save() elsewhere"
            )

    def settings_of(self, state: State) -> dict[str, Any]:
        """Return what the manifest of a commit holds beside its files."""
        settings = {name: one for name, one in state.settings().items() if name != "keep"}
        settings |= {"keep": self.keep} if self.keep else {}
        parse_settings(self.folder, settings)  # what could not be read again is not written
        return settings

    def _install(self, manifest: Manifest, state: State) -> None:
        """Make what is visible in the folder the last commit."""
        self.manifest, self._state = manifest, state._replace(commit_id=manifest.commit_id)
        count, segments = sum(view.count for view in state.views), len(state.views)
        message = "committed %s in %s: %d documents in %d segments"
        tell("commits", message, manifest.commit_id, self.folder, count, segments)

    @property
    def ours(self) -> bool:
        """Whether this process opened it, and not a process that it was forked from."""
        return self._process == os.getpid()

    def close(self) -> None:
        """Give up the lock."""
        if self.ours:
            self._file_lock.release()

"""The folder that an index is written to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bm25rag.common.clock import iso_time
from bm25rag.common.logs import tell
from bm25rag.errors import NotAnIndexError, ReadOnlyError
from bm25rag.segments.changes import Changes
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView
from bm25rag.storage.attachment import Attachment
from bm25rag.storage.checksummed_file import FileRecord
from bm25rag.storage.file_identity import FileMark
from bm25rag.storage.folder_lock import FolderLock, check_target, folder_to_fill, lock_folder
from bm25rag.storage.fs import flush_folder, free_bytes, is_same
from bm25rag.storage.kept_commits import drop_expired, keep_manifest
from bm25rag.storage.manifest import (
    MANIFEST,
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
    manifest_name = MANIFEST

    def __init__(self, folder: str, held: FolderLock) -> None:
        self.folder: str = folder
        self._file_lock = held
        self._process = os.getpid()
        self._mark = FileMark(folder)
        self._manifest = Manifest(0, {}, (), ())
        self._state: State | None = None
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
            return SavedCopy(folder, self._manifest, state.views)
        finally:
            self.close()

    @property
    def source(self) -> str | None:
        return self.folder

    @property
    def committed(self) -> str | None:
        return iso_time(self._manifest.time)

    def room(self, views: Sequence[SegmentView]) -> float:
        """Return how many bytes of merged segments the disk has room for, and as many again.

        A full disk must not keep anybody from deleting: what is not merged is so later. The file
        of a segment may take a seventh more than is known before, and a commit has other files.
        """
        stored = {view.segment for view in self.last.views}
        new = sum(view.segment.nbytes for view in views if view.segment not in stored)
        return (free_bytes(self.folder) - new) / 2

    @property
    def last(self) -> State:
        """The state of the last commit."""
        if self._state is None:
            raise AssertionError("a folder is read before it is written to")
        return self._state

    def take_over(self, reader: FolderReader, state: State) -> None:
        """Start from what has been read of the folder while it was locked."""
        self.start_from(reader.manifest)
        self._state = state

    def start_from(self, manifest: Manifest) -> None:
        """Start from the manifest of the last commit."""
        self._manifest = manifest
        self.keep = manifest.settings.get("keep", 0)

    def holds(self, folder: str) -> bool:
        """Whether this is the writer of ``folder``."""
        return is_same(self.folder, folder)

    def commit(
        self, state: State, known: Mapping[Segment | Changes, FileRecord] | None = None
    ) -> None:
        """Make a state durable; the ``known`` files (``None``: the last commit's) are there."""
        self.check_place()
        if self.keep and self._manifest.commit:
            keep_manifest(self.folder, self.manifest_name, self._manifest.commit)
        manifest = self._write(self._manifest.commit + 1, state, known)
        # From here on the commit may be visible, so its files stay, whatever fails.
        try:
            self._replace(manifest)
        except BaseException:
            # An interrupt may have come after the commit became visible.
            with suppress(OSError):
                if self._read().commit == manifest.commit:
                    self._install(manifest, state)
            raise
        # It is visible now, so a rollback goes back to it even if the flush fails.
        self._install(manifest, state)
        flush_folder(self.folder)
        self._clean()

    def _write(
        self, commit: int, state: State, known: Mapping[Segment | Changes, FileRecord] | None
    ) -> Manifest:
        """Write everything of a commit but its manifest."""
        if known is None:
            known = {} if self._state is None else files_of(self._state.views, self._manifest)
        settings = self.settings_of(state)
        return write_files(self.folder, commit, settings, state.views, known, self.packed)

    def _replace(self, manifest: Manifest) -> None:
        replace_manifest(self.folder, manifest)

    def _read(self) -> Manifest:
        return read_manifest(self.folder)

    def _clean(self) -> None:
        """Remove what neither the last commit nor one that is kept needs."""
        kept = drop_expired(self.folder, self._manifest, self.keep, read_manifest)
        clean(self.folder, self._manifest, *kept.values())

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
        self._manifest, self._state = manifest, state._replace(commit_id=manifest.commit_id)
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

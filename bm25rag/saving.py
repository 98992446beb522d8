"""Saver: the folder of an index: opening, following and replacing what is on disk."""

from __future__ import annotations

import threading
import warnings
from os import PathLike
from os.path import realpath
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, get_args

from bm25rag.analysis.analyzer import Tokenizer
from bm25rag.common.checks import check_choice, check_real
from bm25rag.errors import ReadOnlyError, StorageError
from bm25rag.filters.values import fresh
from bm25rag.search.snapshot import Snapshot
from bm25rag.storage.folder import (
    FolderReader,
    FolderWriter,
    SavedCopy,
    State,
    check_extra,
    verify_folder,
)
from bm25rag.writer import Writer

Mode: TypeAlias = Literal["r", "w"]
"""How a folder is opened."""


class Saver(Writer):
    """What ``BM25Index`` inherits beside reading and writing: saving, opening, committing."""

    _extra: dict[str, Any]
    _store: FolderWriter | None
    _source: FolderReader | None
    # What was last saved in a folder that this is not the writer of.
    _kept: SavedCopy | None

    @property
    def extra(self) -> dict[str, Any]:
        """What was last saved beside the index for a caller's own use; a fresh copy."""
        extra: dict[str, Any] = fresh(self._extra)
        return extra

    def save(
        self,
        path: str | PathLike[str],
        extra: dict[str, Any] | None = None,
        overwrite: bool = True,
    ) -> None:
        """Save the index in a folder, in one atomic step.

        A folder that holds an index is replaced: until the last moment it opens to the
        old one, then to the new. In the folder that it was last saved in, or that it is a
        copy of, only what is new is written, unless another has written there since.

        Parameters
        ----------
        path
            The folder; made if it is missing.
        extra
            JSON values to keep with the index, in the same atomic step: the settings of
            an adapter, say. ``None`` keeps those of the last time.
        overwrite
            Whether to replace an index that the folder holds.

        Raises
        ------
        FileExistsError
            If the folder holds an index and ``overwrite`` is false.
        NotAnIndexError
            If the folder holds something else.
        LockedError
            If a writer has the folder open.
        OSError
            If the disk refuses; what the folder held is still there.
        """
        folder = Path(realpath(path))
        before = self._extra
        if extra is not None:
            self._extra = check_extra(extra)
        try:
            if self._store is not None and self._store.holds(folder):
                self.commit()
                return
            with self._locked():
                self._kept = FolderWriter.write(folder, self._state(), overwrite, self._kept)
        except BaseException:
            self._extra = before  # what was not saved is not kept for the next time
            raise

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        mode: Mode = "r",
        mmap: bool = True,
        tokenizer: Tokenizer | None = None,
        verify: bool = False,
        untrusted: bool = False,
        timeout: float = 0.0,
    ) -> Self:
        """Open a saved index.

        Parameters
        ----------
        path
            The folder.
        mode
            ``"r"`` for a reader; ``"w"`` for the one writer, which locks the folder and
            has ``commit``, ``rollback`` and ``close``.
        mmap
            Whether to map the files, which takes milliseconds and shares memory with
            other processes, or to read them.
        tokenizer
            The callable of an analyzer that was made with one.
        verify
            Whether to check all now, as ``verify`` does, and not each part before its first use.
        untrusted
            Whether the folder may come from a stranger: refuses an analyzer with a
            ``token_pattern`` of its own, which could keep a search busy without end, and
            verifies; also at every ``refresh``.
        timeout
            How many seconds ``mode="w"`` waits for another writer to close, >= 0.

        Raises
        ------
        NotAnIndexError
            If the folder holds no index.
        FormatVersionError
            If a newer bm25rag wrote it.
        CorruptIndexError
            If a file is damaged.
        LockedError
            If ``mode`` is ``"w"`` and another writer still has the folder open.
        UntrustedIndexError
            If ``untrusted`` and the folder holds what a stranger could misuse.
        TokenizerRequiredError
            If the analyzer was made with a callable and ``tokenizer`` is missing.

        Warns
        -----
        AnalyzerChangedWarning
            If the installed stemmer gives other stems than those indexed.
        """
        check_choice("mode", mode, get_args(Mode))
        seconds = check_real("timeout", timeout, 0.0, threading.TIMEOUT_MAX)
        folder = Path(realpath(path))
        store = FolderWriter.lock(folder, seconds) if mode == "w" else None
        source = FolderReader(folder, mmap, tokenizer, untrusted)
        try:
            state = source.read()
            if verify:
                state.check_all()
        except BaseException:
            if store is not None:
                store.close()
            raise
        index = cls.__new__(cls)
        index.__setstate__(state)
        if store is None:
            index._source, index._why_read_only = source, "an index opened with mode='r'"
        else:
            store.take_over(source.manifest, state)
            index._store = store
        return index

    def refresh(self) -> bool:
        """Go to the last commit of the folder, as another process may have made it.

        Takes milliseconds, and some microseconds if there is none: what is open already
        stays open. Searches in other threads see the state before or after, and a snapshot
        taken earlier keeps its own.

        Returns
        -------
        changed
            Whether there was a newer commit.

        Raises
        ------
        StorageError
            If this is no reader opened from a folder.
        NotAnIndexError
            If the folder holds no index any more; what was opened can still be searched.
        CorruptIndexError
            If a file is damaged; what was opened can still be searched.
        """
        with self._locked():
            if self._source is None:
                who = self._why_read_only or "an index that is changed here"
                raise StorageError(f"refresh needs an index opened with mode='r'; this is {who}")
            moved = self._source.has_moved()
            if moved:
                self._load(self._source.read())
        return moved

    @classmethod
    def verify(cls, path: str | PathLike[str]) -> None:
        """Check every byte of a saved index, and that its files say what bm25rag would write.

        It reads the whole index. ``docs/format.md`` lists what is checked.

        Parameters
        ----------
        path
            The folder.

        Raises
        ------
        NotAnIndexError
            If the folder holds no index.
        FormatVersionError
            If a newer bm25rag wrote it.
        CorruptIndexError
            If a file is damaged; the message names it.
        """
        verify_folder(Path(path))

    def commit(self) -> None:
        """Make the changes since the last commit durable, in one atomic step.

        Raises
        ------
        ReadOnlyError
            If the index was not opened with ``mode="w"``.
        OSError
            If the disk refuses or a flush fails; the last commit is still there, or, if
            only the last flush failed, the new one. The next commit writes new files.
        """
        with self._writing():
            self._writer().commit(self._state())

    def rollback(self) -> None:
        """Go back to the last commit.

        Raises
        ------
        ReadOnlyError
            If the index was not opened with ``mode="w"``.
        """
        with self._writing():
            self._load(self._writer().last)

    def close(self) -> None:
        """Give up the writer's lock, without a commit; without a lock, do nothing.

        Warns
        -----
        ResourceWarning
            If there are changes since the last commit, which are lost.
        """
        if self._release():
            warnings.warn(
                "closed without the changes since the last commit(): call commit() "
                "before close(), or rollback() to drop them",
                ResourceWarning,
                stacklevel=2,
            )

    def _release(self) -> bool:
        """Give up the writer's lock; return whether changes are lost with it."""
        with self._locked():
            store, now, kept = self._store, list(self._snapshot.views), self._kept
            if store is None:
                return False
            store.close()
            self._store, self._why_read_only = None, "a writer that was closed"
            return store.ours and now != store.last.views and (kept is None or now != kept.views)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._store is not None:
                self.commit() if error is None else self.rollback()
        finally:
            self._release()

    def _writer(self) -> FolderWriter:
        if self._store is None:
            raise ReadOnlyError(
                "commit and rollback need an index opened with mode='w'; use save(path)"
            )
        return self._store

    # --- state ----------------------------------------------------------------

    def _state(self) -> State:
        snapshot = self._snapshot
        return State(
            snapshot.analyzer,
            snapshot.parameters,
            list(snapshot.views),
            self._next_id,
            self._probe,
            self._extra,
        )

    def _load(self, state: State) -> None:
        self._snapshot = Snapshot(state.views, state.parameters, state.analyzer)
        self._next_id, self._probe, self._extra = state.next_id, state.probe, state.extra

    def __copy__(self) -> Self:
        copy = type(self).__new__(type(self))
        copy.__setstate__(self._state())
        copy._kept = self._kept if self._source is None else self._source.kept()
        return copy

    def __getstate__(self) -> State:
        return self._state()

    def __setstate__(self, state: State) -> None:
        self._load(state)
        self._why_read_only, self._store, self._source, self._kept = None, None, None, None
        self._renew_lock()

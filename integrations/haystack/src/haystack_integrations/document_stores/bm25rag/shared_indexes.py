"""The open indexes that stores of a process share: in memory by name, in folders by path."""

from __future__ import annotations

import atexit
import copy
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

from haystack import logging

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import Tokenizer, is_url
from bm25rag.errors import LockedError, NotAnIndexError, TokenizerRequiredError

logger = logging.getLogger(__name__)


class SharedIndex(Protocol):
    """An index that the stores of a process share."""

    @property
    def current(self) -> BM25Index:
        """The current state of the index, for reading; it never changes."""

    def writing(self, timeout: float, delay: float) -> AbstractContextManager[BM25Index]:
        """Give the index to one writer, then show the result to readers.

        The writers of this process wait for one another. ``timeout`` is how many seconds a writer
        then waits for a writer in another process, ``delay`` in how many the write is committed.
        """

    def commit(self) -> None:
        """Commit what is not yet committed."""


class MemoryIndex:
    """An index in memory."""

    def __init__(self, index: BM25Index) -> None:
        self._written = index
        self.renew_locks()
        self.current = index.snapshot()

    def renew_locks(self) -> None:
        """Make new locks, in a process where no thread can hold them."""
        self._lock = threading.Lock()

    def load(self, given: dict[str, Any], timeout: float) -> None:
        """Do nothing: an index in memory needs no loading."""

    def commit(self) -> None:
        """Do nothing: there is nothing to commit to."""

    @contextmanager
    def writing(self, timeout: float, delay: float) -> Iterator[BM25Index]:
        """Give the index to one writer, then show the result to readers."""
        with self._lock:
            yield self._written
            self.current = self._written.snapshot()


class FolderIndex:
    """An index in a folder, which is locked only from a write to its commit.

    A write opens the last commit, whichever process made it. Later writes, until the commit, go to
    the same writer, and reads read from it. Otherwise every read checks for a newer commit. An
    index behind a URL is only read, and stays at its commit.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = path
        # A request for every read would take longer than the read.
        self._follows = not is_url(path)
        self.renew_locks()
        self._reader: BM25Index
        self._current: BM25Index
        self._tokenizer: Tokenizer | None = None
        # Open while there is something to commit.
        self._writer: BM25Index | None = None
        self._timer: threading.Timer | None = None

    def renew_locks(self) -> None:
        """Make new locks, in a process where no thread can hold them."""
        self._write_lock = threading.Lock()
        # Held for milliseconds, and never during a write.
        self._read_lock = threading.Lock()

    def forget_writer(self) -> None:
        """Leave what is not committed to the parent, in a child process."""
        if self._writer is not None:
            _LEFT_TO_PARENTS.append(self._writer)  # which must not close it
        self._writer = self._timer = None

    def load(self, given: dict[str, Any], timeout: float) -> None:
        """Read the last commit; make an empty index first if there is none yet."""
        analyzer = given.get("analyzer")
        with self._read_lock:
            if self._writer is not None:
                return  # it was loaded, and has changed since
            try:
                self._reader = self._open(analyzer)
            except NotAnIndexError:
                if not self._follows:
                    raise
                BM25Index.open(self._path, mode="a", timeout=_seconds(timeout), **given).close()
                self._reader = self._open(analyzer)
            self._tokenizer = self._reader.analyzer.tokenizer
            self._current = self._reader.snapshot()

    def _open(self, analyzer: Analyzer | None) -> BM25Index:
        try:
            return BM25Index.open(self._path)
        except TokenizerRequiredError as error:
            # The first tokenizer stays: stores that share an index cannot differ in it.
            tokenizer = self._tokenizer or (None if analyzer is None else analyzer.tokenizer)
            if tokenizer is None:
                message = (
                    f"the index at {str(self._path)!r} was made with a custom tokenizer: "
                    "give the store analyzer=Analyzer(tokenizer=...) with that function"
                )
                raise TokenizerRequiredError(message) from error
            return BM25Index.open(self._path, tokenizer=tokenizer)

    @property
    def current(self) -> BM25Index:
        """The last write of this process, or the last commit, whichever process made it."""
        return self._refresh()

    def _refresh(self) -> BM25Index:
        with self._read_lock:
            # If the folder is gone, the last commit that was read stays.
            with suppress(NotAnIndexError):
                if self._follows and self not in _UNCOMMITTED and self._reader.refresh():
                    self._current = self._reader.snapshot()
            return self._current

    @contextmanager
    def writing(self, timeout: float, delay: float) -> Iterator[BM25Index]:
        """Give the index to one writer; discard its changes on failure, commit in time."""
        with self._write_lock:
            if self._writer is None:
                self._writer = self._open_writer(timeout)
            try:
                yield self._writer
                if delay:
                    self._show(self._writer, delay)
                else:
                    self._commit(self._writer)
            except BaseException:
                # A write that fails changes nothing. What was promised earlier stays.
                if self not in _UNCOMMITTED:
                    self._writer.rollback()
                    self._end_writer(self._writer)
                raise

    def _show(self, writer: BM25Index, delay: float) -> None:
        with self._read_lock:
            self._current = writer.snapshot()
            _UNCOMMITTED.add(self)
        if self._timer is None and delay < threading.TIMEOUT_MAX:
            self._timer = threading.Timer(delay, self._commit_late, [delay])
            self._timer.daemon = True  # the end of the process commits
            self._timer.start()

    def _commit_late(self, delay: float) -> None:
        try:
            self.commit()
        except Exception as error:
            logger.error(
                "Writes to '{path}' are not committed yet, and would be lost: {error}. The next "
                "write tries again, and so does close()",
                path=str(self._path),
                error=f"{type(error).__name__}: {error}",
            )
            self._timer = None

    def commit(self) -> None:
        """Commit what is not yet committed."""
        with self._write_lock:
            if self._writer is not None:
                self._commit(self._writer)

    def _commit(self, writer: BM25Index) -> None:
        writer.commit()
        self._end_writer(writer)
        # Here and not in the next read: releasing deleted files takes milliseconds.
        self._refresh()

    def _end_writer(self, writer: BM25Index) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._writer = self._timer = None
        _UNCOMMITTED.discard(self)
        writer.close()

    def _open_writer(self, timeout: float) -> BM25Index:
        tokenizer, seconds = self.current.analyzer.tokenizer, _seconds(timeout)
        try:
            return BM25Index.open(self._path, mode="w", tokenizer=tokenizer, timeout=seconds)
        except LockedError as error:
            message = (
                f"another process was still writing to {str(self._path)!r} after {timeout:g} "
                "seconds: write again later, or give the store a longer lock_timeout"
            )
            raise LockedError(message) from error


def _seconds(timeout: float) -> float:
    return min(timeout, threading.TIMEOUT_MAX)


# Indexes with writes to commit, until that is done, whether or not a store still has them.
_UNCOMMITTED: set[FolderIndex] = set()
_LEFT_TO_PARENTS: list[BM25Index] = []
_OPEN: WeakValueDictionary[Path | str, MemoryIndex | FolderIndex] = WeakValueDictionary()
# Held to look up and to register, never to open: waiting for one folder blocks no other store.
_OPEN_LOCK = threading.Lock()


def open_shared_index(
    location: Path | str, given: dict[str, Any], timeout: float, content: BM25Index | None = None
) -> SharedIndex:
    """Return the index at a location; make it if there is none.

    Parameters
    ----------
    location
        The path or URL of a folder, or the name of an index in memory, which lives while a store
        has it.
    given
        The arguments of ``BM25Index`` that were given.
    timeout
        How many seconds to wait while another process makes the folder's index.
    content
        What a new index in memory holds; ``None`` for nothing.

    Raises
    ------
    ValueError
        If the existing index has a different analyzer or different parameters.
    """
    empty = BM25Index(**given)  # checks them
    shared: MemoryIndex | FolderIndex
    with _OPEN_LOCK:
        if isinstance(location, str) and not is_url(location):
            index = MemoryIndex(empty if content is None else copy.copy(content))
            shared = _OPEN.setdefault(location, index)
        else:
            location = location.resolve() if isinstance(location, Path) else location
            shared = _OPEN.setdefault(location, FolderIndex(location))
    shared.load(given, timeout)
    current = shared.current
    for name, value in given.items():
        _check_same(name, value, getattr(current, name), location)
    return shared


def _renew_locks() -> None:
    """Replace the locks after a fork: threads that hold them do not exist in the child."""
    global _OPEN_LOCK
    _OPEN_LOCK = threading.Lock()
    for shared in list(_OPEN.values()):
        shared.renew_locks()
        if isinstance(shared, FolderIndex):
            shared.forget_writer()
    _UNCOMMITTED.clear()


@atexit.register
def _commit_all() -> None:
    """Commit at the end of the process what a store was to commit later."""
    for shared in list(_UNCOMMITTED):
        shared.commit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _check_same(
    name: str, given: Analyzer | str | float, existing: object, location: Path | str
) -> None:
    if given != existing:
        message = (
            f"{name} is {given!r}, but the index at {str(location)!r} was made with {existing!r}: "
            f"leave {name} out, or change a folder with bm25rag itself (tune, reanalyze, save)"
        )
        raise ValueError(message)

"""The open indexes that stores of a process share: in memory by name, in folders by path."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import Tokenizer, is_url
from bm25rag.errors import LockedError, NotAnIndexError, TokenizerRequiredError


class SharedIndex(Protocol):
    """An index that the stores of a process share."""

    @property
    def current(self) -> BM25Index:
        """The current state of the index, for reading; it never changes."""

    def writing(self, timeout: float) -> AbstractContextManager[BM25Index]:
        """Give the index to one writer, then show the result to readers.

        The writers of this process wait for one another. ``timeout`` is how many seconds a writer
        then waits for a writer in another process.
        """


class MemoryIndex:
    """An index in memory."""

    def __init__(self, index: BM25Index) -> None:
        self._written = index
        self.renew_locks()
        self.current = index.snapshot()

    def renew_locks(self) -> None:
        """Make new locks, in a process where no thread can hold them."""
        self._lock = threading.Lock()

    def load(self, empty: BM25Index, timeout: float) -> None:
        """Do nothing: an index in memory needs no loading."""

    @contextmanager
    def writing(self, timeout: float) -> Iterator[BM25Index]:
        """Give the index to one writer, then show the result to readers."""
        with self._lock:
            yield self._written
            self.current = self._written.snapshot()


class FolderIndex:
    """An index in a folder, which is locked only during writes.

    Every write opens the last commit, whichever process made it, and commits again. Every read
    checks for a newer commit. An index behind a URL is only read, and stays at its commit.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = path
        # A request for every read would take longer than the read.
        self._follows = not is_url(path)
        self.renew_locks()
        self._reader: BM25Index
        self._current: BM25Index
        self._tokenizer: Tokenizer | None = None

    def renew_locks(self) -> None:
        """Make new locks, in a process where no thread can hold them."""
        self._write_lock = threading.Lock()
        # Held for milliseconds, and never during a write.
        self._read_lock = threading.Lock()

    def load(self, empty: BM25Index, timeout: float) -> None:
        """Read the last commit; save ``empty`` first if there is no index yet."""
        with self._read_lock:
            try:
                self._reader = self._open(empty.analyzer)
            except NotAnIndexError:
                if not self._follows:
                    raise
                self._make(empty, timeout)  # refuses a folder that holds anything else
                self._reader = self._open(empty.analyzer)
            self._tokenizer = self._reader.analyzer.tokenizer
            self._current = self._reader.snapshot()

    def _open(self, analyzer: Analyzer) -> BM25Index:
        try:
            return BM25Index.open(self._path)
        except TokenizerRequiredError as error:
            # The first tokenizer stays: stores that share an index cannot differ in it.
            tokenizer = self._tokenizer or analyzer.tokenizer
            if tokenizer is None:
                message = (
                    f"the index at {str(self._path)!r} was made with a custom tokenizer: "
                    "give the store analyzer=Analyzer(tokenizer=...) with that function"
                )
                raise TokenizerRequiredError(message) from error
            return BM25Index.open(self._path, tokenizer=tokenizer)

    def _make(self, empty: BM25Index, timeout: float) -> None:
        """Save ``empty``, unless another process makes the index first."""
        until = time.monotonic() + timeout
        while True:
            try:
                return empty.save(self._path, overwrite=False)
            except FileExistsError:
                return None
            except LockedError:  # the other process is saving, which takes milliseconds
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    @property
    def current(self) -> BM25Index:
        """The last commit, whichever process made it."""
        return self._refresh()

    def _refresh(self) -> BM25Index:
        with self._read_lock:
            # If the folder is gone, the last commit that was read stays.
            with suppress(NotAnIndexError):
                if self._follows and self._reader.refresh():
                    self._current = self._reader.snapshot()
            return self._current

    @contextmanager
    def writing(self, timeout: float) -> Iterator[BM25Index]:
        """Give the index to one writer; commit on success, discard the changes on failure."""
        tokenizer = self.current.analyzer.tokenizer
        with self._write_lock:
            with self._open_writer(tokenizer, timeout) as index:
                yield index
            # Here and not in the next read: releasing deleted files takes milliseconds.
            self._refresh()

    def _open_writer(self, tokenizer: Tokenizer | None, timeout: float) -> BM25Index:
        seconds = min(timeout, threading.TIMEOUT_MAX)
        try:
            return BM25Index.open(self._path, mode="w", tokenizer=tokenizer, timeout=seconds)
        except LockedError as error:
            message = (
                f"another process was still writing to {str(self._path)!r} after {timeout:g} "
                "seconds: write again later, or give the store a longer lock_timeout"
            )
            raise LockedError(message) from error


_OPEN: WeakValueDictionary[Path | str, MemoryIndex | FolderIndex] = WeakValueDictionary()
# Held to look up and to register, never to open: waiting for one folder blocks no other store.
_OPEN_LOCK = threading.Lock()


def open_shared_index(location: Path | str, given: dict[str, Any], timeout: float) -> SharedIndex:
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

    Raises
    ------
    ValueError
        If the existing index has a different analyzer or different parameters.
    """
    empty = BM25Index(**given)
    shared: MemoryIndex | FolderIndex
    with _OPEN_LOCK:
        if isinstance(location, str) and not is_url(location):
            shared = _OPEN.setdefault(location, MemoryIndex(empty))
        else:
            location = location.resolve() if isinstance(location, Path) else location
            shared = _OPEN.setdefault(location, FolderIndex(location))
    shared.load(empty, timeout)
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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _check_same(
    name: str, given: Analyzer | str | float, existing: object, location: Path | str
) -> None:
    same = given == existing
    if isinstance(given, Analyzer) and isinstance(existing, Analyzer):
        same = existing.satisfies(given)
    if not same:
        message = (
            f"{name} is {given!r}, but the index at {str(location)!r} was made with {existing!r}: "
            f"leave {name} out, or change a folder with bm25rag itself (tune, reanalyze, save)"
        )
        raise ValueError(message)

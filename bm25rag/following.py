"""One index for all readers and writers of a process, such as the threads of a service.

A reader takes ``current``, a snapshot, and never waits for a writer. A folder is locked only while
it is written to, so other processes may write to it as well, and readers see the commits of all.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import TIMEOUT_MAX, Timer
from typing import Any
from weakref import WeakValueDictionary

from bm25rag.analysis import Analyzer
from bm25rag.common.checks import check_real
from bm25rag.common.urls import is_url, local_path
from bm25rag.errors import NotAnIndexError, TokenizerRequiredError
from bm25rag.forks import call_at_end
from bm25rag.index import BM25Index
from bm25rag.live.write_lock import WriteLock
from bm25rag.scoring.variants import DeltaOn, VariantName
from bm25rag.storage.state import check_settings

__all__ = ["FollowedFolder", "SharedIndex", "follow", "share"]

_log = logging.getLogger(__name__)


class SharedIndex:
    """An index in memory for the readers and writers of a process; ``share`` returns it."""

    def __init__(self, index: BM25Index) -> None:
        self._lock = WriteLock()
        self._index = index
        self.current: BM25Index = index.snapshot()

    @contextmanager
    def writing(self) -> Iterator[BM25Index]:
        """Give the index to one writer, then show the result to readers.

        The writers wait for one another. An error leaves the index as it was.
        """
        with self._lock.taken(), self._index._live.all_or_nothing():
            yield self._index
            self.current = self._index.snapshot()

    def commit(self) -> None:
        """Do nothing: there is nothing to commit to."""


class FollowedFolder:
    """The index in a folder for the readers and writers of a process; ``follow`` returns it."""

    def __init__(self, path: str) -> None:
        self._lock = WriteLock()
        self._path = path
        self._reader: BM25Index | None = None
        self._last: BM25Index | None = None  # what was read last
        # While there is something to commit: the writer, and what it shows to readers.
        self._writer: BM25Index | None = None
        self._shown: BM25Index | None = None
        self._timer: Timer | None = None

    def _open(self, analyzer: Analyzer | None, parameters: dict[str, Any], timeout: float) -> None:
        """Read the last commit, of a new empty index if there is none."""
        try:
            self._catch_up(analyzer)
        except NotAnIndexError:
            if is_url(self._path):
                raise
            settings = {"analyzer": analyzer, "timeout": min(timeout, TIMEOUT_MAX), **parameters}
            BM25Index.open(self._path, mode="a", **settings).close()
            self._catch_up(analyzer)

    def _catch_up(self, analyzer: Analyzer | None) -> None:
        # The first tokenizer stays: those who share an index cannot differ in it.
        if self._reader is not None:
            self._reader.refresh()
            return
        try:
            self._reader = BM25Index.open(self._path)
        except TokenizerRequiredError:
            if analyzer is None or analyzer.any_tokenizer is None:
                raise
            self._reader = BM25Index.open(self._path, tokenizer=analyzer.any_tokenizer)

    @property
    def current(self) -> BM25Index:
        """A snapshot of the last write of this process, or of the last commit of any process.

        Asking for a newer commit takes microseconds. An index behind a URL stays at the commit
        that the last call of ``follow`` saw: a request would take longer than most reads.
        """
        shown = self._shown
        return self._read() if shown is None else shown

    def _read(self) -> BM25Index:
        assert self._reader is not None
        if not is_url(self._path):
            with suppress(NotAnIndexError):  # the folder is gone: what was read last stays
                self._catch_up(self._reader.analyzer)
        last = self._last
        if last is None or last._live.state is not self._reader._live.state:
            last = self._last = self._reader.snapshot()
        return last

    @contextmanager
    def writing(self, timeout: float = 60.0, delay: float = 0.0) -> Iterator[BM25Index]:
        """Give the index to one writer, then show the result to readers.

        The writers of the process wait for one another. An error leaves the index as it was.

        Parameters
        ----------
        timeout
            How many seconds to wait for a writer in another process.
        delay
            0 commits the write at the end. Otherwise writes are committed together, up to so many
            seconds after the first of them. This process reads them at once; until the commit,
            others neither see them nor can write. The end of the process commits, too; if it is
            killed, what is not committed is lost.

        Raises
        ------
        LockedError
            If another process still writes after ``timeout``.
        ReadOnlyError
            If the index is behind a URL.
        RuntimeError
            If this thread is writing already.
        """
        check_real("delay", delay, 0.0, math.inf)
        with self._lock.taken():
            if self._writer is None:
                self._writer = self._open_writer(timeout)
            writer = self._writer
            try:
                with writer._live.all_or_nothing():
                    yield writer
                    if not delay:
                        writer.commit()
            except BaseException:
                if self._shown is None:
                    try:
                        writer.rollback()
                    finally:  # it fails, too, where memory is short; others must be able to write
                        self._end(writer)
                raise
            if delay:
                self._put_off(writer, delay)
            else:
                self._finish(writer)

    def commit(self) -> None:
        """Commit now what ``delay`` has put off, if anything."""
        with self._lock.taken():
            if self._writer is not None:
                self._writer.commit()
                self._finish(self._writer)

    def _open_writer(self, timeout: float) -> BM25Index:
        tokenizer, seconds = self._read().analyzer.any_tokenizer, min(timeout, TIMEOUT_MAX)
        return BM25Index.open(self._path, mode="w", tokenizer=tokenizer, timeout=seconds)

    def _put_off(self, writer: BM25Index, delay: float) -> None:
        self._read()  # what others committed before is nothing newer, in a child either
        self._shown = writer.snapshot()
        _UNCOMMITTED.add(self)
        call_at_end(_commit_all)
        if self._timer is None and delay < TIMEOUT_MAX:
            self._timer = Timer(delay, self._commit_late)
            self._timer.daemon = True  # the end of the process commits
            self._timer.start()

    def _commit_late(self) -> None:
        try:
            self.commit()
        except Exception:
            message = "writes to %s are not committed yet; commit() and the next write try again"
            _log.exception(message, self._path)
            self._timer = None

    def _finish(self, writer: BM25Index) -> None:
        self._end(writer)
        self._read()  # here and not in the next read: releasing deleted files takes milliseconds

    def _end(self, writer: BM25Index) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._writer = self._shown = self._timer = None
        _UNCOMMITTED.discard(self)
        writer.close()

    def _leave_to_parent(self) -> None:
        """Forget the writer, in a child process."""
        if self._writer is not None:
            _OF_PARENTS.append(self._writer)  # whose lock would be given up with it
        if self._shown is not None and self._reader is not None:
            self._reader._live.state = self._shown._live.state  # until a newer commit
        self._writer = self._shown = self._timer = None


# Folders with writes to commit, until that is done, whether or not anybody still has them.
_UNCOMMITTED: set[FollowedFolder] = set()
_OF_PARENTS: list[BM25Index] = []
_SHARED: WeakValueDictionary[str, SharedIndex] = WeakValueDictionary()
_FOLLOWED: WeakValueDictionary[str, FollowedFolder] = WeakValueDictionary()
# Held to look up and to register, never to open: waiting for one folder blocks no other.
_REGISTRY = WriteLock()


def follow(
    path: str | os.PathLike[str],
    *,
    analyzer: Analyzer | None = None,
    variant: VariantName | None = None,
    k1: float | None = None,
    b: float | None = None,
    delta: float | None = None,
    delta_on: DeltaOn | None = None,
    fields: Mapping[str, float] | None = None,
    timeout: float = 60.0,
) -> FollowedFolder:
    """Return the index in a folder: the same object for all who ask, while one of them has it.

    Parameters
    ----------
    path
        The folder; if it is missing or empty, it gets an empty index. Or a URL, for reading only.
    analyzer, variant, k1, b, delta, delta_on, fields
        As in ``BM25Index.open``: the settings of a new index. An index that is there must have
        those that are given.
    timeout
        How many seconds to wait while another process makes the index, >= 0.

    Raises
    ------
    ValueError
        If the index has other settings, or an argument is out of range.
    StorageError
        As from ``BM25Index.open``.
    TokenizerRequiredError
        If the index has a custom tokenizer, and ``analyzer`` does not bring it.

    Examples
    --------
    >>> folder = follow("animals.bm25")
    >>> with folder.writing() as index:
    ...     index.add(["A cat sat.", "Dogs run."], ids=["a", "b"])
    ['a', 'b']
    >>> [hit.id for hit in folder.current.search("cats")]
    ['a']
    """
    settings: dict[str, Any] = {"variant": variant, "k1": k1, "b": b, "delta": delta}
    settings |= {"delta_on": delta_on, "fields": fields}
    given = {name: value for name, value in settings.items() if value is not None}
    BM25Index(analyzer=analyzer, **given)  # checks them
    place = path if is_url(path) else local_path(path)
    with _REGISTRY.taken():
        folder = _FOLLOWED.setdefault(place, FollowedFolder(place))
    folder._open(analyzer, given, check_real("timeout", timeout, 0.0, math.inf))
    check_settings(place, folder.current._live.state.stored(), analyzer, given)
    return folder


def share(name: str, index: BM25Index, **required: Any) -> SharedIndex:
    """Return the index in memory of a name: the same for all who ask, while one of them has it.

    If there is none of that name, ``index`` is shared. ``required`` are arguments of ``BM25Index``:
    an index that is there and has others is a ``ValueError``.
    """
    with _REGISTRY.taken():
        shared = _SHARED.setdefault(name, SharedIndex(index))
    state = shared.current._live.state.stored()
    check_settings(name, state, required.pop("analyzer", None), required)
    return shared


@atexit.register
def _commit_all() -> None:
    for folder in list(_UNCOMMITTED):
        folder.commit()


def _leave_all_to_parent() -> None:
    for folder in list(_FOLLOWED.values()):
        folder._leave_to_parent()
    _UNCOMMITTED.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all_to_parent)

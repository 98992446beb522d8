"""A server of some shards of a folder, which runs as an actor, one on a node."""

from __future__ import annotations

import os
from copy import deepcopy
from threading import Lock
from typing import Any, NamedTuple

from bm25rag.analysis import Tokenizer
from bm25rag.building.shards import even_edges
from bm25rag.distributed.operations import OPERATIONS, Asked
from bm25rag.errors import ClusterError, CorruptIndexError, NotAnIndexError, StorageError
from bm25rag.filters import Filter
from bm25rag.index import BM25Index
from bm25rag.open_shard import OpenShard, open_shard
from bm25rag.storage.manifest import Manifest, read_sharded

_RETRIES = 20
# How many restricted views of a shard are kept.
_VIEWS = 64


class Commit(NamedTuple):
    """The number of a commit, of which the highest is the newest, and its id.

    What is restored may have a number that another commit has had.
    """

    number: int
    id: str


OLDEST = Commit(0, "")
"""What any commit is at least as new as."""


class HostState(NamedTuple):
    """What a host serves: ``failed`` are shards that cannot be opened, with the reasons."""

    commit: Commit
    failed: dict[int, str]

    def check(self) -> HostState:
        """Return the state; raise ``CorruptIndexError`` if a shard cannot be opened."""
        for problem in self.failed.values():
            raise CorruptIndexError(problem)
        return self


class Answer(NamedTuple):
    """The answer of a host.

    ``value`` is what its shards say, without those in ``failed``, which has the reasons; None if
    all failed. ``shards`` is how many shards the index has in this ``commit``.
    """

    commit: Commit
    shards: int
    value: Any
    failed: dict[int, str]


class Restriction(NamedTuple):
    """What a view is restricted to; a key tells it from all others."""

    key: str
    filter: Filter


class _Opened(NamedTuple):
    commit: Commit
    total: int
    shards: list[_Shard]
    failed: dict[int, str]


class _Shard:
    """A shard, and its restricted views."""

    def __init__(self, opened: OpenShard) -> None:
        self.number, self.commit = opened.number, opened.commit
        self._searcher, self._first_row = opened.searcher, opened.first_row
        self._views: dict[str, BM25Index] = {}
        self._lock = Lock()

    def seen(self, within: Restriction | None) -> tuple[BM25Index, int]:
        """Return the index of what a client sees of it, and its first row."""
        if within is None:
            return self._searcher, self._first_row
        with self._lock:
            view = self._views.pop(within.key, None)
            if view is None:
                view = self._searcher.restricted(within.filter)
            self._views[within.key] = view  # now the last
            if len(self._views) > _VIEWS:
                del self._views[next(iter(self._views))]
        return view, 0


class Host:
    """Serves one of some equal parts of the shards; safe to use from many threads.

    Nothing is opened before the first call, so that a restart succeeds while a disk is away. A
    batch is answered by ``threads``; the rest are arguments of ``BM25Index.open``.
    """

    def __init__(
        self,
        folder: str,
        part: int,
        parts: int,
        threads: int,
        mmap: bool,
        tokenizer: Tokenizer | None,
        untrusted: bool,
    ) -> None:
        self._folder, self._part, self._parts, self._threads = folder, part, parts, threads
        opening = {"mmap": mmap, "tokenizer": tokenizer, "untrusted": untrusted}
        self._options: dict[str, Any] = opening
        self._opened: _Opened | None = None
        self._lock = Lock()

    def process(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    def refresh(self) -> HostState:
        """Go to the last commit, and try again what could not be opened."""
        with self._lock:
            opened = self._opened
            commit = _commit_of(read_sharded(self._folder))
            if opened is None or opened.commit != commit or opened.failed:
                opened = self._opened = self._open()
        return HostState(opened.commit, opened.failed)

    def answer(
        self,
        operation: str,
        arguments: tuple[Any, ...],
        commit: Commit = OLDEST,
        within: Restriction | None = None,
    ) -> Answer:
        """Answer a call from a commit that is at least as new as the one named.

        ``operation`` is a name in ``OPERATIONS``, ``within`` what the client is restricted to. It
        raises as the method of ``BM25Index``, except that damage is reported in the answer,
        ``StorageError`` if the folder cannot be opened, and ``ClusterError`` for an exception that
        no other process could read: a client would take the host for gone, and ask again.
        """
        try:
            return self._answer(operation, arguments, commit, within)
        except Exception as error:
            try:
                deepcopy(error)  # made again from its arguments, as by the client
            except Exception:
                said = f"{type(error).__name__}: {error}"
                raise ClusterError(f"{said} (it cannot be sent as it is)") from error
            raise

    def _answer(
        self,
        operation: str,
        arguments: tuple[Any, ...],
        commit: Commit,
        within: Restriction | None,
    ) -> Answer:
        if self._opened is None or self._opened.commit < commit:
            try:
                self.refresh()
            except StorageError:
                raise
            except OSError as error:  # perhaps of this node alone: the client asks another
                raise StorageError(str(error)) from error
        opened, called = self._opened, OPERATIONS[operation]
        assert opened is not None
        values, failed = {}, dict(opened.failed)
        for shard in opened.shards:
            try:
                asked = Asked(*shard.seen(within), self._threads)
                values[shard.number] = called.answer(asked, *arguments)
            except StorageError as error:
                failed[shard.number] = str(error)
        merged = called.merge([*values.values()], *arguments)
        try:
            called.read(merged)
        except StorageError:
            for number, value in [*values.items()]:
                try:
                    called.read(value)
                except StorageError as error:
                    failed[number] = str(error)
                    del values[number]
            merged = called.merge([*values.values()], *arguments)
        return Answer(opened.commit, opened.total, merged if values else None, failed)

    def _open(self) -> _Opened:
        for _ in range(_RETRIES):
            manifest = read_sharded(self._folder)
            count = manifest.shard_count
            edges = even_edges(count, self._parts)
            shards: list[_Shard] = []
            failed: dict[int, str] = {}
            for number in range(edges[self._part], edges[self._part + 1]):
                try:
                    shards.append(_Shard(open_shard(self._folder, number, **self._options)))
                except (CorruptIndexError, NotAnIndexError) as error:
                    failed[number] = str(error)
            # A writer may have committed in between: read again.
            now = _commit_of(read_sharded(self._folder))
            if {now.id, *(shard.commit for shard in shards)} == {manifest.commit_id}:
                return _Opened(now, count, shards, failed)
        raise StorageError(f"{self._folder} was changed {_RETRIES} times while it was opened")


def _commit_of(manifest: Manifest) -> Commit:
    return Commit(manifest.commit, manifest.commit_id)

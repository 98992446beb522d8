"""LiveIndex: an index beneath its face, whose state each write replaces under one lock."""

from __future__ import annotations

import atexit
import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from sys import is_finalizing
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args
from weakref import WeakSet

from bm25rag.analysis import Analyzer
from bm25rag.common.checks import check_choice, check_count, check_ids
from bm25rag.common.gil import note_read, others_read, releasing_gil
from bm25rag.common.logs import tell
from bm25rag.errors import ReadOnlyError, StorageError, UncommittedWarning
from bm25rag.forks import call_at_end
from bm25rag.kernels.backend import cores
from bm25rag.live.write_lock import WriteLock
from bm25rag.scoring.variants import UNCHANGED, Parameters
from bm25rag.search.finding import parse_filter
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.view import SegmentView
from bm25rag.storage.attachment import CLOSED, MEMORY, Attachment
from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.manifest import digest
from bm25rag.storage.segment_files import SavedCopy
from bm25rag.storage.state import State as StoredState
from bm25rag.storage.state import check_extra

if TYPE_CHECKING:
    from bm25rag.additions import Source
    from bm25rag.filters import FilterSpec

Mode: TypeAlias = Literal["r", "w", "a"]
"""How a folder is opened."""

OnDuplicate: TypeAlias = Literal["error", "skip", "replace"]
"""What ``add`` does with an id that is there already."""

_Choose: TypeAlias = Callable[[Sequence[SegmentView]], Sequence[Sequence[SegmentView]]]


class State(NamedTuple):
    """All there is to an index at one moment; a write replaces it as a whole.

    ``probe`` holds words and their stems at the time they were indexed, ``extra`` what a
    caller keeps with the index. ``commit_id`` is that of the commit that it is, or a random one.
    """

    snapshot: Snapshot
    next_id: int
    probe: dict[str, str]
    extra: dict[str, Any]
    commit_id: str

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the documents' fields; ``None`` if they have none."""
        return self.snapshot.parameters.names

    def tuned(self, given: dict[str, Any], also: Iterable[float]) -> State:
        """Return the state under other parameters; see ``BM25Index.tune``."""
        snapshot, analyzer = self.snapshot, self.snapshot.analyzer
        if also is not UNCHANGED:
            analyzer = analyzer.weighing(also)
        parameters = snapshot.parameters.changed(given)
        weights = [weight for _, weight in analyzer.also]
        settings = parameters.to_dict() | ({"also": weights} if weights else {})
        commit_id = f"{self.commit_id}+{digest(settings)}"
        return self._replace(snapshot=snapshot.tuned(parameters, analyzer), commit_id=commit_id)

    @classmethod
    def of(cls, stored: StoredState) -> State:
        """Return the state that was stored."""
        snapshot = Snapshot(stored.views, stored.parameters, stored.analyzer, stored.statistics)
        commit_id = stored.commit_id or new_id()
        return cls(snapshot, stored.next_id, stored.probe, stored.extra, commit_id)

    def stored(self) -> StoredState:
        """Return the state as it is stored."""
        snapshot, next_id, probe, extra, commit_id = self
        views = list(snapshot.views)
        if snapshot.is_restricted:  # whose segments hold other documents, too
            from bm25rag.merging.merge import merge_segments

            views = [SegmentView(merge_segments(views))] if snapshot.count else []
        settings = snapshot.analyzer, snapshot.parameters
        return StoredState(*settings, views, next_id, probe, extra, snapshot.statistics, commit_id)


def new_id() -> str:
    """Return the id of a state that is no commit."""
    return os.urandom(8).hex()


def new_state(analyzer: Analyzer | None = None, **parameters: Any) -> State:
    """Return the state of an index without documents; raise as the constructor."""
    check_analyzer(analyzer)
    chosen, own = Parameters(**parameters), Analyzer() if analyzer is None else analyzer
    if own.also and chosen.fields is not None:
        raise ValueError(
            "fields are for an analyzer without further analyses: leave out fields, or its also"
        )
    return State(Snapshot((), chosen, own), 0, {}, {}, new_id())


def check_analyzer(analyzer: object) -> None:
    """Check that an argument is an analyzer or ``None``."""
    if analyzer is not None and not isinstance(analyzer, Analyzer):
        given = f"{analyzer!r:.100}"
        hint = f" {given}: write Analyzer({given})" if isinstance(analyzer, str) else ""
        raise TypeError(
            f"analyzer must be an Analyzer or None, got {type(analyzer).__name__}{hint}"
        )


class LiveIndex:
    """An index that can be read by many threads while one writes.

    ``state`` is all that it holds now, ``saved`` what was last saved in a folder that this is not
    the writer of.
    """

    def __init__(self, state: State, attachment: Attachment) -> None:
        self.state = state
        self.saved: SavedCopy | None = None
        self._lock = WriteLock()
        # Whether it was said at exit that changes are lost.
        self._warned = False
        # Last: after an interrupt before it, ``__del__`` has nothing to say.
        self.attachment = attachment
        if isinstance(attachment, FolderWriter):
            _WRITERS.add(self)
            call_at_end(_warn_at_exit)

    @property
    def reads_folder(self) -> bool:
        """Whether a pickle opens a folder again."""
        return isinstance(self.attachment, FolderReader)

    @property
    def snapshot(self) -> Snapshot:
        """What to read from now; long writes then pause for readers."""
        note_read()
        snapshot = self.state.snapshot
        return snapshot if snapshot.matches_all else snapshot.matching

    def stats(self) -> dict[str, Any]:
        """Return counts and sizes; see ``BM25Index.stats``."""
        snapshot, commit_id = self.snapshot, self.state.commit_id
        if snapshot.is_restricted:
            return snapshot.stats()
        own = {"shards": self.attachment.manifest.shard_count, "commit_id": commit_id}
        return snapshot.stats() | own | {"committed": self.attachment.committed}

    def copy(self) -> LiveIndex:
        """Return an index of its own, in memory, with the same state."""
        if self.state.snapshot.is_restricted:
            return LiveIndex(State.of(self.state.stored()), MEMORY)
        made, attachment = LiveIndex(self.state, MEMORY), self.attachment
        made.saved = attachment.saved_copy() if isinstance(attachment, FolderReader) else self.saved
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> LiveIndex:
        attachment = self.attachment
        if isinstance(attachment, FolderReader):
            return LiveIndex(self.state, copy.copy(attachment))
        restore, arguments = self.__reduce__()
        return restore(*copy.deepcopy(arguments, memo))

    def __reduce__(self) -> tuple[Callable[..., LiveIndex], tuple[Any, ...]]:
        if isinstance(self.attachment, FolderReader):
            return self.attachment.opened_by, ()
        # What a writer has not committed, or a view shows, is in no folder.
        return _restore, (self.state.stored()._replace(commit_id=""),)

    # --- writes ------------------------------------------------------------------------

    def add(
        self, documents: Source, on_duplicate: str, threads: int | None, *, wants_ids: bool = True
    ) -> list[str]:
        """Add documents, all or none; return the ids written if wanted. See ``BM25Index.add``."""
        from bm25rag.new_segments import analyse_documents

        check_choice("on_duplicate", on_duplicate, get_args(OnDuplicate))
        if threads is None:
            workers = max(1, cores() - others_read())
        else:
            workers = check_count("threads", threads, least=1)
        with self._lock.taken():
            snapshot = self._changeable()
            settings = snapshot.analyzer, snapshot, self.state.next_id, on_duplicate, workers
            new = analyse_documents(documents, *settings, wants_ids)
            if len(new.segment):
                views = [*_without(snapshot, new.replaced), SegmentView(new.segment)]
                probe = self.state.probe or snapshot.analyzer.probe()
                self._install(views, next_id=new.next_id, probe=probe)
        return new.ids

    def delete(self, ids: Iterable[str | int] | None, filter: FilterSpec | None) -> list[str]:
        """Delete documents by their ids, by a filter or by both; see ``BM25Index.delete``."""
        parsed = parse_filter(filter, self.state.snapshot)
        wanted = None if ids is None else check_ids(ids)
        if wanted is None:
            from bm25rag.filters.parse import check_rejecting

            needs = "delete needs ids (delete(index.ids()) deletes all documents), or a filter"
            parsed = check_rejecting(needs, filter, parsed)
        with self._lock.taken():
            snapshot = self._changeable()
            if wanted is None:
                deleted = {
                    snapshot.views[place].segment.id_of(number): (place, number)
                    for place, number in releasing_gil(snapshot.passing(parsed))
                }
            else:
                places = ((id, snapshot.find(id)) for id in releasing_gil(wanted))
                deleted = {
                    id: place
                    for id, place in places
                    if place is not None and snapshot.passes(*place, parsed)
                }
            if deleted:
                self._install(_without(snapshot, deleted.values()))
        return list(deleted)

    def update_metadata(
        self, ids: Iterable[str | int], metadata: Iterable[Mapping[str, Any] | None]
    ) -> list[str]:
        """Replace the metadata of documents; see ``BM25Index.update_metadata``."""
        from bm25rag.new_segments import encode_each

        encoded = encode_each(check_ids(ids), metadata)
        with self._lock.taken():
            snapshot = self._changeable()
            changed: list[str] = []
            changes: dict[int, dict[int, bytes]] = {}
            for id, data in releasing_gil(encoded.items()):
                if (place := snapshot.find(id)) is not None:
                    changed.append(id)
                    changes.setdefault(place[0], {})[place[1]] = data
            if changes:
                self._install(
                    view.with_metadata(changes[place]) if place in changes else view
                    for place, view in enumerate(snapshot.views)
                )
        return changed

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Undo the writes within if there is an error; who calls this keeps other writers out."""
        before = self.state
        try:
            yield
        except BaseException:
            self.state = before
            raise

    def maintain(self) -> None:
        """Merge what writes have left unmerged; see ``BM25Index.maintain``."""
        from bm25rag.merging.policy import plan

        self._merge(lambda views: [group.views for group in plan(views) if group.due])

    def compact(self) -> None:
        """Merge everything that may be merged; see ``BM25Index.compact``."""

        def all_of(views: Sequence[SegmentView]) -> Sequence[Sequence[SegmentView]]:
            return [views] if len(views) > 1 or any(view.changes for view in views) else []

        self._merge(all_of)

    def _merge(self, choose: _Choose) -> None:
        """Merge the segments that are chosen of each group, while others search and write."""
        from bm25rag.merging.merge import merge_segments
        from bm25rag.merging.policy import carry

        lock = self._lock
        with lock.taken():
            self._changeable()  # who may not write is told at once, without waiting below
        with lock.merge_lock:
            try:
                with lock.taken():
                    together = self.attachment.group(self._changeable().views)
                    chosen = [some for views in together for some in choose(views)]
                    lock.merging = {view.segment for views in chosen for view in views}
                for views in chosen:
                    merged = merge_segments(views)
                    self.attachment.replace(views, merged)
                    with lock.taken():
                        snapshot = self._changeable()
                        lock.merging -= {view.segment for view in views}
                        if (carried := carry(merged, views, snapshot.views)) is not None:
                            self._install(carried)
            finally:
                lock.merging = set()

    def _changeable(self) -> Snapshot:
        """Return what to change, while the lock is held; raise if that is not allowed."""
        if self.attachment.read_only:
            who, advice = self.attachment.description, self.attachment.advice
            raise ReadOnlyError(f"this is {who}; it cannot be changed: {advice}")
        return self.state.snapshot

    def _install(self, views: Iterable[SegmentView], **changes: Any) -> None:
        """Make segments the state, after as much merging as one write may do."""
        from bm25rag.merging.policy import tidy

        before, after = self.state.snapshot, list(views)
        room = self.attachment.room(after)
        tidied = self.attachment.tidy(after, partial(tidy, held=self._lock.merging, room=room))
        snapshot = Snapshot(tidied, before.parameters, before.analyzer)
        self.state = self.state._replace(snapshot=snapshot, commit_id=new_id(), **changes)

    # --- folders -----------------------------------------------------------------------

    def save(
        self,
        path: str | PathLike[str],
        folder: str | None,
        extra: dict[str, Any] | None,
        overwrite: bool,
        storage_options: dict[str, Any] | None,
    ) -> None:
        """Save in a folder or, if that is ``None``, behind the URL ``path``."""
        attachment = self.attachment
        if folder and isinstance(attachment, FolderWriter) and attachment.holds(folder):
            self.commit(extra)
            return
        with self._lock.taken():
            state = self._with_extra(extra)
            if folder:
                self.saved = FolderWriter.write(folder, state.stored(), overwrite, self.saved)
            else:
                from bm25rag.storage.remote_writer import write_remote

                self.saved = write_remote(
                    str(path), state.stored(), overwrite, self.saved, storage_options
                )
            self.state = state

    def commit(self, extra: dict[str, Any] | None = None) -> None:
        """Make the changes since the last commit durable; ``None`` keeps the ``extra``."""
        with self._lock.taken():
            self._changeable()
            state, writer = self._with_extra(extra), self._writer()
            writer.commit(state.stored())
            self.state = state._replace(commit_id=writer.last.commit_id)

    def _with_extra(self, extra: dict[str, Any] | None) -> State:
        if extra is None or (kept := check_extra(extra)) == self.state.extra:
            return self.state
        return self.state._replace(extra=kept, commit_id=new_id())

    def rollback(self) -> None:
        """Go back to the last commit."""
        with self._lock.taken():
            self._changeable()
            self.state = State.of(self._writer().last)

    def refresh(self) -> bool:
        """Go to the last commit of the folder that is read; return whether there was another."""
        with self._lock.taken():
            reader = self.attachment
            if not isinstance(reader, FolderReader):
                who = reader.description
                raise StorageError(f"refresh needs an index opened with mode='r'; this is {who}")
            with reader.synced():
                moved = reader.has_moved()
                if moved:
                    self.state = State.of(reader.read())
                    now, count = self.state.commit_id, self.state.snapshot.count
                    tell("refreshes", "%s is at %s: %d documents", reader.folder, now, count)
        return moved

    def close(self) -> None:
        """Give up the writer's lock, and warn of changes that are lost."""
        with self._lock.taken():
            folder = self._loses()
            self._release()
        if folder is not None:
            _warn_of_loss(folder)

    def finish(self, succeeded: bool) -> None:
        """Commit, or go back to the last commit, and give up the writer's lock."""
        try:
            if isinstance(self.attachment, FolderWriter):
                self.commit() if succeeded else self.rollback()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Give up the writer's lock."""
        with self._lock.taken():
            self._release()

    def _writer(self) -> FolderWriter:
        if not isinstance(self.attachment, FolderWriter):
            raise ReadOnlyError(
                "commit and rollback need an index opened with mode='w'; use save(path)"
            )
        return self.attachment

    def _release(self) -> None:
        writer = self.attachment
        if isinstance(writer, FolderWriter):
            self.attachment = CLOSED  # first: without its lock, nobody may write
            writer.close()

    def _loses(self) -> str | None:
        """Return the folder if there are changes that were not committed, nor saved elsewhere."""
        writer, saved = self.attachment, self.saved
        if not isinstance(writer, FolderWriter) or not writer.ours:
            return None
        views = list(self.state.snapshot.views)
        lost = views != writer.last.views and (saved is None or views != saved.views)
        return writer.folder if lost else None

    def __del__(self) -> None:
        # When the program ends, that was said before modules are gone.
        if isinstance(getattr(self, "attachment", None), FolderWriter) and not self._warned:
            folder = None if is_finalizing() else self._loses()
            if folder is not None:
                _warn_of_loss(folder)


def open_folder(
    reader: FolderReader,
    writer: FolderWriter | None = None,
    check: Callable[[StoredState], object] | None = None,
) -> LiveIndex:
    """Open what a reader reads: for reading or, if a writer has locked it, for writing.

    ``check`` raises if what was read must not be opened. After an error, the lock is given up.
    """
    try:
        with reader.synced():
            stored = reader.read()
            if check is not None:
                check(stored)
        if writer is None:
            return LiveIndex(State.of(stored), reader)
        writer.take_over(reader, stored)
        return LiveIndex(State.of(stored), writer)
    except BaseException:
        if writer is not None:
            writer.close()
        raise


def _restore(stored: StoredState) -> LiveIndex:
    return LiveIndex(State.of(stored), MEMORY)


# The open writers, to be looked at when the program ends.
_WRITERS: WeakSet[LiveIndex] = WeakSet()


@atexit.register
def _warn_at_exit() -> None:
    for index in list(_WRITERS):
        folder = None if index._warned else index._loses()
        if folder is not None:
            index._warned = True
            _warn_of_loss(folder)


def _warn_of_loss(folder: str) -> None:
    from bm25rag.common.caller import warn

    warn(
        f"the changes to {folder} since the last commit() are lost: call commit() before close() "
        'and before the program ends, or write within \'with BM25Index.open(path, mode="w") as '
        "index:'; rollback() drops them on purpose",
        UncommittedWarning,
    )


def _without(snapshot: Snapshot, places: Iterable[tuple[int, int]]) -> list[SegmentView]:
    deleted: dict[int, list[int]] = {}
    for place, number in places:
        deleted.setdefault(place, []).append(number)
    return [
        view.without(deleted[place]) if place in deleted else view
        for place, view in enumerate(snapshot.views)
    ]

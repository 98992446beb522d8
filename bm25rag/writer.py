"""Writer: all that changes an index, one write at a time, each as a whole."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, get_args
from weakref import WeakSet

from bm25rag.additions import NewDocuments, NewRecords, take_documents
from bm25rag.common.checks import check_choice, check_count, check_sequence
from bm25rag.common.gil import others_read, releasing_gil
from bm25rag.documents import Deleted, Document
from bm25rag.errors import MetadataError, ReadOnlyError
from bm25rag.filters import FilterSpec, parse_filter
from bm25rag.kernels.backend import cores
from bm25rag.merging.merge import merge_segments
from bm25rag.merging.policy import carry, plan, tidy
from bm25rag.metadata.codec import encode_metadata
from bm25rag.reader import Reader, Text, check_ids
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView

OnDuplicate: TypeAlias = Literal["error", "skip", "replace"]
"""What ``add`` does with an id that is there already."""


class Writer(Reader):
    """What ``BM25Index`` inherits beside reading: adding, deleting, changing.

    A write makes a new snapshot and puts it in the place of the old one.
    """

    _next_id: int
    _probe: dict[str, str]
    _busy: bool
    # Segments that maintain() or compact() is merging at the moment.
    _held: set[Segment]

    def add(
        self,
        texts: Iterable[Text],
        ids: Iterable[str] | None = None,
        metadata: Iterable[dict[str, Any] | None] | None = None,
        payloads: Iterable[bytes | None] | None = None,
        store_text: bool = True,
        on_duplicate: OnDuplicate = "error",
        progress: bool = False,
        threads: int | None = None,
    ) -> list[str]:
        """Add documents; all of them or, if anything is wrong, none.

        Beyond the index, a build holds about 24 bytes for each posting, 100 MB, 10 MB more for
        each thread, and what ``texts`` holds.

        Parameters
        ----------
        texts
            Any iterable of texts; a list of strings in place of a text is taken as its terms.
        ids
            Their ids, as many; ``None`` for the next decimal numbers, never used before.
        metadata
            A dict of JSON values, dates and datetimes for each, or ``None``.
        payloads
            Opaque bytes for each, or ``None``.
        store_text
            Whether ``Hit.text`` and ``get`` shall return the texts.
        on_duplicate
            If an id is there already, or occurs twice in the call: ``"error"`` writes
            nothing, ``"skip"`` keeps the first, ``"replace"`` the last, which moves to the end.
        progress
            Whether to show a progress bar.
        threads
            How many threads to use at most; ``None`` for one a core, and one less while other
            threads read. The index is the same.

        Returns
        -------
        ids
            The ids written, in document order.

        Raises
        ------
        TypeError
            If an argument or an element has the wrong type; the message says which.
        ValueError
            If the iterables differ in length, or ``threads`` is less than 1.
        DuplicateIdError
            If an id is there already and ``on_duplicate`` is ``"error"``.
        MetadataError
            If metadata cannot be stored; the message names document and key.
        ReadOnlyError
            If the index is a view or was opened for reading.
        """
        documents = NewDocuments(texts, ids, metadata, payloads, store_text, progress)
        return self._add(documents, on_duplicate, threads)

    def add_documents(
        self,
        documents: Iterable[Document],
        store_text: bool = True,
        on_duplicate: OnDuplicate = "error",
        progress: bool = False,
        threads: int | None = None,
    ) -> list[str]:
        """Add documents that are records already; all of them or, if anything is wrong, none.

        What ``get`` returns can be added to another index so. Otherwise as ``add``.

        Parameters
        ----------
        documents
            Any iterable of documents with ids and texts.
        store_text, on_duplicate, progress, threads
            As in ``add``.

        Returns
        -------
        ids
            The ids written, in document order.

        Raises
        ------
        TypeError
            If an argument or an element has the wrong type; the message says which.
        ValueError
            If a document has no text, or ``threads`` is less than 1.
        DuplicateIdError, MetadataError, ReadOnlyError
            As ``add``.
        """
        return self._add(NewRecords(documents, store_text, progress), on_duplicate, threads)

    def _add(
        self, documents: NewDocuments | NewRecords, on_duplicate: str, threads: int | None
    ) -> list[str]:
        check_choice("on_duplicate", on_duplicate, get_args(OnDuplicate))
        most = (
            max(1, cores() - others_read())
            if threads is None
            else check_count("threads", threads, least=1)
        )
        with self._writing() as snapshot:
            new = take_documents(
                documents, snapshot.analyzer, snapshot, self._next_id, on_duplicate, most
            )
            if new.ids:
                self._next_id = new.next_id
                self._probe = self._probe or snapshot.analyzer.probe()
                self._install([*_without(snapshot, new.replaced), SegmentView(new.segment)])
        return new.ids

    def delete(self, ids: Iterable[str], filter: FilterSpec | None = None) -> Deleted:
        """Delete documents; unknown ids are ignored.

        Parameters
        ----------
        ids
            The documents.
        filter
            As in ``search``: documents that it rejects at this moment stay, also those that
            another thread has replaced since their ids were looked up.

        Returns
        -------
        count
            How many documents went, an ``int``; its ``ids`` are those that this very call
            deleted, in the order asked for.

        Raises
        ------
        TypeError
            If ``ids`` is a bare string or holds anything but strings.
        FilterError
            If the filter is malformed.
        ReadOnlyError
            If the index is a view or was opened for reading.
        """
        wanted, parsed = check_ids(ids), parse_filter(filter)
        with self._writing() as snapshot:
            places = ((id, snapshot.find(id)) for id in releasing_gil(wanted))
            found = {
                id: place
                for id, place in places
                if place is not None and snapshot.passes(*place, parsed)
            }
            if found:
                self._install(_without(snapshot, found.values()))
        return Deleted(tuple(found))

    def update_metadata(self, ids: Iterable[str], metadata: Iterable[dict[str, Any] | None]) -> int:
        """Replace the metadata of documents, which keep their places; unknown ids are ignored.

        Parameters
        ----------
        ids
            The documents.
        metadata
            The whole new metadata of each.

        Returns
        -------
        count
            How many documents were changed.

        Raises
        ------
        TypeError
            If an argument or an element has the wrong type.
        ValueError
            If the two differ in length.
        MetadataError
            If metadata cannot be stored.
        ReadOnlyError
            If the index is a view or was opened for reading.
        """
        wanted = check_ids(ids)
        given = list(check_sequence("metadata", metadata, "dicts"))
        if len(given) != len(wanted):
            raise ValueError(
                f"metadata must be one dict for each of {len(wanted)} ids, got {len(given)}"
            )
        encoded: dict[str, bytes] = {}
        for row, (id, one) in enumerate(releasing_gil(zip(wanted, given, strict=True))):
            try:
                encoded[id] = encode_metadata(one, id)
            except MetadataError as error:
                raise error.at(f"metadata[{row}]") from None
        with self._writing() as snapshot:
            changes: dict[int, dict[int, bytes]] = {}
            for id, data in releasing_gil(encoded.items()):
                if (found := snapshot.find(id)) is not None:
                    changes.setdefault(found[0], {})[found[1]] = data
            if changes:
                self._install(
                    view.with_metadata(changes[place]) if place in changes else view
                    for place, view in enumerate(snapshot.views)
                )
        return sum(map(len, changes.values()))

    def maintain(self) -> None:
        """Merge what writes have left unmerged, so that searches have few parts to look into.

        A write merges at most a sixteenth of the index (or 4 MB), which keeps it quick and
        the number of parts bounded; after this there are at most log3(N) for N documents.
        Searches and writes go on beside it, so it may run in an executor of yours:
        ``executor.submit(index.maintain)``.

        Raises
        ------
        ReadOnlyError
            If the index is a view or was opened for reading.
        """
        self._merge(lambda views: [group.views for group in plan(views) if group.due])

    def compact(self) -> None:
        """Make one part of all and leave out whatever was deleted or replaced before this call.

        Texts, metadata and terms of deleted documents are then in no array of the index,
        and in no file of its folder after the next ``commit()``. Searches and writes go on
        beside it.

        Raises
        ------
        ReadOnlyError
            If the index is a view or was opened for reading.
        """
        self._merge(lambda views: [views] if _is_scattered(views) else [])

    def _merge(
        self, choose: Callable[[Sequence[SegmentView]], Sequence[Sequence[SegmentView]]]
    ) -> None:
        with self._writing():
            pass  # whoever may not write is told so at once, and never waits below
        with self._merging:
            with self._writing() as snapshot:
                groups = choose(snapshot.views)
                self._held = {view.segment for group in groups for view in group}
            try:
                for group in groups:
                    merged = merge_segments(group)
                    with self._writing() as snapshot:
                        self._held -= {view.segment for view in group}
                        if (views := carry(merged, group, snapshot.views)) is not None:
                            self._install(views)
            finally:
                self._held = set()

    @contextmanager
    def _writing(self) -> Iterator[Snapshot]:
        with self._locked():
            if self._why_read_only is not None:
                raise ReadOnlyError(f"this is {self._why_read_only}; it cannot be changed")
            yield self._snapshot

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            if self._busy:
                raise RuntimeError(
                    "the index cannot be changed from within add(), by what its texts come from"
                )
            self._busy = True
            try:
                yield
            finally:
                self._busy = False

    def _renew_lock(self) -> None:
        self._lock, self._busy = threading.RLock(), False
        self._merging, self._held = threading.Lock(), set()
        _WRITERS.add(self)

    def _install(self, views: Iterable[SegmentView]) -> None:
        before = self._snapshot
        tidied = tidy(list(views), self._held)
        self._snapshot = Snapshot(tidied, before.parameters, before.analyzer)


# Every index of the process: after a fork a lock may be held by a thread that is not there.
_WRITERS: WeakSet[Writer] = WeakSet()


def _renew_locks() -> None:
    for writer in list(_WRITERS):
        writer._renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _without(snapshot: Snapshot, places: Iterable[tuple[int, int]]) -> list[SegmentView]:
    gone: dict[int, list[int]] = {}
    for place, number in places:
        gone.setdefault(place, []).append(number)
    return [
        view.without(gone[place]) if place in gone else view
        for place, view in enumerate(snapshot.views)
    ]


def _is_scattered(views: Sequence[SegmentView]) -> bool:
    return len(views) > 1 or any(view.changes for view in views)

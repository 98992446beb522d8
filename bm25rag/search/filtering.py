"""Which documents of a segment pass a filter: from fields, remembered, or asked one by one.

What a filter says of a segment is remembered with the segment, and what it says of the
metadata that a write has changed with the changes of that write, so that a write evaluates
only what it brings; the dead are left out in the end. Filters without a key, callables
among them, are evaluated every time, on the living documents that the rest of the filter
leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bm25rag.common.arrays import Bool, Int64
from bm25rag.common.strings import utf8
from bm25rag.filters import And, Condition, Filter, IdCondition, Not, Or
from bm25rag.metadata.codec import decode_metadata
from bm25rag.metadata.conditions import select
from bm25rag.metadata.field import StringRange
from bm25rag.metadata.fields import Fields

if TYPE_CHECKING:
    from bm25rag.segments.changes import Changes
    from bm25rag.segments.view import SegmentView

# Documents that are asked at once.
AT_ONCE = 4096
# Changed documents that are asked in the time that it takes to make fields of them.
FEW = 64


# --- segments ------------------------------------------------------------------------------------


def masks_of(views: Iterable[SegmentView], filter: Filter) -> tuple[Bool, ...]:
    """Return which documents of segments live and pass a filter, bool; not to be changed."""
    key = None if filter.ids is not None else filter.key
    if key is not None:
        return tuple(_remembered(view, filter, key) for view in views)
    return tuple(_of_view(view, filter, _living(view)) for view in views)


def _living(view: SegmentView) -> Bool:
    return np.ones(len(view.segment), np.bool_) if view.living is None else view.living


def _of_view(view: SegmentView, filter: Filter, among: Bool) -> Bool:
    """Return which of ``among`` pass a filter that has no key, or has segments without."""
    key = None if filter.ids is not None else filter.key
    if key is not None:
        return among & _remembered(view, filter, key)
    if isinstance(filter, And | Or | Not):
        return _combine(filter, among, partial(_of_view, view))
    return _evaluate(_Now(view), filter, among)


def _remembered(view: SegmentView, filter: Filter, key: Hashable) -> Bool:
    """Return which documents live and pass."""
    if not view.changes:
        return _as_stored(view, filter, key)
    return view.masks.get(key, lambda: _as_now(view, filter, key))


def _as_stored(view: SegmentView, filter: Filter, key: Hashable) -> Bool:
    return view.segment.masks.get(key, lambda: _of_all(_Stored(view), filter))


def _as_now(view: SegmentView, filter: Filter, key: Hashable) -> Bool:
    mask = _as_stored(view, filter, key).copy()
    for changes in view.changes:
        if changes.changed:
            changed = _Changed(view, changes)
            mask[changes.numbers] = changes.masks.get(key, partial(_of_all, changed, filter))
    if view.living is not None:
        mask &= view.living
    return mask


# --- documents ------------------------------------------------------------------------------------


class _Stored:
    """The documents of a segment, with the metadata that their segment was built with."""

    def __init__(self, view: SegmentView) -> None:
        self._view = view

    def __len__(self) -> int:
        return len(self._view.segment)

    @property
    def fields(self) -> Fields | None:
        """The fields of their metadata, unless they are to be asked."""
        return self._view.segment.fields

    def ids(self, places: Sequence[int]) -> Sequence[str | None]:
        """Return the ids of some."""
        return self._view.segment.ids.column.texts(places)

    def all_ids(self) -> Sequence[str | None]:
        """Return the ids of all, in a third of the time."""
        return StringRange(self._view.segment.ids.column, 0, len(self)).texts()

    def metadata(self, places: Sequence[int]) -> Sequence[memoryview | bytes | None]:
        """Return the metadata of some."""
        return self._view.segment.metadata.views(places)

    def find(self, ids: Iterable[str]) -> Int64:
        """Return the places of those with these ids."""
        return self._view.segment.ids.find_all([utf8(id) for id in ids])


class _Now(_Stored):
    """The documents of a segment, with the metadata that they have now."""

    @property
    def fields(self) -> None:
        """None, since fields are of one time."""
        return

    def metadata(self, places: Sequence[int]) -> Sequence[memoryview | bytes | None]:
        """Return the metadata of some."""
        return self._view.metadata_of(places)


class _Changed(_Stored):
    """The documents of which one set of changes changed the metadata, with these metadata."""

    def __init__(self, view: SegmentView, changes: Changes) -> None:
        super().__init__(view)
        self._changes = changes

    def __len__(self) -> int:
        return len(self._changes.changed)

    @property
    def fields(self) -> Fields | None:
        """The fields of their metadata, unless they are to be asked."""
        return self._changes.fields if len(self) > FEW else None

    def ids(self, places: Sequence[int]) -> Sequence[str | None]:
        """Return the ids of some."""
        return super().ids(self._changes.numbers[list(places)].tolist())

    def all_ids(self) -> Sequence[str | None]:
        """Return the ids of all."""
        return self.ids(range(len(self)))

    def metadata(self, places: Sequence[int]) -> Sequence[memoryview | bytes | None]:
        """Return the metadata of some."""
        numbers = self._changes.numbers[list(places)].tolist()
        return [self._changes.changed[number] for number in numbers]

    def find(self, ids: Iterable[str]) -> Int64:
        """Return the places of those with these ids."""
        numbers = super().find(ids)
        return np.flatnonzero(np.isin(self._changes.numbers, numbers))


# --- filters --------------------------------------------------------------------------------------


def _of_all(documents: _Stored, filter: Filter) -> Bool:
    """Return which documents pass."""
    return _evaluate(documents, filter, np.ones(len(documents), np.bool_))


def _evaluate(documents: _Stored, filter: Filter, among: Bool) -> Bool:
    """Return which of ``among`` pass."""
    if isinstance(filter, And | Or | Not):
        return _combine(filter, among, partial(_evaluate, documents))
    if filter.ids is not None:
        mask, places = np.zeros(len(documents), np.bool_), documents.find(filter.ids)
        mask[places] = among[places]
        return mask
    if isinstance(filter, IdCondition):
        ids = documents.all_ids()
        return among & np.array(list(map(filter.operator.passes, ids)), np.bool_)
    fields = documents.fields
    if isinstance(filter, Condition) and fields is not None:
        return among & select(fields, filter, lambda open: _ask(documents, filter, among & open))
    return _ask(documents, filter, among)


def _combine(filter: And | Or | Not, among: Bool, leaf: Callable[[Filter, Bool], Bool]) -> Bool:
    """Evaluate the segments in order, each on the documents that those before it left open."""
    if isinstance(filter, Not):
        return among & ~leaf(filter.part, among)
    if isinstance(filter, And):
        for part in filter.parts:
            among = leaf(part, among)
        return among
    found = np.zeros_like(among)
    for part in filter.parts:
        found |= leaf(part, among & ~found)
    return found


def _ask(documents: _Stored, filter: Filter, among: Bool) -> Bool:
    """Ask the filter for each of ``among``."""
    mask = np.zeros(len(documents), np.bool_)
    places = np.flatnonzero(among).tolist()
    for first in range(0, len(places), AT_ONCE):
        some = places[first : first + AT_ONCE]
        for place, id, data in zip(
            some, documents.ids(some), documents.metadata(some), strict=True
        ):
            mask[place] = filter.matches(id or "", decode_metadata(data))
    return mask

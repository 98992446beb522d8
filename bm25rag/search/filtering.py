"""Which documents of a part pass a filter: from fields, remembered, or asked one by one.

What a filter says of a segment is remembered with the segment, and what it says of the
metadata that a write has changed with the layer of that write, so that a write evaluates
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
from bm25rag.metadata.field import Strings
from bm25rag.metadata.fields import Fields

if TYPE_CHECKING:
    from bm25rag.segments.changes import Layer
    from bm25rag.segments.view import Part

# Documents that are asked at once.
AT_ONCE = 4096
# Changed documents that are asked in the time that it takes to make fields of them.
FEW = 64


# --- parts ----------------------------------------------------------------------------------------


def masks_of(parts: Iterable[Part], filter: Filter) -> tuple[Bool, ...]:
    """Return which documents of parts live and pass a filter, bool; not to be changed."""
    key = None if filter.ids is not None else filter.key
    if key is not None:
        return tuple(_remembered(part, filter, key) for part in parts)
    return tuple(_of_part(part, filter, _living(part)) for part in parts)


def _living(part: Part) -> Bool:
    return np.ones(len(part.segment), np.bool_) if part.living is None else part.living


def _of_part(part: Part, filter: Filter, among: Bool) -> Bool:
    """Return which of ``among`` pass a filter that has no key, or has parts without."""
    key = None if filter.ids is not None else filter.key
    if key is not None:
        return among & _remembered(part, filter, key)
    if isinstance(filter, And | Or | Not):
        return _combine(filter, among, partial(_of_part, part))
    return _evaluate(_Now(part), filter, among)


def _remembered(part: Part, filter: Filter, key: Hashable) -> Bool:
    """Return which documents live and pass."""
    if not part.layers:
        return _as_stored(part, filter, key)
    return part.masks.get(key, lambda: _as_now(part, filter, key))


def _as_stored(part: Part, filter: Filter, key: Hashable) -> Bool:
    return part.segment.masks.get(key, lambda: _of_all(_Stored(part), filter))


def _as_now(part: Part, filter: Filter, key: Hashable) -> Bool:
    mask = _as_stored(part, filter, key).copy()
    for layer in part.layers:
        if layer.changed:
            changed = _Changed(part, layer)
            mask[layer.numbers] = layer.masks.get(key, partial(_of_all, changed, filter))
    if part.living is not None:
        mask &= part.living
    return mask


# --- documents ------------------------------------------------------------------------------------


class _Stored:
    """The documents of a part, with the metadata that their segment was built with."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def __len__(self) -> int:
        return len(self._part.segment)

    @property
    def fields(self) -> Fields | None:
        """The fields of their metadata, unless they are to be asked."""
        return self._part.segment.fields

    def ids(self, places: Sequence[int]) -> Sequence[str | None]:
        """Return the ids of some."""
        return self._part.segment.ids.column.texts(places)

    def all_ids(self) -> Sequence[str | None]:
        """Return the ids of all, in a third of the time."""
        return Strings(self._part.segment.ids.column, 0, len(self)).texts()

    def metadata(self, places: Sequence[int]) -> Sequence[memoryview | bytes | None]:
        """Return the metadata of some."""
        return self._part.segment.metadata.views(places)

    def find(self, ids: Iterable[str]) -> Int64:
        """Return the places of those with these ids."""
        return self._part.segment.ids.find_all([utf8(id) for id in ids])


class _Now(_Stored):
    """The documents of a part, with the metadata that they have now."""

    @property
    def fields(self) -> None:
        """None, since fields are of one time."""
        return

    def metadata(self, places: Sequence[int]) -> Sequence[memoryview | bytes | None]:
        """Return the metadata of some."""
        return self._part.metadata_of(places)


class _Changed(_Stored):
    """The documents of which one layer changed the metadata, with these metadata."""

    def __init__(self, part: Part, layer: Layer) -> None:
        super().__init__(part)
        self._layer = layer

    def __len__(self) -> int:
        return len(self._layer.changed)

    @property
    def fields(self) -> Fields | None:
        """The fields of their metadata, unless they are to be asked."""
        return self._layer.fields if len(self) > FEW else None

    def ids(self, places: Sequence[int]) -> Sequence[str | None]:
        """Return the ids of some."""
        return super().ids(self._layer.numbers[list(places)].tolist())

    def all_ids(self) -> Sequence[str | None]:
        """Return the ids of all."""
        return self.ids(range(len(self)))

    def metadata(self, places: Sequence[int]) -> Sequence[memoryview | bytes | None]:
        """Return the metadata of some."""
        numbers = self._layer.numbers[list(places)].tolist()
        return [self._layer.changed[number] for number in numbers]

    def find(self, ids: Iterable[str]) -> Int64:
        """Return the places of those with these ids."""
        numbers = super().find(ids)
        return np.flatnonzero(np.isin(self._layer.numbers, numbers))


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
        return among & np.array([filter.test(id, True) for id in ids], np.bool_)
    fields, ask = documents.fields, partial(_ask, documents, filter)
    if isinstance(filter, Condition) and fields is not None:
        return among & select(fields, filter, ask)
    return ask(among)


def _combine(filter: And | Or | Not, among: Bool, leaf: Callable[[Filter, Bool], Bool]) -> Bool:
    """Evaluate the parts in order, each on the documents that those before it left open."""
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

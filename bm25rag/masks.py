"""Which documents of a part pass a filter: from its fields, remembered, or asked one by one.

What a filter says of a segment's documents is remembered with the segment, so that a
write evaluates only what it brings: documents whose metadata changed are asked again,
and the dead are left out. Filters without a key, callables among them, are evaluated
every time, on the living documents that the rest of the filter has not yet decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from bm25rag._types import Bool, utf8
from bm25rag.documents import decode_metadata
from bm25rag.fields import Strings, select
from bm25rag.filters import And, Condition, Filter, IdCondition, Not, Or

if TYPE_CHECKING:
    from bm25rag.segment import Part, Segment

# What is remembered for a segment, and for a part, at most: twice so many bytes, so many masks.
MOST_BYTES, MOST_MASKS = 1 << 26, 1 << 10

# Documents whose metadata are read at once.
_AT_ONCE = 4096

_Metadata: TypeAlias = Callable[[Sequence[int]], Sequence[memoryview | bytes | None]]
_Entry: TypeAlias = tuple[Bool, Mapping[int, bytes]]


class MaskCache:
    """Remembers masks by key, those used last; threads may share it."""

    def __init__(self) -> None:
        self._young: dict[str, _Entry] = {}
        self._old: dict[str, _Entry] = {}
        self._bytes = 0

    def __reduce__(self) -> tuple[type[MaskCache], tuple[()]]:
        return MaskCache, ()  # a copy begins without

    def get(self, key: str) -> _Entry | None:
        """Return what was put under a key, if it is still there."""
        found = self._young.get(key)
        if found is None and (found := self._old.get(key)) is not None:
            self.put(key, *found)
        return found

    def put(self, key: str, mask: Bool, changed: Mapping[int, bytes]) -> None:
        """Remember a mask, and the changed metadata that it is for."""
        size = len(mask) + len(key)
        if self._bytes + size > MOST_BYTES or len(self._young) >= MOST_MASKS:
            self._old, self._young, self._bytes = self._young, {}, 0
        self._bytes += size
        self._young[key] = mask, changed


def masks_of(parts: Iterable[Part], filter: Filter) -> tuple[Bool, ...]:
    """Return which documents of parts live and pass a filter, bool; not to be changed."""
    key = None if filter.ids is not None else filter.key
    if key is not None:
        return tuple(_remembered(part, filter, key) for part in parts)
    return tuple(_of_part(part, filter, _living(part)) for part in parts)


def _living(part: Part) -> Bool:
    return _everyone(part.segment) if part.living is None else part.living


def _everyone(segment: Segment) -> Bool:
    return np.ones(len(segment), np.bool_)


def _of_part(part: Part, filter: Filter, among: Bool) -> Bool:
    """Return which of ``among`` pass a filter that has no key, or has parts without."""
    if filter.ids is not None:
        return _with_ids(part.segment, filter.ids, among)
    key = filter.key
    if key is not None:
        return among & _remembered(part, filter, key)
    if isinstance(filter, And | Or | Not):
        return _combine(filter, among, partial(_of_part, part))
    return _ask(part.segment, filter, part.metadata_of, among)


def _remembered(part: Part, filter: Filter, key: str) -> Bool:
    """Return which documents live and pass."""
    if not len(part.dead) and not part.changed:
        return _up_to_date(part, filter, key)
    found = part.masks.get(key)
    if found is None:
        mask, living = _up_to_date(part, filter, key), part.living
        found = mask if living is None else mask & living, part.changed
        part.masks.put(key, *found)
    return found[0]


def _up_to_date(part: Part, filter: Filter, key: str) -> Bool:
    """Return which documents pass, living or not, by the metadata they have in this part."""
    segment, changed = part.segment, part.changed
    found = segment.masks.get(key)
    mask, known = found or (_of_segment(segment, filter, _everyone(segment)), {})
    if known is not changed:
        stale = [n for n in known.keys() | changed.keys() if known.get(n) is not changed.get(n)]
        asked = np.zeros(len(segment), np.bool_)
        asked[np.array(stale, np.int64)] = True
        mask = (mask & ~asked) | _ask(segment, filter, part.metadata_of, asked)
    if found is None or known is not changed:
        segment.masks.put(key, mask, changed)
    return mask


def _of_segment(segment: Segment, filter: Filter, among: Bool) -> Bool:
    """Return which of ``among`` pass by the metadata that the segment was built with."""
    if isinstance(filter, And | Or | Not):
        return _combine(filter, among, partial(_of_segment, segment))
    if filter.ids is not None:
        return _with_ids(segment, filter.ids, among)
    if isinstance(filter, IdCondition):
        ids = Strings(segment.ids.column, 0, len(segment)).texts()
        return among & np.array([filter.test(id, True) for id in ids], np.bool_)
    ask = partial(_ask, segment, filter, segment.metadata.views)
    if isinstance(filter, Condition):
        return among & select(segment.fields, filter, ask)
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


def _with_ids(segment: Segment, ids: Iterable[str], among: Bool) -> Bool:
    mask = np.zeros(len(segment), np.bool_)
    numbers = segment.ids.find_all([utf8(id) for id in ids])
    mask[numbers] = among[numbers]
    return mask


def _ask(segment: Segment, filter: Filter, metadata_of: _Metadata, among: Bool) -> Bool:
    """Ask the filter for each of some documents."""
    mask = np.zeros(len(segment), np.bool_)
    numbers = np.flatnonzero(among).tolist()
    for first in range(0, len(numbers), _AT_ONCE):
        some = numbers[first : first + _AT_ONCE]
        for number, metadata in zip(some, metadata_of(some), strict=True):
            mask[number] = filter.matches(segment.id_of(number), decode_metadata(metadata))
    return mask

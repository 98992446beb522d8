"""Which documents of a segment pass a filter: from fields and cached masks, or by a scan.

The mask of a filter is cached with the segment, and its mask of the documents whose metadata
a write has changed with the changes of that write. So a write evaluates only what it brings;
deleted documents are left out at the end. Filters without a key, such as callables, are
evaluated every time, on the living documents that the rest of the filter leaves open. A few ids
are looked up, and need no mask.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial

import numpy as np

from bm25rag.common.arrays import Bool, Int64, UInt32
from bm25rag.common.codec import decode_each
from bm25rag.common.strings import text_of, utf8
from bm25rag.filters import And, Condition, Filter, IdCondition, Not, Or
from bm25rag.kernels.records import Allowed
from bm25rag.metadata.conditions import select
from bm25rag.metadata.field import StringRange
from bm25rag.metadata.fields import Fields
from bm25rag.segments.changes import Changes
from bm25rag.segments.view import SegmentView

# Documents whose metadata are read together.
SCAN_BLOCK = 4096
# Changed documents that are scanned in the time that it takes to make fields of them.
FEW_CHANGED = 64
# With so many times fewer ids than documents, a search does without a mask.
_FEW_IDS = 1024


# --- segments ------------------------------------------------------------------------------------


def masks_of(views: Iterable[SegmentView], filter: Filter) -> tuple[Allowed, ...]:
    """Return for each segment which documents are alive and pass."""
    return tuple(_mask_of(view, filter) for view in views)


def numbers_anew(view: SegmentView, filter: Filter) -> UInt32:
    """Return the numbers of the documents that live and pass, ascending, from no cache.

    What is in a cache was found by the key of some filter.
    """
    living = _living(view)
    as_built = living.copy()
    as_built[list(view.changed)] = False
    mask = _evaluate(_AsBuilt(view), filter, as_built)
    for changes in view.changes:
        if changes.changed:
            numbers = changes.numbers
            mask[numbers] = _evaluate(_Changed(view, changes), filter, living[numbers])
    return np.flatnonzero(mask).astype(np.uint32)


def _mask_of(view: SegmentView, filter: Filter) -> Allowed:
    key = _cache_key(filter)
    if key is not None:
        return _cached(view, filter, key)
    if filter.ids is not None and len(filter.ids) * _FEW_IDS < len(view.segment):
        numbers = np.sort(_AsBuilt(view).find(filter.ids))
        if view.living is not None:
            numbers = numbers[view.living[numbers]]
        return Allowed.of_numbers(numbers.astype(np.uint32), len(view.segment))
    return Allowed(_evaluate_view(view, filter, _living(view)))


def _cache_key(filter: Filter) -> Hashable:
    return None if filter.ids is not None else filter.key


def _living(view: SegmentView) -> Bool:
    return np.ones(len(view.segment), np.bool_) if view.living is None else view.living


def _evaluate_view(view: SegmentView, filter: Filter, candidates: Bool) -> Bool:
    """Return which candidates pass a filter that has no key itself, though its parts may."""
    key = _cache_key(filter)
    if key is not None:
        return candidates & _cached(view, filter, key).mask
    if isinstance(filter, And | Or | Not):
        return _combine(filter, candidates, partial(_evaluate_view, view))
    return _evaluate(_Current(view), filter, candidates)


def _cached(view: SegmentView, filter: Filter, key: Hashable) -> Allowed:
    """Return which documents are alive and pass."""
    if not view.changes and view.is_whole:
        return _cached_as_built(view, filter, key)
    return view.masks.get(key, lambda: _with_changes(view, filter, key))


def _cached_as_built(view: SegmentView, filter: Filter, key: Hashable) -> Allowed:
    return view.segment.masks.get(key, lambda: _evaluate_all(_AsBuilt(view), filter))


def _with_changes(view: SegmentView, filter: Filter, key: Hashable) -> Bool:
    mask = _cached_as_built(view, filter, key).mask.copy()
    for changes in view.changes:
        if changes.changed:
            evaluate = partial(_evaluate_all, _Changed(view, changes), filter)
            mask[changes.numbers] = changes.masks.get(key, evaluate).mask
    if view.living is not None:
        mask &= view.living
    return mask


# --- documents ------------------------------------------------------------------------------------


class _AsBuilt:
    """The documents of a segment, with the metadata that it was built with."""

    def __init__(self, view: SegmentView) -> None:
        self._view = view

    def __len__(self) -> int:
        return len(self._view.segment)

    @property
    def fields(self) -> Fields | None:
        """The fields of the metadata, or ``None`` if these are to be scanned."""
        return self._view.segment.fields

    def ids(self, rows: Sequence[int]) -> Sequence[str | None]:
        """Return the ids of some documents."""
        return self._view.segment.ids.column.texts(rows)

    def all_ids(self) -> Sequence[str | None]:
        """Return all ids, in a third of the time."""
        return StringRange(self._view.segment.ids.column, 0, len(self)).texts()

    def metadata(self, rows: Sequence[int]) -> Sequence[str | None]:
        """Return the metadata of some documents, as JSON."""
        return self._view.segment.metadata.texts(rows)

    def find(self, ids: Iterable[str]) -> Int64:
        """Return the rows of the documents with these ids."""
        return self._view.segment.ids.find_all([utf8(id) for id in ids])


class _Current(_AsBuilt):
    """The documents of a segment, with the metadata that they have now."""

    @property
    def fields(self) -> None:
        """None: the segment's fields do not know of changes."""
        return

    def metadata(self, rows: Sequence[int]) -> Sequence[str | None]:
        return self._view.metadata_of(rows)


class _Changed(_AsBuilt):
    """The documents whose metadata one set of changes has changed, with the new metadata."""

    def __init__(self, view: SegmentView, changes: Changes) -> None:
        super().__init__(view)
        self._changes = changes

    def __len__(self) -> int:
        return len(self._changes.changed)

    @property
    def fields(self) -> Fields | None:
        return self._changes.fields if len(self) > FEW_CHANGED else None

    def ids(self, rows: Sequence[int]) -> Sequence[str | None]:
        return super().ids(self._changes.numbers[list(rows)].tolist())

    def all_ids(self) -> Sequence[str | None]:
        return self.ids(range(len(self)))

    def metadata(self, rows: Sequence[int]) -> Sequence[str | None]:
        numbers = self._changes.numbers[list(rows)].tolist()
        return [text_of(self._changes.changed[number]) for number in numbers]

    def find(self, ids: Iterable[str]) -> Int64:
        return np.flatnonzero(np.isin(self._changes.numbers, super().find(ids)))


# --- filters --------------------------------------------------------------------------------------


def _evaluate_all(documents: _AsBuilt, filter: Filter) -> Bool:
    """Return which documents pass."""
    return _evaluate(documents, filter, np.ones(len(documents), np.bool_))


def _evaluate(documents: _AsBuilt, filter: Filter, candidates: Bool) -> Bool:
    """Return which candidates pass."""
    if isinstance(filter, And | Or | Not):
        return _combine(filter, candidates, partial(_evaluate, documents))
    if filter.ids is not None:
        mask, rows = np.zeros(len(documents), np.bool_), documents.find(filter.ids)
        mask[rows] = candidates[rows]
        return mask
    if isinstance(filter, IdCondition):
        passing = map(filter.operator.passes, documents.all_ids())
        return candidates & np.array(list(passing), np.bool_)
    fields = documents.fields
    if isinstance(filter, Condition) and fields is not None:
        mask = select(
            fields, filter, lambda undecided: _scan(documents, filter, candidates & undecided)
        )
        mask &= candidates
        return mask
    return _scan(documents, filter, candidates)


def _combine(
    filter: And | Or | Not, candidates: Bool, evaluate: Callable[[Filter, Bool], Bool]
) -> Bool:
    """Evaluate the parts in order, each on the documents that those before it left open."""
    if isinstance(filter, Not):
        return candidates & ~evaluate(filter.part, candidates)
    if isinstance(filter, And):
        for part in filter.parts:
            candidates = evaluate(part, candidates)
        return candidates
    passing = np.zeros_like(candidates)
    for part in filter.parts:
        passing |= evaluate(part, candidates & ~passing)
    return passing


def _scan(documents: _AsBuilt, filter: Filter, candidates: Bool) -> Bool:
    """Read the metadata of each candidate, and call the filter."""
    mask = np.zeros(len(documents), np.bool_)
    rows = np.flatnonzero(candidates).tolist()
    for first in range(0, len(rows), SCAN_BLOCK):
        block = rows[first : first + SCAN_BLOCK]
        pairs = zip(documents.ids(block), decode_each(documents.metadata(block)), strict=True)
        mask[block] = [filter.matches(id or "", metadata) for id, metadata in pairs]
    return mask

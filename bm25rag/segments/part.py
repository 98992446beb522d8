"""A part of a segment's documents, seen as if there were no others."""

from __future__ import annotations

import numpy as np

from bm25rag.common.arrays import UInt32
from bm25rag.common.lazy import lazy_property
from bm25rag.kernels.records import Allowed, SegmentRows
from bm25rag.metadata.mask_cache import MaskCache
from bm25rag.segments.changes import Changes
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView


class PartView(SegmentView):
    """Some documents of a view, as if the others were deleted; immutable.

    ``kept`` are their numbers, ascending: 4 bytes for each, however many others there are. The view
    may be such a part itself.
    """

    segment: Segment
    changes: tuple[Changes, ...]

    def __init__(self, view: SegmentView, kept: UInt32, masks: MaskCache | None = None) -> None:
        segment = view.segment
        self.segment, self.changes, self._view, self._kept = segment, view.changes, view, kept
        self.masks: MaskCache = MaskCache() if masks is None else masks
        self._counts: dict[tuple[int, int], int] = {}
        self.count: int = len(kept)
        self.is_whole: bool = self.count == len(segment)
        self.tokens: tuple[int, ...] = segment.postings.tokens_of(kept) if self.count else (0,)
        self.size: int = segment.nbytes * self.count // max(len(segment), 1)

    def __reduce__(self) -> tuple[type[SegmentView], tuple[object, ...]]:
        raise TypeError("a part of a segment cannot be pickled: it would bring the others along")

    @lazy_property
    def by_vectors(self) -> SegmentView:
        return PartView(self._view.by_vectors, self._kept, self.masks)

    def matching(self, matched: tuple[bool, ...]) -> SegmentView:
        if all(matched):
            return self
        return PartView(self._view.matching(matched), self._kept, self.masks)

    @property
    def deleted(self) -> UInt32:  # type: ignore[override]
        living = self.living
        none = np.empty(0, np.uint32)
        return none if living is None else np.flatnonzero(~living).astype(np.uint32)

    @lazy_property
    def allowed(self) -> Allowed | None:
        return None if self.is_whole else Allowed.of_numbers(self._kept, len(self.segment))

    @property
    def changed(self) -> dict[int, bytes]:
        return self._view.changed

    def lives(self, number: int) -> bool:
        index = int(self._kept.searchsorted(np.uint32(number)))
        return index < self.count and int(self._kept[index]) == number

    @lazy_property
    def rows(self) -> SegmentRows:
        if self.is_whole:
            return SegmentRows(np.empty(0, np.uint32), len(self.segment))
        return SegmentRows(self._kept, len(self.segment), kept=True)

"""What an index is attached to: nothing, or a folder that is open for reading or for writing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from bm25rag.common.clock import iso_time
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView
from bm25rag.storage.manifest import NO_COMMIT, Manifest

MergeSome: TypeAlias = Callable[[Sequence[SegmentView]], Sequence[SegmentView]]
"""Merges as much of some consecutive segments as one write may."""


class Attachment:
    """What an index is attached to; it says which segments belong together.

    ``description`` is what the index is, in messages, ``advice`` what to do if it is ``read_only``.
    ``source`` is the folder or URL that all of it comes from, ``None`` if it is in memory, and
    ``manifest`` that of the last commit there.
    """

    description: str
    read_only: bool
    advice: str = ""
    source: str | None = None
    manifest: Manifest = NO_COMMIT

    @property
    def committed(self) -> str | None:
        """When the last commit of the folder was made; ``None`` if there is none."""
        return None if self.source is None else iso_time(self.manifest.time)

    def room(self, views: Sequence[SegmentView]) -> float:
        """Return how many bytes of merged segments may be written beside what ``views`` need."""
        return math.inf

    def tidy(self, views: Sequence[SegmentView], merge_some: MergeSome) -> Sequence[SegmentView]:
        """Merge as much as a write may, given the segments that it has left."""
        return merge_some(views)

    def group(self, views: Sequence[SegmentView]) -> Sequence[Sequence[SegmentView]]:
        """Divide all segments into those that may be merged with each other."""
        return [views]

    def replace(self, views: Sequence[SegmentView], merged: Segment) -> None:
        """Note that a segment was made of others, in whose place it will be."""


class Unattached(Attachment):
    """The attachment of an index for which no folder is open."""

    def __init__(self, description: str, read_only: bool, advice: str = "") -> None:
        self.description, self.read_only, self.advice = description, read_only, advice

    def of(self, index: Attachment) -> Unattached:
        """Return the same for a view of an index, which tells what that told when it was made."""
        if index.source is None:
            return self
        view = Unattached(self.description, self.read_only, self.advice)
        view.source, view.manifest = index.source, index.manifest
        return view


_OF_VIEWS = "change the index that it was made from, or a copy in memory, copy.copy(index)"

MEMORY = Unattached("an index that is changed here", False)
TUNED = Unattached("a view made by tune()", True, _OF_VIEWS)
SNAPSHOT = Unattached("a snapshot", True, _OF_VIEWS)
RESTRICTED = Unattached("a view made by restricted()", True, _OF_VIEWS)
CLOSED = Unattached("a writer that was closed", True, "open the folder again with mode='w'")

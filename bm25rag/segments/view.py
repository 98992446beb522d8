"""A segment with its changes applied, as a snapshot sees it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bm25rag.common.arrays import Bool, Int64, UInt32, as_index
from bm25rag.common.lazy import lazy_property
from bm25rag.common.strings import text_of
from bm25rag.kernels.records import Allowed, SegmentRows
from bm25rag.metadata.mask_cache import MaskCache
from bm25rag.segments.changes import Changes, all_changed, all_deleted, push
from bm25rag.segments.segment import Segment

# A binary search takes as long as looking up so many documents in an array.
_SEARCH = 16


def add_tokens(each: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sum of lengths by field; one 0 if all are 0."""
    return tuple(map(sum, zip(*filter(any, each), strict=True))) or (0,)


class SegmentView:
    """A segment with its changes, the oldest first, applied; immutable."""

    def __init__(
        self, segment: Segment, changes: tuple[Changes, ...] = (), masks: MaskCache | None = None
    ) -> None:
        self.segment = segment
        self.changes = changes
        # Numbers of the deleted documents, ascending.
        self.deleted: UInt32 = all_deleted(changes)
        self.masks: MaskCache = MaskCache() if masks is None else masks
        self._changed: dict[int, bytes] | None = None
        # How many living documents a term has, by where its postings lie.
        self._counts: dict[tuple[int, int], int] = {}
        self.tokens: tuple[int, ...] = segment.tokens
        if len(self.deleted):
            removed = segment.postings.tokens_of(self.deleted)
            pairs = zip(segment.tokens, removed, strict=False)  # see ``add_tokens``
            self.tokens = tuple(all - gone for all, gone in pairs)
        self.count: int = len(segment) - len(self.deleted)
        # Whether all documents live.
        self.is_whole: bool = not len(self.deleted)
        # About how many bytes its living documents take, which is what merging it costs.
        self.size: int = segment.nbytes * self.count // max(len(segment), 1)

    def __reduce__(self) -> tuple[type[SegmentView], tuple[object, ...]]:
        return SegmentView, (self.segment, self.changes)

    def __deepcopy__(self, memo: object) -> SegmentView:
        return self  # nothing in it ever changes

    @lazy_property
    def by_vectors(self) -> SegmentView:
        """The same documents, with the postings of their vectors in place of their texts'."""
        return SegmentView(self.segment.by_vectors, self.changes, self.masks)

    def matching(self, matched: tuple[bool, ...]) -> SegmentView:
        """Return the same documents, with the postings of fields that are matched."""
        if all(matched):
            return self
        return SegmentView(self.segment.matching(matched), self.changes, self.masks)

    @property
    def living(self) -> Bool | None:
        """Which documents live, (n,), bool; ``None`` if all do."""
        return self.rows.living

    @lazy_property
    def allowed(self) -> Allowed | None:
        """The same, as a search takes it."""
        return None if self.living is None else Allowed(self.living)

    @property
    def changed(self) -> dict[int, bytes]:
        """New metadata, as JSON, by document number, perhaps of deleted documents too."""
        if self._changed is None:
            self._changed = all_changed(self.changes)
        return self._changed

    @property
    def changed_count(self) -> int:
        """About how many documents have new metadata."""
        return sum(len(change.changed) for change in self.changes)

    def find(self, id: bytes) -> int:
        """Return the number of the living document with this id, or -1."""
        number = self.segment.ids.find(id)
        return number if number >= 0 and self.lives(number) else -1

    def lives(self, number: int) -> bool:
        """Whether document ``number`` has not been deleted."""
        if not len(self.deleted):
            return True
        index = int(self.deleted.searchsorted(np.uint32(number)))
        return index == len(self.deleted) or int(self.deleted[index]) != number

    @lazy_property
    def has_metadata(self) -> bool:
        """Whether any document has metadata, or had."""
        changed = any(change.changed for change in self.changes)
        return changed or self.segment.metadata.strings is not None

    def metadata_of(self, numbers: Sequence[int]) -> list[str | None]:
        """Return the metadata of documents as JSON."""
        stored = self.segment.metadata.texts(numbers)
        for change in self.changes:
            for place, number in enumerate(numbers if change.changed else ()):
                if number in change.changed:
                    stored[place] = text_of(change.changed[number])
        return stored

    def count_living(self, starts: Int64) -> int:
        """Count the living documents of a term, given what ``Postings.find`` returns for it."""
        place = int(starts[0]), int(starts[-1])
        if place[0] == place[1] or self.is_whole:
            return place[1] - place[0]
        if place not in self._counts:
            self._counts[place] = self._count(self.segment.postings.documents_of(starts))
        return self._counts[place]

    def _count(self, documents: Int64) -> int:
        """Count the living documents among some, ascending."""
        numbers, allowed = self.rows.numbers, self.allowed
        if allowed is not None and len(documents) < _SEARCH * len(numbers):
            return int(np.count_nonzero(allowed.mask[documents]))
        places = np.searchsorted(documents, numbers)
        places[places == len(documents)] = 0
        common = int(np.count_nonzero(documents[places] == numbers))
        return common if self.rows.kept else len(documents) - common

    def frequencies(self) -> Int64:
        """Count the living documents of every term of the segment, (V,), int64."""
        postings, living = self.segment.postings, self.living
        if living is None:
            return postings.frequencies()
        starts = postings.indptr[:-1].astype(np.int64)
        return np.add.reduceat(
            living.take(as_index(postings.all_documents())), as_index(starts), dtype=np.int64
        )

    @lazy_property
    def rows(self) -> SegmentRows:
        """Which of the living documents each of them is."""
        return SegmentRows(self.deleted, len(self.segment))

    def numbers(self) -> range | Int64:
        """Return the numbers of the living documents, ascending."""
        living = self.living
        return range(len(self.segment)) if living is None else np.flatnonzero(living)

    def without(self, numbers: Iterable[int]) -> SegmentView:
        """Return the view with these living documents deleted."""
        deletions = Changes(np.unique(np.fromiter(numbers, np.uint32)), {})
        return SegmentView(self.segment, push(self.changes, deletions))

    def with_metadata(self, changed: dict[int, bytes]) -> SegmentView:
        """Return the view with new metadata for some documents."""
        return SegmentView(self.segment, push(self.changes, Changes(all_deleted(()), changed)))

"""Deletions and new metadata of a segment since it was made, so that a write adds little.

Each set of changes is a file of the saved index. A new set is merged with the latest ones as
long as they are at most twice as large, so a segment with n changes has at most log2(n) + 1
sets, and each change is written O(log n) times, whatever has changed before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bm25rag.columns.column import build_column
from bm25rag.common.arrays import Int64, UInt32
from bm25rag.common.lazy import lazy_property
from bm25rag.metadata.mask_cache import MaskCache

if TYPE_CHECKING:
    from bm25rag.metadata.fields import Fields


class Changes:
    """A set of changes: numbers of deleted documents, ascending, uint32, and new metadata.

    The metadata are JSON by document number. ``unverified`` is the file that they were read from,
    until it has been verified; ``masks`` are those of filters on them.
    """

    def __init__(
        self, deleted: UInt32, changed: dict[int, bytes], unverified: str | None = None
    ) -> None:
        self.deleted = deleted
        self.changed = changed
        self.unverified = unverified
        self.masks: MaskCache = MaskCache()

    def __len__(self) -> int:
        return len(self.deleted) + len(self.changed)

    def __reduce__(self) -> tuple[type[Changes], tuple[object, ...]]:
        return Changes, (self.deleted, self.changed)

    @property
    def nbytes(self) -> int:
        """About how many bytes they take in a file."""
        return self.deleted.nbytes + sum(4 + len(data) for data in self.changed.values())

    @lazy_property
    def numbers(self) -> Int64:
        """Numbers of the documents with new metadata, ascending."""
        return np.array(sorted(self.changed), np.int64)

    @lazy_property
    def fields(self) -> Fields:
        """The fields of the new metadata."""
        from bm25rag.metadata.field_builder import build_fields  # see ``Segment.fields``

        return build_fields(build_column(self.changed[n] or None for n in self.numbers.tolist()))


def push(all_changes: Sequence[Changes], new: Changes) -> tuple[Changes, ...]:
    """Return sets of changes with a new one added, the latest of them merged."""
    first, size = len(all_changes), len(new)
    while first and len(all_changes[first - 1]) <= 2 * size:
        first -= 1
        size += len(all_changes[first])
    return (*all_changes[:first], _merge([*all_changes[first:], new]))


def _merge(all_changes: Sequence[Changes]) -> Changes:
    """Merge sets of changes; new metadata of deleted documents are left out."""
    if len(all_changes) == 1:
        return all_changes[0]
    deleted, changed = all_deleted(all_changes), all_changed(all_changes)
    for number in deleted.tolist() if changed else ():
        changed.pop(number, None)
    return Changes(deleted, changed)


def all_deleted(all_changes: Sequence[Changes]) -> UInt32:
    """Return the numbers of all deleted documents, ascending, uint32."""
    deleted = np.concatenate(
        [np.empty(0, np.uint32), *(changes.deleted for changes in all_changes)]
    )
    return np.sort(deleted, kind="stable")  # merges runs: 0.3 ms for 200,000, against 5


def all_changed(all_changes: Sequence[Changes]) -> dict[int, bytes]:
    """Return all new metadata by document number, perhaps of deleted documents too."""
    changed: dict[int, bytes] = {}
    for changes in all_changes:
        changed |= changes.changed
    return changed

"""What an index knows to be in a folder, and need not write again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from bm25rag.segments.changes import Changes
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import SegmentView
from bm25rag.storage.checksummed_file import ArraysFile, FileRecord
from bm25rag.storage.manifest import Manifest


class SavedCopy(NamedTuple):
    """What an index has read from, or saved in, a folder that it is not the writer of."""

    folder: str
    manifest: Manifest
    views: Sequence[SegmentView]

    def files_in(self, folder: str, manifest: Manifest) -> dict[Segment | Changes, FileRecord]:
        """Return the files of a folder that need not be written again."""
        if (self.folder, self.manifest) != (folder, manifest):
            return {}
        files = files_of(self.views, self.manifest)
        return {of: file for of, file in files.items() if self._is_whole(file)}

    def _is_whole(self, file: FileRecord) -> bool:
        """Whether a file is as it was written; saving may be meant to repair it."""
        try:
            ArraysFile(os.path.join(self.folder, file.name), file, mapped=True).check_all()
        except OSError:  # StorageError is one
            return False
        return True


def files_of(
    views: Sequence[SegmentView], manifest: Manifest
) -> dict[Segment | Changes, FileRecord]:
    """Return the file of each segment and set of changes of a commit."""
    files: dict[Segment | Changes, FileRecord] = {}
    for view, stored in zip(views, manifest.stored, strict=True):
        files[view.segment] = stored.segment
        files.update(zip(view.changes, stored.changes, strict=True))
    return files

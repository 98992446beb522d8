"""One index built in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bm25rag.building.folder import check_new, remove
from bm25rag.building.gathering import Gathered, gather
from bm25rag.building.merging import write_merged
from bm25rag.building.plan import Plan
from bm25rag.common.checks import check_sequence
from bm25rag.common.urls import local_path
from bm25rag.documents import Document, Text
from bm25rag.storage.manifest import BUILDING, folder_to_fill, lock

if TYPE_CHECKING:
    from filelock import BaseFileLock


def build_index(
    documents: Iterable[Document | Text], folder: str | os.PathLike[str], plan: Plan
) -> None:
    """Build an index in a folder, or go on where that was interrupted; raise as ``gather``."""
    check_sequence("documents", documents, "bm25rag.Document or texts")
    path = local_path(folder)
    check_new(path)
    with folder_to_fill(path):
        held = lock(path)
        try:
            check_new(path)
            building = os.path.join(path, BUILDING)
            # Nothing refers to the parts after this, or Windows would keep their files.
            _merge(gather(documents, path, plan, None), path, held, plan, building)
            remove(building)
        finally:
            held.release()


def _merge(gathered: Gathered, folder: str, held: BaseFileLock, plan: Plan, building: str) -> None:
    state = gathered._state.stored()._replace(extra=plan.extra)
    write_merged(folder, held, state, plan, building)

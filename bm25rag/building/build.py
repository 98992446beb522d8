"""One index built in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable

from bm25rag.building.final_merge import write_merged
from bm25rag.building.folder import locked_to_build, remove
from bm25rag.building.gathering import gather
from bm25rag.building.plan import Plan
from bm25rag.common.checks import check_sequence
from bm25rag.documents import Document, Text
from bm25rag.storage.manifest import BUILDING


def build_index(
    documents: Iterable[Document | Text], folder: str | os.PathLike[str], plan: Plan
) -> None:
    """Build an index in a folder, or go on where that was interrupted; raise as ``gather``."""
    check_sequence("documents", documents, "bm25rag.Document or texts")
    with locked_to_build(folder) as (path, held):
        building = os.path.join(path, BUILDING)
        # Nothing refers to the parts after this, or Windows would keep their files.
        write_merged(path, held, gather(documents, path, plan, None), plan, building)
        remove(building)

"""One index built in a folder: its documents gathered, and the parts merged into one segment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from bm25rag.building.folder import locked_to_build
from bm25rag.building.gathering import gather
from bm25rag.building.memory import merge_room
from bm25rag.building.plan import Plan
from bm25rag.common.checks import check_sequence
from bm25rag.common.chunks import Spools
from bm25rag.documents import Document, Text
from bm25rag.merging.merge import merge_in_chunks
from bm25rag.segments.view import SegmentView, add_tokens
from bm25rag.storage.folder_lock import FolderLock
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.fs import name_file
from bm25rag.storage.leftovers import remove
from bm25rag.storage.manifest import BUILDING, clean
from bm25rag.storage.segment_files import write_segment
from bm25rag.storage.state import State


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


def write_merged(folder: str, held: FolderLock, state: State, plan: Plan, building: str) -> None:
    """Merge the segments of a state, which are of files, into one; commit it to an empty folder.

    ``building``, the folder of the parts, takes what waits to be written.
    """
    writer = FolderWriter(folder, held)
    clean(folder)  # what an interrupted merge has left
    if not state.views:
        writer.commit(state)
        return
    tokens = add_tokens(view.tokens for view in state.views)
    try:
        with _progress_bar(state.views, plan.progress) as note, Spools(building) as spools:
            room = merge_room(plan.memory)
            arrays = merge_in_chunks(state.views, spools, room, plan.threads, note)
            segment, record = write_segment(folder, arrays, tokens)
    except OSError as error:
        name_file(error, building)  # of what waits to be written
        raise
    writer.commit(state._replace(views=[SegmentView(segment)]), {segment: record})


@contextmanager
def _progress_bar(
    views: Sequence[SegmentView], progress: bool
) -> Iterator[Callable[[int], object]]:
    """Show a progress bar if ``progress``; return what counts merged postings."""
    if not progress:
        yield lambda postings: None
        return
    from tqdm import tqdm

    postings = sum(len(view.segment.postings.documents) for view in views)
    with tqdm(total=postings, desc="merging", unit=" postings", unit_scale=True) as bar:
        yield bar.update

"""What an index is attached to: nothing, or a folder that is open for reading or for writing."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.folder_writer import FolderWriter


class Unattached(NamedTuple):
    """An index that no folder is open for."""

    description: str
    read_only: bool
    advice: str = ""


_OF_VIEWS = "change the index that it was made from, or a copy in memory, copy.copy(index)"

MEMORY = Unattached("an index that is changed here", False)
TUNED = Unattached("a view made by tune()", True, _OF_VIEWS)
SNAPSHOT = Unattached("a snapshot", True, _OF_VIEWS)
CLOSED = Unattached("a writer that was closed", True, "open the folder again with mode='w'")

Attachment: TypeAlias = Unattached | FolderReader | FolderWriter
"""Each says in ``description`` what the index is, for messages, whether it is ``read_only``, and
in ``advice`` what to do about that."""

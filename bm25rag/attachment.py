"""What an index is attached to: nothing, or a folder that is open for reading or for writing."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.folder_writer import FolderWriter


class Unattached(NamedTuple):
    """An index that no folder is open for."""

    description: str
    read_only: bool


MEMORY = Unattached("an index that is changed here", False)
TUNED = Unattached("a view made by tune()", True)
SNAPSHOT = Unattached("a snapshot", True)
CLOSED = Unattached("a writer that was closed", True)

Attachment: TypeAlias = Unattached | FolderReader | FolderWriter
"""Each says in ``description`` what the index is, for messages, and whether it is ``read_only``."""

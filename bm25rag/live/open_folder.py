"""How a folder is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from bm25rag.analysis import Tokenizer
from bm25rag.live.index import LiveIndex, Mode, State
from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.state import State as StoredState

if TYPE_CHECKING:
    from bm25rag.storage.remote_mirror import Mirror


class Kind(NamedTuple):
    """What reads and writes the folders of one kind of index."""

    reader: type[FolderReader]
    writer: type[FolderWriter]


PLAIN = Kind(FolderReader, FolderWriter)
"""An index that is not divided into shards."""


def open_folder(
    kind: Kind,
    folder: str,
    mode: Mode = "r",
    *,
    mmap: bool = True,
    tokenizer: Tokenizer | None = None,
    untrusted: bool = False,
    timeout: float = 0.0,
    mirror: Mirror | None = None,
    empty: Callable[[], StoredState] | None = None,
    check: Callable[[FolderReader, StoredState], None] | None = None,
    commit: str | None = None,
    keep: int | None = None,
) -> LiveIndex:
    """Open a folder that holds an index of a kind, as ``BM25Index.open`` does, with its errors.

    ``mirror`` keeps the folder as a remote one is, ``empty`` returns the state that mode ``"a"``
    makes a folder of which holds none, ``check`` raises if what was read must not be opened,
    ``keep`` is for how many milliseconds earlier commits are kept, ``None`` for as long as before.
    """
    writer = None
    if mode != "r":
        writer = kind.writer.lock(folder, timeout, empty if mode == "a" else None)
    try:
        reader = kind.reader(folder, mmap, tokenizer, untrusted)
        reader.mirror, reader.commit = mirror, commit
        with reader.synced():
            stored = reader.read()
            if check is not None:
                check(reader, stored)
        if writer is None:
            return LiveIndex(State.of(stored), reader)
        writer.take_over(reader, stored)
        writer.keep = writer.keep if keep is None else keep
        return LiveIndex(State.of(stored), writer)
    except BaseException:
        if writer is not None:
            writer.close()
        raise

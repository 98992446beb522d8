"""How a folder is opened."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from bm25rag.analysis import Tokenizer
from bm25rag.live.index import LiveIndex, Mode, State
from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.state import State as StoredState

if TYPE_CHECKING:
    from bm25rag.storage.remote_mirror import Mirror


class Kind(NamedTuple):
    """What reads, writes, mirrors and verifies the folders of one kind of index."""

    reader: type[FolderReader]
    writer: type[FolderWriter]
    mirror: Callable[[str, str | PathLike[str] | None, dict[str, Any] | None], Mirror]
    verify: Callable[[str], None]


def _mirror(url: str, cache: str | PathLike[str] | None, options: dict[str, Any] | None) -> Mirror:
    from bm25rag.storage.remote_mirror import Mirror

    return Mirror(url, cache, options)


def _verify(folder: str) -> None:
    from bm25rag.storage.verify import verify_folder

    verify_folder(folder)


PLAIN = Kind(FolderReader, FolderWriter, _mirror, _verify)
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
) -> LiveIndex:
    """Open a folder that holds an index.

    Parameters
    ----------
    kind
        Of which kind that is.
    folder
        The folder.
    mode, mmap, tokenizer, untrusted, timeout
        As for ``BM25Index.open``.
    mirror
        What keeps the folder as a remote one is.
    empty
        Returns the state that mode ``"a"`` makes a folder of which holds none.
    check
        Raises if what was read must not be opened.

    Raises
    ------
    StorageError, TokenizerRequiredError
        As ``BM25Index.open``.
    """
    writer = None
    if mode != "r":
        writer = kind.writer.lock(folder, timeout, empty if mode == "a" else None)
    reader = kind.reader(folder, mmap, tokenizer, untrusted)
    reader.mirror = mirror
    try:
        with reader.synced():
            stored = reader.read()
            if check is not None:
                check(reader, stored)
    except BaseException:
        if writer is not None:
            writer.close()
        raise
    if writer is None:
        return LiveIndex(State.of(stored), reader)
    writer.take_over(reader, stored)
    return LiveIndex(State.of(stored), writer)

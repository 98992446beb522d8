"""A folder made what another one is, as a backup or from one."""

from __future__ import annotations

import os

from bm25rag.errors import NotAnIndexError
from bm25rag.storage.folder_lock import check_target, folder_to_fill, locked_folder
from bm25rag.storage.fs import is_same
from bm25rag.storage.manifest import LOCK, MANIFEST, SHARDED
from bm25rag.storage.remote_mirror import Mirror, is_part


def copy_folder(mirror: Mirror, overwrite: bool) -> None:
    """Make a folder what another one is; until the last moment, it is what it was.

    It raises what ``BM25Index.backup`` does.
    """
    folder = mirror.folder
    if is_same(mirror.store.url, folder):
        raise ValueError(f"{folder} is both the source and the target")
    _check_free(folder, overwrite)
    mirror.read_manifest()  # before the folder is made
    with folder_to_fill(folder), locked_folder(folder):
        _check_free(folder, overwrite)
        mirror.sync(checked=True)  # a folder is restored because it is damaged


def _check_free(folder: str, overwrite: bool) -> None:
    """Refuse a folder that holds something else, or, unless ``overwrite``, an index."""
    if not os.path.isdir(folder):
        check_target(folder)
    elif {MANIFEST, SHARDED} & {*os.listdir(folder)}:
        if not overwrite:
            raise FileExistsError(f"{folder} holds an index; overwrite=True replaces it")
    elif not _is_leftover(folder):
        check_target(folder)
        raise NotAnIndexError(f"{folder} is not empty and holds no bm25rag index")


def _is_leftover(folder: str) -> bool:
    """Whether a folder holds nothing but what an interrupted copy has left."""
    for inner, _, names in os.walk(folder):
        for name in names:
            path = os.path.relpath(os.path.join(inner, name), folder).replace(os.sep, "/")
            if path != LOCK and not is_part(path):
                return False
    return True

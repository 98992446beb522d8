"""The folder of a build that has not ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from bm25rag.common.urls import local_path
from bm25rag.errors import NotAnIndexError
from bm25rag.storage.folder_lock import FolderLock, folder_to_fill, locked_folder
from bm25rag.storage.leftovers import is_left, remove_building
from bm25rag.storage.manifest import LOCK, manifest_path


def check_new(folder: str) -> None:
    """Refuse to build in a folder that holds anything but a build that has not ended.

    It is a ``FileExistsError`` if it holds an index, and otherwise a ``NotAnIndexError``.
    """
    if not os.path.lexists(folder):
        return
    if not os.path.isdir(folder):
        raise NotAnIndexError(f"{folder} is no folder; choose another path")
    names = os.listdir(folder)  # before: an index that another process begins now is one below
    if os.path.exists(manifest_path(folder)):
        remove_building(folder)
        raise FileExistsError(
            f"{folder} holds an index: add to it with BM25Index.open(folder, mode='w'), "
            "or choose another folder"
        )
    if not all(name == LOCK or is_left(folder, name) for name in names):
        raise NotAnIndexError(f"{folder} is not empty and holds no index; choose another folder")


@contextmanager
def locked_to_build(folder: str | os.PathLike[str]) -> Iterator[tuple[str, FolderLock]]:
    """Lock a folder that a build may fill; give its path and the lock. Raise as ``check_new``."""
    path = local_path(folder)
    check_new(path)
    with folder_to_fill(path), locked_folder(path) as held:
        check_new(path)
        yield path, held

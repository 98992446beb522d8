"""The folder of a build that has not ended."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bm25rag.common.urls import local_path
from bm25rag.errors import NotAnIndexError
from bm25rag.storage.folder_lock import FolderLock, folder_to_fill, locked_folder
from bm25rag.storage.manifest import (
    BUILDING,
    LOCK,
    is_ours,
    manifest_path,
    read_manifest,
)

# What is in the folder of a build beside the files of an index: parts, shards, and receipts.
_IN_BUILDING = re.compile(r"lock|manifest\.json|plan\.json|shard-\d+(\.json|-[0-9a-f]{16})?|tmp\w+")


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
        _remove_parts(os.path.join(folder, BUILDING))
        raise FileExistsError(
            f"{folder} holds an index: add to it with BM25Index.open(folder, mode='w'), "
            "or choose another folder"
        )
    if not all(name == LOCK or _is_ours(folder, name) for name in names):
        raise NotAnIndexError(f"{folder} is not empty and holds no index; choose another folder")


@contextmanager
def locked_to_build(folder: str | os.PathLike[str]) -> Iterator[tuple[str, FolderLock]]:
    """Lock a folder that a build may fill; give its path and the lock. Raise as ``check_new``."""
    path = local_path(folder)
    check_new(path)
    with folder_to_fill(path), locked_folder(path) as held:
        check_new(path)
        yield path, held


def _is_ours(folder: str, name: str) -> bool:
    """Whether a build has left this; a folder may be removed, so all in it must be ours."""
    path = os.path.join(folder, name)
    return is_ours(name) if name != BUILDING else os.path.isdir(path) and _holds_ours(path)


def _holds_ours(building: str) -> bool:
    return all(is_ours(name) or _IN_BUILDING.fullmatch(name) for name in os.listdir(building))


def _remove_parts(building: str) -> None:
    """Remove the parts of a build that was killed after its commit, and nothing else."""
    with suppress(OSError):  # StorageError is one
        if os.path.exists(manifest_path(building)):
            receipt = read_manifest(building).settings.get("extra")
            ours = isinstance(receipt, dict) and "ended" in receipt
        else:  # it was killed while it removed them
            ours = _holds_ours(building)
        if ours:
            remove(building)


def remove(path: str) -> None:
    """Remove a file or a folder of ours, as far as possible."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)

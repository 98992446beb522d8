"""Folders that are written: what may become an index, its lock, and no half-made folders."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Protocol

from bm25rag.errors import LockedError, NotAnIndexError
from bm25rag.forks import importing
from bm25rag.storage.checksummed_file import check_regular
from bm25rag.storage.fs import make_folder
from bm25rag.storage.manifest import (
    BUILDING,
    LOCK,
    MANIFEST,
    is_ours,
    read_manifest,
    unfinished,
)


class FolderLock(Protocol):
    """A lock that is held, as long as it is referred to."""

    def release(self) -> None:
        """Give it up, if that was not done before."""


def check_target(folder: str) -> None:
    """Refuse a folder that holds something else, or an index that cannot be changed.

    It raises ``NotAnIndexError`` for a file, and for a folder that is neither empty nor an index;
    ``FormatVersionError``; and ``CorruptIndexError`` for a damaged manifest, since the texts might
    still be recovered.
    """
    if os.path.islink(folder) and not os.path.exists(folder):
        raise NotAnIndexError(f"{folder} is a link to itself; name another folder")
    if not os.path.exists(folder):
        return
    if not os.path.isdir(folder):
        raise NotAnIndexError(f"{folder} is a file; choose a folder")
    names = os.listdir(folder)
    if MANIFEST in names:
        if read_manifest(folder, writing=True).shards is not None:
            raise NotAnIndexError(
                f"{folder} holds a sharded index, which a plain one does not replace; remove it "
                "first, or choose another folder"
            )
    elif BUILDING in names:
        raise NotAnIndexError(unfinished(folder))
    elif any(name != LOCK and not is_ours(name) for name in names):
        raise NotAnIndexError(
            f"{folder} is not empty and holds no bm25rag index; choose another folder"
        )


def lock_folder(folder: str, timeout: float = 0.0) -> FolderLock:
    """Take the writer's lock of a folder; it is released when the process ends, if not before.

    If another writer still holds it after ``timeout`` seconds, ``LockedError`` is raised; if it is
    a folder or a link, ``CorruptIndexError``.
    """
    path = os.path.join(folder, LOCK)
    check_regular(path, links=False)  # a lock behind a link is not this folder's
    if os.name == "posix" and find_spec("fcntl") is None:
        return _lock_here(folder, timeout)
    with importing:  # only for writers
        from filelock import FileLock, Timeout

    held = FileLock(path, timeout=timeout, thread_local=False)
    try:
        held.acquire()
    except FileNotFoundError:
        raise NotAnIndexError(f"{folder} is gone; it was there a moment ago") from None
    except Timeout:
        raise _locked(folder, timeout) from None
    return held


@contextmanager
def locked_folder(folder: str, timeout: float = 0.0) -> Iterator[FolderLock]:
    """Hold the writer's lock of a folder; raise as ``lock_folder``."""
    held = lock_folder(folder, timeout)
    try:
        yield held
    finally:
        held.release()


def _locked(folder: str, timeout: float) -> LockedError:
    waited = f" after {timeout:g} seconds" if timeout else ""
    return LockedError(f"another writer still has {folder} open{waited}; close it first")


# By the real path of each folder.
_LOCKS_HERE: dict[str, threading.Lock] = {}


class _LockHere:
    """A lock within this process, for where files cannot be locked: in WebAssembly.

    Files belong to one process there. A file that says that it is a lock would stay behind when a
    page is closed, and lock out all later ones.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self._held: threading.Lock | None = lock

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.release()

    def __del__(self) -> None:
        self.release()


def _lock_here(folder: str, timeout: float) -> FolderLock:
    if not os.path.isdir(folder):
        raise NotAnIndexError(f"{folder} is gone; it was there a moment ago")
    lock = _LOCKS_HERE.setdefault(os.path.realpath(folder), threading.Lock())
    if not lock.acquire(timeout=min(timeout, threading.TIMEOUT_MAX)):
        raise _locked(folder, timeout)
    return _LockHere(lock)


# What a folder has before anything is in it; a manifest and a plan are those of a build in it.
_EMPTY = {"lock", "manifest.json", "plan.json"}


@contextmanager
def folder_to_fill(folder: str) -> Iterator[None]:
    """Make a folder, unless it exists; if nothing gets into a new one, remove it again."""
    made = make_folder(folder)
    try:
        yield
    except BaseException:
        if made:
            with suppress(OSError):  # of which LockedError is one: another process fills it
                _remove_empty(folder, made[1:])
        raise


def _raise(error: OSError) -> None:
    raise error


def _remove_empty(folder: str, parents: list[str]) -> None:
    import shutil  # see ``link_file``

    with locked_folder(folder):
        walk = os.walk(folder, onerror=_raise)  # what cannot be listed may not be empty
        files = [files for _, _, files in walk]  # its own first
        if set().union(*files) <= _EMPTY and "manifest.json" not in files[0]:
            shutil.rmtree(folder)
            for path in parents:
                os.rmdir(path)

"""How an index writes to disk: files are written once, under new names, and flushed.

If a flush fails, the file is removed and not flushed again: the system may have dropped
what it could not write, and report that a second flush succeeded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO


@contextmanager
def new_file(path: str) -> Iterator[BinaryIO]:
    """Write a new file and flush it to disk; if anything fails, remove it, and say which it was."""
    file = open(path, "xb")  # noqa: SIM115 - closed below, before the file is removed
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        with suppress(OSError):
            os.unlink(path)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = path  # a full disk does not say it
        raise


def flush_folder(folder: str) -> None:
    """Flush the names in a folder to disk."""
    if os.name == "nt":  # Windows cannot flush a folder; NTFS journals the rename
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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


def _remove_empty(folder: str, parents: list[str]) -> None:
    from bm25rag.storage.manifest import lock  # which imports this module

    held = lock(folder)
    try:
        files = [files for _, _, files in os.walk(folder)]  # its own first
        if set().union(*files) <= _EMPTY and "manifest.json" not in files[0]:
            shutil.rmtree(folder)
            for path in parents:
                os.rmdir(path)
    finally:
        held.release()


def make_folder(folder: str) -> list[str]:
    """Make a folder and its parents, unless they exist; return those made, the inner ones first."""
    missing, path = [], folder
    while not os.path.exists(path):
        missing.append(path)
        path = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    for path in missing:
        with suppress(PermissionError):  # a folder may be writable but not readable
            flush_folder(os.path.dirname(path))
    return missing

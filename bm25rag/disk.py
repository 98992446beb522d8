"""What an index does to a disk: files are made once, under new names, and flushed.

A file whose flush has failed is removed and never flushed again: the system may have
dropped what it could not write and call the second flush a success.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Write a new file, which is on disk in the end; if anything fails, there is none."""
    file = path.open("xb")
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    if os.name == "nt":  # a folder cannot be flushed there; NTFS journals the rename
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder where there is none, and whatever it lies in."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        with suppress(PermissionError):  # one may make a folder where one must not look
            flush_folder(path.parent)


class FileMark:
    """The file that a path named at one moment; one stat tells whether it names another now.

    Parameters
    ----------
    path
        The file. If it cannot be opened, the mark is never current.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity: tuple[int, ...] | None = None
        with suppress(OSError):
            if os.name == "nt":  # which reuses no number soon, and replaces no open file
                self._identity = _identity(path.stat())
                return
            # Without O_NONBLOCK, a pipe of that name would hang.
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            # Kept open, so that no other file gets its inode number.
            weakref.finalize(self, os.close, handle).atexit = False
            self._identity = _identity(os.fstat(handle))

    def is_current(self) -> bool:
        """Whether the path still names that file, unchanged."""
        try:
            return _identity(self._path.stat()) == self._identity
        except OSError:
            return False


def _identity(status: os.stat_result) -> tuple[int, ...]:
    # Size and time for file systems that make inode numbers of names.
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

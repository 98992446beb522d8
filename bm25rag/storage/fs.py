"""What an index does to a disk: files are made once, under new names, and flushed.

A file whose flush has failed is removed and never flushed again: the system may have
dropped what it could not write and call the second flush a success.
"""

from __future__ import annotations

import os
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

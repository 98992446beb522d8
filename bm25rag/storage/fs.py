"""How an index writes to disk: files are written once, under new names, and flushed.

If a flush fails, the file is removed and not flushed again: the system may have dropped
what it could not write, and report that a second flush succeeded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Write a new file and flush it to disk; if anything fails, remove it."""
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
    if os.name == "nt":  # Windows cannot flush a folder; NTFS journals the rename
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, unless they exist."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        with suppress(PermissionError):  # a folder may be writable but not readable
            flush_folder(path.parent)

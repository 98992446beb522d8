"""Whether a path still names the same file, at the cost of one stat.

A changed time only makes a reader look again; an unchanged time alone never means that the
file is the same.
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress


class FileMark:
    """What a path names at this moment; a stat tells whether it still does later.

    If it cannot be opened, the mark is never current.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity: tuple[int, ...] | None = None
        with suppress(OSError):
            if os.name == "nt":  # Windows does not reuse numbers soon, nor replace open files
                self._identity = _identity(os.stat(path))
                return
            # Without O_NONBLOCK, a pipe of that name would hang.
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            # It stays open, so that no other file gets its inode number.
            weakref.finalize(self, os.close, handle).atexit = False
            self._identity = _identity(os.fstat(handle))

    def is_current(self) -> bool:
        """Whether the path still names that file, unchanged."""
        try:
            return _identity(os.stat(self._path)) == self._identity
        except OSError:
            return False

    def is_in_place(self) -> bool:
        """Whether the path names that still, changed or not; raise ``OSError`` if nothing."""
        return _identity(os.stat(self._path))[:2] == (self._identity or ())[:2]


def _identity(status: os.stat_result) -> tuple[int, ...]:
    # Size and time are for file systems that make inode numbers from names.
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

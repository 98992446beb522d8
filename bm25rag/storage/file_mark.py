"""Whether a path still names the file that it named before, told by one stat.

A changed time only makes a reader look; that nothing has changed is never told by a time alone.
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from pathlib import Path


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

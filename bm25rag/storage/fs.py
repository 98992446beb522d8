"""How an index writes to disk: files are written once, under new names, and flushed.

If a flush fails, the file is removed and not flushed again: the system may have dropped
what it could not write, and report that a second flush succeeded.
"""

from __future__ import annotations

import math
import os
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
        name_file(error, path)
        raise


@contextmanager
def replacing(path: str, new: str) -> Iterator[str]:
    """Have a file take the place of another, all at once, when it has been made.

    The name to make it by, which is yielded, begins with ``new``.
    """
    new = f"{new}-{os.urandom(8).hex()}.tmp"
    try:
        yield new
        os.replace(new, path)
    finally:
        with suppress(OSError):  # of two names of one file, replacing leaves both
            os.unlink(new)


def name_file(error: BaseException, path: str) -> None:
    """Say in an error of the system which file was written, which a full disk does not."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = path


def link_file(source: str, target: str) -> None:
    """Link a file that is never changed to another name, or copy it."""
    try:
        os.link(source, target)
    except (OSError, AttributeError):  # the file system has no links, or Python has none
        import shutil  # loads three libraries of compression, which few need

        with open(source, "rb") as old, new_file(target) as new:
            shutil.copyfileobj(old, new)


def is_same(one: str, other: str) -> bool:
    """Whether two paths lead to one file or folder that is there."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def free_bytes(folder: str) -> float:
    """Return how many bytes may be written there; infinity where the system does not tell."""
    try:
        status = os.statvfs(folder)
    except (OSError, AttributeError):  # Windows has no such call
        return math.inf
    # Some file systems of networks and in user space say that they have no blocks at all.
    return status.f_bavail * status.f_frsize if status.f_blocks else math.inf


def flush_folder(folder: str) -> None:
    """Flush the names in a folder to disk."""
    if os.name == "nt":  # Windows cannot flush a folder; NTFS journals the rename
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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

"""What was done to a folder, call by call, and what a crash could have left of it.

``Disk`` stands between the library and the file system, records every operation that
changes a folder, and can make one of them fail. ``leftover`` plays the first of these
operations into a folder as the worst file system that keeps its word would have them
after a power cut: of what was not flushed, any part may be there, in any order.
"""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from bm25rag import BM25Index
from bm25rag.errors import UncommittedWarning

SECTOR = 512


class Operation(NamedTuple):
    """A change of a folder: to the file ``name``, with its new name or what is written."""

    kind: str
    name: str
    more: Any = None


class Crash(BaseException):
    """The process ends here, as far as the disk is concerned."""


def full(_: Operation) -> BaseException:
    """Return the error of a full disk."""
    return OSError(errno.ENOSPC, "No space left on device")


def broken(_: Operation) -> BaseException:
    """Return the error of a failing disk."""
    return OSError(errno.EIO, "Input/output error")


def crash(_: Operation) -> BaseException:
    """Return the end of the process."""
    return Crash()


class Disk:
    """Records what happens in a folder, from ``watch`` on.

    Attributes
    ----------
    operations
        What has happened.
    fail
        Returns an exception for operations that are to fail, or ``None``.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder.resolve()
        self.operations: list[Operation] = []
        self.fail: Callable[[Operation], BaseException | None] = lambda _: None
        self._patch = patch
        self._names: dict[tuple[int, int], str] = {}

    def watch(self) -> None:
        """Begin."""
        disk, flush = self, os.fsync
        replace, unlink, mkdir = os.replace, os.unlink, os.mkdir

        def watched_open(path: str, mode: str) -> Any:
            if not disk.holds(path):
                return open(path, mode)  # noqa: PTH123 - as it is called
            name = Path(path).name
            disk.note(Operation("create", name))
            file = open(path, mode)  # noqa: SIM115, PTH123
            disk._names[_identity(os.fstat(file.fileno()))] = name
            return _File(file, name, disk)

        def watched_flush(handle: int) -> None:
            file = _identity(os.fstat(handle))
            name = disk._name_of(file)
            if name is not None:
                disk.note(Operation("flush", name))
            elif file == _identity(disk.folder.stat()):
                disk.note(Operation("flush folder", ""))
            flush(handle)

        def watched_replace(path: str, target: str) -> None:
            if disk.holds(path):
                disk.note(Operation("rename", Path(path).name, Path(target).name))
            replace(path, target)

        def watched_unlink(path: str, **named: Any) -> None:
            if disk.holds(path) and Path(path).exists():
                disk.note(Operation("remove", Path(path).name))
            unlink(path, **named)

        def watched_mkdir(path: str, *rest: Any, **named: Any) -> None:
            if disk.holds(path):
                disk.note(Operation("make folder", Path(path).name))
            mkdir(path, *rest, **named)

        self._patch.setattr("bm25rag.storage.fs.open", watched_open, raising=False)
        self._patch.setattr(os, "replace", watched_replace)
        self._patch.setattr(os, "unlink", watched_unlink)
        self._patch.setattr(os, "mkdir", watched_mkdir)
        self._patch.setattr(os, "fsync", watched_flush)

    def _name_of(self, file: tuple[int, int]) -> str | None:
        """Return the name of a file; of what has been removed, another may have its number."""
        name = self._names.get(file)
        with suppress(FileNotFoundError):
            if name is not None and _identity((self.folder / name).stat()) == file:
                return name
        return None

    def holds(self, path: str | Path) -> bool:
        """Whether a path lies in the folder; the lock does not count."""
        return Path(path).parent == self.folder and Path(path).name != "lock"

    def note(self, operation: Operation) -> None:
        """Fail, or remember an operation."""
        error = self.fail(operation)
        if error is not None:
            raise error
        self.operations.append(operation)

    def fail_at(self, place: int, error: Callable[[Operation], BaseException]) -> None:
        """Let one operation fail, counted from now; after a crash no other succeeds."""
        left = place

        def fail(operation: Operation) -> BaseException | None:
            nonlocal left
            left -= 1
            return error(operation) if left == -1 or (left < 0 and error is crash) else None

        self.fail = fail


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


class _File:
    """A file that tells the disk what is written to it."""

    def __init__(self, file: Any, name: str, disk: Disk) -> None:
        self._file, self._name, self._disk = file, name, disk

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: Any) -> int:
        """Record and write."""
        if len(data):
            self._disk.note(Operation("write", self._name, bytes(data)))
        return int(self._file.write(data))


# -- after a crash -----------------------------------------------------------------------------


@dataclass
class _Node:
    """A file: its durable contents, and what has been written since."""

    safe: bytes = b""
    since: list[bytes] = field(default_factory=list)

    def survivor(self, random: Random) -> bytes:
        """Return what is there after a crash: all, some or nothing of what was not flushed."""
        new = b"".join(self.since)
        match random.choice(["all", "nothing", "torn", "any sectors", "zeros"]):
            case "nothing":
                new = b""
            case "torn":
                new = new[: random.randrange(len(new) + 1)]
            case "any sectors":
                sectors = [new[at : at + SECTOR] for at in range(0, len(new), SECTOR)]
                kept = [s if random.random() < 0.5 else bytes(len(s)) for s in sectors]
                new = b"".join(kept)
            case "zeros":
                new = bytes(len(new))
        return self.safe + new


def leftover(
    before: dict[str, bytes], operations: list[Operation], random: Random
) -> dict[str, bytes]:
    """Return what a folder may hold after a crash: contents by name.

    Parameters
    ----------
    before
        What it durably held before the operations.
    operations
        What had been done when it crashed.
    random
        Decides what happened to data that was not flushed.
    """
    names = {name: _Node(data) for name, data in before.items()}
    now = dict(names)
    pending: list[tuple[str, str, _Node | None]] = []  # name that goes, name that comes, its file
    for kind, name, more in operations:
        match kind:
            case "create":
                now[name] = _Node()
                pending.append(("", name, now[name]))
            case "write":
                now[name].since.append(more)
            case "flush":
                now[name].safe, now[name].since = now[name].safe + b"".join(now[name].since), []
            case "rename":
                now[more] = now.pop(name)
                pending.append((name, more, now[more]))
            case "remove":
                del now[name]
                pending.append((name, "", None))
            case "flush folder":
                for change in pending:
                    _take(names, *change)
                pending = []
    likely = random.choice([0.0, 0.3, 0.7, 1.0])
    for change in pending:
        if random.random() < likely:
            _take(names, *change)
    return {name: node.survivor(random) for name, node in names.items()}


def _take(names: dict[str, _Node], goes: str, comes: str, node: _Node | None) -> None:
    names.pop(goes, None)
    if node is not None:
        names[comes] = node


def abandon(writer: BM25Index) -> None:
    """Drop a writer as the end of its process would, whatever is uncommitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncommittedWarning)
        writer.close()

"""Opens and unpacks files, and reports errors in them."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any, NoReturn

from bm25rag.common.optional import load

# What the names of packed files end in, and what is said of one that cannot be unpacked.
PACKED = {".gz": "gzip", ".zst": "zstd"}
NOT_REGULAR = "not a regular file"
# What a shell gives for <(command): a pipe that is open already, and has a writer.
_OPEN_PIPES = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


# The largest record, or file that is read whole: parsed, it takes up to 25 times as much memory.
_largest = 64 << 20
# How many times its size a file may have unpacked, if that is more than the largest record.
# JSON lines are packed to a fifth or a tenth, and a bomb of gzip to a thousandth.
_MOST_UNPACKED = 200
_BUFFER = 1 << 17
_HOW_TO_RAISE = "raise the limit by --max-size (in Python bm25rag.readers.size_limit)"


class OtherContentError(ValueError):
    """A well-formed file that does not contain documents, as JSON files often do not."""


def require_regular(path: Path) -> None:
    """Raise ``OSError`` for what might block or never end: pipes, sockets and devices."""
    if not S_ISREG(path.stat().st_mode) and not str(path).startswith(_OPEN_PIPES):
        code = errno.EISDIR if path.is_dir() else errno.EINVAL
        raise OSError(code, os.strerror(code) if path.is_dir() else NOT_REGULAR, str(path))


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open for reading, unpacked; the error for a damaged archive names its file."""
    if str(path) == "-":
        if sys.stdin is None:
            fail(path, None, "standard input is closed")
        yield sys.stdin.buffer
        return
    require_regular(path)
    packed = PACKED.get(path.suffix.lower())
    with path.open("rb") as file:
        if packed is None:
            yield file
            return
        unpack: Any = gzip.open
        errors: tuple[type[Exception], ...] = (gzip.BadGzipFile, EOFError, zlib.error)
        if packed == "zstd":
            unpack, errors = _zstd().ZstdFile, (_zstd().ZstdError, EOFError)
        try:
            with unpack(file) as inside:
                yield io.BufferedReader(_Unpacked(path, file, inside), _BUFFER)
        except errors as cause:
            raise ValueError(f"{path}: not a complete {packed} file ({cause})") from cause


class _Unpacked(io.RawIOBase):
    """What is inside a packed file, as long as it is not out of proportion to the file's size."""

    def __init__(self, path: Path, file: IO[bytes], inside: IO[bytes]) -> None:
        self._path, self._file, self._inside = path, file, inside
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read: int = self._inside.readinto(buffer)  # type: ignore[attr-defined]  # IO lacks it
        self._count += read
        if self._count > max(_largest + _BUFFER, _MOST_UNPACKED * self._file.tell()):
            problem = f"unpacks to more than {_MOST_UNPACKED} times its size"
            fail(self._path, None, f"{problem}; unpack it yourself, or {_HOW_TO_RAISE}")
        return read


def _zstd() -> Any:
    # The backport is the same code: nothing is left to replace once 3.14 is the oldest Python.
    module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    return load(module, "zstd needs Python 3.14 or a backport", "zstd")


def find_packed(path: Path) -> Path | None:
    """Return a file or, if there is none, a packed one beside it; None if there is neither."""
    names = [path.name, *(path.name + suffix for suffix in PACKED)]
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)


def suffix_of(path: Path) -> str:
    """Return what a name ends in, in small letters, without ``.gz`` or ``.zst``."""
    packed = path.suffix.lower() in PACKED
    return Path(path.stem if packed else path.name).suffix.lower()


def name_of(path: Path) -> str:
    """Return the path as messages show it, and as ids do by default."""
    return "<stdin>" if str(path) == "-" else path.as_posix()


def located(path: Path, line: int | str | None, problem: str) -> ValueError:
    """Return an error that names the file and the line, or another part of the file."""
    where = name_of(path)
    if line is not None:
        where = f"{where}:{line}" if isinstance(line, int) else f"{where}: {line}"
    return ValueError(f"{where}: {problem}")


def fail(
    path: Path, line: int | str | None, problem: str, cause: Exception | None = None
) -> NoReturn:
    """Raise what ``located`` returns."""
    raise located(path, line, problem) from cause


def size_limit(new: int | None = None) -> int:
    """Return, and change if one is given, the limit on what is held in memory at once.

    It counts the bytes of a line, of a row, and of a file that is read whole, all unpacked. Like
    ``csv.field_size_limit``, it holds for the process.
    """
    global _largest
    before = _largest
    _largest = before if new is None else new
    return before


def too_large(path: Path, line: int | None, what: str) -> ValueError:
    """Return an error that says how the limit is raised."""
    return located(path, line, f"a {what} has more than {_largest:,} bytes; {_HOW_TO_RAISE}")


def raw_content(path: Path) -> bytes:
    """Return the bytes of a file."""
    with open_bytes(path) as stream:
        return read_whole(stream, path, _largest)


def read_whole(stream: IO[bytes], path: Path, limit: int) -> bytes:
    """Return the rest of a file, of at most ``limit`` bytes."""
    raw = stream.read(limit + 1)
    if len(raw) > limit:
        raise too_large(path, None, "file, which is read whole,")
    return raw

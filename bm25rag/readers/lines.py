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

from bm25rag.errors import MissingDependencyError

__all__ = [
    "NOT_REGULAR",
    "PACKED",
    "OtherContentError",
    "fail",
    "find_packed",
    "name_of",
    "open_bytes",
    "raw_content",
    "require_regular",
    "suffix_of",
]

# What the names of packed files end in, and what is said of one that cannot be unpacked.
PACKED = {".gz": "gzip", ".zst": "zstd"}
NOT_REGULAR = "not a regular file"
# What a shell gives for <(command): a pipe that is open already, and has a writer.
_OPEN_PIPES = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


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
        unpack, errors = _gzip() if packed == "gzip" else _zstd()
        try:
            with io.BufferedReader(unpack(file)) as stream:
                yield stream
        except errors as cause:
            message = f"{path}: not a complete {packed} file ({cause})"
            raise ValueError(message) from cause


def _gzip() -> tuple[Any, tuple[type[Exception], ...]]:
    """Return what unpacks a file, and its errors."""
    return gzip.open, (gzip.BadGzipFile, EOFError, zlib.error)


def _zstd() -> tuple[Any, tuple[type[Exception], ...]]:
    # The backport is the same code: nothing is left to replace once 3.14 is the oldest Python.
    try:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdError, ZstdFile
        else:
            from backports.zstd import ZstdError, ZstdFile
    except ModuleNotFoundError as cause:
        message = "zstd needs Python 3.14 or a backport: pip install 'bm25rag[zstd]'"
        raise MissingDependencyError(message) from cause
    return ZstdFile, (ZstdError, EOFError)


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


def fail(
    path: Path, line: int | str | None, problem: str, cause: Exception | None = None
) -> NoReturn:
    """Raise a ``ValueError`` that names the file and the line, or another part of the file."""
    where = name_of(path)
    if line is not None:
        where = f"{where}:{line}" if isinstance(line, int) else f"{where}: {line}"
    message = f"{where}: {problem}"
    raise ValueError(message) from cause


def raw_content(path: Path) -> bytes:
    """Return the bytes of a file."""
    with open_bytes(path) as stream:
        return stream.read()

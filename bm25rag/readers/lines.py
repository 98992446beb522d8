"""Bytes to lines of text, and the one way to complain about them."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, NoReturn

__all__ = ["content", "fail", "name_of", "numbered_lines"]


def _open(path: Path) -> AbstractContextManager[IO[bytes]]:
    if str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    return io.BufferedReader(gzip.GzipFile(path)) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open for reading; a damaged archive names its file."""
    try:
        with _open(path) as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as cause:
        message = f"{path}: not a whole gzip file ({cause})"
        raise ValueError(message) from cause


def name_of(path: Path) -> str:
    """Return the path as ids and messages show it."""
    return "<stdin>" if str(path) == "-" else path.as_posix()


def fail(path: Path, line: int | None, problem: str, cause: Exception | None = None) -> NoReturn:
    """Raise the ``ValueError`` that names file and line."""
    place = name_of(path) if line is None else f"{name_of(path)}:{line}"
    message = f"{place}: {problem}"
    raise ValueError(message) from cause


def _decode(raw: bytes, path: Path, line: int | None) -> str:
    try:
        return raw.decode("utf-8-sig" if line in (None, 1) else "utf-8")
    except UnicodeDecodeError as cause:
        if line is None:
            line = cause.object.count(b"\n", 0, cause.start) + 1
        fail(path, line, f"not UTF-8 text: byte 0x{cause.object[cause.start]:02x}", cause)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, numbered from 1; only a newline ends one."""
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, start=1):
            line = _decode(raw, path, number).rstrip("\r\n")
            if line.strip():
                yield number, line


def content(path: Path) -> str:
    """Return the whole of a text file, lines ended by a newline alone."""
    with open_bytes(path) as stream:
        return _decode(stream.read(), path, None).replace("\r\n", "\n")

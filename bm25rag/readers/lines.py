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

__all__ = [
    "OtherContentError",
    "content",
    "decoded_lines",
    "fail",
    "name_of",
    "numbered_lines",
    "raw_content",
]


class OtherContentError(ValueError):
    """A file is well formed, and not documents: a suffix says little about JSON."""


def _open(path: Path) -> AbstractContextManager[IO[bytes]]:
    if str(path) == "-":
        if sys.stdin is None:
            fail(path, None, "the standard input is closed")
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
    """Return the path as messages show it, and ids if they are given no other name."""
    return "<stdin>" if str(path) == "-" else path.as_posix()


def fail(
    path: Path, line: int | str | None, problem: str, cause: Exception | None = None
) -> NoReturn:
    """Raise the ``ValueError`` that names file and line, or whatever else the file consists of."""
    where = name_of(path)
    if line is not None:
        where = f"{where}:{line}" if isinstance(line, int) else f"{where}: {line}"
    message = f"{where}: {problem}"
    raise ValueError(message) from cause


def _decode(raw: bytes, path: Path, line: int | None) -> str:
    try:
        return raw.decode("utf-8-sig" if line in (None, 1) else "utf-8")
    except UnicodeDecodeError as cause:
        if line is None:
            line = cause.object.count(b"\n", 0, cause.start) + 1
        byte = cause.object[cause.start]
        fail(path, line, f"not UTF-8 text: byte 0x{byte:02x}; save the file as UTF-8", cause)


def decoded_lines(path: Path) -> Iterator[str]:
    """Yield all lines as they are, with what ends them; only a newline ends one."""
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, start=1):
            yield _decode(raw, path, number)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, numbered from 1, without what ends them."""
    for number, line in enumerate(decoded_lines(path), start=1):
        if line.strip():
            yield number, line.rstrip("\r\n")


def raw_content(path: Path) -> bytes:
    """Return the whole of a file."""
    with open_bytes(path) as stream:
        return stream.read()


def content(path: Path) -> str:
    """Return the whole of a text file, lines ended by a newline alone."""
    text = _decode(raw_content(path), path, None).replace("\r\n", "\n")
    if "\0" in text:
        fail(path, text.count("\n", 0, text.index("\0")) + 1, "not a text: there is a NUL byte")
    return text

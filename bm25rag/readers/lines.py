"""Decodes files into lines of text, and reports errors in them."""

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
    """A well-formed file that does not contain documents, as JSON files often do not."""


def _open(path: Path) -> AbstractContextManager[IO[bytes]]:
    if str(path) == "-":
        if sys.stdin is None:
            fail(path, None, "standard input is closed")
        return nullcontext(sys.stdin.buffer)
    return io.BufferedReader(gzip.GzipFile(path)) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open for reading; the error for a damaged archive names its file."""
    try:
        with _open(path) as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as cause:
        message = f"{path}: not a complete gzip file ({cause})"
        raise ValueError(message) from cause


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


def _decode(raw: bytes, path: Path, line: int | None) -> str:
    try:
        return raw.decode("utf-8-sig" if line in (None, 1) else "utf-8")
    except UnicodeDecodeError as cause:
        if line is None:
            line = cause.object.count(b"\n", 0, cause.start) + 1
        byte = cause.object[cause.start]
        fail(path, line, f"not UTF-8 text: byte 0x{byte:02x}; save the file as UTF-8", cause)


def decoded_lines(path: Path) -> Iterator[str]:
    """Yield all lines with their line ends; only a newline ends a line."""
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, start=1):
            yield _decode(raw, path, number)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, numbered from 1, without their line ends."""
    for number, line in enumerate(decoded_lines(path), start=1):
        if line.strip():
            yield number, line.rstrip("\r\n")


def raw_content(path: Path) -> bytes:
    """Return the bytes of a file."""
    with open_bytes(path) as stream:
        return stream.read()


def content(path: Path) -> str:
    """Return the text of a file, with newlines as line ends."""
    text = _decode(raw_content(path), path, None).replace("\r\n", "\n")
    if "\0" in text:
        fail(path, text.count("\n", 0, text.index("\0")) + 1, "not a text: there is a NUL byte")
    return text

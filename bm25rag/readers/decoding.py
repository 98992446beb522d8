"""Turns bytes into text: by what the caller says, by byte order marks, as UTF-8, or by a guess."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

from bm25rag.common.lines import with_newlines
from bm25rag.readers.lines import (
    fail,
    located,
    open_bytes,
    raw_content,
    read_whole,
    size_limit,
    too_large,
)

# The longer mark first: that of UTF-32 begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Bytes at the start of a file that are looked at.
_HEAD = 4096
# Bytes that are held at once of the rest of a line that is too large.
_SKIPPED = 1 << 20
# Control characters that no text has; tab, line ends, form feed, backspace and escape may be.
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\v\f\r\b\x1b"))
# Five bytes are undefined in Python's codec; browsers read them as control characters.
_WINDOWS_1252 = "".join(
    chr(byte) if (char := bytes([byte]).decode("cp1252", "replace")) == "\ufffd" else char
    for byte in range(256)
)


_Line = TypeVar("_Line")


class Note(NamedTuple):
    """What a reader guessed or left out.

    ``kind`` is "encoding", "line" or "fields"; ``text`` is the encoding, what is wrong with the
    line, or the fields that have been chosen.
    """

    kind: str
    path: Path
    text: str


class Tolerance(NamedTuple):
    """What a reader may guess and leave out, if there is somebody to tell.

    ``encoding``: that of all texts; None means that of the byte order mark, or UTF-8.
    ``report``: is told of every guess, and of what is left out.
    ``lenient``: whether a line or record that cannot be read is left out, and whether the
    encoding is guessed: UTF-16 without a mark is recognised, and what is no UTF-8 is read as
    Windows-1252, the superset of Latin-1, line by line. Otherwise both are errors.
    """

    encoding: str | None = None
    report: Callable[[Note], None] | None = None
    lenient: bool = False

    def tell(self, kind: str, path: Path, text: str) -> None:
        """Report something, if there is anybody to tell."""
        if self.report is not None:
            self.report(Note(kind, path, text))

    def refuse(self, path: Path, error: ValueError) -> None:
        """Report a line that cannot be read, or raise the error."""
        if not self.lenient:
            raise error
        self.tell("line", path, str(error))


STRICT = Tolerance()


def content(path: Path, tolerance: Tolerance = STRICT) -> str:
    """Return the text of a file, with newlines as line ends."""
    text = with_newlines(decode(raw_content(path), path, tolerance))
    if "\0" in text:
        fail(path, text.count("\n", 0, text.index("\0")) + 1, "not a text: there is a NUL byte")
    return text


def decoded_lines(path: Path, tolerance: Tolerance = STRICT) -> Iterator[str | ValueError]:
    r"""Yield each line with its line end, or what is wrong with it.

    Only ``\n`` ends a line; in a file without any, as old Macs wrote them, ``\r`` does.
    """
    with open_bytes(path) as stream:
        lines = _raw_lines(stream, path)
        begin: list[bytes | ValueError] = []
        head = b""
        while len(head) < _HEAD and (line := next(lines, None)) is not None:
            begin.append(line)
            head += line if isinstance(line, bytes) else b""
        encoding = _encoding(head[:_HEAD], path, tolerance)
        if "\n".encode(encoding) != b"\n":  # of UTF-16, bytes are no lines
            raw = b"".join(map(or_raise, begin))
            raw += read_whole(stream, path, size_limit() - len(raw))
            text = decode(raw, path, tolerance._replace(encoding=encoding))
            yield from io.StringIO(text, newline="\n" if "\n" in text else "\r")
            return
        if b"\0" in head:
            number = next(n for n, line in enumerate(begin, 1) if b"\0" in or_raise(line))
            fail(path, number, "not a text: there is a NUL byte")
        decoded = _lines(chain(begin, lines), encoding, path, tolerance)
        first = next(decoded, "")
        if isinstance(first, str) and not first.endswith("\n"):  # the only one
            yield from io.StringIO(first, newline="\r")
        else:
            yield first
        yield from decoded


def _raw_lines(stream: IO[bytes], path: Path) -> Iterator[bytes | ValueError]:
    """Yield each line, or that it is too large; no more of such a line is held."""
    limit = size_limit()
    for number, line in enumerate(iter(partial(stream.readline, limit + 1), b""), start=1):
        if len(line) <= limit:
            yield line
            continue
        yield too_large(path, number, "line")
        while not line.endswith(b"\n") and (line := stream.readline(_SKIPPED)):
            pass


def or_raise(line: _Line | ValueError) -> _Line:
    """Return a line or a record, or raise what is wrong with it."""
    if isinstance(line, ValueError):
        raise line
    return line


def numbered_lines(path: Path, tolerance: Tolerance = STRICT) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, numbered from 1, without their line ends."""
    for number, line in enumerate(decoded_lines(path, tolerance), start=1):
        if isinstance(line, ValueError):
            tolerance.refuse(path, line)
        elif line.strip():
            yield number, line.rstrip("\r\n")


def decode(raw: bytes, path: Path, tolerance: Tolerance) -> str:
    """Return the bytes of a whole file as text."""
    encoding = _encoding(raw[:_HEAD], path, tolerance)
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except ValueError as cause:
        if "\n".encode(encoding) != b"\n":
            fail(path, None, f"not {encoding} text: {cause}", cause)
    return "".join(map(or_raise, _lines(io.BytesIO(raw), encoding, path, tolerance)))


def _lines(
    raw: Iterable[bytes | ValueError], encoding: str, path: Path, tolerance: Tolerance
) -> Iterator[str | ValueError]:
    """Decode each line by itself: where files were joined, some may have another encoding."""
    told = False
    for number, line in enumerate(raw, start=1):
        if isinstance(line, ValueError):
            yield line
            continue
        try:
            text = line.decode(encoding)
        except ValueError as cause:
            if tolerance.encoding is not None or not tolerance.lenient:
                yield _undecodable(line, number, encoding, path, cause)
                continue
            if line.translate(None, _CONTROLS) != line:
                yield located(path, number, "not a text, by its control characters")
                continue
            text = decode_windows(line)
            if not told:
                tolerance.tell("encoding", path, "cp1252")
                told = True
        yield text.removeprefix("\ufeff") if number == 1 else text


def _undecodable(
    line: bytes, number: int, encoding: str, path: Path, cause: ValueError
) -> ValueError:
    problem = f"not {'UTF-8' if encoding == 'utf-8' else encoding} text"
    if isinstance(cause, UnicodeDecodeError):
        problem += f": byte 0x{line[cause.start]:02x}"
    remedy = "save the file as UTF-8" if encoding == "utf-8" else "name its encoding"
    return located(path, number, f"{problem}; {remedy}")


def _encoding(head: bytes, path: Path, tolerance: Tolerance) -> str:
    """Return the encoding of a file by how it begins."""
    if tolerance.encoding is not None:
        return tolerance.encoding
    marked = marked_encoding(head)
    if marked is not None or not tolerance.lenient:
        return marked or "utf-8"
    even, odd = head[0::2].count(0), head[1::2].count(0)
    # Of UTF-16, every other byte is 0 wherever the letters are those of ASCII.
    if len(head) > 3 and max(even, odd) > len(head) // 4 and min(even, odd) <= len(head) // 100:
        guessed = "utf-16-le" if odd > even else "utf-16-be"
        tolerance.tell("encoding", path, guessed)
        return guessed
    return "utf-8"


def marked_encoding(head: bytes) -> str | None:
    """Return the encoding that a byte order mark says; None without one."""
    return next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)


def decode_windows(raw: bytes) -> str:
    """Decode Windows-1252 as browsers do, which know all 256 bytes."""
    return codecs.charmap_decode(raw, "strict", _WINDOWS_1252)[0]

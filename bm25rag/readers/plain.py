"""Plain text files, one document per file or per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from bm25rag import Document
from bm25rag.readers.decoding import STRICT, Note, Tolerance, content, numbered_lines
from bm25rag.readers.lines import name_of


def file_text(
    path: Path, encoding: str | None = None, report: Callable[[Note], None] = lambda note: None
) -> str:
    """Return the text of a file, unpacked, with newlines as line ends.

    ``report`` is told of a guess of its encoding; see ``Tolerance``. What is no text is a
    ``ValueError``.
    """
    return content(path, Tolerance(encoding, report, lenient=True))


def _plain(id: str, text: str, source: str) -> Document:
    return Document(id=id, text=text, metadata={"source": source}, payload=None)


def read_text(
    path: Path, name: str | None = None, tolerance: Tolerance = STRICT
) -> Iterator[Document]:
    """Read a file as one document; its id is the name, by default the path."""
    name = name or name_of(path)
    yield _plain(name, content(path, tolerance), name)


def read_lines(
    path: Path, name: str | None = None, tolerance: Tolerance = STRICT
) -> Iterator[Document]:
    """Read one document per line; ids are ``name#line``, blank lines are skipped."""
    name = name or name_of(path)
    for number, line in numbered_lines(path, tolerance):
        yield _plain(f"{name}#{number}", line, name)

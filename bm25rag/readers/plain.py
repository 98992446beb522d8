"""Plain text files, one document each or one a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bm25rag import Document
from bm25rag.readers.lines import content, name_of, numbered_lines

__all__ = ["read_lines", "read_text"]


def _plain(path: Path, number: int | None, text: str) -> Document:
    id = name_of(path) if number is None else f"{name_of(path)}#{number}"
    return Document(id=id, text=text, metadata={"source": name_of(path)}, payload=None)


def read_text(path: Path) -> Iterator[Document]:
    """Read a file as one document; its id is the path."""
    yield _plain(path, None, content(path))


def read_lines(path: Path) -> Iterator[Document]:
    """Read one document a line; ids are ``path#line``, blank lines are passed over."""
    for number, line in numbered_lines(path):
        yield _plain(path, number, line)

"""Plain text files, one document per file or per line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bm25rag import Document
from bm25rag.readers.lines import content, name_of, numbered_lines

__all__ = ["read_lines", "read_text"]


def _plain(id: str, text: str, source: str) -> Document:
    return Document(id=id, text=text, metadata={"source": source}, payload=None)


def read_text(path: Path, name: str | None = None) -> Iterator[Document]:
    """Read a file as one document; its id is the name, by default the path."""
    name = name or name_of(path)
    yield _plain(name, content(path), name)


def read_lines(path: Path, name: str | None = None) -> Iterator[Document]:
    """Read one document per line; ids are ``name#line``, blank lines are skipped."""
    name = name or name_of(path)
    for number, line in numbered_lines(path):
        yield _plain(f"{name}#{number}", line, name)

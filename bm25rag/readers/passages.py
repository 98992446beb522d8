"""Markdown and text files cut into passages at headings and paragraphs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bm25rag import Document
from bm25rag.readers.lines import content, name_of

__all__ = ["PASSAGE_SIZE", "read_passages", "walk_texts"]

PASSAGE_SIZE = 1000

_MARKDOWN_SUFFIXES = (".md", ".markdown")
_SUFFIXES = (*_MARKDOWN_SUFFIXES, ".rst", ".txt")


class _Block(NamedTuple):
    """A paragraph or a fenced piece of code (level 0), or a heading (level 1 to 6)."""

    level: int
    text: str


_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def _blocks(text: str, markdown: bool) -> Iterator[_Block]:
    """Cut a text at blank lines and, in Markdown, at headings outside of fenced code."""
    paragraph: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opening = _FENCE.match(line) if markdown else None
        if fence:
            paragraph.append(line)
            fence = "" if opening and opening[1].startswith(fence) else fence
            continue
        heading = _HEADING.fullmatch(line) if markdown else None
        underline = _UNDERLINE.fullmatch(line) if markdown and len(paragraph) == 1 else None
        if underline:
            yield _Block(1 if underline[1][0] == "=" else 2, paragraph.pop().strip())
        elif heading or not line.strip():
            if paragraph:
                yield _Block(0, "\n".join(paragraph))
                paragraph = []
            if heading:
                yield _Block(len(heading[1]), heading[2])
        else:
            paragraph.append(line)
            fence = opening[1] if opening else ""
    if paragraph:
        yield _Block(0, "\n".join(paragraph))


def _pieces(text: str, size: int) -> Iterator[str]:
    """Cut a text longer than `size` after a white space, or hard where there is none."""
    while len(text) > size:
        cut = max(text.rfind(space, 1, size + 1) for space in " \n\t")
        cut = cut if cut > 0 else size
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text


def _pack(paragraphs: Sequence[str], size: int) -> Iterator[str]:
    """Join paragraphs while they stay within `size` characters together."""
    packed = ""
    for paragraph in paragraphs:
        for piece in _pieces(paragraph, size):
            if packed and len(packed) + 2 + len(piece) > size:
                yield packed
                packed = piece
            else:
                packed = f"{packed}\n\n{piece}" if packed else piece
    if packed:
        yield packed


def _sections(blocks: Iterator[_Block]) -> Iterator[tuple[list[str], list[str]]]:
    """Group blocks into (headings from the top, paragraphs below the last of them)."""
    headings: list[_Block] = []
    paragraphs: list[str] = []
    for block in blocks:
        if not block.level:
            paragraphs.append(block.text)
            continue
        # A heading with nothing below it is told by the sections inside of it.
        if paragraphs or (headings and block.level <= headings[-1].level):
            yield [heading.text for heading in headings], paragraphs
            paragraphs = []
        headings = [heading for heading in headings if heading.level < block.level] + [block]
    if headings or paragraphs:
        yield [heading.text for heading in headings], paragraphs


def read_passages(path: Path, size: int = PASSAGE_SIZE) -> Iterator[Document]:
    """Cut a Markdown or text file into passages at headings and paragraphs.

    A passage never crosses a heading; its text begins with the headings above
    it, so that the words of a chapter's title find its sections.

    Parameters
    ----------
    path
        The file. Headings are understood in ``.md`` and ``.markdown`` files.
    size
        Characters a passage should have at most, its headings not counted.

    Yields
    ------
    Document
        With ids ``path#1``, ``path#2``, ... and metadata ``source`` and
        ``heading`` (the headings from the top joined by ``" > "``).
    """
    markdown = path.suffix.lower() in _MARKDOWN_SUFFIXES
    number = 0
    for headings, paragraphs in _sections(_blocks(content(path), markdown)):
        heading = " > ".join(filter(None, headings))
        for body in _pack(paragraphs, size) if paragraphs else [""]:
            text = "\n\n".join(filter(None, (heading, body)))
            if not text:
                continue
            number += 1
            metadata = {"source": name_of(path), "heading": heading}
            id = f"{name_of(path)}#{number}"
            yield Document(id=id, text=text, metadata=metadata, payload=None)


def walk_texts(folder: Path) -> Iterator[Path]:
    """Yield the Markdown and text files below a folder, sorted, hidden ones left out."""
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and name.lower().endswith(_SUFFIXES):
                yield Path(where, name)

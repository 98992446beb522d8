"""Markdown and text files split into passages at headings and paragraphs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import update_wrapper
from pathlib import Path
from typing import NamedTuple, Protocol

from bm25rag import Document
from bm25rag.readers.decoding import STRICT, Tolerance, content
from bm25rag.readers.lines import name_of, suffix_of

PASSAGE_SIZE = 1000
# Headings are repeated in each passage below them: a page of 1 MB must not become one of many GB.
_LONGEST_HEADING = 1000


class Block(NamedTuple):
    """A paragraph or a fenced piece of code (level 0), or a heading (level 1 to 6)."""

    level: int
    text: str


_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def text_blocks(text: str, markdown: bool) -> Iterator[Block]:
    """Split a text at blank lines and, in Markdown, at headings outside fenced code."""
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
            yield Block(1 if underline[1][0] == "=" else 2, paragraph.pop().strip())
        elif heading or not line.strip():
            if paragraph:
                yield Block(0, "\n".join(paragraph))
                paragraph = []
            if heading:
                yield Block(len(heading[1]), _without_closing(heading[2]))
        else:
            paragraph.append(line)
            fence = opening[1] if opening else ""
    if paragraph:
        yield Block(0, "\n".join(paragraph))


def _without_closing(heading: str) -> str:
    """Remove closing ``#`` signs from a heading; a regular expression would be quadratic."""
    heading = heading.rstrip(" \t")
    opened = heading.rstrip("#")
    return opened.rstrip(" \t") if opened.endswith((" ", "\t")) else heading


def _pieces(text: str, size: int) -> Iterator[str]:
    """Split a text longer than ``size`` after white space, or anywhere if there is none."""
    start = 0
    while len(text) - start > size:
        end = max(text.rfind(space, start + 1, start + size + 1) for space in " \n\t")
        end = end if end > 0 else start + size
        yield text[start:end].rstrip()
        while end < len(text) and text[end].isspace():
            end += 1
        start = end
    if start < len(text):
        yield text[start:]


def _pack(paragraphs: Sequence[str], size: int) -> Iterator[str]:
    """Join paragraphs as long as together they have at most ``size`` characters."""
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


def _sections(blocks: Iterator[Block]) -> Iterator[tuple[list[str], list[str]]]:
    """Group blocks into (headings from the top, paragraphs below the last of them)."""
    headings: list[Block] = []
    paragraphs: list[str] = []
    for block in blocks:
        if not block.level or len(block.text) > _LONGEST_HEADING:
            paragraphs.append(block.text)
            continue
        # A heading with no paragraphs of its own appears in the sections inside it.
        if paragraphs or (headings and block.level <= headings[-1].level):
            yield [heading.text for heading in headings], paragraphs
            paragraphs = []
        headings = [heading for heading in headings if heading.level < block.level] + [block]
    if headings or paragraphs:
        yield [heading.text for heading in headings], paragraphs


def cut_blocks(blocks: Iterator[Block], size: int, name: str) -> Iterator[Document]:
    """Make passages from blocks; see ``PassageReader``."""
    number = 0
    for headings, paragraphs in _sections(blocks):
        heading = " > ".join(filter(None, headings))
        if len(heading) > _LONGEST_HEADING:
            heading = headings[-1]
        for body in _pack(paragraphs, size) if paragraphs else [""]:
            text = "\n\n".join(filter(None, (heading, body)))
            if not text:
                continue
            number += 1
            metadata = {"source": name, "heading": heading}
            yield Document(id=f"{name}#{number}", text=text, metadata=metadata, payload=None)


class PassageReader(Protocol):
    """Splits a file into passages, with ids ``name#1``, ``name#2``, ...

    A passage never crosses a heading. Its text begins with the headings above it, so that the
    words of a chapter's title find its sections. Its metadata are ``source``, the name, and
    ``heading``, the headings from the top joined by ``" > "``.

    Parameters
    ----------
    path
        The file, or ``-``.
    size
        The maximum characters of a passage, not counting its headings.
    name
        The name of the file in ids and metadata; None for its path.
    tolerance
        The encoding, and who is told of what is guessed.

    Raises
    ------
    ValueError
        If the file cannot be read.
    """

    def __call__(
        self,
        path: Path,
        size: int = PASSAGE_SIZE,
        name: str | None = None,
        tolerance: Tolerance = STRICT,
    ) -> Iterator[Document]:
        """Yield the documents."""


def passage_reader(blocks: Callable[[Path, Tolerance], Iterator[Block]]) -> PassageReader:
    """Make a reader of what yields the blocks of a file."""

    def read(
        path: Path,
        size: int = PASSAGE_SIZE,
        name: str | None = None,
        tolerance: Tolerance = STRICT,
    ) -> Iterator[Document]:
        yield from cut_blocks(blocks(path, tolerance), size, name or name_of(path))

    update_wrapper(read, blocks)
    del read.__wrapped__  # type: ignore[attr-defined]  # whose signature is another
    return read


@passage_reader
def read_passages(path: Path, tolerance: Tolerance) -> Iterator[Block]:
    """Split a text at paragraphs, and Markdown (``.md``, ``.markdown``) at headings, too.

    See ``PassageReader``.
    """
    return text_blocks(content(path, tolerance), suffix_of(path) in (".md", ".markdown"))

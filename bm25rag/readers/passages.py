"""Markdown and text files split into passages at headings and paragraphs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import update_wrapper
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bm25rag import Document
from bm25rag.readers.decoding import STRICT, Tolerance, content
from bm25rag.readers.lines import name_of, suffix_of

PASSAGE_SIZE = 1000
# Headings are repeated in each passage below them: a page of 1 MB must not become one of many GB.
_LONGEST_HEADING = 1000


class Place(NamedTuple):
    """Where a part of a file begins: its line, from 1, and the characters before it."""

    line: int
    offset: int


class Block(NamedTuple):
    """A paragraph or a fenced piece of code (level 0), or a heading (level 1 to 6).

    ``place`` is known of what stands in a text file as it is.
    """

    level: int
    text: str
    place: Place | None = None


_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def text_blocks(text: str, markdown: bool) -> Iterator[Block]:
    """Split a part of a file at blank lines and, in Markdown, at headings outside fenced code."""
    return (Block(block.level, block.text) for block in _placed_blocks(text, markdown))


def _placed_blocks(text: str, markdown: bool) -> Iterator[Block]:
    """Do the same for a whole file, and say where in it the blocks are."""
    paragraph: list[str] = []
    fence = ""
    offset = 0
    here = begun = Place(1, 0)  # of this line, and of the paragraph
    for number, line in enumerate(text.split("\n"), 1):
        here, offset = Place(number, offset), offset + len(line) + 1
        opening = _FENCE.match(line) if markdown else None
        if fence:
            paragraph.append(line)
            fence = "" if opening and opening[1].startswith(fence) else fence
            continue
        heading = _HEADING.fullmatch(line) if markdown else None
        underline = _UNDERLINE.fullmatch(line) if markdown and len(paragraph) == 1 else None
        if underline:
            yield Block(1 if underline[1][0] == "=" else 2, paragraph.pop().strip(), begun)
        elif heading or not line.strip():
            if paragraph:
                yield Block(0, "\n".join(paragraph), begun)
                paragraph = []
            if heading:
                yield Block(len(heading[1]), _without_closing(heading[2]), here)
        else:
            begun = begun if paragraph else here
            paragraph.append(line)
            fence = opening[1] if opening else ""
    if paragraph:
        yield Block(0, "\n".join(paragraph), begun)


def _without_closing(heading: str) -> str:
    """Remove closing ``#`` signs from a heading; a regular expression would be quadratic."""
    heading = heading.rstrip(" \t")
    opened = heading.rstrip("#")
    return opened.rstrip(" \t") if opened.endswith((" ", "\t")) else heading


def _pieces(block: Block, size: int) -> Iterator[Block]:
    """Split a block longer than ``size`` after white space, or anywhere if there is none."""
    text, place = block.text, block.place
    start = 0
    while start < len(text):
        end = len(text)
        if end - start > size:
            cut = max(text.rfind(space, start + 1, start + size + 1) for space in " \n\t")
            end = cut if cut > 0 else start + size
        yield Block(0, text[start:end].rstrip() if end < len(text) else text[start:], place)
        begun = start
        while end < len(text) and text[end].isspace():
            end += 1
        start = end
        if place is not None:
            line = place.line + text.count("\n", begun, start)
            place = Place(line, place.offset + start - begun)


def _pack(paragraphs: Sequence[Block], size: int) -> Iterator[Block]:
    """Join paragraphs as long as together they have at most ``size`` characters."""
    packed: list[Block] = []
    length = 0  # with a blank line behind each
    for piece in chain.from_iterable(_pieces(paragraph, size) for paragraph in paragraphs):
        if packed and length + len(piece.text) > size:
            yield _joined(packed)
            packed, length = [], 0
        packed.append(piece)
        length += len(piece.text) + 2
    if packed:
        yield _joined(packed)


def _joined(pieces: Sequence[Block]) -> Block:
    return pieces[0]._replace(text="\n\n".join(piece.text for piece in pieces))


def _sections(blocks: Iterator[Block]) -> Iterator[tuple[list[Block], list[Block]]]:
    """Group blocks into (headings from the top, paragraphs below the last of them)."""
    headings: list[Block] = []
    paragraphs: list[Block] = []
    for block in blocks:
        if not block.level or len(block.text) > _LONGEST_HEADING:
            paragraphs.append(block)
            continue
        # A heading with no paragraphs of its own appears in the sections inside it.
        if paragraphs or (headings and block.level <= headings[-1].level):
            yield headings, paragraphs
            paragraphs = []
        headings = [heading for heading in headings if heading.level < block.level] + [block]
    if headings or paragraphs:
        yield headings, paragraphs


def cut_blocks(blocks: Iterator[Block], size: int, name: str) -> Iterator[Document]:
    """Make passages from blocks; see ``PassageReader``."""
    number = 0
    for headings, paragraphs in _sections(blocks):
        heading = " > ".join(block.text for block in headings if block.text)
        if len(heading) > _LONGEST_HEADING:
            heading = headings[-1].text
        empty = Block(0, "", headings[-1].place if headings else None)
        for body in _pack(paragraphs, size) if paragraphs else [empty]:
            text = "\n\n".join(filter(None, (heading, body.text)))
            if not text:
                continue
            number += 1
            metadata: dict[str, Any] = {"source": name, "heading": heading}
            if body.place is not None:
                metadata |= body.place._asdict()
            yield Document(id=f"{name}#{number}", text=text, metadata=metadata, payload=None)


class PassageReader(Protocol):
    """Splits a file into passages, with ids ``name#1``, ``name#2``, ...

    A passage never crosses a heading. Its text begins with the headings above it, so that the words
    of a chapter's title find its sections; ``size`` is the maximum of its other characters. Its
    metadata are ``source``, the name, ``heading``, the headings from the top joined by ``" > "``,
    and of text files and Markdown ``line`` and ``offset``: the line of the file, from 1, in which
    the text below the headings begins, and the characters before it. The name is by default the
    path, which may be ``-``; what cannot be read is a ``ValueError``.
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
        path: Path, size: int = PASSAGE_SIZE, name: str | None = None, tolerance: Tolerance = STRICT
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
    return _placed_blocks(content(path, tolerance), suffix_of(path) in (".md", ".markdown"))

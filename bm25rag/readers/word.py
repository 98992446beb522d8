"""Word documents (DOCX) split into passages, read with the standard library.

A DOCX file is a zip archive of XML; python-docx would build a tree of all of it, and needs lxml.
"""

from __future__ import annotations

import io
import re
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn
from xml.etree import ElementTree

from bm25rag.readers.decoding import Tolerance
from bm25rag.readers.lines import fail, open_bytes, read_whole, size_limit
from bm25rag.readers.passages import Block, passage_reader

# The names of the elements of a text begin with one of these; ISO's own in files that are "strict".
_SPACES = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
# The names of styles are translated, those of their ids mostly not.
_HEADING = re.compile(r"(?i)(?:heading|berschrift|titre|ttulo|titolo|kop)\s*([1-6])|(title)")
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# Bytes of XML that are read of one document, and seconds that this may take: a thousand pages
# have 10 MB; a zip bomb has gigabytes.
_MOST_BYTES, _MOST_SECONDS = 100 << 20, 60.0
_CHUNK = 1 << 16


@passage_reader
def read_docx(path: Path, tolerance: Tolerance) -> Iterator[Block]:
    """Split a Word document into passages at headings and paragraphs; notes come last.

    XML says itself how it is encoded. See ``PassageReader``; a document that is encrypted, or
    larger or takes longer than any, is a ``ValueError``.
    """
    with open_bytes(path) as stream:
        if not stream.seekable():  # what is packed, or comes by a pipe
            stream = io.BytesIO(read_whole(stream, path, size_limit()))
        yield from _blocks(stream, path)


def _blocks(stream: IO[bytes], path: Path) -> Iterator[Block]:
    begin = stream.read(8)
    stream.seek(0)
    if begin.startswith(b"\xd0\xcf\x11\xe0"):
        fail(path, None, "not a DOCX file: it is encrypted, or of an older Word; save it anew")
    end = time.monotonic() + _MOST_SECONDS
    try:
        with zipfile.ZipFile(stream) as archive:
            parts = [part for part in _PARTS if part in archive.namelist()]
            if _PARTS[0] not in parts:
                fail(path, None, f"not a DOCX file: there is no {_PARTS[0]} in it")
            for part in parts:
                with archive.open(part) as xml:
                    yield from _of_part(xml, path, end)
    except (
        *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError),
        *(ElementTree.ParseError, NotImplementedError, RuntimeError),  # of encrypted parts
    ) as cause:
        fail(path, None, f"not a complete DOCX file ({cause})", cause)


def _of_part(xml: IO[bytes], path: Path, end: float) -> Iterator[Block]:
    paragraphs = _Paragraphs(path)
    parser = ElementTree.XMLParser(target=paragraphs)
    read = 0
    while chunk := xml.read(_CHUNK):
        read += len(chunk)
        if read > _MOST_BYTES:
            fail(path, None, f"its text is larger than {_MOST_BYTES >> 20} MB, unpacked")
        if time.monotonic() > end:
            fail(path, None, f"it could not be read in {_MOST_SECONDS:.0f} seconds")
        parser.feed(chunk)
        yield from paragraphs.taken()
    parser.close()
    yield from paragraphs.taken()


class _Paragraphs:
    """Gathers paragraphs while XML is parsed, and keeps nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._done: list[Block] = []
        self._texts: list[str] = []
        self._level, self._is_text = 0, False

    def taken(self) -> list[Block]:
        """Return the paragraphs since the last call."""
        done, self._done = self._done, []
        return done

    def doctype(self, *_: object) -> NoReturn:
        """Refuse definitions of entities, which may multiply a text; no DOCX has them."""
        fail(self._path, None, "not a DOCX file: its XML has a document type")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        local = _local(tag)
        if local == "t":
            self._is_text = True
        elif local == "pStyle":
            style = next((value for key, value in attributes.items() if key.endswith("}val")), "")
            heading = _HEADING.fullmatch(style)
            self._level = int(heading[1] or 1) if heading else 0
        elif local in _BREAKS:
            self._texts.append(_BREAKS[local])

    def data(self, text: str) -> None:
        if self._is_text:
            self._texts.append(text)

    def end(self, tag: str) -> None:
        local = _local(tag)
        if local == "t":
            self._is_text = False
        elif local == "p":
            text = "".join(self._texts).strip()
            if text:
                level = self._level
                self._done.append(Block(level, " ".join(text.split()) if level else text))
            self._texts, self._level = [], 0

    def close(self) -> None:
        """End the document."""


def _local(tag: str) -> str:
    """Return the name of an element of a text; empty for all others."""
    space, _, name = tag.rpartition("}")
    return name if space in _SPACES else ""

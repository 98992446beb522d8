"""HTML pages cut into passages, with Beautiful Soup.

Beautiful Soup since it is alive since 2004, typed, MIT, and pure Python: no wheel to wait
for when a new Python comes. Extractors that guess what is the main text lose some of it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from bm25rag import Document
from bm25rag.errors import MissingDependencyError
from bm25rag.readers.lines import fail, name_of, raw_content
from bm25rag.readers.passages import PASSAGE_SIZE, Block, cut_blocks

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from bs4.element import PageElement

__all__ = ["read_html"]

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# What begins a paragraph of its own; all else is written within a line.
_PARAGRAPHS = re.compile(
    "address|article|aside|blockquote|body|caption|center|dd|details|dialog|dir|div|dl|dt|fieldset"
    "|figcaption|figure|footer|form|frameset|h[1-6]|header|hgroup|hr|html|legend|li|main|menu|nav"
    "|ol|option|p|pre|section|summary|table|tbody|tfoot|thead|title|tr|ul"
).fullmatch
# What a browser does not show as text, and ways to other pages.
_LEFT_OUT = ("script", "style", "template", "noscript", "svg", "iframe", "object", "nav")


def read_html(path: Path, size: int = PASSAGE_SIZE, name: str | None = None) -> Iterator[Document]:
    """Cut an HTML page into passages at headings and paragraphs.

    Scripts, styles and navigation are left out. The page's title is its first
    heading where it has no ``h1``. The text is decoded as the page declares, or
    else as UTF-8.

    Parameters
    ----------
    path, size, name
        As in ``read_passages``.

    Yields
    ------
    Document
        As from ``read_passages``.

    Raises
    ------
    MissingDependencyError
        If Beautiful Soup is not installed.
    ValueError
        If the bytes are not in the declared encoding, or no HTML at all.
    """
    soup = _parse(path)
    for tag in soup.find_all(_LEFT_OUT):
        tag.extract()
    # These separate words, but not paragraphs.
    for tag in soup.find_all(["br", "td", "th"]):
        tag.insert_before(" ")
    if soup.title is not None and soup.find("h1") is not None:
        soup.title.extract()
    yield from cut_blocks(_blocks(soup), size, name or name_of(path))


def _parse(path: Path) -> BeautifulSoup:
    try:
        from bs4 import BeautifulSoup
        from bs4.exceptions import ParserRejectedMarkup
    except ModuleNotFoundError as cause:
        message = "HTML needs Beautiful Soup: pip install 'bm25rag[html]'"
        raise MissingDependencyError(message) from cause
    try:
        with warnings.catch_warnings():
            # It asks whether XHTML is XML, and whether a short page is a file's name.
            warnings.simplefilter("ignore")
            return BeautifulSoup(_decode(path), "html.parser")
    except ParserRejectedMarkup as cause:
        fail(path, None, f"not HTML: {cause}", cause)


def _decode(path: Path) -> str:
    from bs4.dammit import EncodingDetector

    raw = raw_content(path)
    raw, marked = EncodingDetector.strip_byte_order_mark(raw)
    declared = EncodingDetector.find_declared_encoding(raw, is_html=True)
    encoding = marked or declared or "utf-8"
    try:
        return raw.decode(encoding)
    except (LookupError, ValueError) as cause:
        declares = "" if marked or not declared else ", which the page declares"
        fail(path, None, f"cannot be read as {encoding}{declares}: {cause}", cause)


def _blocks(soup: BeautifulSoup) -> Iterator[Block]:
    from bs4.element import NavigableString

    # Comments, declarations and the like are subclasses of what is text.
    strings = [node for node in soup.descendants if type(node) is NavigableString]
    # By identity: tags are equal that have equal contents.
    for _, inside in groupby(strings, lambda string: id(_paragraph_of(string))):
        first, *others = inside
        name = _paragraph_of(first).name
        text = "".join([first, *others])
        level = 1 if name == "title" else _HEADINGS.get(name, 0)
        text = text.strip("\n") if name == "pre" else " ".join(text.split())
        if text.strip():
            yield Block(level, text)


def _paragraph_of(string: PageElement) -> Tag:
    """Return what begins the paragraph that a string stands in."""
    parents = list(string.parents)
    return next((parent for parent in parents if _PARAGRAPHS(parent.name)), parents[-1])

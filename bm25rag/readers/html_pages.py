"""HTML pages split into passages, with Beautiful Soup.

Beautiful Soup has been maintained since 2004, is typed, MIT-licensed and pure Python: a new version
of Python needs no new wheel. Extractors that guess the main text lose some of it.
"""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from bm25rag import Document
from bm25rag.errors import MissingDependencyError
from bm25rag.readers.decoding import STRICT, Tolerance, decode
from bm25rag.readers.lines import fail, name_of, raw_content
from bm25rag.readers.passages import PASSAGE_SIZE, Block, cut_blocks

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from bs4.element import PageElement

__all__ = ["read_html"]

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# Elements that begin a paragraph; all others are inline.
_PARAGRAPHS = re.compile(
    "address|article|aside|blockquote|body|caption|center|dd|details|dialog|dir|div|dl|dt|fieldset"
    "|figcaption|figure|footer|form|frameset|h[1-6]|header|hgroup|hr|html|legend|li|main|menu|nav"
    "|ol|option|p|pre|section|summary|table|tbody|tfoot|thead|title|tr|ul"
).fullmatch
# What a browser does not show as text, and navigation.
_LEFT_OUT = ("script", "style", "template", "noscript", "svg", "iframe", "object", "nav")
# Elements that separate words but not paragraphs.
_SPACES = ("br", "td", "th")
# Python's names of the encodings used on the web. Others must not be tried: decoding punycode
# takes quadratic time.
_ENCODINGS = {
    *("utf-8", "koi8-r", "koi8-u", "cp866", "cp874", "tis-620", "mac-roman", "mac-cyrillic"),
    *("gb18030", "gbk", "gb2312", "hz", "big5", "big5hkscs", "euc_kr", "cp949"),
    *("euc_jp", "iso2022_jp", "shift_jis", "cp932"),
    *(f"cp{number}" for number in range(1250, 1259)),
    *(f"iso8859-{number}" for number in range(2, 17)),
}
# As in the HTML standard: a declaration that can be read at all is not UTF-16.
_MEANT = dict.fromkeys(["utf-16", "utf-16-le", "utf-16-be"], "utf-8")
_MEANT |= dict.fromkeys(["ascii", "iso8859-1"], "cp1252")
# Five bytes are undefined in Python's codec; browsers read them as control characters.
_WINDOWS_1252 = "".join(
    chr(byte) if (char := bytes([byte]).decode("cp1252", "replace")) == "\ufffd" else char
    for byte in range(256)
)


def read_html(
    path: Path,
    size: int = PASSAGE_SIZE,
    name: str | None = None,
    tolerance: Tolerance = STRICT,
) -> Iterator[Document]:
    """Split an HTML page into passages at headings and paragraphs.

    Scripts, styles and navigation are left out. If the page has no ``h1``, its title is the first
    heading. The text is decoded as the page declares, as the HTML standard defines it, or as
    UTF-8.

    Parameters
    ----------
    path, size, name, tolerance
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
        If the bytes do not fit the declared encoding, or are not HTML at all.
    """
    soup = _parse(path, tolerance)
    yield from cut_blocks(_blocks(soup), size, name or name_of(path))


def _parse(path: Path, tolerance: Tolerance) -> BeautifulSoup:
    try:
        from bs4 import BeautifulSoup
        from bs4.exceptions import ParserRejectedMarkup
    except ModuleNotFoundError as cause:
        message = "HTML needs Beautiful Soup: pip install 'bm25rag[html]'"
        raise MissingDependencyError(message) from cause
    try:
        with warnings.catch_warnings():
            # It warns if XHTML looks like XML, and if a short page looks like a file name.
            warnings.simplefilter("ignore")
            return BeautifulSoup(_decode(path, tolerance), "html.parser")
    except ParserRejectedMarkup as cause:
        fail(path, None, f"not HTML: {cause}", cause)


def _decode(path: Path, tolerance: Tolerance) -> str:
    from bs4.dammit import EncodingDetector

    raw = raw_content(path)
    if tolerance.encoding is not None:
        return decode(raw, path, tolerance)
    raw, marked = EncodingDetector.strip_byte_order_mark(raw)
    if marked:
        return _decode_as(marked, raw, path, marked)
    declared = EncodingDetector.find_declared_encoding(raw, is_html=True)
    if not declared and tolerance.lenient:
        return decode(raw, path, tolerance)
    if not declared:
        return _decode_as("utf-8", raw, path, "utf-8")
    shown = f"{declared}, which the page declares"
    try:
        name = codecs.lookup(declared.removeprefix("x-")).name
    except (LookupError, ValueError) as cause:
        fail(path, None, f"cannot be read as {shown}: {cause}", cause)
    encoding = _MEANT.get(name, name)
    if encoding not in _ENCODINGS:
        fail(path, None, f"cannot be read as {shown}: it is not used on the web; save it as UTF-8")
    return _decode_as(encoding, raw, path, shown)


def _decode_as(encoding: str, raw: bytes, path: Path, shown: str) -> str:
    if encoding == "cp1252":
        return codecs.charmap_decode(raw, "strict", _WINDOWS_1252)[0]
    try:
        return raw.decode(encoding)
    except ValueError as cause:
        fail(path, None, f"cannot be read as {shown}: {cause}", cause)


def _blocks(soup: BeautifulSoup) -> Iterator[Block]:
    # By identity: tags with equal contents are equal.
    for _, found in groupby(_texts(soup), lambda found: id(found[0])):
        inside = list(found)
        name = inside[0][0].name
        text = "".join([text for _, text in inside])
        level = 1 if name == "title" else _HEADINGS.get(name, 0)
        text = text.strip("\n") if name == "pre" else " ".join(text.split())
        if text.strip():
            yield Block(level, text)


def _texts(soup: BeautifulSoup) -> Iterator[tuple[Tag, str]]:
    """Yield each text of a page with the element of its paragraph."""
    from bs4.element import NavigableString, Tag

    shown = list(_shown(soup))
    tags = [node for node, _ in shown if isinstance(node, Tag)]
    title = None
    if any(tag.name == "h1" for tag in tags):
        title = next((tag for tag in tags if tag.name == "title"), None)
    for node, paragraph in shown:
        if paragraph is title:
            continue
        # Comments, declarations and the like are subclasses of NavigableString.
        if type(node) is NavigableString:
            yield paragraph, node
        elif isinstance(node, Tag) and node.name in _SPACES:
            yield paragraph, " "


def _shown(soup: BeautifulSoup) -> Iterator[tuple[PageElement, Tag]]:
    """Yield what a browser shows, in order, each with the element of its paragraph.

    One iterative walk: unclosed tags may be nested thousands deep.
    """
    from bs4.element import Tag

    left: list[tuple[PageElement, Tag]] = [(soup, soup)]
    while left:
        node, paragraph = left.pop()
        if isinstance(node, Tag) and node.name in _LEFT_OUT:
            continue
        if isinstance(node, Tag) and _PARAGRAPHS(node.name):
            paragraph = node
        yield node, paragraph
        if isinstance(node, Tag):
            left.extend((child, paragraph) for child in reversed(node.contents))

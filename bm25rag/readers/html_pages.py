"""HTML pages split into passages.

All text that a browser shows is kept but navigation: extractors that guess the main text lose some.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from bm25rag.readers.decoding import Tolerance, decode, decode_windows, marked_encoding
from bm25rag.readers.html_tokens import Tag, tokens
from bm25rag.readers.lines import fail, raw_content
from bm25rag.readers.passages import Block, passage_reader

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# Elements that begin a paragraph; all others are inline.
_PARAGRAPHS = re.compile(
    "address|article|aside|blockquote|body|caption|center|dd|details|dialog|dir|div|dl|dt|fieldset"
    "|figcaption|figure|footer|form|frameset|h[1-6]|header|hgroup|hr|html|legend|li|main|menu|nav"
    "|ol|option|p|pre|section|summary|table|tbody|tfoot|thead|title|tr|ul"
).fullmatch
# What a browser does not show as text, navigation, and pronunciations, which would divide words.
_LEFT_OUT = frozenset(
    ("script", "style", "template", "noscript", "svg", "iframe", "object", "nav", "rt", "rp")
)
# Elements without an end tag.
_VOID = frozenset(
    {
        *("area", "base", "basefont", "bgsound", "br", "col", "command", "embed", "frame", "hr"),
        *("image", "img", "input", "isindex", "keygen", "link", "menuitem", "meta", "nextid"),
        *("param", "source", "spacer", "track", "wbr"),
    }
)
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
# Where an encoding is declared: in the first twentieth of a page, between these numbers of bytes,
# or by a mark before it.
_LEAST_HEAD, _MOST_HEAD = 1 << 11, 1 << 16
_XML_ENCODING = re.compile(r"""\s*<\?xml[^>]*?\bencoding\s*=\s*["']([^"'>]*)""")
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([^\s/;'">]+)""", re.IGNORECASE)


@passage_reader
def read_html(path: Path, tolerance: Tolerance) -> Iterator[Block]:
    """Split an HTML page into passages at headings and paragraphs; see ``PassageReader``.

    Scripts, styles and navigation are left out. If the page has no ``h1``, its title is the first
    heading. The text is decoded as the page declares, as the HTML standard defines it, or as
    UTF-8.
    """
    return _blocks(_decode(path, tolerance))


def _decode(path: Path, tolerance: Tolerance) -> str:
    raw = raw_content(path)
    declared = None if tolerance.encoding or marked_encoding(raw) else _declared(raw)
    if not declared:
        return decode(raw, path, tolerance)
    shown = f"{declared}, which the page declares"
    try:
        name = codecs.lookup(declared.removeprefix("x-")).name
    except (LookupError, ValueError) as cause:
        fail(path, None, f"cannot be read as {shown}: {cause}", cause)
    encoding = _MEANT.get(name, name)
    if encoding not in _ENCODINGS:
        fail(path, None, f"cannot be read as {shown}: it is not used on the web; save it as UTF-8")
    if encoding == "cp1252":
        return decode_windows(raw)
    try:
        return raw.decode(encoding)
    except ValueError as cause:
        fail(path, None, f"cannot be read as {shown}: {cause}", cause)


def _declared(raw: bytes) -> str | None:
    """Return the encoding that the head of a page declares, in small letters."""
    end = min(max(_LEAST_HEAD, len(raw) // 20), _MOST_HEAD)
    head = raw[:end].decode("latin-1")
    declaration = _XML_ENCODING.match(head)
    tags = (tag for tag in tokens(head) if isinstance(tag, Tag) and tag.name == "meta")
    while declaration is None and (tag := next(tags, None)) is not None:
        declaration = _CHARSET.search(tag.attributes)
    return declaration[1].lower() if declaration is not None else None


def _blocks(page: str) -> Iterator[Block]:
    for paragraph, pieces in groupby(_texts(page), lambda piece: piece[0]):
        text = "".join([text for _, text in pieces])
        level = 1 if paragraph.name == "title" else _HEADINGS.get(paragraph.name, 0)
        text = text.strip("\n") if paragraph.name == "pre" else " ".join(text.split())
        if text.strip():
            yield Block(level, text)


def _texts(page: str) -> Iterator[tuple[_Paragraph, str]]:
    """Yield each text that a browser shows with its paragraph."""
    title = None
    has_heading = False
    for name, paragraph, text in _shown(page):
        if name == "title" and title is None:
            title = paragraph
            has_heading = any(name == "h1" for name, _, _ in _shown(page))
        if text and not (has_heading and paragraph is title):
            yield paragraph, text


class _Paragraph(NamedTuple):
    """An element that begins a paragraph; its number tells it from others of its name."""

    name: str
    number: int


class _Open(NamedTuple):
    """An open element, the paragraph that it belongs to, and whether it is left out."""

    name: str
    paragraph: _Paragraph
    left_out: bool


def _shown(page: str) -> Iterator[tuple[str, _Paragraph, str]]:
    """Yield what a browser shows, in order: names of elements and texts, with their paragraphs.

    An end tag closes all that was opened since its start tag; without one it means nothing.
    """
    stack = [_Open("", _Paragraph("", 0), False)]
    opened: Counter[str] = Counter()
    for number, token in enumerate(tokens(page), start=1):
        _, paragraph, left_out = stack[-1]
        if isinstance(token, str):
            if not left_out:
                yield "", paragraph, token
        elif token.opens:
            name = token.name
            left_out = left_out or name in _LEFT_OUT
            if _PARAGRAPHS(name):
                paragraph = _Paragraph(name, number)
            if not left_out:
                yield name, paragraph, " " if name in _SPACES else ""
            if not token.closes and name not in _VOID:
                stack.append(_Open(name, paragraph, left_out))
                opened[name] += 1
        elif opened[token.name]:
            closed = ""
            while closed != token.name:
                closed = stack.pop().name
                opened[closed] -= 1

"""The tokens of an HTML page, in linear time whatever the page holds.

The tokenizer of the HTML standard (section 13.2.5) reads each character once: what is never closed
ends with the page. Older parsers of Python's standard library look for its end again from every
place, which takes quadratic time; 60 KB of ``<a`` took 9 s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple


class Tag(NamedTuple):
    """A tag, its name in small letters; ``attributes`` is their source.

    ``opens`` and ``closes`` say what it does; ``<br/>``, as XHTML has it, does both.
    """

    name: str
    opens: bool
    closes: bool
    attributes: str


_MARKUP = re.compile(r"<(?:[a-zA-Z!?]|/(?=.))", re.DOTALL)
_NAME = re.compile(r"[a-zA-Z][^\t\n\f\r />]*")
_ATTRIBUTE = re.compile(
    r"[\t\n\f\r /]*[^\t\n\f\r />][^\t\n\f\r />=]*"
    r"(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:([\"'])|[^\t\n\f\r >]*))?"
)
_SIMPLE_END, _END = re.compile(r"[^\"'=>]*>"), re.compile(r"[\t\n\f\r /]*>")
_COMMENT_END = re.compile(r"--!?>")
# Elements whose content is text up to their own end tag; of two of them, it is not shown.
_RAW = {
    name: re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title")
}
_HIDDEN = ("script", "style")
# Python converts no more than 4,300 digits; the largest character has seven.
_LEADING_ZEROS, _TOO_LARGE = re.compile(r"&#0+(?=[0-9])"), re.compile(r"&#[0-9]{8,}")


def tokens(page: str) -> Iterator[Tag | str]:
    """Yield the tags of a page and the texts between them, with references resolved.

    Comments, declarations, CDATA sections, processing instructions, scripts and styles are left
    out.
    """
    at = 0
    unclosed: set[str] = set()
    while (markup := _MARKUP.search(page, at)) is not None:
        if at < markup.start():
            yield _text(page[at : markup.start()])
        tag, at = _read_markup(page, markup.start())
        if tag is None:
            continue
        yield tag
        if tag.name not in _RAW or not tag.opens or tag.closes or tag.name in unclosed:
            continue
        end = _RAW[tag.name].search(page, at)
        if tag.name in _HIDDEN:
            at = end.start() if end is not None else len(page)
        elif end is None:
            unclosed.add(tag.name)  # rather than all of the page
        elif at < end.start():
            yield _text(page[at : end.start()])
            at = end.start()
    if at < len(page):
        yield _text(page[at:])


def _read_markup(page: str, at: int) -> tuple[Tag | None, int]:
    """Return the tag that begins somewhere, None for other markup, and the place behind it."""
    closes = page[at + 1] == "/"
    name = _NAME.match(page, at + 1 + closes)
    if name is not None:
        end, closed = _end_of_tag(page, name.end())
        if end < 0:
            return None, len(page)
        return Tag(name[0].lower(), not closes, closes or closed, page[name.end() : end]), end
    if page.startswith("<!--", at):
        for empty in ("<!-->", "<!--->"):
            if page.startswith(empty, at):
                return None, at + len(empty)
        comment = _COMMENT_END.search(page, at + 4)
        return None, comment.end() if comment is not None else len(page)
    closing = "]]>" if page.startswith("<![CDATA[", at) else ">"
    end = page.find(closing, at)
    return None, end + len(closing) if end >= 0 else len(page)


def _end_of_tag(page: str, at: int) -> tuple[int, bool]:
    """Return the place behind a tag, -1 if it never ends, and whether it closes itself."""
    end = _SIMPLE_END.match(page, at)
    if end is None:
        while (attribute := _ATTRIBUTE.match(page, at)) is not None:
            at = attribute.end()
            if attribute[1] is not None:
                at = page.find(attribute[1], at) + 1
                if not at:
                    return -1, False
        end = _END.match(page, at)
    if end is None:
        return -1, False
    return end.end(), end[0].endswith("/>")


def _text(source: str) -> str:
    if "&#" in source:
        source = _TOO_LARGE.sub("&#99999999", _LEADING_ZEROS.sub("&#", source))
    return unescape(source)

"""The part of a text that a query matches, with the matching words marked, for a terminal."""

from __future__ import annotations

from rich.text import Text

from bm25rag import Hit
from bm25rag.cli.terminal import readable

_LENGTH = 240


def first_lines(text: str, length: int = _LENGTH) -> str:
    """Return the beginning of a text on one line."""
    # Four times the length is enough: a longer run is white space.
    shown = readable(text[: 4 * length]).strip()
    return shown if len(shown) <= length else shown[: length - 1].rstrip() + "…"


def marked_snippet(hit: Hit, length: int = _LENGTH) -> Text:
    """Return the part of a hit's text that matches best, on one line, matches in bold."""
    text = hit.text
    if text is None:
        return Text("(text not stored)", style="dim")
    part, start, spans = hit.snippet(length)
    if not spans:
        return Text(first_lines(text, length))
    shown = Text("…" if start else "")
    at = 0
    for first, last, _ in spans:
        shown.append(readable(part[at:first]))
        shown.append(readable(part[first:last]), style="bold")
        at = last
    shown.append(readable(part[at:]))
    if start + len(part) < len(text):
        shown.rstrip()
        shown.append("…")
    return shown

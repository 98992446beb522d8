"""Tables in HTML, as notebooks show what a cell returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

# The most rows that are shown.
MOST = 50


class Html(str):
    """A part of a page, already escaped."""

    __slots__ = ()


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], count: int
) -> str:
    """Return a table of the first of ``count`` rows; all but ``Html`` is escaped."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in islice(rows, MOST))
    more = f"<p>and {count - MOST:,} more</p>" if count > MOST else ""
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{more}"
    )


def marked(text: str, spans: Iterable[tuple[int, int, str]]) -> Html:
    """Return a text with its spans marked."""
    parts, done = [], 0
    for start, end, _ in spans:
        parts += [escape(text[done:start]), "<mark>", escape(text[start:end]), "</mark>"]
        done = end
    return Html("".join([*parts, escape(text[done:])]))


def _cell(value: object) -> str:
    if isinstance(value, Html):
        return f'<td style="text-align: left">{value}</td>'
    if isinstance(value, float):
        return f"<td>{value:.4f}</td>"
    left = ' style="text-align: left"' if isinstance(value, str) else ""
    return f"<td{left}>{escape(str(value))}</td>"

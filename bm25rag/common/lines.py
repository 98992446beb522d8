r"""Lines of a text: ``\n``, ``\r\n`` and ``\r`` end one, as in editors, and no other character."""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile("\r\n|\r|\n")


def with_newlines(text: str) -> str:
    r"""Return a text in which ``\n`` ends each line."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without their ends, one at least."""
    return with_newlines(text).split("\n")


def placed_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text without their ends, each with where it begins."""
    start = 0
    for end in _END.finditer(text):
        yield start, text[start : end.start()]
        start = end.end()
    yield start, text[start:]


def line_count(text: str) -> int:
    """Return how many lines a text has, one at least."""
    return line_of(text, len(text))


def line_of(text: str, place: int) -> int:
    """Return the number, from 1, of the line in which a place is: the end of a line is in it."""
    ends = text.count("\n", 0, place) + 1
    if "\r" in text:
        ends += text.count("\r", 0, place) - text.count("\r\n", 0, place)
        ends -= text[place - 1 : place + 1] == "\r\n" if place else 0
    return ends

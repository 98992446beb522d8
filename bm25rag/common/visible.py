"""Texts that cannot control what shows them: a terminal, or the order in which a page is read."""

from __future__ import annotations

import re

# C0 except tab and newline, DEL and C1 can control a terminal; a carriage return overwrites the
# line. Bidi controls change the order in which everything after them is read. Lone surrogates
# cannot be encoded.
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
UNSAFE = re.compile(f"[{CONTROLS}{BIDI}]")
_UNSAFE_IN_LINE = re.compile(f"[{CONTROLS}{BIDI}\t\n]")


def _escape(match: re.Match[str]) -> str:
    # As in a Python string: \n, \x1b, \u202e.
    return ascii(match[0])[1:-1]


def visible(text: str) -> str:
    """Escape everything in a text that could control a terminal; lines and tabs stay."""
    return UNSAFE.sub(_escape, text)


def one_line(text: object) -> str:
    """Escape as ``visible`` does, and newlines and tabs too: for ids, names and errors."""
    return _UNSAFE_IN_LINE.sub(_escape, str(text))

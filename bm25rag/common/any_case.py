"""A string looked for in bytes of UTF-8, in capitals or small letters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bm25rag.common.strings import text_of, utf8


class AnyCase:
    """A string in capitals or small letters, used as a compiled pattern is.

    It takes linear time. Expressions of Python would take the product of both lengths where the
    pattern begins everywhere: 34 us a byte with 1,000 characters.
    """

    def __init__(self, pattern: str) -> None:
        self._wanted = pattern.translate(_FOLDS)
        self._plain = utf8(self._wanted) if self._wanted.isascii() else None
        self._text, self._folded = b"", self._fold(b"")

    def search(self, text: bytes, at: int) -> _Span | None:
        """Return the first place from a byte on; calls for one text have ascending ones."""
        if text is not self._text:
            self._text, self._folded = text, self._fold(text)
        return self._folded.find(at)

    def finditer(self, text: bytes) -> Iterator[_Span]:
        """Yield all places that do not overlap."""
        folded, at = self._fold(text), 0
        while (span := folded.find(at)) is not None:
            yield span
            at = span.end()

    def _fold(self, text: bytes) -> _FoldedBytes | _FoldedText:
        if self._plain is None or any(letter in text for letter in _LIKE_ASCII):
            return _FoldedText(text, self._wanted)
        return _FoldedBytes(text, self._plain)


class _Span(NamedTuple):
    """A place in a text, used as a match of an expression is."""

    first: int
    last: int

    def start(self) -> int:
        return self.first

    def end(self) -> int:
        return self.last

    def span(self) -> tuple[int, int]:
        return self.first, self.last


class _FoldedBytes:
    """A text in small letters of ASCII, and what is looked for in it."""

    def __init__(self, text: bytes, wanted: bytes) -> None:
        self._text, self._wanted = text.lower(), wanted

    def find(self, at: int) -> _Span | None:
        first = self._text.find(self._wanted, at)
        return None if first < 0 else _Span(first, first + len(self._wanted))


class _FoldedText:
    """A text in small letters, which may have other numbers of bytes than the text itself."""

    def __init__(self, text: bytes, wanted: str) -> None:
        self._bytes, self._text, self._wanted = text, text_of(text), wanted
        self._folded = self._text.translate(_FOLDS)
        self._known = (0, 0)  # a place in both, in bytes and in characters

    def find(self, at: int) -> _Span | None:
        byte, character = self._known
        character += len(text_of(self._bytes[byte:at]))
        first = self._folded.find(self._wanted, character)
        self._known = at, character
        if first < 0:
            return None
        last = first + len(self._wanted)
        start = at + len(utf8(self._text[character:first]))
        self._known = start, first
        return _Span(start, start + len(utf8(self._text[first:last])))


class _Folds(dict[int, int]):
    """What stands for a character in all its cases, worked out when it is met.

    It is what RE2 takes for the same: a dotless i is no i.
    """

    def __missing__(self, code: int) -> int:
        upper = chr(code).upper()
        upper = upper if len(upper) == 1 else chr(code)
        lower = upper.lower()
        self[code] = folded = ord(lower if len(lower) == 1 else upper)
        return folded


_FOLDS = _Folds({ord("\u0131"): ord("\u0131")})
# What is not ASCII and has cases that are: the long s, and the sign of Kelvin.
_LIKE_ASCII = ("\u017f".encode(), "\u212a".encode())

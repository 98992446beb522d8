"""Any ``str`` to UTF-8 and back, lone surrogates included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from bm25rag.common.gil import in_blocks
from bm25rag.errors import CorruptIndexError

# The field that a plain text is.
TEXT = "text"
# The field that is searched, and never shown.
CONTEXT = "context"
# Between the terms of a list that are joined.
SEPARATOR = "\n"


# The terms of a document in UTF-8, joined unless one is empty or has a separator. Bytes are no
# garbage collector's business: with an object for each document, it would visit all that the
# caller has given, again and again.
TermList: TypeAlias = bytes | list[str]


# The texts of a document's fields, or the terms of each; ``None``: it does not have the field.
FieldTexts: TypeAlias = tuple[str | TermList | None, ...]


def join_terms(terms: Sequence[str]) -> TermList:
    """Return terms in little memory; raise ``TypeError`` for anything but strings."""
    joined = SEPARATOR.join(terms)
    if joined.count(SEPARATOR) >= max(len(terms), 1) or (terms and not joined):
        return list(terms)
    return utf8(joined)


def utf8(text: str) -> bytes:
    """Encode any ``str``, lone surrogates included; ``text_of`` is the inverse."""
    return text.encode("utf-8", "surrogatepass")


def utf8_each(texts: Sequence[str]) -> list[bytes]:
    """Encode strings as ``utf8`` does, but in half the time."""
    try:
        return [text.encode() for block in in_blocks(texts) for text in block]
    except UnicodeEncodeError:
        return [utf8(text) for block in in_blocks(texts) for text in block]


def is_unicode(text: str) -> bool:
    """Whether a string has no lone surrogate, and so is what UTF-8 can say."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def text_of(data: bytes | memoryview) -> str:
    """Decode what ``utf8`` encoded; raise ``CorruptIndexError`` for anything else."""
    try:
        return str(data, "utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise CorruptIndexError(f"a stored string is not UTF-8: {error}") from None

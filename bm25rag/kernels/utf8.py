"""Strings and their UTF-8, for the kernels interpreted; compiled, the ``.pxd`` does it in C."""

from __future__ import annotations


def utf8_of(text: str) -> tuple[bytes, int]:
    """Return the UTF-8 of a text, and of how many bytes it is: -1 if it has lone surrogates."""
    try:
        data = str.encode(text)  # a class of a user's may have another
    except UnicodeEncodeError:
        return b"", -1
    return data, len(data)


def text_of(data: bytes | memoryview, start: int, stop: int) -> str:
    """Return the UTF-8 from ``start`` to before ``stop`` as a string."""
    return bytes(data[start:stop]).decode("utf-8", "surrogatepass")


# Bytes of the longest text that ``folded_of`` takes.
SHORT = 64


def folded_of(data: bytes | memoryview, start: int, stop: int, folds: memoryview) -> str:
    """Return that text of ASCII and letters of two bytes with the ``folds`` of these.

    By code point, the first character of each is in the low 16 bits, and the second, if any, above.
    """
    text = text_of(data, start, stop)
    pairs = (ord(one) if one.isascii() else folds[ord(one)] for one in text)
    return "".join(chr(pair & 0xFFFF) + (chr(pair >> 16) if pair >> 16 else "") for pair in pairs)

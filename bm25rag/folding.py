"""Tables of code points from which the compiled scanner does what an ``Analyzer`` does."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bm25rag import scripts
from bm25rag._types import Bool, UInt8, Unsigned
from bm25rag.analysis import Analyzer

# Classes of code points.
OTHER, WORD, CJK, MARK, SEPARATOR = range(5)

_DOT_ABOVE = 0x307  # after I, in Turkish, it makes an i
_CAPITAL_SIGMA = "\u03a3"  # its lower case depends on where it stands


class FoldTable(NamedTuple):
    """What to do with each code point of 1, 2 or 4 bytes.

    ``lower`` is its lower case; ``classes`` what part it plays in a word; where
    ``peculiar`` the text needs more than the table: the analyzer folds it as a whole.
    """

    lower: Unsigned
    classes: UInt8
    peculiar: Bool


def fold_table(analyzer: Analyzer, width: int) -> FoldTable:
    """Return the tables for an analyzer and code points of ``width`` bytes."""
    turkish = analyzer.language == "turkish"
    lower = (analyzer.lowercase, turkish)
    marks = analyzer.token_pattern == "auto"
    return FoldTable(
        _lower(width, *lower)[0],
        _classes(width, analyzer.cjk, marks),
        _peculiar(width, analyzer.normalize, analyzer.cjk, marks, *lower),
    )


@lru_cache(maxsize=3)
def _characters(width: int) -> str:
    return "".join(map(chr, range(min(1 << 8 * width, 0x110000))))


@lru_cache(maxsize=12)
def _lower(width: int, lowercase: bool, turkish: bool) -> tuple[Unsigned, Bool]:
    """Return the lower case of every code point, and where that is not one code point for one."""
    characters = _characters(width)
    lower = np.arange(len(characters)).astype(f"u{width}")
    odd = np.zeros(len(characters), np.bool_)
    if lowercase:
        odd[[n for n in [ord(_CAPITAL_SIGMA)] if n < len(odd)]] = True
        for number, character in enumerate(characters):
            lowered = scripts.lower(character, turkish)
            if lowered != character:
                point = ord(lowered[0])
                # In Turkish the lower case of I does not fit in one byte.
                if len(lowered) != 1 or point >= len(lower):
                    odd[number] = True
                else:
                    lower[number] = point
    return lower, odd


@lru_cache(maxsize=12)
def _classes(width: int, cjk: bool, marks: bool) -> UInt8:
    characters = _characters(width)
    classes = np.full(len(characters), OTHER, np.uint8)
    classes[[match.start() for match in scripts.WORD.finditer(characters)]] = WORD
    if marks:
        classes[[mark for mark in scripts.marks() if mark < len(classes)]] = MARK
    if cjk:
        classes[[match.start() for match in scripts.CJK.finditer(characters)]] = CJK
    return classes


@lru_cache(maxsize=12)
def _peculiar(
    width: int, normalize: str | None, cjk: bool, marks: bool, lowercase: bool, turkish: bool
) -> Bool:
    characters = _characters(width)
    peculiar = _lower(width, lowercase, turkish)[1].copy()
    if lowercase and turkish and width > 1:
        peculiar[_DOT_ABOVE] = True
    patterns = []
    if normalize is not None:
        patterns.append(scripts.NOT_SURELY_NFC if normalize == "NFC" else scripts.NOT_ASCII)
    if cjk:
        patterns.append(scripts.WIDTH_FORMS)
    if marks:
        patterns.append(scripts.JOINER)
    for pattern in patterns:
        for match in pattern.finditer(characters):
            peculiar[match.start() : match.end()] = True
    # What a table lower-cases must not need normalising after that.
    return peculiar | peculiar[_lower(width, lowercase, turkish)[0]]

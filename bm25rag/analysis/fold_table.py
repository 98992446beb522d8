"""The table of code points by which the compiled scanner folds texts and finds words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bm25rag.analysis import scripts
from bm25rag.analysis.analyzer import Analyzer
from bm25rag.analysis.legacy import AUTO_0_1
from bm25rag.common.arrays import Array, Bool, UInt8, UInt32, UInt64
from bm25rag.common.gil import releasing_gil
from bm25rag.kernels.fold_bits import (
    APOSTROPHE,
    CJK,
    CLUSTER,
    COMMA,
    DIGIT,
    HASH,
    KIND,
    LETTER,
    MARK,
    OTHER,
    PECULIAR,
    PLUS,
    SIGN,
    SINGLE,
    SIZE,
    STOP,
    WORD,
)

_SIGNS = {"'": APOSTROPHE, ".": STOP, ",": COMMA, "+": PLUS, "#": HASH}

_CAPITAL_SIGMA = "\u03a3"  # its lower case depends on where it stands
_DOT_ABOVE = 0x307  # turns I into i in Turkish
_SOUND_MARKS = (0x3099, 0x309A)
# No script beyond this has capitals; lower-casing all code points would take 0.2 s.
_CASED = 0x20000


class _Rules(NamedTuple):
    """The settings of an analyzer that the table depends on."""

    lowercase: bool
    turkish: bool
    normalize: str | None
    cjk: bool
    singles: bool
    southeast_asian: bool
    marks: bool
    auto: bool


def fold_table(analyzer: Analyzer) -> UInt64:
    """Return the table of an analyzer for all code points, (0x110000,), uint64."""
    lowercase = analyzer.lowercase and not analyzer.identifiers
    auto = analyzer.token_pattern == "auto"
    rules = _Rules(
        lowercase=lowercase,
        turkish=lowercase and analyzer.language == "turkish",
        normalize=analyzer.normalize,
        cjk=analyzer.cjk,
        singles=analyzer.cjk and analyzer.cjk_characters,
        southeast_asian=analyzer.southeast_asian,
        marks=auto or analyzer.token_pattern == AUTO_0_1,
        auto=auto,
    )
    return _table(rules)


@lru_cache(maxsize=4)
def _table(rules: _Rules) -> UInt64:
    points = np.arange(0x110000, dtype="<u4")
    characters = points.tobytes().decode("utf-32-le", "surrogatepass")
    lower = points.astype(np.uint32)
    peculiar = np.zeros(len(points), np.bool_)
    if rules.lowercase:
        _lower(characters, rules.turkish, lower, peculiar)
    if rules.marks:
        _mark(peculiar, True, scripts.JOINER, characters)
    if rules.auto:
        _mark(peculiar, True, scripts.IGNORED, characters)
    if rules.normalize is not None:
        safe = scripts.NOT_SURELY_NFC if rules.normalize == "NFC" else scripts.NOT_ASCII
        _mark(peculiar, True, safe, characters)
    # A character is normalised after lower-casing, so its lower case decides, too.
    peculiar |= peculiar[lower]
    roles = _roles(characters, rules)[lower]
    table = _utf8(lower.astype(np.uint64)) | roles | peculiar * np.uint64(1 << PECULIAR)
    if rules.auto:
        for point in map(ord, scripts.APOSTROPHES.findall(characters)):
            table[point] = table[ord("'")] | table[point] & np.uint64(1 << PECULIAR)
    if rules.cjk:
        _fold_widths(characters, table)
    return table


def _lower(characters: str, turkish: bool, lower: UInt32, peculiar: Bool) -> None:
    """Enter the lower case of every code point; mark those for which it is not one code point."""
    for number, character in releasing_gil(enumerate(characters[:_CASED])):
        lowered = scripts.lower(character, turkish)
        if len(lowered) == 1:
            lower[number] = ord(lowered)
        else:
            peculiar[number] = True
    peculiar[ord(_CAPITAL_SIGMA)] = True
    if turkish:
        peculiar[_DOT_ABOVE] = True


def _utf8(points: UInt64) -> UInt64:
    """Return code points in UTF-8, each with its size in bytes."""
    last = (points & 63) | 128
    third, second = (points >> 6 & 63) | 128, (points >> 12 & 63) | 128
    sizes: list[Array] = [
        points,
        points >> 6 | 0xC0 | last << 8,
        points >> 12 | 0xE0 | third << 8 | last << 16,
        points >> 18 | 0xF0 | second << 8 | third << 16 | last << 24,
    ]
    limits = [points < 0x80, points < 0x800, points < 0x10000, points < 0x110000]
    return np.select(limits, [one | np.uint64(size << SIZE) for size, one in enumerate(sizes, 1)])


def _fold_widths(characters: str, table: UInt64) -> None:
    """Give full-width and half-width forms the entries of the usual characters."""
    for run in scripts.WIDTH_FORMS.finditer(characters):
        for point in range(run.start(), run.end()):
            usual = ord(scripts.fold_widths(characters[point]))
            # A sound mark is combined with the kana before it.
            table[point] = table[usual] | np.uint64((usual in _SOUND_MARKS) << PECULIAR)


def _roles(characters: str, rules: _Rules) -> UInt64:
    """Return kinds, signs and flags of code points."""
    kinds = np.full(len(characters), OTHER, np.uint8)
    _mark(kinds, WORD, scripts.WORD, characters)
    if rules.marks:
        kinds[list(scripts.marks())] = MARK
    if rules.southeast_asian:
        _mark(kinds, CLUSTER, scripts.SOUTHEAST_ASIAN, characters)
    if rules.cjk:
        _mark(kinds, CJK, scripts.CJK, characters)
    roles = kinds.astype(np.uint64) << np.uint64(KIND)
    if rules.auto:
        word = kinds == WORD
        for pattern, flag in ((scripts.LETTER, LETTER), (scripts.DIGIT, DIGIT)):
            roles |= (_which(pattern, characters) & word) * np.uint64(1 << flag)
        for sign, number in _SIGNS.items():
            roles[ord(sign)] |= np.uint64(number << SIGN)
    if rules.singles:
        roles |= _which(scripts.SINGLES, characters) * np.uint64(1 << SINGLE)
    return roles


def _which(pattern: re.Pattern[str], characters: str) -> Bool:
    found = np.zeros(len(characters), np.bool_)
    _mark(found, True, pattern, characters)
    return found


def _mark(values: Bool | UInt8, value: int, pattern: re.Pattern[str], characters: str) -> None:
    # Whole runs at once, because most code points are of the same kind as their neighbours.
    for run in releasing_gil(re.finditer(f"(?:{pattern.pattern})+", characters)):
        values[run.start() : run.end()] = value

"""The table of code points by which the compiled scanner folds texts and finds words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from bm25rag.analysis import scripts
from bm25rag.analysis.settings import FoldRules
from bm25rag.common.arrays import Array, Bool, Int64, UInt8, UInt64
from bm25rag.common.gil import releasing_gil
from bm25rag.kernels import fold_bits as bits
from bm25rag.kernels.scanner_interface import CODE_POINTS, PAGE, FoldArrays

_SIGNS = {
    "'": bits.APOSTROPHE,
    ".": bits.STOP,
    ",": bits.COMMA,
    "+": bits.PLUS,
    "#": bits.HASH,
}

# Pages of Han and of Hangul, of which one entry tells all: they are made together, in a
# millisecond, because some Chinese questions need 70 of them.
_ALIKE = range(0x4E, 0x9F), range(0xAC, 0xD7)
_CAPITAL_SIGMA = 0x3A3  # its lower case depends on where it stands
_DOT_ABOVE = 0x307  # turns I into i in Turkish
_SOUND_MARKS = (0x3099, 0x309A)
_LINKS = tuple(map(ord, "-&."))
# Combining classes of the Thai vowels below, and of the tones of Thai and Lao, which stand behind
# them in any normal form: most longer texts have both.
_IN_ORDER = {103: bits.FIRST, 107: bits.SECOND, 122: bits.SECOND}


class FoldTable:
    """The table of some rules; all threads may share it.

    Entries are made a page at a time, when a text first needs one: all of them would take
    0.25 s, and texts of one script need few. One that has not been made is 0.
    """

    def __init__(self, rules: FoldRules) -> None:
        self._rules = rules
        self.arrays: FoldArrays = FoldArrays(np.zeros(CODE_POINTS, np.uint64))
        self.entries: UInt64 = self.arrays.entries
        self.add_pages([0])  # the scanner takes ASCII to be there

    def add_pages(self, pages: Sequence[int]) -> None:
        """Make the entries of some pages, of ``PAGE`` code points each."""
        wanted = set(pages)
        for alike in _ALIKE:
            if not wanted.isdisjoint(alike):
                points = np.arange(alike.start * PAGE, alike.stop * PAGE)
                first = self._made(points[:1]) >> np.uint64(bits.SIZE) << np.uint64(bits.SIZE)
                self.entries[points] = first | _utf8(points.astype(np.uint64))
                wanted.difference_update(alike)
        if wanted:
            points = (np.array(sorted(wanted))[:, None] * PAGE + np.arange(PAGE)).ravel()
            self.entries[points] = self._made(points)

    def _made(self, points: Int64) -> UInt64:
        rules, characters = self._rules, _string(points)
        entries = _entries(points, rules)
        if rules.auto:
            mask = _which(scripts.APOSTROPHES, characters)
            entries[mask] = self.entries[ord("'")] | entries[mask] & np.uint64(1 << bits.PECULIAR)
        if rules.cjk and scripts.WIDTH_FORMS.search(characters):
            # Full-width and half-width forms have the entries of the usual characters.
            mask = _which(scripts.WIDTH_FORMS, characters)
            usual = [ord(scripts.fold_widths(chr(point))) for point in points[mask].tolist()]
            # A sound mark is combined with the kana before it.
            # Links of words are looked for in ASCII alone.
            alone = [*_SOUND_MARKS, *(_LINKS if rules.auto else ())]
            whole = np.isin(usual, alone) * np.uint64(1 << bits.PECULIAR)
            entries[mask] = _entries(np.array(usual, np.int64), rules) | whole
        return entries


fold_table = lru_cache(maxsize=4)(FoldTable)


def _string(points: Int64) -> str:
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _entries(points: Int64, rules: FoldRules) -> UInt64:
    """Return the entries of code points, as if there were no widths and one apostrophe."""
    lower, peculiar = _lower(points, rules)
    # A character is normalised after lower-casing, so its lower case decides, too.
    if not np.array_equal(lower, points):
        peculiar |= _lower(lower, rules)[1]
    roles = _roles(lower, rules)
    if rules.normalize == "NFC":
        roles |= _meeting(_string(lower)) << np.uint64(bits.MEETING)
    if rules.auto:
        roles |= _which(scripts.JOINER, _string(points)) * np.uint64(1 << bits.JOINER)
    return _utf8(lower.astype(np.uint64)) | roles | peculiar * np.uint64(1 << bits.PECULIAR)


def _lower(points: Int64, rules: FoldRules) -> tuple[Int64, Bool]:
    """Return code points in lower case, and which need more than that."""
    lower, peculiar, characters = points.copy(), np.zeros(len(points), np.bool_), _string(points)
    if rules.lowercase:
        all_lowered = scripts.lower(characters, rules.turkish)
        if len(all_lowered) == len(characters):
            encoded = all_lowered.encode("utf-32-le", "surrogatepass")
            lower = np.frombuffer(encoded, "<u4").astype(np.int64)
        else:
            for number, character in releasing_gil(enumerate(characters)):
                lowered = scripts.lower(character, rules.turkish)
                if len(lowered) == 1:
                    lower[number] = ord(lowered)
                else:
                    peculiar[number] = True
        peculiar[points == _CAPITAL_SIGMA] = True
    if rules.turkish:
        peculiar[points == _DOT_ABOVE] = True
    if rules.auto:
        for pattern in (scripts.IGNORED, scripts.HYPHENS):
            _mark(peculiar, True, pattern, characters)
    if rules.normalize is not None:
        changed = scripts.CHANGED_BY_NFC if rules.normalize == "NFC" else scripts.NOT_ASCII
        _mark(peculiar, True, changed, characters)
    return lower, peculiar


def _meeting(characters: str) -> UInt64:
    """Return which of those characters that meet each is, or 0."""
    meeting = _which(scripts.MEETING, characters) * np.uint64(bits.ANY)
    for number in np.flatnonzero(meeting).tolist():
        order = unicodedata.combining(characters[number])
        meeting[number] = _IN_ORDER.get(order, bits.ANY)
    return meeting


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
    sized = [one | np.uint64(size << bits.SIZE) for size, one in enumerate(sizes, 1)]
    return np.select(limits, sized)


def _roles(points: Int64, rules: FoldRules) -> UInt64:
    """Return kinds, signs and flags of code points."""
    characters = _string(points)
    kinds = np.full(len(characters), bits.OTHER, np.uint8)
    _mark(kinds, bits.WORD, rules.word, characters)
    if rules.auto:
        _mark(kinds, bits.SYMBOL, scripts.EMOJI, characters)
        kinds[[scripts.is_mark(character) for character in characters]] = bits.MARK
    if rules.southeast_asian:
        kinds[scripts.SOUTHEAST_ASIAN.among(points)] = bits.CLUSTER
    if rules.cjk:
        kinds[scripts.CJK.among(points)] = bits.CJK
    roles = kinds.astype(np.uint64) << np.uint64(bits.KIND)
    if rules.auto:
        word = kinds == bits.WORD
        for pattern, flag in ((scripts.LETTER, bits.LETTER), (scripts.DIGIT, bits.DIGIT)):
            roles |= (_which(pattern, characters) & word) * np.uint64(1 << flag)
        for sign, number in _SIGNS.items():
            if sign in characters:
                roles[characters.index(sign)] |= np.uint64(number << bits.SIGN)
    if rules.singles:
        roles |= scripts.SINGLES.among(points) * np.uint64(1 << bits.SINGLE)
        roles |= scripts.HAN.among(points) * np.uint64(1 << bits.ASKED_SINGLE)
    return roles


def _which(pattern: re.Pattern[str], characters: str) -> Bool:
    mask = np.zeros(len(characters), np.bool_)
    _mark(mask, True, pattern, characters)
    return mask


def _mark(
    values: Bool | UInt8, value: int, pattern: re.Pattern[str] | str, characters: str
) -> None:
    one = pattern if isinstance(pattern, str) else pattern.pattern
    # Whole runs at once, because most code points are of the same kind as their neighbours.
    for run in releasing_gil(re.finditer(f"(?:{one})+", characters)):
        values[run.start() : run.end()] = value

"""Folding of accents, points and other marks, and of letters that are written in two ways.

Which letters keep their accents depends on the language: see ``languages``.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from bm25rag.common.patterns import late_pattern

# Letters that no normal form decomposes, and those of Arabic that are written in several ways: with
# madda, hamza or wasla or without (an alif), and with or without dots (kaf, yeh, heh).
_LETTERS = {
    "\u00e6": "ae", "\u0153": "oe", "\u00df": "ss", "\u00f8": "o", "\u0142": "l", "\u0111": "d",
    "\u00f0": "d", "\u00fe": "th", "\u0131": "i", "\u0127": "h", "\u0133": "ij",
    "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl",
    "\ufb05": "st", "\ufb06": "st",
    "\u0622": "\u0627", "\u0623": "\u0627", "\u0625": "\u0627", "\u0671": "\u0627",
    "\u0643": "\u06a9", "\u064a": "\u06cc", "\u0649": "\u06cc",
    "\u0629": "\u0647", "\u06c0": "\u0647", "\u06c1": "\u0647",
}  # fmt: skip
# Marks of Latin and Greek; vowels, tones and cantillation of Hebrew and Arabic, and the Arabic
# tatweel, which only stretches words; the Hindi point of borrowed sounds.
_DROPPED = late_pattern(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u0655\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u093c]"
)
_LATIN_OR_GREEK = late_pattern("[\u00c0-\u024f\u0370-\u03ff\u1e00-\u1fff\ufb00-\ufb06]")
_HINDI_WITH_POINT = "\u0929\u0931\u0934"
# A nasal before a consonant of its class is also written as a dot above the line, or as a
# candrabindu (a dot in a crescent).
_HINDI_NASAL = late_pattern(
    "\u0919\u094d(?=[\u0915-\u0918])|\u091e\u094d(?=[\u091a-\u091d])|\u0923\u094d(?=[\u091f-\u0922])"
    "|\u0928\u094d(?=[\u0924-\u0927])|\u092e\u094d(?=[\u092a-\u092d])|\u0901"
)
_HINDI_VIRAMA, _HINDI_CANDRABINDU = "\u094d", "\u0901"  # one of which it has
_FIRST_OF_HINDI = "\u0900"
_HINDI_POINT_ABOVE = "\u0902"


def fold_accents(word: str, kept: str) -> str:
    """Return a word without the accents, points and other marks that readers may leave out."""
    if word.isascii() or _unchanged(kept).issuperset(word):
        return word
    folded = unicodedata.normalize("NFC", word).translate(_folds(kept))
    if word >= _FIRST_OF_HINDI and _may_have_nasal(folded):
        folded = _HINDI_NASAL.sub(_HINDI_POINT_ABOVE, folded)
    return folded or word


@lru_cache(maxsize=8)
def _unchanged(kept: str) -> frozenset[str]:
    """Return characters of words that stay as they are: of ASCII, kept letters, and Cyrillic."""
    return frozenset([*map(chr, [*range(128), *range(0x400, 0x460)]), *kept])


def fold_each(words: list[str], kept: str) -> list[str]:
    """Return the same for each word; all at once, because most of the time goes to the calls."""
    joined = "\n".join(words)
    folded = fold_accents(joined, kept).split("\n")
    if len(folded) != len(words):  # a word has a line feed
        return [fold_accents(word, kept) for word in words]
    if not all(folded):  # a word has marks alone
        folded = [own or word for own, word in zip(folded, words, strict=True)]
    if _may_have_nasal(joined):  # which depends on how a word begins
        for number, word in enumerate(words):
            if _may_have_nasal(word):
                folded[number] = fold_accents(word, kept)
    return folded


def _may_have_nasal(word: str) -> bool:
    return _HINDI_VIRAMA in word or _HINDI_CANDRABINDU in word


class _Folds(dict[int, str]):
    """Maps code points to what they are folded to, for ``str.translate``."""

    def __init__(self, kept: str) -> None:
        self._kept = kept

    def __missing__(self, point: int) -> str:
        folded = self[point] = self._fold(chr(point))
        return folded

    def _fold(self, letter: str) -> str:
        if letter in self._kept or letter.lower() in self._kept:
            return letter
        if letter in _LETTERS:
            return _LETTERS[letter]
        if _LATIN_OR_GREEK.match(letter) or letter in _HINDI_WITH_POINT:
            letter = unicodedata.normalize("NFD", letter)
        return unicodedata.normalize("NFC", _DROPPED.sub("", letter))


_folds = lru_cache(maxsize=8)(_Folds)

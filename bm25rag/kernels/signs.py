"""Compiled rules of signs inside words: what ``scripts.word_pattern`` says, for the scanner."""

from __future__ import annotations

import numpy as np

from bm25rag.common.arrays import UInt8
from bm25rag.kernels.compiling import compiled
from bm25rag.kernels.fold_bits import APOSTROPHE, COMMA, HASH, MARK, PLUS, STOP, WORD
from bm25rag.kernels.typed_bits import DIGIT, KIND, LETTER, SIGN, SIZE
from bm25rag.kernels.words import load_word

_BYTE, _SIGNS = np.uint64(0xFF), np.uint64(0x0202020202020202)
# Classes of a character before a sign, as bits; those of the one before it are 8 bits above.
_IN_WORD, _LETTER, _DIGIT, _ASCII, _STOP, _PLUS = 1, 2, 4, 8, 16, 32
# Classes of a byte; what is not ASCII may be anything.
_NAME, _NUMBER, _LINE, _POINT, _ANY = 1, 2, 4, 8, 16
_WORD_BYTE = _NAME | _NUMBER | _LINE
_A_PLUS = 43


@compiled
def class_of(entry: np.uint64, in_cluster: bool, inside: bool) -> np.int64:
    """Return the classes of a character, for what ``is_inside`` asks of those before a sign.

    Parameters
    ----------
    entry
        Its entry in the table; see ``folding``.
    in_cluster
        Whether it follows a Southeast Asian cluster, to which a mark then belongs.
    inside
        Whether it is inside a word.
    """
    kind, sign = np.int64(entry >> KIND & _BYTE), np.int64(entry >> SIGN & _BYTE)
    classes = np.int64(0)
    if kind == WORD or (kind == MARK and not in_cluster):
        classes |= _IN_WORD
    if (entry & LETTER) != 0:
        classes |= _LETTER
        if entry >> SIZE & _BYTE == 1:
            classes |= _ASCII
    if (entry & DIGIT) != 0:
        classes |= _DIGIT
    if sign == STOP:
        classes |= _STOP
    if sign == PLUS and inside:
        classes |= _PLUS
    return classes


@compiled
def is_inside(entry: np.uint64, prior: np.int64, following: np.uint64, after: np.uint64) -> bool:
    """Whether a sign is inside a word.

    Parameters
    ----------
    entry
        The sign's entry in the table; see ``folding``.
    prior
        The classes of the two characters before it.
    following, after
        The entries of the two characters behind it.
    """
    sign = np.int64(entry >> SIGN & _BYTE)
    kind, beyond = np.int64(following >> KIND & _BYTE), np.int64(after >> KIND & _BYTE)
    letter, digit = (following & LETTER) != 0, (following & DIGIT) != 0
    single = (prior >> 8 & _IN_WORD) == 0
    if sign == APOSTROPHE:
        return bool((prior & _IN_WORD) != 0 and kind == WORD)
    if sign == COMMA:
        return bool((prior & _DIGIT) != 0 and digit)
    if sign == HASH:
        return bool((prior & _ASCII) != 0 and single)
    if sign == PLUS:
        pair = following >> SIGN & _BYTE == PLUS and after >> SIGN & _BYTE != PLUS
        return bool((prior & _PLUS) != 0 or ((prior & _ASCII) != 0 and single and pair))
    if (prior & _DIGIT) != 0 and digit:
        return True
    if (prior & _LETTER) != 0 and single and letter and beyond != WORD and beyond != MARK:
        return True
    return bool((prior & (_IN_WORD | _STOP)) == 0 and letter)


@compiled
def mark_inside(source: UInt8, inside: UInt8, size: int, possessives: bool) -> None:
    """Mark the signs of ASCII that are inside words, or may be by what is not ASCII beside them.

    Parameters
    ----------
    source
        Texts with a gap after each, as ``scan`` has them.
    inside
        Whether what is before a place is inside a word, but 2 for a sign; (size + 1,).
    size
        How many bytes there are.
    possessives
        Whether to leave "'s" out at the end of a word: a twentieth of English words have it,
        and would be looked at twice.
    """
    place = np.uint64(1)
    stop = np.uint64(size + 1)
    while place < stop:
        if place + np.uint64(8) <= stop and not load_word(inside, place) & _SIGNS:
            place += np.uint64(8)
            continue
        if inside[place] == 2:
            inside[place] = _may_be_inside(source, np.int64(place) - 1)
            if inside[place] and possessives and _is_possessive(source, np.int64(place) - 1):
                inside[place], inside[place + np.uint64(1)] = 0, 0
        place += np.uint64(1)


@compiled
def _may_be_inside(source: UInt8, place: np.int64) -> bool:
    """As ``is_inside``, of bytes; right where all are ASCII."""
    before, earlier = _class(source, place - 1), _class(source, place - 2)
    behind, beyond = _class(source, place + 1), _class(source, place + 2)
    named = (before & (_NAME | _ANY)) != 0 and (earlier & _WORD_BYTE) == 0
    sign = source[place]
    if sign == 39:
        return bool((before & (_WORD_BYTE | _ANY)) != 0 and (behind & (_WORD_BYTE | _ANY)) != 0)
    numbers = (before & (_NUMBER | _ANY)) != 0 and (behind & (_NUMBER | _ANY)) != 0
    if sign == 44:
        return bool(numbers)
    if sign == 35:
        return bool(named)
    name = (behind & (_NAME | _ANY)) != 0
    if sign == 46:
        led = (before & (_WORD_BYTE | _POINT)) == 0 and name
        return bool(numbers or led or (named and name and (beyond & _WORD_BYTE) == 0))
    paired = source[place + 1] == _A_PLUS or (behind & _ANY) != 0
    if named and paired and source[place + 2] != _A_PLUS:
        return True
    if source[place + 1] == _A_PLUS or place < 2:
        return False
    if source[place - 1] != _A_PLUS:
        return bool((before & _ANY) != 0)
    return bool((earlier & (_NAME | _ANY)) != 0 and (_class(source, place - 3) & _WORD_BYTE) == 0)


@compiled
def _is_possessive(source: UInt8, place: np.int64) -> bool:
    """Whether an apostrophe begins an "'s" between what is ASCII, behind which nothing joins."""
    if source[place] != 39 or source[place + 1] | 32 != 115 or place < 1:
        return False
    beyond = source[place + 2]
    if beyond == 39 or beyond == 46 or beyond == 43 or beyond == 35:
        return False
    return bool(_class(source, place - 1) & _WORD_BYTE and _class(source, place + 2) == 0)


@compiled
def _class(source: UInt8, place: np.int64) -> int:
    if place < 0:
        return 0
    byte = source[place]
    if byte >= 128:
        return _ANY
    if np.uint8((byte | np.uint8(32)) - 97) < np.uint8(26):
        return _NAME
    if np.uint8(byte - 48) < np.uint8(10):
        return _NUMBER
    if byte == 95:
        return _LINE
    return _POINT if byte == 46 else 0

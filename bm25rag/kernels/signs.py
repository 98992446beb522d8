"""Rules of signs inside words: what ``scripts.word_pattern`` says, for the scanner."""

from __future__ import annotations

import cython

if not cython.compiled:
    from bm25rag.kernels.fold_bits import (
        APOSTROPHE,
        COMMA,
        DIGIT,
        HASH,
        KIND,
        LETTER,
        MARK,
        PLUS,
        SIGN,
        SIZE,
        STOP,
        WORD,
    )

# Classes of a character before a sign, as bits; those of the one before it are 8 bits above.
_IN_WORD = cython.declare(cython.int, 1)
_LETTER = cython.declare(cython.int, 2)
_DIGIT = cython.declare(cython.int, 4)
_ASCII = cython.declare(cython.int, 8)
_STOP = cython.declare(cython.int, 16)
_PLUS = cython.declare(cython.int, 32)
# Classes of a byte; what is not ASCII may be anything.
_NAME = cython.declare(cython.int, 1)
_NUMBER = cython.declare(cython.int, 2)
_LINE = cython.declare(cython.int, 4)
_POINT = cython.declare(cython.int, 8)
_ANY = cython.declare(cython.int, 16)
_WORD_BYTE = cython.declare(cython.int, 7)
_A_PLUS = cython.declare(cython.int, 43)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def class_of(entry: cython.ulonglong, in_cluster: cython.bint, inside: cython.bint) -> cython.int:
    """Return the classes of a character, for what ``is_inside`` asks of those before a sign.

    Parameters
    ----------
    entry
        Its entry in the fold table; see ``fold_bits``.
    in_cluster
        Whether it follows a Southeast Asian cluster, to which a mark then belongs.
    inside
        Whether it is inside a word.
    """
    kind: cython.int = entry >> KIND & 0xFF
    sign: cython.int = entry >> SIGN & 0xFF
    classes: cython.int = 0
    if kind == WORD or (kind == MARK and not in_cluster):
        classes |= _IN_WORD
    if entry >> LETTER & 1:
        classes |= _LETTER
        if entry >> SIZE & 0xFF == 1:
            classes |= _ASCII
    if entry >> DIGIT & 1:
        classes |= _DIGIT
    if sign == STOP:
        classes |= _STOP
    if sign == PLUS and inside:
        classes |= _PLUS
    return classes


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def is_inside(
    entry: cython.ulonglong,
    prior: cython.int,
    following: cython.ulonglong,
    after: cython.ulonglong,
) -> cython.bint:
    """Whether a sign is inside a word.

    Parameters
    ----------
    entry
        The sign's entry in the fold table; see ``fold_bits``.
    prior
        The classes of the two characters before it.
    following, after
        The entries of the two characters behind it.
    """
    sign: cython.int = entry >> SIGN & 0xFF
    kind: cython.int = following >> KIND & 0xFF
    beyond: cython.int = after >> KIND & 0xFF
    letter: cython.bint = following >> LETTER & 1
    digit: cython.bint = following >> DIGIT & 1
    single: cython.bint = (prior >> 8 & _IN_WORD) == 0
    pair: cython.bint
    if sign == APOSTROPHE:
        return (prior & _IN_WORD) != 0 and kind == WORD
    if sign == COMMA:
        return (prior & _DIGIT) != 0 and digit
    if sign == HASH:
        return (prior & _ASCII) != 0 and single
    if sign == PLUS:
        pair = following >> SIGN & 0xFF == PLUS and after >> SIGN & 0xFF != PLUS
        return (prior & _PLUS) != 0 or ((prior & _ASCII) != 0 and single and pair)
    if (prior & _DIGIT) != 0 and digit:
        return True
    if (prior & _LETTER) != 0 and single and letter and beyond != WORD and beyond != MARK:
        return True
    return (prior & (_IN_WORD | _STOP)) == 0 and letter


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def mark_inside(
    source: cython.const[cython.uchar][::1],
    inside: cython.uchar[::1],
    size: cython.Py_ssize_t,
    possessives: cython.bint,
) -> cython.void:
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
    place: cython.Py_ssize_t = 1
    stop: cython.Py_ssize_t = size + 1
    signs: cython.uchar
    i: cython.Py_ssize_t
    while place < stop:
        if place + 8 <= stop:
            signs = 0
            for i in range(place, place + 8):
                signs |= inside[i]
            if not signs & 2:
                place += 8
                continue
        if inside[place] == 2:
            inside[place] = may_be_inside(source, place - 1)
            if inside[place] and possessives and _is_possessive(source, place - 1):
                inside[place] = 0
                inside[place + 1] = 0
        place += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def may_be_inside(source: cython.const[cython.uchar][::1], place: cython.Py_ssize_t) -> cython.bint:
    """As ``is_inside``, of bytes; right where all are ASCII. Two bytes behind it are read."""
    before: cython.int = _class(source, place - 1)
    earlier: cython.int = _class(source, place - 2)
    behind: cython.int = _class(source, place + 1)
    beyond: cython.int = _class(source, place + 2)
    named: cython.bint = (before & (_NAME | _ANY)) != 0 and (earlier & _WORD_BYTE) == 0
    numbers: cython.bint
    name: cython.bint
    paired: cython.bint
    sign: cython.int = source[place]
    if sign == 39:
        return (before & (_WORD_BYTE | _ANY)) != 0 and (behind & (_WORD_BYTE | _ANY)) != 0
    numbers = (before & (_NUMBER | _ANY)) != 0 and (behind & (_NUMBER | _ANY)) != 0
    if sign == 44:
        return numbers
    if sign == 35:
        return named
    name = (behind & (_NAME | _ANY)) != 0
    if sign == 46:
        return (
            numbers
            or ((before & (_WORD_BYTE | _POINT)) == 0 and name)
            or (named and name and (beyond & _WORD_BYTE) == 0)
        )
    paired = source[place + 1] == _A_PLUS or (behind & _ANY) != 0
    if named and paired and source[place + 2] != _A_PLUS:
        return True
    if source[place + 1] == _A_PLUS or place < 2:
        return False
    if source[place - 1] != _A_PLUS:
        return (before & _ANY) != 0
    return (earlier & (_NAME | _ANY)) != 0 and (_class(source, place - 3) & _WORD_BYTE) == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_possessive(
    source: cython.const[cython.uchar][::1], place: cython.Py_ssize_t
) -> cython.bint:
    """Whether an apostrophe begins an "'s" between what is ASCII, behind which nothing joins."""
    beyond: cython.int
    if source[place] != 39 or source[place + 1] | 32 != 115 or place < 1:
        return False
    beyond = source[place + 2]
    if beyond == 39 or beyond == 46 or beyond == 43 or beyond == 35:
        return False
    return (_class(source, place - 1) & _WORD_BYTE) != 0 and _class(source, place + 2) == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _class(source: cython.const[cython.uchar][::1], place: cython.Py_ssize_t) -> cython.int:
    byte: cython.int
    if place < 0:
        return 0
    byte = source[place]
    if byte >= 128:
        return _ANY
    if 97 <= (byte | 32) <= 122:
        return _NAME
    if 48 <= byte <= 57:
        return _NUMBER
    if byte == 95:
        return _LINE
    return _POINT if byte == 46 else 0

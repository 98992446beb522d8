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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def class_of(entry: cython.ulonglong, in_cluster: cython.bint, inside: cython.bint) -> cython.int:
    """Return the classes of a character, for what ``is_inside`` asks of those before a sign.

    ``entry`` is that in the fold table, see ``fold_bits``; ``in_cluster`` whether it follows a
    Southeast Asian cluster, to which a mark then belongs; ``inside`` whether it is inside a word.
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
    """Whether a sign is inside a word, by its entry in the fold table; see ``fold_bits``.

    ``prior`` are the classes of the two characters before it, ``following`` and ``after`` the
    entries of the two behind it.
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

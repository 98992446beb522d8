"""The words of texts in ASCII, signs inside them, and the terms of words."""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.boundary import (
    AS_WRITTEN,
    CLUSTERS,
    LONGEST_JOINED,
    LONGEST_PAIR,
    LONGEST_WORD,
    PAIRS,
    POSSESSIVES,
    SHORTEST_ASKED,
    SINGLES,
)
from bm25rag.kernels.checks import require
from bm25rag.kernels.memory import view

if not cython.compiled:
    from bm25rag.kernels.known_words import KnownWords, remember, terms_at
    from bm25rag.kernels.utf8 import SHORT, folded_of, text_of, utf8_of

_LONGEST = cython.declare(cython.Py_ssize_t, LONGEST_WORD)
_LONGEST_JOINED = cython.declare(cython.Py_ssize_t, LONGEST_JOINED)
# What a byte is: part of a word, a sign that may be, or neither.
_IN_WORD = cython.declare(cython.int, 1)
_SIGN = cython.declare(cython.int, 2)
_A_SPACE = cython.declare(cython.int, 32)
_A_HASH = cython.declare(cython.int, 35)
_A_POINT = cython.declare(cython.int, 46)
_A_LINE = cython.declare(cython.int, 95)
# Classes of a byte; what is not ASCII may be anything.
_NAME = cython.declare(cython.int, 1)
_NUMBER = cython.declare(cython.int, 2)
_LINE = cython.declare(cython.int, 4)
_POINT = cython.declare(cython.int, 8)
_ANY = cython.declare(cython.int, 16)
_WORD_BYTE = cython.declare(cython.int, 7)
_A_PLUS = cython.declare(cython.int, 43)
_EIGHT_SIGNS = cython.declare(cython.ulonglong, 0x0202020202020202)
_HAN = cython.declare(cython.int, 1)
_KANA = cython.declare(cython.int, 2)
_HANGUL = cython.declare(cython.int, 4)
_THAI = cython.declare(cython.int, 8)
_ELSE = cython.declare(cython.int, 16)
# Words from here on may be parts of runs: Thai is the first script without spaces.
_FIRST_OF_RUNS = "\u0e01"
# They begin no cluster.
_THAI_MARKS = "\u0e31" + "".join(map(chr, [*range(0xE34, 0xE3B), *range(0xE47, 0xE4F)]))
_PAIRS = cython.declare(cython.int, PAIRS)
_SINGLES = cython.declare(cython.int, SINGLES)
_CLUSTERS = cython.declare(cython.int, CLUSTERS)
_AS_WRITTEN = cython.declare(cython.int, AS_WRITTEN)
_POSSESSIVES = cython.declare(cython.int, POSSESSIVES)
# What has been seen of a plain word.
_HAS_LETTERS = cython.declare(cython.int, 1)
_HAS_DIGITS = cython.declare(cython.int, 2)
_HAS_POINT = cython.declare(cython.int, 4)
_MIXED = cython.declare(cython.int, 3)
# A letter that is not folded to one or two others.
_UNUSUAL = cython.declare(cython.ulonglong, 1 << 32)
# What ``_may_be_inside`` reads behind a text.
_GAP = "   "


def _kinds():
    kinds = np.zeros(256, np.uint8)
    kinds[[ord(sign) for sign in "'.,+#"]] = _SIGN
    kinds[[byte for byte in range(128) if chr(byte).isalnum() or byte == ord("_")]] = _IN_WORD
    return kinds


_KINDS = cython.declare(cython.const[cython.uchar][::1], view(_kinds()))


def _bytes():
    kinds = np.zeros(256, np.uint8)
    kinds[[byte for byte in range(128) if chr(byte).isalpha()]] = 1
    kinds[[byte for byte in range(128) if chr(byte).isdigit()]] = 2
    kinds[128:] = 4
    return kinds


# Letters and digits, which are parts of words with links, and what is not ASCII, and may be: what
# that is has two names.
_PART = cython.declare(cython.int, 3)
_UNSURE = cython.declare(cython.int, 4)
_ABROAD = cython.declare(cython.int, 8)
_APOSTROPHE = cython.declare(cython.int, 16)
_BYTES = cython.declare(cython.const[cython.uchar][::1], view(_bytes()))
# Where words meet: at a link, a space, or a character that may be folded to a link or a digit.
_LINKING = cython.declare(cython.int, 1)
_WIDE = cython.declare(cython.int, 3)


def _seams():
    seams = np.zeros(256, np.uint8)
    seams[[ord(sign) for sign in "-&."]] = 1
    seams[ord(" ")] = 2
    seams[[0xE2, 0xEF]] = 3
    return seams


_SEAMS = cython.declare(cython.const[cython.uchar][::1], view(_seams()))
_LONGEST_PAIR = cython.declare(cython.Py_ssize_t, LONGEST_PAIR)
_SHORTEST_ASKED = cython.declare(cython.Py_ssize_t, SHORTEST_ASKED)

# Bytes that are asked together whether words meet.
_AT_ONCE = cython.declare(cython.Py_ssize_t, 32)


@cython.final
@cython.cclass
class _Words:
    """Finds the words of a text: the last one is from ``start`` to before ``stop``.

    ``source`` is the text with a gap behind it, once a sign is looked at.
    """


@cython.cfunc
def _words(text) -> _Words:
    if not text.isascii():
        require(False, "the text is not ASCII")
    it: _Words = _Words()
    size: cython.Py_ssize_t = 0
    it.text = text
    if cython.compiled:
        it.data = utf8_of(text, cython.address(size))
    else:
        it.data, size = utf8_of(text)
        it.start = it.stop = 0
        it.source = memoryview(b"")
    it.size = size
    return it


@cython.cfunc
@cython.exceptval(-1, check=False)
def _next(it: _Words) -> cython.int:
    """Go to the next word; return whether there is one, -1 after an error."""
    data = it.data
    size: cython.Py_ssize_t = it.size
    place: cython.Py_ssize_t = it.stop
    kind: cython.int = 0
    while place < size:
        kind = _KINDS[data[place]]
        if kind == _SIGN:
            kind = _is_sign_inside(it, place)
        if kind:
            break
        place += 1
    it.start = place
    while kind > 0:
        place += 1
        kind = _KINDS[data[place]] if place < size else 0
        if kind == _SIGN:
            kind = _is_sign_inside(it, place)
    it.stop = place
    return -1 if kind < 0 else it.start < place


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_sign_inside(it: _Words, place: cython.Py_ssize_t) -> cython.int:
    ends: cython.bint = place + 1 == it.size or it.data[place + 1] == _A_SPACE
    if ends and it.data[place] != _A_PLUS and it.data[place] != _A_HASH:  # "c++", "c#"
        return 0
    if it.source.shape[0] == 0:
        it.source = memoryview((it.text + _GAP).encode("ascii"))
    return _may_be_inside(it.source, place)


def find_ascii_words(text):
    """Find the words of a text; see ``Backend.find_ascii_words``."""
    it: _Words = _words(text)
    words: list = []
    while _next(it):
        words.append(text_of(it.data, it.start, it.stop))
    return words


@cython.cfunc
def _otherwise_of(analysis: _Analysis, text, otherwise):
    """Return the terms of what is also one word in a text, by an ``Otherwise``."""
    terms = None
    if otherwise.lost is not None and (not otherwise.lost or otherwise.lost not in text):
        terms = _otherwise_in_text(analysis, text, otherwise)
        if terms is None and not text.isascii():  # to fold it all in Python takes long
            linked = otherwise.link(text)
            if linked != text:
                text = linked
                terms = _otherwise_in_text(analysis, text, otherwise)
    if terms is None:
        words = otherwise.find(text)
        terms = otherwise.analyze(words) if words else []
    return terms


@cython.cfunc
def _otherwise_in_text(analysis: _Analysis, text, otherwise):
    """Return the terms of what is also one word in a text; ``None`` if that is not known."""
    size: cython.Py_ssize_t = 0
    if cython.compiled:
        data = utf8_of(text, cython.address(size))
    else:
        data, size = utf8_of(text)
    if size < 0:
        return None
    return _otherwise_in(analysis, data, size, otherwise)


@cython.cfunc
def _otherwise_in(
    analysis: _Analysis,
    data: cython.pointer[cython.const[cython.uchar]],
    size: cython.Py_ssize_t,
    otherwise,
):
    """Return the terms of what is also one word in UTF-8; ``None`` if that is not known."""
    joined: list | None = None
    paired: list | None = None
    i: cython.Py_ssize_t = 0
    looked: cython.Py_ssize_t = 1  # up to here no words meet, or it has been looked at
    seam: cython.int
    width: cython.int
    is_link: cython.bint
    before: cython.uchar
    behind: cython.uchar
    while i + 2 < size:
        i += 1
        if i == looked:
            while looked + _AT_ONCE < size and not _meet(data, looked):
                looked += _AT_ONCE
            i = looked
            looked += _AT_ONCE
            if i + 1 >= size:
                break
        if 57 < data[i] < 0xE2:  # as most are
            continue
        if data[i] == _A_SPACE:
            before = data[i - 1]
            behind = data[i + 1]
            # Letters, between which most are, have that bit, and no digit has.
            if before < 128 and behind < 128 and before & behind & 64:
                continue
            # So letters of Latin and Cyrillic begin that do not become digits.
            if behind == 0xC3 or behind == 0xD0 or behind == 0xD1:
                continue
        seam = _SEAMS[data[i]]
        if seam == 0:
            continue
        if seam == _WIDE:  # a hyphen that is not ASCII, or a wide sign or digit
            if i + 2 < size and _may_be_folded(data[i], data[i + 1], data[i + 2]):
                return None
            continue
        if not _BYTES[data[i - 1]] or not _BYTES[data[i + 1]]:
            continue
        is_link = seam == _LINKING
        width = _chain_at(data, size, i) if is_link else _pair_at(data, size, i)
        if width < 0:
            return None
        if width == 0:
            continue
        if joined is None:
            joined = []
            paired = []
        _extend(joined if is_link else paired, _joined_terms(analysis, data, i, width, otherwise))
    return () if joined is None else joined + paired


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _meet(
    data: cython.pointer[cython.const[cython.uchar]], start: cython.Py_ssize_t
) -> cython.bint:
    """Whether words may meet within ``_AT_ONCE`` bytes, which are asked in vectors."""
    meet: cython.uchar = 0
    i: cython.Py_ssize_t
    for i in range(start, start + _AT_ONCE):
        meet |= _may_meet(data[i - 1], data[i], data[i + 1])
    return meet != 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _may_meet(before: cython.uchar, byte: cython.uchar, behind: cython.uchar) -> cython.uchar:
    """Whether words may meet at a byte, as the loop in ``_otherwise_in`` looks at it."""
    letter: cython.uchar = ((before | 32) - 97) & 0xFF
    digit: cython.uchar = (before - 48) & 0xFF
    next_letter: cython.uchar = ((behind | 32) - 97) & 0xFF
    next_digit: cython.uchar = (behind - 48) & 0xFF
    point: cython.uchar = (byte - 45) & 0xFF  # a hyphen or full stop
    part: cython.uchar = (letter < 26) | (digit < 10) | (before >= 128)
    next_part: cython.uchar = (next_letter < 26) | (next_digit < 10) | (behind >= 128)
    two: cython.uchar = (letter >= 26) | (next_letter >= 26)  # not between two letters
    latin: cython.uchar = (behind == 0xC3) | (behind == 0xD0) | (behind == 0xD1)
    spaced: cython.uchar = (byte == 32) & two & (latin ^ 1)
    linked: cython.uchar = (point < 2) | (byte == 38)
    return ((spaced | linked) & part & next_part) | (byte == 0xE2) | (byte == 0xEF)


@cython.cfunc
def _joined_terms(
    analysis: _Analysis,
    data: cython.pointer[cython.const[cython.uchar]],
    place: cython.Py_ssize_t,
    width: cython.Py_ssize_t,
    otherwise,
):
    """Return the terms of a chain or pair at the place of its first sign, of so many bytes.

    They are remembered by the text, which is no word: there is a sign amid it.
    """
    start: cython.Py_ssize_t = _part_before(data, place)
    terms = terms_at(analysis.known, data, start, start + width)
    if terms is None:
        text = text_of(data, start, start + width)
        word = text.lower() if otherwise.lowercase else text
        if data[place] == _A_SPACE:
            first, _, second = word.partition(" ")
            stopwords = otherwise.stopwords
            word = "" if first in stopwords or second in stopwords else first + second
        else:
            word = word.replace("-", "").replace("&", "").replace(".", "")
        terms = ()
        if word and word not in otherwise.unwanted:
            terms = _stem(analysis, word)
        remember(analysis.known, data, start, start + width, terms)
    return terms


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _may_be_folded(first: cython.int, second: cython.int, third: cython.int) -> cython.bint:
    """Whether three bytes are a hyphen that is not ASCII, or a wide link or digit."""
    if first == 0xE2:
        return second == 0x80 and 0x90 <= third <= 0x91
    return second == 0xBC and (third == 0x86 or (0x8D <= third <= 0x99 and third != 0x8F))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _part_before(
    data: cython.pointer[cython.const[cython.uchar]], place: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return where letters and digits of ASCII begin that end before a place."""
    while place > 0 and _BYTES[data[place - 1]] & _PART:
        place -= 1
    return place


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _kind_before(
    data: cython.pointer[cython.const[cython.uchar]], place: cython.Py_ssize_t
) -> cython.int:
    """Return what the character before a place is: see ``_wide_kind``."""
    if place == 0:
        return 0
    place -= 1
    if data[place] < 128:
        return _BYTES[data[place]]
    while place > 0 and data[place] & 0xC0 == 0x80:
        place -= 1
    return _wide_kind(data, place)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _kind_at(
    data: cython.pointer[cython.const[cython.uchar]],
    size: cython.Py_ssize_t,
    place: cython.Py_ssize_t,
) -> cython.int:
    """Return what the character at a place is: see ``_wide_kind``."""
    if place >= size:
        return 0
    return _BYTES[data[place]] if data[place] < 128 else _wide_kind(data, place)


@cython.cfunc
@cython.exceptval(check=False)
def _wide_kind(
    data: cython.pointer[cython.const[cython.uchar]], place: cython.Py_ssize_t
) -> cython.int:
    """Return what a character is that is not ASCII, as bits of ``_BYTES``.

    ``_ABROAD`` for a letter of Latin, Greek, Cyrillic, Hebrew or Arabic that does not become ASCII;
    ``_APOSTROPHE`` for U+2019; 0 for a space or most signs of punctuation and mathematics;
    ``_UNSURE`` for others.
    """
    first: cython.int = data[place]
    if 0xC5 <= first <= 0xC9 or 0xD0 <= first <= 0xD1:  # letters alone
        return _ABROAD
    second: cython.int = data[place + 1]
    is_sign: cython.bint
    if first == 0xC3:
        return 0 if second == 0x97 or second == 0xB7 else _ABROAD
    if first == 0xE2 and second == 0x80:  # of hyphens and joiners nothing is said
        second = data[place + 2]
        if second == 0x99:
            return _APOSTROPHE
        is_sign = second <= 0x8B or 0x92 <= second <= 0x98 or 0x9A <= second <= 0xA7
        return 0 if is_sign or second >= 0xAF else _UNSURE
    if first == 0xE2:  # currencies, arrows and operators
        is_sign = second == 0x82 and data[place + 2] >= 0xA0
        is_sign |= second == 0x86 and data[place + 2] >= 0x90
        return 0 if is_sign or 0x87 <= second <= 0x8B else _UNSURE
    if first == 0xC2 and second == 0xB5:  # a mu, of units
        return _ABROAD
    if first == 0xC2:  # neither the soft hyphen nor what is a letter or a number
        is_sign = second < 0xAA or 0xAB <= second <= 0xAC or 0xAE <= second <= 0xB1
        is_sign |= second == 0xB4 or 0xB6 <= second <= 0xB8 or second == 0xBB or second == 0xBF
        return 0 if is_sign else _UNSURE
    if first == 0xCE:
        return _ABROAD if second >= 0x91 and second != 0xA2 else _UNSURE
    if first == 0xCF:
        return _ABROAD if second <= 0x8E else _UNSURE
    if first == 0xE1:
        return _ABROAD if 0xB8 <= second <= 0xBB else _UNSURE
    if first == 0xC4:
        return _ABROAD if second != 0xB0 else _UNSURE  # whose lower case is an i and a mark
    if first == 0xD7:
        return _ABROAD if 0x90 <= second <= 0xAA else _UNSURE
    if 0xD8 <= first <= 0xDB:
        point: cython.int = (first & 0x1F) << 6 | (second & 0x3F)
        is_letter: cython.bint = 0x620 <= point <= 0x64A and point != 0x640  # not the tatweel
        return _ABROAD if is_letter or 0x671 <= point <= 0x6D3 else _UNSURE
    return _UNSURE


@cython.cfunc
@cython.exceptval(check=False)
def _folded_kind(
    data: cython.pointer[cython.const[cython.uchar]],
    size: cython.Py_ssize_t,
    place: cython.Py_ssize_t,
) -> cython.int:
    """Return what a character that is not ASCII may be folded to, as bits of ``_BYTES``.

    That is a letter of ASCII for a dotted capital I, the sign of Kelvin and wide letters, a digit
    for wide ones, and either where folding drops the character; 0 for all others.
    """
    first: cython.int = data[place]
    second: cython.int = data[place + 1]
    third: cython.int = data[place + 2] if place + 2 < size else 0
    is_dropped: cython.bint
    if first == 0xC4 and second == 0xB0:
        return 1
    if first == 0xC2 or first == 0xD7 or first == 0xD8:  # soft hyphen, Hebrew and Arabic marks
        is_dropped = first == 0xC2 and second == 0xAD
        is_dropped |= first == 0xD7 and (second == 0xB3 or second == 0xB4)
        return _PART if is_dropped or (first == 0xD8 and second == 0x9C) else 0
    if first == 0xE2:  # joiners, direction marks
        if second == 0x84 and third == 0xAA:
            return 1
        is_dropped = second == 0x80 and 0x8C <= third <= 0x8F
        return _PART if is_dropped or (second == 0x81 and third == 0xA0) else 0
    if first == 0xEF:  # wide forms, the byte order mark
        if second == 0xBC and 0x90 <= third <= 0x99:
            return 2
        if second == 0xBC or second == 0xBD:
            return 1
        return _PART if second == 0xBB else 0
    return 0


@cython.cfunc
@cython.exceptval(check=False)
def _pair_at(
    data: cython.pointer[cython.const[cython.uchar]],
    size: cython.Py_ssize_t,
    place: cython.Py_ssize_t,
) -> cython.int:
    """Return how many bytes a word and a number around a space have together.

    0 if they are not also one word; -1 if that is not known.
    """
    before: cython.int = _BYTES[data[place - 1]]
    behind: cython.int = _BYTES[data[place + 1]]
    start: cython.Py_ssize_t = place
    stop: cython.Py_ssize_t = place + 1
    if before == behind and before != _UNSURE:
        return 0
    if (before | behind) & _UNSURE:  # no letter or digit of ASCII, unless it is folded to one
        if before == _UNSURE:
            start -= 1
            while start > 0 and data[start] & 0xC0 == 0x80:
                start -= 1
            before = _folded_kind(data, size, start)
        if behind == _UNSURE:
            behind = _folded_kind(data, size, stop)
        return -1 if (before & 1 and behind & 2) or (before & 2 and behind & 1) else 0
    while start > 0 and _BYTES[data[start - 1]] == before:
        start -= 1
    while stop < size and _BYTES[data[stop]] == behind:
        stop += 1
    if stop - start - 1 > _LONGEST_PAIR or (behind == 1 and stop - place > 4):
        return 0
    before = _kind_before(data, start)
    if before:
        return -1 if before & (_UNSURE | _APOSTROPHE) else 0
    if start > 1 and data[start - 1] in b"-&.,'":
        before = _kind_before(data, start - 1)
        if before:
            return -1 if before & (_UNSURE | _APOSTROPHE) else 0
    if stop < size and data[stop] in b"+#":
        return 0
    place = stop
    while place < size and data[place] in b"&'.+#-":
        place += 1
    if place < size and data[place] == _A_LINE:
        return 0
    behind = _kind_at(data, size, place)
    if behind:
        return -1 if behind & (_UNSURE | _APOSTROPHE) else 0
    return stop - start


@cython.cfunc
@cython.exceptval(check=False)
def _chain_at(
    data: cython.pointer[cython.const[cython.uchar]],
    size: cython.Py_ssize_t,
    place: cython.Py_ssize_t,
) -> cython.int:
    """Return how many bytes the chain has whose first link is at a place.

    0 if the chain is not also one word, see ``analysis.links``; -1 if that is not known.
    """
    start: cython.Py_ssize_t = _part_before(data, place)
    stop: cython.Py_ssize_t = start
    begun: cython.Py_ssize_t = start  # where the part begins
    links: cython.Py_ssize_t = 0
    points: cython.bint = True
    wide: cython.bint = False
    named: cython.bint = False
    width: cython.Py_ssize_t
    around: cython.int
    if start == place or not _BYTES[data[place + 1]] & _PART:  # beside what is not ASCII
        if start == place and _kind_before(data, place) != _UNSURE:
            return 0
        return -1 if _kind_at(data, size, place + 1) & (_UNSURE | 3) else 0
    if start > 1 and _SEAMS[data[start - 1]] == _LINKING:
        around = _kind_before(data, start - 1)
        if around & (_UNSURE | 3):
            return -1 if around == _UNSURE else 0
    while stop < size:
        if _BYTES[data[stop]] & _PART:
            wide = wide or stop > begun
            named = named or _BYTES[data[stop]] == 1
        elif _SEAMS[data[stop]] == _LINKING and stop + 1 < size and _BYTES[data[stop + 1]] & _PART:
            points = points and data[stop] == _A_POINT
            if data[stop] == _A_POINT and _BYTES[data[stop - 1]] & _BYTES[data[stop + 1]] & 2:
                return 0
            links += 1
            begun = stop + 1
        else:
            break
        stop += 1
    width = stop - start - links
    around = _kind_before(data, start) | _kind_at(data, size, stop)
    if around & _ABROAD:
        return 0
    if around & _UNSURE:
        return -1
    is_open: cython.bint = stop < size and _SEAMS[data[stop]] == _LINKING
    if is_open and _kind_at(data, size, stop + 1) == _UNSURE:
        return -1
    if (points and not wide) or not named or (links > 1 and not points):
        return 0
    if width > (_LONGEST_JOINED if links == 1 else _LONGEST):
        return 0
    if start and (data[start - 1] == _A_LINE or data[start - 1] == 44):
        return 0
    return 0 if stop < size and data[stop] == _A_LINE else stop - start


def analyze_text(text, rules, otherwise=None):
    """Return the terms of a text; see ``Backend.analyze_text``."""
    it: _Words = _words(text)
    analysis: _Analysis = _start(rules)
    former: cython.Py_ssize_t = 0  # where the word before ends
    joins: cython.bint = False
    while _next(it):
        if it.start == former + 1 and former and not joins:
            joins = _may_join(it.data, former)
        former = it.stop
        terms = terms_at(analysis.known, it.data, it.start, it.stop)
        if terms is None:
            word = text_of(it.data, it.start, it.stop)
            terms = _analyze(analysis, word, it.data, it.start, it.stop)
        _append(analysis, terms)
    all_terms: list = _finish(analysis)
    if all_terms and joins and otherwise is not None:
        all_terms.extend(_otherwise_in(analysis, it.data, it.size, otherwise))
    return all_terms


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _may_join(
    data: cython.pointer[cython.const[cython.uchar]], place: cython.Py_ssize_t
) -> cython.bint:
    """Whether what is between two words is a link, or a space beside one digit."""
    before: cython.uchar = (data[place - 1] - 48) & 0xFF
    behind: cython.uchar = (data[place + 1] - 48) & 0xFF
    if data[place] == _A_SPACE:
        return (before < 10) != (behind < 10)
    return _SEAMS[data[place]] == _LINKING


def analyze_words(words, rules, otherwise=None, text=""):
    """Return the terms of words; see ``Backend.analyze_words``."""
    analysis: _Analysis = _start(rules)
    for word in words:
        _append(analysis, _terms_of(analysis, word))
    terms: list = _finish(analysis)
    if terms and otherwise is not None:
        terms.extend(_otherwise_of(analysis, text, otherwise))
    return terms


@cython.cfunc
def _terms_of(analysis: _Analysis, word):
    """Return the terms of a word; ``None``: it is left to Python."""
    size: cython.Py_ssize_t = 0
    if cython.compiled:
        data = utf8_of(word, cython.address(size))
    else:
        data, size = utf8_of(word)
    if size < 0:
        analysis.left.append(word)
        return None
    terms = terms_at(analysis.known, data, 0, size)
    return _analyze(analysis, word, data, 0, size) if terms is None else terms


@cython.cfunc
def _analyze(
    analysis: _Analysis,
    word,
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
):
    """Return the terms of a new word, and remember them; ``None``: it is left to Python."""
    wide: cython.uchar = 0
    place: cython.Py_ssize_t
    terms = None
    for place in range(start, stop):
        wide |= data[place]
    if analysis.stemmer is not None and start < stop:
        if wide < 128:
            terms = _of_plain(analysis, word, _plain_kind(data, start, stop))
            if terms is None and analysis.runs & _POSSESSIVES and word.endswith("'s"):
                terms = _of_possessive(analysis, word, data, start, stop)
        elif data[start] < 0xE0 or word < _FIRST_OF_RUNS:
            terms = _of_letters(analysis, word, data, start, stop)
        elif analysis.runs:
            terms = _of_run(analysis, word)
    if terms is None:
        analysis.left.append(word)
    else:
        remember(analysis.known, data, start, stop, terms)
    return terms


def analyze_texts(texts, utf8, scanned, rules, otherwise):
    """Return the terms of words, and what more texts have; see ``Backend.analyze_texts``."""
    data: cython.const[cython.uchar][::1] = view(utf8.data)
    ends: cython.const[cython.longlong][::1] = view(utf8.ends)
    in_tokens: cython.const[cython.uint][::1] = view(scanned.tokens)
    in_counts: cython.const[cython.uint][::1] = view(scanned.counts)
    place: cython.Py_ssize_t
    number: cython.Py_ssize_t
    total: cython.longlong = 0
    highest: cython.longlong = -1
    for number in range(in_counts.shape[0]):
        total += in_counts[number]
    require(total == in_tokens.shape[0], "counts are not of the tokens")
    for place in range(in_tokens.shape[0]):
        highest = max(highest, in_tokens[place])
    require(highest < len(scanned.entries), "a token is no word")
    looks: cython.bint = otherwise is not None and otherwise.lost == ""
    begin: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    analysis: _Analysis = _start(rules)
    of_words: list = _terms_of_each(scanned, analysis)
    more: dict = {}
    bare: list = []
    place = 0
    for number in range(in_counts.shape[0]):
        stop = place + in_counts[number]
        while place < stop and _is_empty(of_words[in_tokens[place]]):
            place += 1
        if place == stop:
            bare.append(number)
        elif otherwise is not None:
            further = None
            if looks and cython.compiled:  # interpreted, the text is encoded again
                further = _otherwise_in(
                    analysis, cython.address(data[begin]), ends[number] - begin, otherwise
                )
            if further is None:
                further = _otherwise_of(analysis, texts[number], otherwise)
            if further:
                more[number] = further
        place = stop
        begin = ends[number]
    return of_words, more, bare


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def _is_empty(terms) -> cython.bint:
    """Whether these are the terms of a word that has none; -1 after an error."""
    return type(terms) is tuple and len(cython.cast(tuple, terms)) == 0


@cython.cfunc
def _terms_of_each(scanned, analysis: _Analysis) -> list:
    """Return the terms of each word of a scan."""
    pool: cython.const[cython.uchar][::1] = view(scanned.pool)
    entries: cython.const[cython.ulonglong][:, ::1] = view(scanned.entries)
    of_words: list = [None] * entries.shape[0]
    word: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    for word in range(entries.shape[0]):
        start = entries[word, 2]
        stop = start + entries[word, 3]
        data = cython.address(pool[0]) if cython.compiled else pool
        terms = terms_at(analysis.known, data, start, stop)
        if terms is None:
            terms = _analyze(analysis, text_of(data, start, stop), data, start, stop)
            if terms is None:
                analysis.places.append(word)
        of_words[word] = terms
    return _complete(analysis, of_words)


@cython.final
@cython.cclass
class _Analysis:
    """What becomes of words: ``terms`` has those of the words before any is left to Python.

    From the first that is left, ``rest`` has the terms of each word; ``None``, at ``places``, of
    those in ``left``.
    """


@cython.cfunc
def _start(rules) -> _Analysis:
    """Begin with no word, by ``WordRules``."""
    analysis: _Analysis = _Analysis()
    # By name or in order: an index into what is not just a tuple takes ten times as long.
    known, analysis.unwanted, analysis.stemmer, analysis.analyze, analysis.runs, letters = rules
    analysis.known = _shared(known)
    analysis.letters = letters
    analysis.folds = letters is not str
    analysis.stem = None
    analysis.terms = []
    analysis.rest = []
    analysis.left = []
    analysis.places = []
    return analysis


@cython.cfunc
def _shared(known) -> KnownWords:
    """Return what words are remembered in; a ``dict`` is of another backend, and stays as it is."""
    return known if isinstance(known, KnownWords) else KnownWords()


@cython.cfunc
@cython.exceptval(check=False)
def _plain_kind(
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.int:
    """Return as bits what a word consists of, if it is one token as it is; otherwise 0.

    Such a word is of letters and digits, or it is a number with one point.
    """
    place: cython.Py_ssize_t
    byte: cython.int
    kind: cython.int = 0
    if not start < stop <= start + _LONGEST:
        return 0
    for place in range(start, stop):
        byte = data[place]
        if byte == _A_POINT:
            if kind != _HAS_DIGITS:
                return 0
            kind |= _HAS_POINT
        elif byte == _A_LINE or _KINDS[byte] != _IN_WORD:
            return 0
        else:
            kind |= _HAS_LETTERS if byte & 64 else _HAS_DIGITS
    return 0 if kind & _HAS_POINT and kind & _HAS_LETTERS else kind


@cython.cfunc
def _of_plain(analysis: _Analysis, word, kind: cython.int):
    """Return the terms of a plain word; ``None``: it is left to Python."""
    if kind == 0:
        return None
    terms = _of_token(analysis, word, kind & _HAS_LETTERS)
    if kind == _MIXED and analysis.runs & _AS_WRITTEN:
        terms = _both(terms, _asked_parts(analysis, word))
    return terms


@cython.cfunc
def _of_possessive(
    analysis: _Analysis,
    word,
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
):
    """Do the same for a word whose last two signs are dropped: "john's"."""
    kind: cython.int = _plain_kind(data, start, stop - 2)
    # A letter alone may have another term, as that of "o'brien" has.
    if stop - start < 4 or stop - start > _LONGEST or kind & _HAS_POINT:
        return None
    return _of_plain(analysis, word[:-2], kind)


@cython.cfunc
def _asked_parts(analysis: _Analysis, word):
    """Return the terms of letters and of digits, as ``tokens.asked_parts`` splits a word."""
    letters = word.rstrip("0123456789")
    if not letters:
        return ()
    digits = word[len(letters) :]
    if digits:
        if not letters.isalpha():
            return ()
        if len(letters) < _SHORTEST_ASKED:
            return () if len(digits) < _SHORTEST_ASKED else _of_token(analysis, digits, False)
        return _both(_of_token(analysis, letters), _of_token(analysis, digits, False))
    letters = word.lstrip("0123456789")
    if len(letters) < 2 or not letters.isalpha() or letters in ("st", "nd", "rd", "th"):
        return ()
    digits = word[: len(word) - len(letters)]
    return _both(_of_token(analysis, digits, False), _of_token(analysis, letters))


@cython.cfunc
def _both(first, second):
    """Return the terms that two words have: one is a ``str``, others are in a tuple."""
    terms: list = []
    _extend(terms, first)
    _extend(terms, second)
    return terms[0] if len(terms) == 1 else tuple(terms)


@cython.cfunc
def _of_token(analysis: _Analysis, token, stems: cython.bint = True):
    """Return the term of a token, ``()`` if it has none; no stemmer changes those of digits."""
    if token in analysis.unwanted:
        return ()
    if not stems:
        return token
    return _stem(analysis, token)


@cython.cfunc
def _stem(analysis: _Analysis, token):
    if analysis.stem is None:
        analysis.stem = analysis.stemmer()
    return analysis.stem(token) or token


@cython.cfunc
def _of_letters(
    analysis: _Analysis,
    word,
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
):
    """Do as ``_of_plain`` for a word that is not all ASCII."""
    if analysis.letters is None or len(word) > _LONGEST:
        return None
    if _are_parts(data, start, stop):
        return _of_token(analysis, _fold(analysis, word, data, start, stop))
    if word.isalpha() or _are_letters_and_marks(word):
        return _of_token(analysis, analysis.letters(word))
    return None


@cython.cfunc
@cython.exceptval(-1, check=False)
def _are_letters_and_marks(word: str) -> cython.bint:
    """Whether a word of letters also has marks, as vowels of India are, and nothing else."""
    place: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = len(word) if word.isidentifier() else 0
    while place < size and word[place] != "_" and not word[place].isdigit():
        place += 1
    return 0 < place == size


@cython.cfunc
def _fold(
    analysis: _Analysis,
    word,
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
):
    """Return the token of a word of ``_are_parts``, by what each of its letters is folded to."""
    folds: cython.ulonglong[::1] = analysis.known.folds
    changes: cython.bint = False
    place: cython.Py_ssize_t = start
    point: cython.Py_ssize_t
    if not analysis.folds:
        return word
    if stop - start > SHORT:
        return analysis.letters(word)
    while place < stop:
        if data[place] < 128:
            place += 1
            continue
        if data[place] >= 0xE0:
            return analysis.letters(word)
        point = (data[place] & 0x1F) << 6 | (data[place + 1] & 0x3F)
        if folds[point] == 0:
            folds[point] = _fold_of(analysis, point)
        if folds[point] == _UNUSUAL:
            return analysis.letters(word)
        changes = changes or folds[point] != point
        place += 2
    if not changes:
        return word
    return folded_of(data, start, stop, cython.address(folds[0]) if cython.compiled else folds)


@cython.cfunc
def _fold_of(analysis: _Analysis, point: cython.Py_ssize_t):
    """Return what ``KnownWords.folds`` has of a letter; ``_UNUSUAL``: of other length or width."""
    folded = [ord(one) for one in analysis.letters(chr(point))]
    if not 1 <= len(folded) <= 2 or max(folded) > 0xFFFF:
        return _UNUSUAL
    return folded[0] | (folded[1] << 16 if len(folded) > 1 else 0)


@cython.cfunc
@cython.exceptval(check=False)
def _are_parts(
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.bint:
    """Whether a word is surely of letters and digits of ASCII alone, as most are.

    To ask its string takes longer.
    """
    place: cython.Py_ssize_t = start
    while place < stop:
        if data[place] < 128:
            if not _BYTES[data[place]] & _PART:
                return False
            place += 1
        else:
            if _wide_kind(data, place) != _ABROAD:
                return False
            place += 2 if data[place] < 0xE0 else 3
    return True


@cython.cfunc
def _of_run(analysis: _Analysis, word):
    """Do as ``_of_plain`` for a part of a run of a script without spaces, if it is usual."""
    kind: cython.int = 0
    size: cython.Py_ssize_t = len(word)
    i: cython.Py_ssize_t
    if size > _LONGEST:
        return None
    for i in range(size):
        kind |= _kind_of(PyUnicode_ReadChar(word, i) if cython.compiled else ord(word[i]))  # noqa: F821
    first = word[0]
    if kind == _THAI and analysis.runs & _CLUSTERS and first not in _THAI_MARKS:
        return _of_plain(analysis, word, _HAS_LETTERS)
    if not analysis.runs & _PAIRS or kind & (_THAI | _ELSE) or size > 2:
        return None
    if size == 1 or not analysis.runs & _SINGLES or not "\u4e00" <= first <= "\u9fff":
        return _of_plain(analysis, word, _HAS_LETTERS)
    return _both(_of_token(analysis, word), _of_token(analysis, first))


@cython.cfunc
@cython.exceptval(check=False)
def _kind_of(point: cython.uint) -> cython.int:
    """Return which letters a code point is of, those that no normal form or folding changes."""
    if 0x4E00 <= point <= 0x9FFF:
        return _HAN
    if 0x3041 <= point <= 0x3096 or 0x30A1 <= point <= 0x30FA or point == 0x30FC:
        return _KANA
    if 0xAC00 <= point <= 0xD7A3:
        return _HANGUL
    return _THAI if 0x0E01 <= point <= 0x0E3A or 0x0E40 <= point <= 0x0E4E else _ELSE


@cython.cfunc
@cython.inline
def _append(analysis: _Analysis, terms):
    """Add the terms of the next word; ``None``: it is the last one of ``left``."""
    if analysis.left:
        if terms is None:
            analysis.places.append(len(analysis.rest))
        analysis.rest.append(terms)
    else:
        _extend(analysis.terms, terms)


@cython.cfunc
@cython.inline
def _extend(all_terms: list, terms):
    """Add the terms of a word: one is a ``str``, others are in a tuple."""
    several: tuple
    if type(terms) is not tuple:
        all_terms.append(terms)
        return
    several = terms
    for term in several:
        all_terms.append(term)


@cython.cfunc
def _finish(analysis: _Analysis) -> list:
    for terms in _complete(analysis, analysis.rest):
        _extend(analysis.terms, terms)
    return analysis.terms


@cython.cfunc
def _complete(analysis: _Analysis, of_words: list) -> list:
    """Return the terms of words, with those of words that were left to Python."""
    if not analysis.left:
        return of_words
    analyzed: dict = analysis.analyze(list(dict.fromkeys(analysis.left)))
    for place, word in zip(analysis.places, analysis.left, strict=True):
        of_words[place] = analyzed[word]
    return of_words


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def mark_inside(
    source: cython.const[cython.uchar][::1],
    inside: cython.uchar[::1],
    size: cython.Py_ssize_t,
    possessives: cython.bint,
    links: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Mark the signs of ASCII that are inside words, or may be by what is not ASCII beside them.

    Return how many links there are. ``source`` are texts with a gap after each, as ``scan`` has
    them, of ``size`` bytes. ``inside`` takes whether what is before a place is inside a word, but 2
    for a sign; (size + 1,). ``possessives`` leaves "'s" out at the end of a word: a twentieth of
    English words have it, and would be looked at twice. ``links`` takes where "-", "&" and "." are
    that may be links of one word, see ``analysis.links``: the place, times 256, and added to it 0,
    or for one that is a link for certain of how many bytes the part before it is, times 16, and
    that behind it.
    """
    count: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t = 1
    stop: cython.Py_ssize_t = size + 1
    signs: cython.ulonglong
    sign: cython.int
    i: cython.Py_ssize_t
    while place < stop:
        if place + 8 <= stop:
            signs = 0
            for i in range(8):
                signs |= cython.cast(cython.ulonglong, inside[place + i]) << (8 * i)
            signs &= _EIGHT_SIGNS
            if not signs:
                place += 8
                continue
            while not signs & 0xFF:
                signs >>= 8
                place += 1
        if inside[place] == 2:
            sign = source[place - 1]
            if 44 < sign < 47 or sign == 38:
                links[count] = _link(source, place - 1)
                count += links[count] >= 0
            inside[place] = 0
            if sign != 38 and sign != 45:  # which are in no word
                inside[place] = _may_be_inside(source, place - 1)
            if inside[place] and possessives and _is_possessive(source, place - 1):
                inside[place + 1] = 0
                inside[place] = 0
        place += 1
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _link(source: cython.const[cython.uchar][::1], place: cython.Py_ssize_t) -> cython.longlong:
    """Return what ``links`` takes of a sign; -1 if it is no link.

    Most signs are none, because the words beside them are too long.
    """
    first: cython.Py_ssize_t = place
    last: cython.Py_ssize_t = place + 1
    sign: cython.int = source[place]
    before: cython.int
    behind: cython.int
    whole: cython.longlong = cython.cast(cython.longlong, place) << 8
    if place < 1 or not _BYTES[source[place - 1]] or not _BYTES[source[last]]:
        return -1
    if sign == _A_POINT:
        return -1 if 48 <= source[place - 1] <= 57 and 48 <= source[last] <= 57 else whole
    while first > 0 and _BYTES[source[first - 1]] & _PART and place - first <= _LONGEST_JOINED:
        first -= 1
    while _BYTES[source[last]] & _PART and last - 1 - first <= _LONGEST_JOINED:
        last += 1
    if last - 1 - first > _LONGEST_JOINED:
        return -1
    before = source[first - 1] if first else 0
    behind = source[last]
    if before >= 128 or behind >= 128:
        return whole
    if before == _A_LINE or before == 44 or behind == _A_LINE:
        return -1
    if (before == 38 or 45 <= before <= 46) and first > 1 and _BYTES[source[first - 2]]:
        return whole if source[first - 2] >= 128 else -1
    if (behind == 38 or 45 <= behind <= 46) and _BYTES[source[last + 1]]:
        return whole if source[last + 1] >= 128 else -1
    return whole | (place - first) << 4 | (last - 1 - place)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _may_be_inside(
    source: cython.const[cython.uchar][::1], place: cython.Py_ssize_t
) -> cython.bint:
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

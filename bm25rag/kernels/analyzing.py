"""The words of texts in ASCII, signs inside them, and the terms of words."""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.boundary import CLUSTERS, LONGEST_WORD, PAIRS, SINGLES
from bm25rag.kernels.memory import view

_LONGEST = cython.declare(cython.Py_ssize_t, LONGEST_WORD)
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
# What ``_may_be_inside`` reads behind a text.
_GAP = "   "


def _kinds():
    kinds = np.zeros(256, np.uint8)
    kinds[[ord(sign) for sign in "'.,+#"]] = _SIGN
    kinds[[byte for byte in range(128) if chr(byte).isalnum() or byte == ord("_")]] = _IN_WORD
    return kinds


_KINDS = cython.declare(cython.const[cython.uchar][::1], view(_kinds()))


@cython.final
@cython.cclass
class _Words:
    """Finds the words of a text: the last one is from ``start`` to before ``stop``.

    ``source`` is the text with a gap behind it, once a sign is looked at.
    """


@cython.cfunc
def _words(text) -> _Words:
    it: _Words = _Words()
    size: cython.Py_ssize_t = 0
    it.text = text
    if cython.compiled:
        it.data = cython.cast(
            "const unsigned char *",
            PyUnicode_AsUTF8AndSize(text, cython.address(size)),  # noqa: F821 - of the .pxd
        )
    else:
        it.data = text.encode("ascii")
        size = len(it.data)
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


@cython.cfunc
@cython.inline
def _word(it: _Words):
    if cython.compiled:
        return PyUnicode_DecodeUTF8(  # noqa: F821
            cython.cast(cython.p_char, it.data + it.start), it.stop - it.start, "strict"
        )
    return it.data[it.start : it.stop].decode("ascii")


def find_ascii_words(text):
    """Find the words of a text; see ``Backend.find_ascii_words``."""
    it: _Words = _words(text)
    words: list = []
    while _next(it):
        words.append(_word(it))
    return words


def analyze_text(text, known, unwanted, stemmer, analyze, runs, letters):
    """Return the terms of a text; see ``Backend.analyze_text``."""
    it: _Words = _words(text)
    analysis: _Analysis = _start(known, unwanted, stemmer, runs, letters)
    while _next(it):
        word = _word(it)
        terms = analysis.known.get(word)
        if terms is None and _is_plain(it.data, it.start, it.stop):
            terms = _analyze_plain(analysis, word)
        _append(analysis, word, terms)
    return _finish(analysis, analyze)


def analyze_words(words, known, unwanted, stemmer, analyze, runs, letters):
    """Return the terms of words; see ``Backend.analyze_words``."""
    analysis: _Analysis = _start(known, unwanted, stemmer, runs, letters)
    for word in words:
        _append(analysis, word, _terms_of(analysis, word))
    return _finish(analysis, analyze)


@cython.cfunc
def _terms_of(analysis: _Analysis, word):
    """Return the terms of a word; ``None``: it is left to Python."""
    size: cython.Py_ssize_t = 0
    terms = analysis.known.get(word)
    if terms is not None:
        return terms
    if not word.isascii():
        return _analyze_letters(analysis, word)
    if cython.compiled:
        data = cython.cast(
            "const unsigned char *",
            PyUnicode_AsUTF8AndSize(word, cython.address(size)),  # noqa: F821 - of the .pxd
        )
    else:
        data = word.encode("ascii")
        size = len(data)
    return _analyze_plain(analysis, word) if _is_plain(data, 0, size) else None


def analyze_texts(words, tokens, counts, known, unwanted, stemmer, analyze, runs, letters):
    """Return the terms of texts; see ``Backend.analyze_texts``."""
    in_tokens: cython.const[cython.uint][::1] = view(tokens)
    in_counts: cython.const[cython.uint][::1] = view(counts)
    place: cython.Py_ssize_t = 0
    text: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    found: list = _terms_of_each(words, _start(known, unwanted, stemmer, runs, letters), analyze)
    texts: list = []
    own: list
    for text in range(in_counts.shape[0]):
        own = []
        stop = place + in_counts[text]
        while place < stop:
            _extend(own, found[in_tokens[place]])
            place += 1
        texts.append(own)
    return texts


@cython.cfunc
def _terms_of_each(words, analysis: _Analysis, analyze) -> list:
    """Return the terms of each word."""
    found: list = []
    for word in words:
        terms = _terms_of(analysis, word)
        if terms is None:
            analysis.rest.append(word)
            terms = word
        found.append(terms)
    if not analysis.rest:
        return found
    analyzed: dict = analyze(analysis.rest)
    return [analyzed[one] if isinstance(one, str) else one for one in found]


@cython.final
@cython.cclass
class _Analysis:
    """What becomes of words: ``terms``, and from the first that is left to Python on, ``rest``.

    That holds the terms of a word, or a word that is left.
    """


@cython.cfunc
def _start(known, unwanted, stemmer, runs, letters) -> _Analysis:
    analysis: _Analysis = _Analysis()
    analysis.known = known
    analysis.unwanted = unwanted
    analysis.stemmer = stemmer
    analysis.runs = runs
    analysis.letters = letters
    analysis.stem = None
    analysis.terms = []
    analysis.rest = []
    return analysis


@cython.cfunc
@cython.exceptval(check=False)
def _is_plain(
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.bint:
    """Whether a word is of letters and digits, or is a number with points: one token as it is."""
    place: cython.Py_ssize_t
    byte: cython.int
    if not start < stop <= start + _LONGEST:
        return False
    is_number: cython.bint = 48 <= data[start] <= 57
    for place in range(start, stop):
        byte = data[place]
        if byte == _A_POINT:
            if not is_number:
                return False
        elif byte == _A_LINE or _KINDS[byte] != _IN_WORD:
            return False
    return True


@cython.cfunc
def _analyze_plain(analysis: _Analysis, word):
    """Return the terms of a plain word, and remember them; ``None``: it is left to Python."""
    if analysis.stemmer is None:
        return None
    terms = _of_token(analysis, word)
    analysis.known[word] = terms
    return terms


@cython.cfunc
def _of_token(analysis: _Analysis, token):
    if token in analysis.unwanted:
        return ()
    if analysis.stem is None:
        analysis.stem = analysis.stemmer()
    return (analysis.stem(token) or token,)


@cython.cfunc
def _analyze_letters(analysis: _Analysis, word):
    """Do as ``_analyze_plain`` for a word of letters that are not all ASCII."""
    if word >= _FIRST_OF_RUNS:
        return _analyze_run(analysis, word) if analysis.runs else None
    if analysis.letters is None or analysis.stemmer is None or len(word) > LONGEST_WORD:
        return None
    if not word.isalpha():
        return None
    token = word if analysis.letters is str else analysis.letters(word)
    terms = _of_token(analysis, token)
    analysis.known[word] = terms
    return terms


@cython.cfunc
def _analyze_run(analysis: _Analysis, word):
    """Do as ``_analyze_plain`` for a part of a run of a script without spaces, if it is usual."""
    kind: cython.int = 0
    size: cython.Py_ssize_t = len(word)
    i: cython.Py_ssize_t
    if analysis.stemmer is None or not 0 < size <= _LONGEST:
        return None
    for i in range(size):
        kind |= _kind_of(PyUnicode_ReadChar(word, i) if cython.compiled else ord(word[i]))  # noqa: F821
    first = word[0]
    if kind == _THAI and analysis.runs & _CLUSTERS and first not in _THAI_MARKS:
        return _analyze_plain(analysis, word)
    if not analysis.runs & _PAIRS or kind & (_THAI | _ELSE) or size > 2:
        return None
    if size == 1 or not analysis.runs & _SINGLES or not "\u4e00" <= first <= "\u9fff":
        return _analyze_plain(analysis, word)
    terms = _of_token(analysis, word) + _of_token(analysis, first)
    analysis.known[word] = terms
    return terms


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
def _append(analysis: _Analysis, word, terms):
    if terms is None:
        analysis.rest.append(word)
    elif analysis.rest:
        analysis.rest.append(terms)
    else:
        _extend(analysis.terms, terms)


@cython.cfunc
@cython.inline
def _extend(all_terms: list, terms: tuple):
    for term in terms:
        all_terms.append(term)


@cython.cfunc
def _finish(analysis: _Analysis, analyze):
    if analysis.rest:
        found: dict = analyze(
            list(dict.fromkeys([word for word in analysis.rest if isinstance(word, str)]))
        )
        for word in analysis.rest:
            _extend(analysis.terms, found[word] if isinstance(word, str) else word)
    return analysis.terms


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
            inside[place] = _may_be_inside(source, place - 1)
            if inside[place] and possessives and _is_possessive(source, place - 1):
                inside[place] = 0
                inside[place + 1] = 0
        place += 1


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

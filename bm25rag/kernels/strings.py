"""The words of texts in ASCII, and the terms of words."""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.boundary import LONGEST_WORD
from bm25rag.kernels.memory import view

if not cython.compiled:
    from bm25rag.kernels.signs import may_be_inside

_LONGEST = cython.declare(cython.Py_ssize_t, LONGEST_WORD)
# What a byte is: part of a word, a sign that may be, or neither.
_IN_WORD = cython.declare(cython.int, 1)
_SIGN = cython.declare(cython.int, 2)
_SPACE = cython.declare(cython.int, 32)
_POINT = cython.declare(cython.int, 46)
_LINE = cython.declare(cython.int, 95)
_GAP = "   "  # what ``may_be_inside`` reads behind a text


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
    place: cython.Py_ssize_t = it.stop
    inside: cython.int = 0
    while place < it.size:
        inside = _is_inside(it, place)
        if inside:
            break
        place += 1
    it.start = place
    while inside > 0:
        place += 1
        inside = _is_inside(it, place) if place < it.size else 0
    it.stop = place
    return -1 if inside < 0 else it.start < place


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def _is_inside(it: _Words, place: cython.Py_ssize_t) -> cython.int:
    """Whether a character is part of a word; -1 after an error."""
    kind: cython.int = _KINDS[it.data[place]]
    if kind == _SIGN:
        return _is_sign_inside(it, place)
    return kind


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_sign_inside(it: _Words, place: cython.Py_ssize_t) -> cython.int:
    if place + 1 == it.size or it.data[place + 1] == _SPACE:
        if it.data[place] != 43 and it.data[place] != 35:  # "c++", "c#"
            return 0
    if it.source.shape[0] == 0:
        it.source = memoryview((it.text + _GAP).encode("ascii"))
    return may_be_inside(it.source, place)


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


def analyze_text(text, known, unwanted, stemmer, analyze):
    """Return the terms of a text; see ``Backend.analyze_text``."""
    it: _Words = _words(text)
    analysis: _Analysis = _start(known, unwanted, stemmer)
    while _next(it):
        word = _word(it)
        terms = analysis.known.get(word)
        if terms is None and _is_plain(it.data, it.start, it.stop):
            terms = _analyze_plain(analysis, word)
        _append(analysis, word, terms)
    return _finish(analysis, analyze)


def analyze_words(words, known, unwanted, stemmer, analyze):
    """Return the terms of words; see ``Backend.analyze_words``."""
    it: _Words
    analysis: _Analysis = _start(known, unwanted, stemmer)
    for word in words:
        terms = analysis.known.get(word)
        if terms is None and word.isascii():
            it = _words(word)
            if _is_plain(it.data, 0, it.size):
                terms = _analyze_plain(analysis, word)
        _append(analysis, word, terms)
    return _finish(analysis, analyze)


@cython.final
@cython.cclass
class _Analysis:
    """What becomes of words: ``terms``, and from the first that is left to Python on, ``rest``.

    That holds the terms of a word, or a word that is left.
    """


@cython.cfunc
def _start(known, unwanted, stemmer) -> _Analysis:
    analysis: _Analysis = _Analysis()
    analysis.known = known
    analysis.unwanted = unwanted
    analysis.stemmer = stemmer
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
        if byte == _POINT:
            if not is_number:
                return False
        elif byte == _LINE or _KINDS[byte] != _IN_WORD:
            return False
    return True


@cython.cfunc
def _analyze_plain(analysis: _Analysis, word):
    """Return the terms of a plain word, and remember them; ``None``: it is left to Python."""
    if analysis.stemmer is None:
        return None
    if word in analysis.unwanted:
        terms = ()
    else:
        if analysis.stem is None:
            analysis.stem = analysis.stemmer()
        terms = (analysis.stem(word) or word,)
    analysis.known[word] = terms
    return terms


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

"""The words of short texts, and their terms."""

from __future__ import annotations

import cython

from bm25rag.kernels.boundary import LONGEST_WORD

_LONGEST = cython.declare(cython.Py_ssize_t, LONGEST_WORD)


def find_plain_words(text):
    """Find the words of a text; see ``Backend.find_plain_words``."""
    size: cython.Py_ssize_t = 0
    if cython.compiled:
        data = PyUnicode_AsUTF8AndSize(text, cython.address(size))  # noqa: F821 - of the .pxd
    else:
        data = text.encode("ascii")
        size = len(data)
    words: list = []
    start: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    byte: cython.int
    for i in range(size + 1):
        byte = data[i] if i < size else 32
        if 97 <= byte <= 122 or 48 <= byte <= 57 or byte == 95 or 65 <= byte <= 90:
            continue
        if byte == 43 or byte == 35:  # "c++", "c#"
            return None
        if (byte == 39 or byte == 44 or byte == 46) and i + 1 < size and data[i + 1] != 32:
            return None  # "don't", "1,000", ".net"
        if start < i:
            if cython.compiled:
                words.append(PyUnicode_DecodeUTF8(data + start, i - start, "strict"))  # noqa: F821
            else:
                words.append(data[start:i].decode("ascii"))
        start = i + 1
    return words


def analyze_words(words, known, unwanted, stems, analyze):
    """Return the terms of words; see ``Backend.analyze_words``."""
    given: list = words
    remembered: dict = known
    all_terms: list = []
    for word in given:
        terms = remembered.get(word)
        if terms is None:
            return _analyze_some(given, remembered, unwanted, stems, analyze)
        all_terms.extend(terms)
    return all_terms


@cython.cfunc
def _analyze_some(given: list, remembered: dict, unwanted, stems, analyze):
    """Do as ``analyze_words`` where some words are new."""
    found: dict = {}
    plain: list = []
    others: list = []
    for word in given:
        if word in found:
            continue
        terms = remembered.get(word)
        if terms is not None:
            found[word] = terms
        elif stems is None or len(word) > _LONGEST or not (word.isascii() and word.isalnum()):
            found[word] = ()
            others.append(word)
        elif word in unwanted:
            found[word] = remembered[word] = ()
        else:
            found[word] = ()
            plain.append(word)
    if plain:
        for word, stem in zip(plain, stems(plain), strict=True):
            found[word] = remembered[word] = (stem,)
    if others:
        found.update(analyze(others))
    all_terms: list = []
    for word in given:
        all_terms.extend(found[word])
    return all_terms

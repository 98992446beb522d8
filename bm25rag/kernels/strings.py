"""Strings: from the UTF-8 of a column to Python's, and the words of short ones."""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import empty, view


@cython.final
@cython.cclass
class _Strings:
    """Where the strings of a column begin, their bytes, and which are checked.

    Offsets are in one of two arrays; the other is empty.
    """

    narrow: cython.const[cython.uint][::1]
    wide: cython.const[cython.ulonglong][::1]
    data: cython.const[cython.uchar][::1]
    checked: cython.const[cython.uchar][::1]


def prepare_strings(strings):
    """Return ``StringArrays`` as ``decode`` takes them."""
    prepared: _Strings = _Strings()
    is_narrow = strings.offsets.itemsize == 4
    prepared.narrow = view(strings.offsets) if is_narrow else empty(0, np.uint32)
    prepared.wide = empty(0, np.uint64) if is_narrow else view(strings.offsets)
    prepared.data = view(strings.data)
    prepared.checked = view(strings.checked)
    return prepared


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


def decode(strings: _Strings, numbers):
    """Decode some strings; see ``Backend.decode``."""
    found: list = []
    number: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    is_narrow: cython.bint = strings.narrow.shape[0] > 0
    count: cython.Py_ssize_t = strings.narrow.shape[0] + strings.wide.shape[0] - 1
    for number in numbers:
        if not 0 <= number < count:
            raise IndexError(number)
        if number < strings.checked.shape[0] and not strings.checked[number]:
            return None
        start = strings.narrow[number] if is_narrow else strings.wide[number]
        stop = strings.narrow[number + 1] if is_narrow else strings.wide[number + 1]
        if not start < stop <= strings.data.shape[0]:
            found.append("")
        elif cython.compiled:
            found.append(PyUnicode_DecodeUTF8(  # noqa: F821 - of the .pxd
                cython.cast(cython.p_char, cython.address(strings.data[start])),
                stop - start, "surrogatepass",
            ))  # fmt: skip
        else:
            found.append(str(strings.data[start:stop], "utf-8", "surrogatepass"))
    return found

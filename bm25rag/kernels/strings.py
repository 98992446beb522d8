"""Strings: from the UTF-8 of a column to Python's."""

from __future__ import annotations

import cython

from bm25rag.kernels.memory import view


@cython.final
@cython.cclass
class _Strings:
    """Where the strings of a column begin, and their bytes."""

    starts: cython.const[cython.ulonglong][::1]
    data: cython.const[cython.uchar][::1]


def prepare_strings(strings):
    """Return ``StringArrays`` as ``decode`` takes them."""
    prepared: _Strings = _Strings()
    prepared.starts = view(strings.offsets)
    prepared.data = view(strings.data)
    return prepared


def decode(strings: _Strings, numbers):
    """Decode some strings; see ``Backend.decode``."""
    found: list = []
    number: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    for number in numbers:
        if not 0 <= number < strings.starts.shape[0] - 1:
            raise IndexError(number)
        start = strings.starts[number]
        stop = strings.starts[number + 1]
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

"""CRC-32, of which a file has one for each of its blocks.

zlib finds it by tables, instructions for it in a quarter to a fifth of the time (see the ``.pxd``).
A processor without them has zlib's.
"""

from __future__ import annotations

import zlib

import cython
import numpy as np

_POLYNOMIAL = np.uint32(0xEDB88320)


def _crc_table():
    """Return what each byte does to a CRC-32, lowest bit first, as zlib has it, uint32 (256,)."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ _POLYNOMIAL, table >> 1).astype(np.uint32)
    return table


if cython.compiled:
    _byte = cython.declare(cython.int)
    _crc = cython.declare(cython.uint)
    for _byte, _crc in enumerate(_crc_table().tolist()):
        of_byte[_byte] = _crc  # noqa: F821 - of the .pxd

# Asked but once: a virtual machine may take 0.1 ms to answer.
IS_FAST = cython.compiled and has_crc()  # noqa: F821
_FAST = cython.declare(cython.bint, IS_FAST)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def crc_after(
    before: cython.uint,
    data: cython.pointer[cython.const[cython.uchar]],
    size: cython.Py_ssize_t,
) -> cython.uint:
    """Return the CRC-32 of bytes that follow others; of many zlib does, unless ``IS_FAST``."""
    if not cython.compiled:
        return zlib.crc32(data[:size], before)
    return ~crc_of(~before, data, size)  # noqa: F821 - of the .pxd


def crc32(data, before: cython.uint = 0):
    """Return the CRC-32 of bytes that follow others; see ``Backend.crc32``."""
    if not _FAST:
        return zlib.crc32(data, before)
    some: cython.const[cython.uchar][::1] = data
    if some.shape[0]:
        with cython.nogil:
            before = crc_after(before, cython.address(some[0]), some.shape[0])
    return before

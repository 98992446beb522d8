"""Types of NumPy arrays, by their elements.

They are what ``numpy.typing.NDArray`` makes of these, without the import of ``numpy.typing``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Float32: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]
Float64: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Int64: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Int32: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
Int16: TypeAlias = np.ndarray[Any, np.dtype[np.int16]]
UInt32: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]
UInt64: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
UInt16: TypeAlias = np.ndarray[Any, np.dtype[np.uint16]]
UInt8: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Unsigned: TypeAlias = np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]
Index: TypeAlias = np.ndarray[Any, np.dtype[np.intp]]
Bool: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


def narrowed(values: Unsigned, *types: type[np.unsignedinteger[Any]]) -> Unsigned:
    """Return values in the first of some types, the last of them their own, that holds them."""
    largest = int(values.max(initial=0))
    fitting = next(one for one in types if largest <= np.iinfo(one).max)
    return values.astype(fitting)


def as_index(values: Array) -> Index:
    """Return places or counts as ``take``, ``repeat``, ``bincount`` and ``reduceat`` take them.

    Where a pointer has 32 bits, as in WebAssembly, NumPy refuses what is wider; elsewhere ``take``
    does this itself. Arrays are to be read and written at no other integers than these: NumPy 2.4
    writes to where there is no memory if it gets none to convert them.
    """
    return values.astype(np.intp, copy=False)

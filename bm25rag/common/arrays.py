"""Types of NumPy arrays, by their elements."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Float32: TypeAlias = npt.NDArray[np.float32]
Float64: TypeAlias = npt.NDArray[np.float64]
Int64: TypeAlias = npt.NDArray[np.int64]
Int16: TypeAlias = npt.NDArray[np.int16]
UInt32: TypeAlias = npt.NDArray[np.uint32]
UInt64: TypeAlias = npt.NDArray[np.uint64]
UInt16: TypeAlias = npt.NDArray[np.uint16]
UInt8: TypeAlias = npt.NDArray[np.uint8]
Unsigned: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]
Bool: TypeAlias = npt.NDArray[np.bool_]


def narrowed(values: Unsigned, *types: type[np.unsignedinteger[Any]]) -> Unsigned:
    """Return values in the first of some types, the last of them their own, that holds them."""
    most = int(values.max(initial=0))
    fitting = next(one for one in types if most <= np.iinfo(one).max)
    return values.astype(fitting)

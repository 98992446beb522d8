"""Arrays that are larger than memory: they come in pieces, and wait on disk meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bm25rag.common.arrays import Array
from bm25rag.forks import importing

# Bytes that are read in one step.
_BYTES = 1 << 20


class Chunks(NamedTuple):
    """An array of one dimension in pieces.

    Parameters
    ----------
    dtype
        The type that the pieces are to be written in.
    count
        The number of elements.
    pieces
        The pieces in order; they can be iterated once.
    """

    dtype: np.dtype[Any]
    count: int
    pieces: Iterable[Array]

    def __len__(self) -> int:
        return self.count

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return self.count * self.dtype.itemsize


class Spool:
    """An array that grows at its end, in a file without a name.

    Parameters
    ----------
    folder
        A folder on the disk that takes it.
    dtype
        The type of the elements.
    """

    def __init__(self, folder: str, dtype: type[np.generic]) -> None:
        with importing:  # only for builds
            from tempfile import TemporaryFile

        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 - it goes with this object
        self._dtype = np.dtype(dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, values: Array) -> None:
        """Add elements; raise ``OSError`` if the disk is full."""
        self._file.write(np.ascontiguousarray(values, self._dtype).reshape(-1).data)
        self._count += values.size

    def chunks(self, dtype: type[np.generic] | None = None) -> Chunks:
        """Return all elements, in another type if one is given."""
        self._file.flush()
        return Chunks(np.dtype(dtype or self._dtype), self._count, self._pieces())

    def _pieces(self) -> Iterator[Array]:
        self._file.seek(0)
        while data := self._file.read(_BYTES):
            yield np.frombuffer(data, self._dtype)

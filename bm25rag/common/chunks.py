"""Arrays that are larger than memory: they come in pieces, and wait on disk meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO, Self

import numpy as np

from bm25rag.common.arrays import Array
from bm25rag.forks import importing

# Bytes that are read in one step.
_BYTES = 1 << 20


class Chunks:
    """An array of one dimension, to be written as ``dtype``, in pieces that come once."""

    def __init__(self, dtype: type[np.generic], count: int, pieces: Iterable[Array] = ()) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._count = count
        self.pieces = pieces

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return self._count * self.dtype.itemsize


class Spools:
    """Arrays that grow on disk, in files of a folder without names, until the block ends."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files = ExitStack()

    def new(self, dtype: type[np.generic]) -> Spool:
        """Return an empty array of elements of one type."""
        with importing:  # only for builds
            from tempfile import TemporaryFile

        return Spool(self._files.enter_context(TemporaryFile(dir=self._folder)), np.dtype(dtype))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()


class Growing:
    """An array that grows at its end, in memory."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype, self._data = np.dtype(dtype), bytearray()

    def __len__(self) -> int:
        return len(self._data) // self._dtype.itemsize

    def append(self, values: Array) -> None:
        """Add elements."""
        self._data += np.ascontiguousarray(values, self._dtype).reshape(-1).view(np.uint8).data

    def chunks(self, dtype: type[np.generic] | None = None) -> Array:
        """Return all elements, in another type if one is given."""
        elements = np.frombuffer(self._data, self._dtype)
        return elements if dtype is None else elements.astype(dtype, copy=False)


class Spool:
    """The same in a file, which is empty."""

    def __init__(self, file: BinaryIO, dtype: np.dtype[Any]) -> None:
        self._file, self._dtype = file, dtype
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
        return Chunks(dtype or self._dtype.type, self._count, self._pieces())

    def _pieces(self) -> Iterator[Array]:
        self._file.seek(0)
        while data := self._file.read(_BYTES):
            yield np.frombuffer(data, self._dtype)

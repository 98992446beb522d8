"""The fields of a segment as arrays, in memory or mapped from a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from bm25rag.columns.column import Column, ColumnBuilder, join, offset_type
from bm25rag.common.arrays import Array, Int64, UInt32
from bm25rag.common.chunks import Growing, Spool
from bm25rag.common.gil import in_blocks
from bm25rag.common.lazy import lazy_property
from bm25rag.common.strings import text_of, utf8
from bm25rag.metadata import kinds
from bm25rag.metadata.field import Field, Path

# Fields that are kept: those with the most values.
MAX_FIELDS = 1000
# With more distinct values, codes take two bytes, or four.
NARROW, MIDDLE = 1 << 8, 1 << 16

Arrays: TypeAlias = dict[str, Array]
# The arrays of fields; there are two columns beside them.
ARRAYS: dict[str, type[np.generic]] = {
    "complete": np.bool_,  # whether every path has its field, (1,)
    "counts": np.uint32,  # how many distinct values of each kind each field has
    "entries": np.uint64,  # how many values each field has
    "documents": np.uint32,  # those that have values, for fields that not all have
    "codes1": np.uint8,  # the codes of the values, by their size in bytes
    "codes2": np.uint16,
    "codes4": np.uint32,
    "numbers": np.uint64,  # the distinct values that are numbers
}


class Fields:
    """The fields of a segment of ``count`` documents; immutable.

    ``arrays`` are ``ARRAYS``, ``paths`` the paths as JSON, in the fields' order, ``strings`` the
    distinct values that are strings.
    """

    def __init__(self, count: int, arrays: Arrays, paths: Column, strings: Column) -> None:
        self.count = count
        self.arrays = arrays
        self.paths = paths
        self.strings = strings

    def __reduce__(self) -> tuple[type[Fields], tuple[object, ...]]:
        self.check_all()
        return Fields, (self.count, self.arrays, self.paths, self.strings)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = sum(array.nbytes for array in self.arrays.values())
        return arrays + self.paths.nbytes + self.strings.nbytes

    @property
    def complete(self) -> bool:
        """Whether every path has its field."""
        _ = self._opened  # which checks the arrays
        return bool(self.arrays["complete"][0])

    def __iter__(self) -> Iterator[Path]:
        return iter(self._opened)

    def get(self, path: Path) -> Field | None:
        """Return the field of a path, or ``None``; its values may not be checked yet."""
        return self._opened.get(path)

    def find(self, path: Path) -> Field | None:
        """Return the field of a path; ``None`` if no document has a value there.

        A ``KeyError`` says that this is unknown: the path has no field, and not every path has one.
        """
        field = self.get(path)
        if field is None and not self.complete:
            raise KeyError(path)
        return field

    def check_all(self) -> None:
        """Check everything that comes from a file; raise ``CorruptIndexError``."""

    @lazy_property
    def _opened(self) -> dict[Path, Field]:
        return self._split()

    def _split(self) -> dict[Path, Field]:
        """Split the arrays into those of each field."""
        used, spans = dict.fromkeys(self.arrays, 0), dict[str, slice]()

        def read(name: str, length: int) -> Array:
            start = used[name]
            used[name] = start + length
            spans[name] = slice(start, start + length)
            return self.arrays[name][spans[name]]

        counts = self.arrays["counts"].reshape(-1, kinds.KINDS).tolist()
        sizes = self.arrays["entries"].tolist()
        opened, first = {}, 0
        for name, distinct, size in zip(self.paths, counts, sizes, strict=True):
            path, starts = self._path_of(bytes(name or b"")), tuple(accumulate(distinct, initial=0))
            spans = {}
            everywhere = size == self.count and path[-1] is not None
            documents = None if everywhere else read("documents", size)
            codes = read(codes_for(starts[-1]), size)
            numbers = read("numbers", starts[kinds.STRING] - starts[kinds.WHOLE])
            opened[path] = Field(documents, codes, starts, numbers, self.strings, first, spans)
            first += starts[-1] - starts[kinds.STRING]
        return opened

    def _path_of(self, name: bytes) -> Path:
        return tuple(json.loads(text_of(name)))


def codes_for(distinct: int) -> str:
    """Return which array holds the codes of a field with so many distinct values."""
    return "codes1" if distinct <= NARROW else "codes2" if distinct <= MIDDLE else "codes4"


class Assembler:
    """Builds the arrays of the fields of ``count`` documents; they are added one after the other.

    ``new`` makes what takes an array: ``Growing``, or ``Spools.new`` for arrays on disk.
    ``complete`` says whether all paths are added.
    """

    def __init__(self, count: int, new: Callable[[type[np.generic]], Growing | Spool]) -> None:
        self._count = count
        self.complete: bool = True
        self._arrays = {name: new(kind) for name, kind in ARRAYS.items()}
        self._paths = ColumnBuilder()
        self._starts, self._data = new(np.int64), new(np.uint8)
        self._starts.append(np.zeros(1))

    def add_values(self, kind: int, values: Any) -> None:
        """Add distinct values of the next field: a sorted array of numbers, or strings."""
        if kind in kinds.NUMBERS:
            self._arrays["numbers"].append(values.view(np.uint64))
        elif kind in kinds.STRINGS:
            for block in in_blocks(values):
                strings = join(block)
                self._starts.append(np.cumsum(strings.lengths).astype(np.int64) + len(self._data))
                self._data.append(np.frombuffer(strings.data, np.uint8))

    def add(
        self,
        path: Path,
        counts: Sequence[int],
        size: int,
        entries: Iterable[tuple[Int64, Int64 | UInt32]],
    ) -> None:
        """Add a field whose distinct values, ``counts`` of each kind, have been added.

        ``entries`` are the documents and codes of its ``size`` values, by document, some at a time.
        """
        arrays = self._arrays
        self._paths.extend(join([utf8(json.dumps(path, ensure_ascii=False))]))
        arrays["counts"].append(np.array(counts))
        arrays["entries"].append(np.array([size]))
        everywhere = size == self._count and path[-1] is not None
        for documents, codes in entries:
            if not everywhere:
                arrays["documents"].append(documents)
            arrays[codes_for(sum(counts))].append(codes)

    def finish(self) -> tuple[dict[str, Any], Column, tuple[Any, Any]]:
        """Return the arrays, the column of paths, and offsets and data of the strings."""
        self._arrays["complete"].append(np.array([self.complete]))
        arrays = {name: taken.chunks() for name, taken in self._arrays.items()}
        offsets = self._starts.chunks(offset_type(len(self._data)))
        return arrays, self._paths.finish(), (offsets, self._data.chunks())

    def fields(self) -> Fields:
        """Return the fields, if the arrays are in memory; the assembler is used up."""
        arrays, paths, (offsets, data) = self.finish()
        strings = Column(offsets, data, np.empty(0, np.bool_), len(offsets) - 1)
        return Fields(self._count, arrays, paths, strings)

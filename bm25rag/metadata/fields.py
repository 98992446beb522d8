"""The fields of a segment as arrays, in memory or mapped from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bm25rag.columns.column import Column, ColumnBuilder, Guard, join
from bm25rag.common.arrays import Int64
from bm25rag.common.gil import BLOCK, in_blocks
from bm25rag.common.strings import text_of, utf8
from bm25rag.errors import CorruptIndexError
from bm25rag.metadata.field import (
    DATE,
    FLAGS,
    KINDS,
    LAST_DAY,
    NUMBERS,
    STRING,
    STRINGS,
    WHOLE,
    Field,
    Path,
)

# Fields that are kept; of more, those with the most values.
MOST_FIELDS = 1000
# More distinct values take codes of two bytes, of four.
NARROW, MIDDLE = 1 << 8, 1 << 16

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
# What fields are made of beside two columns.
ARRAYS: dict[str, type[np.generic]] = {
    "complete": np.bool_,
    "counts": np.uint32,
    "entries": np.uint64,
    "documents": np.uint32,
    "codes1": np.uint8,
    "codes2": np.uint16,
    "codes4": np.uint32,
    "numbers": np.uint64,
}


class Fields:
    """The fields of a segment; immutable.

    Parameters
    ----------
    count
        The number of documents.
    arrays
        ``complete``, bool (1,): whether every path has its field;
        ``counts``, uint32: how many distinct values of each kind each field has;
        ``entries``, uint64: how many values each field has;
        ``documents``, uint32: those of the fields that not every document has;
        ``codes1``, ``codes2``, ``codes4``: the codes of the fields, by bytes;
        ``numbers``, uint64: the distinct values that are numbers.
    paths
        The paths as JSON, in the fields' order.
    strings
        The distinct values that are strings.
    guard
        Who checks the arrays before their first use, as ``fields.counts`` and so on.
    """

    def __init__(
        self,
        count: int,
        arrays: Arrays,
        paths: Column,
        strings: Column,
        guard: Guard | None = None,
    ) -> None:
        self.count, self.arrays, self.paths, self.strings = count, arrays, paths, strings
        self._guard = guard
        self._opened: dict[Path, Field] | None = None

    def __reduce__(self) -> tuple[type[Fields], tuple[object, ...]]:
        self.check_all()
        return Fields, (self.count, self.arrays, self.paths, self.strings)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        own = sum(array.nbytes for array in self.arrays.values())
        return own + self.paths.nbytes + self.strings.nbytes

    @property
    def complete(self) -> bool:
        """Whether every path has its field."""
        self._open()
        return bool(self.arrays["complete"][0])

    def __iter__(self) -> Iterator[Path]:
        return iter(self._open())

    def get(self, path: Path) -> Field | None:
        """Return the field of a path, if it has one; its values may not be checked yet."""
        return self._open().get(path)

    def find(self, path: Path) -> Field | None:
        """Return the field of a path; ``None`` if no document has a value there.

        Raises
        ------
        KeyError
            If that is not known, because not every path has its field.
        CorruptIndexError
            If the fields are read from a file that is damaged.
        """
        field, guard = self._open().get(path), self._guard
        if field is None and not self.complete:
            raise KeyError(path)
        if field is not None and field.spans and guard is not None:
            _check(field, path, self.count, guard)
            field.spans = []
        return field

    def check_all(self) -> None:
        """Check everything that a guard has not yet passed, and what a merge relies on."""
        guard = self._guard
        if guard is None:
            return
        for path in self:
            field = self.find(path)
            if field and not all(field.strings_of(kind).ascend() for kind in STRINGS):
                raise guard.reject("fields.strings", "does not ascend")
        self.paths.check_all()
        self.strings.check_all()
        self._guard = None

    def _open(self) -> dict[Path, Field]:
        if self._opened is None:
            guard = self._guard
            if guard is not None:
                for name in ("complete", "counts", "entries"):
                    guard.check(f"fields.{name}", 0, len(self.arrays[name]))
                if self.arrays["complete"].view(np.uint8)[0] > 1:
                    raise guard.reject("fields.complete", "is no bool")
            self._opened = _cut(self, guard)
        return self._opened


class _Cutter:
    """Cuts the arrays of all fields into those of each, one field after the other."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self.used = dict.fromkeys(arrays, 0)
        self.spans: list[tuple[str, int, int]] = []

    def cut(self, name: str, length: int) -> npt.NDArray[Any]:
        """Return the next ``length`` elements of an array."""
        start = self.used[name]
        self.used[name] = stop = start + length
        self.spans.append((f"fields.{name}", start, stop))
        return self._arrays[name][start:stop]


def _cut(fields: Fields, guard: Guard | None) -> dict[Path, Field]:
    """Cut the arrays into fields, which use them up."""
    names = ("documents", "codes1", "codes2", "codes4", "numbers")
    cutter = _Cutter({name: fields.arrays[name] for name in names})
    counts = fields.arrays["counts"].reshape(-1, KINDS).tolist()
    sizes = fields.arrays["entries"].tolist()
    opened, first = {}, 0
    for name, own, size in zip(fields.paths, counts, sizes, strict=True):
        path, starts = _path_of(bytes(name or b""), guard), tuple(accumulate(own, initial=0))
        cutter.spans = []
        opened[path] = Field(
            cutter.cut("documents", size) if size != fields.count or path[-1] is None else None,
            cutter.cut(codes_for(starts[-1]), size),
            starts,
            cutter.cut("numbers", starts[STRING] - starts[WHOLE]),
            fields.strings,
            first,
            cutter.spans,
        )
        first += starts[-1] - starts[STRING]
    ends = {name: len(fields.arrays[name]) for name in names}
    if guard is not None and (
        cutter.used != ends or first != len(fields.strings) or len(opened) != len(counts)
    ):
        raise guard.reject("fields.counts", "does not describe the fields")
    return opened


def codes_for(distinct: int) -> str:
    """Return which array holds the codes of a field of so many values."""
    return "codes1" if distinct <= NARROW else "codes2" if distinct <= MIDDLE else "codes4"


def _path_of(name: bytes, guard: Guard | None) -> Path:
    try:
        path = json.loads(text_of(name))
    except (CorruptIndexError, ValueError, RecursionError):
        path = None
    if guard is not None and not (
        isinstance(path, list)
        and path
        and all(isinstance(key, str) for key in path[:-1])
        and isinstance(path[-1], str | None)
        and path != [None]
    ):
        raise guard.reject("fields.paths", "holds what is no path")
    return tuple(path or ())


def _check(field: Field, path: Path, count: int, guard: Guard) -> None:
    """Check the values of a field that comes from a file."""
    for name, start, stop in field.spans:
        guard.check(name, start, stop)
    if any(field.starts[kind + 1] - field.starts[kind] > 1 for kind in FLAGS):
        raise guard.reject("fields.counts", "has more than one null, false, true or list")
    if len(field.codes) and int(field.codes.max()) >= len(field):
        raise guard.reject("fields.codes", "points beyond the values")
    documents = field.documents
    if documents is not None and len(documents):
        descends = np.less if path[-1] is None else np.less_equal  # a list has many elements
        if np.any(descends(documents[1:], documents[:-1])) or int(documents[-1]) >= count:
            raise guard.reject("fields.documents", "does not ascend within the documents")
    for kind in NUMBERS:
        numbers = field.numbers_of(kind)
        if not np.all(numbers[1:] > numbers[:-1]):
            raise guard.reject("fields.numbers", "does not ascend")
    days = field.numbers_of(DATE)
    if len(days) and not 0 <= int(days[0]) <= int(days[-1]) <= LAST_DAY:
        raise guard.reject("fields.numbers", "has a date that there is not")


class Assembler:
    """Makes fields of one field after the other.

    Parameters
    ----------
    count
        The number of documents.
    complete
        Whether every path comes.
    """

    def __init__(self, count: int, complete: bool = True) -> None:
        self._count, self._complete = count, complete
        self._paths, self._strings = ColumnBuilder(), ColumnBuilder()
        self._arrays: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in ARRAYS}

    def add(
        self,
        path: Path,
        documents: Int64,
        codes: Int64,
        ranked: Sequence[Any],
    ) -> None:
        """Add a field.

        Parameters
        ----------
        path
            Where its values are.
        documents, codes
            The document and the code of each value, by document.
        ranked
            The sorted distinct values of each kind, as ``Field`` holds them.
        """
        arrays, counts = self._arrays, list(map(len, ranked))
        self._paths.extend(join([utf8(json.dumps(path, ensure_ascii=False))]))
        arrays["counts"].append(np.array(counts, np.uint32))
        arrays["entries"].append(np.array([len(codes)], np.uint64))
        if len(codes) != self._count or path[-1] is None:
            arrays["documents"].append(documents.astype(np.uint32))
        name = codes_for(sum(counts))
        arrays[name].append(codes.astype(ARRAYS[name]))
        arrays["numbers"] += [ranked[kind].view(np.uint64) for kind in NUMBERS if counts[kind]]
        for kind in STRINGS:
            if counts[kind]:
                for some in in_blocks(ranked[kind], BLOCK):
                    self._strings.extend(join(some))

    def finish(self) -> Fields:
        """Return the fields; the assembler is used up."""
        self._arrays["complete"].append(np.array([self._complete]))
        arrays = {
            name: np.concatenate([np.empty(0, ARRAYS[name]), *pieces])
            for name, pieces in self._arrays.items()
        }
        return Fields(self._count, arrays, self._paths.finish(), self._strings.finish())

"""Fields of a file, checked before they are used."""

from __future__ import annotations

import json

import numpy as np

from bm25rag.common.strings import text_of
from bm25rag.errors import CorruptIndexError
from bm25rag.metadata import kinds
from bm25rag.metadata.field import DAY, LAST_DAY, Field, Path
from bm25rag.metadata.fields import ARRAYS, Fields
from bm25rag.storage.checked_columns import CheckedColumn
from bm25rag.storage.checksummed_file import ArraysFile


class CheckedFields(Fields):
    """Fields of a file, of which ``paths`` and ``strings`` have been read already."""

    def __init__(
        self, file: ArraysFile, count: int, paths: CheckedColumn, strings: CheckedColumn
    ) -> None:
        lengths = {"complete": 1, "counts": kinds.KINDS * len(paths), "entries": len(paths)}
        self._arrays = {
            name: file.array(f"fields.{name}", np.dtype(kind).str[1:], count=lengths.get(name))
            for name, kind in ARRAYS.items()
        }
        values = {name: array.values for name, array in self._arrays.items()}
        super().__init__(count, values, paths, strings)
        self._file = file
        self._passed: set[Path] = set()
        self._whole = False

    def find(self, path: Path) -> Field | None:
        field = super().find(path)
        if field is not None and not self._whole and path not in self._passed:
            self._check_field(field, path)
            self._passed.add(path)
        return field

    def check_all(self) -> None:
        if self._whole:
            return
        for path in self:
            field = self.find(path)
            if field and not all(field.strings_of(kind).ascend() for kind in kinds.STRINGS):
                raise self._file.reject("fields.strings", "does not ascend")
        self.paths.check_all()
        self.strings.check_all()
        self._whole = True

    def _split(self) -> dict[Path, Field]:
        for name in ("complete", "counts", "entries"):
            self._arrays[name].check(0, len(self._arrays[name]))
        if self.arrays["complete"].view(np.uint8)[0] > 1:
            raise self._arrays["complete"].reject("is not a bool")
        opened = super()._split()
        used = dict.fromkeys(("documents", "codes1", "codes2", "codes4", "numbers"), 0)
        strings = 0
        for field in opened.values():
            used |= {name: span.stop for name, span in field.spans.items()}
            strings += field.starts[-1] - field.starts[kinds.STRING]
        if (
            any(used[name] != len(self.arrays[name]) for name in used)
            or strings != len(self.strings)
            or len(opened) != len(self.paths)
        ):
            raise self._arrays["counts"].reject("does not describe the fields")
        return opened

    def _path_of(self, name: bytes) -> Path:
        try:
            path = json.loads(text_of(name))
        except (CorruptIndexError, ValueError, RecursionError):
            path = None
        if not (
            isinstance(path, list)
            and path
            and all(isinstance(key, str) for key in path[:-1])
            and isinstance(path[-1], str | None)
            and path != [None]
        ):
            raise self._file.reject("fields.paths", "has an entry that is not a path")
        return tuple(path)

    def _check_field(self, field: Field, path: Path) -> None:
        for name, span in field.spans.items():
            self._arrays[name].check(span.start, span.stop)
        if any(field.starts[kind + 1] - field.starts[kind] > 1 for kind in kinds.FLAGS):
            raise self._arrays["counts"].reject("has more than one null, false, true or list")
        if len(field.codes) and int(field.codes.max()) >= len(field):
            raise self._file.reject("fields.codes", "points beyond the values")
        documents = field.documents
        if documents is not None and len(documents):
            descends = np.less if path[-1] is None else np.less_equal  # a list has many elements
            if np.any(descends(documents[1:], documents[:-1])) or int(documents[-1]) >= self.count:
                raise self._arrays["documents"].reject("does not ascend within the documents")
        for kind in kinds.NUMBERS:
            numbers = field.numbers_of(kind)
            if not np.all(numbers[1:] > numbers[:-1]):
                raise self._arrays["numbers"].reject("does not ascend")
        for kind, end in (
            (kinds.DATE, LAST_DAY),
            (kinds.NAIVE, LAST_DAY + DAY - 1),
            (kinds.UTC, LAST_DAY + DAY - 1),
        ):
            dates = field.numbers_of(kind)
            if len(dates) and not 0 <= int(dates[0]) <= int(dates[-1]) <= end:
                raise self._arrays["numbers"].reject("has a date outside the calendar")

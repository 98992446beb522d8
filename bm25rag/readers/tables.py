"""CSV and TSV files with a header, one document per row."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from bm25rag import Document
from bm25rag.readers.lines import decoded_lines, fail, fail_too_large, size_limit
from bm25rag.readers.records import Fields, Records

__all__ = ["read_csv", "read_tsv"]


def read_csv(
    path: Path, fields: Fields | None = None, name: str | None = None
) -> Iterator[Document]:
    """Read a CSV file: a header, then one document per row.

    Parameters
    ----------
    path, fields, name
        As in ``read_jsonl``; fields are columns, and a row without an id gets ``file#line``.
        Cells are strings. If the header has semicolons and no commas, semicolons separate cells.

    Yields
    ------
    Document
        In the order of the file.

    Raises
    ------
    ValueError
        If there is no header, a row has too many cells, quotes are wrong or a column is missing.
    """
    lines = decoded_lines(path)
    header = next(lines, "")
    delimiter = ";" if ";" in header and "," not in header else ","
    return _read_rows(chain([header], lines), delimiter, Records(path, fields or Fields(), name))


def read_tsv(
    path: Path, fields: Fields | None = None, name: str | None = None
) -> Iterator[Document]:
    """Read a TSV file: as ``read_csv``, with tabs between cells, and quotes without meaning."""
    return _read_rows(decoded_lines(path), "\t", Records(path, fields or Fields(), name))


def _read_rows(lines: Iterator[str], delimiter: str, records: Records) -> Iterator[Document]:
    path = records.path
    for line, columns, row in _rows(lines, delimiter, path):
        if len(row) > len(columns):
            fail(path, line, f"{len(row)} cells, but the header has {len(columns)}")
        # A row that is too short lacks the last fields.
        yield records.document(dict(zip(columns, row, strict=False)), line, line)


def _rows(
    lines: Iterator[str], delimiter: str, path: Path
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield each row that is not blank, after its first line's number and the header."""
    counted = _LinesOfRow(lines, path)
    if delimiter == "\t":
        reader = csv.reader(counted, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(counted, delimiter=delimiter, strict=True)
    columns: list[str] = []
    line = 1
    try:
        for row in reader:
            if columns and row:
                yield line, columns, row
            elif row:
                columns = _check_header(row, path, line)
            line = reader.line_num + 1
            counted.begin(line)
    except csv.Error as cause:
        fail(path, line, f"{cause}", cause)
    if not columns:
        fail(path, None, "no header: expected the names of the columns in the first line")


class _LinesOfRow:
    """Lines that become rows, none of which is too large: a quote may never be closed."""

    def __init__(self, lines: Iterator[str], path: Path) -> None:
        self._lines, self._path = lines, path
        self._most = size_limit()
        self.begin(1)

    def begin(self, line: int) -> None:
        """Begin a row at the line with this number."""
        self._first, self._left = line, self._most

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._left -= len(line)
            if self._left < 0:
                fail_too_large(self._path, self._first, "row")
            yield line


def _check_header(columns: list[str], path: Path, line: int) -> list[str]:
    columns = [column.strip() for column in columns]
    twice = sorted(column for column, count in Counter(columns).items() if count > 1)
    if twice:
        fail(path, line, f"the header has {twice[0]!r} twice")
    return columns

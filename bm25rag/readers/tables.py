"""CSV and TSV files with a header, one document per row."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from bm25rag.readers.decoding import decoded_lines, or_raise
from bm25rag.readers.lines import fail, located, size_limit, too_large
from bm25rag.readers.records import Record, Records, record_reader

# Characters of a row that can be read again, and of all such rows of a file.
_MOST_HELD, _MOST_AGAIN = 16 << 20, 256 << 20


@record_reader
def read_csv(records: Records) -> Iterator[Record]:
    """Read a CSV file: a header, then one document per row; see ``RecordReader``.

    Cells are strings, separated by whichever of comma, semicolon and tab the header has most of. A
    row without an id gets ``file#line``.
    """
    lines = decoded_lines(records.path, records.tolerance)
    begin = []
    header: str | ValueError = "\n"
    while isinstance(header, str) and header.isspace():  # blank lines may be above it
        begin.append(header := next(lines, ""))
    delimiter = max(",;\t", key=header.count) if isinstance(header, str) else ","
    return _rows(chain(begin, lines), {"delimiter": delimiter}, records.path)


@record_reader
def read_tsv(records: Records) -> Iterator[Record]:
    """Read a TSV file: as ``read_csv``, with tabs between cells, and quotes without meaning."""
    options = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    return _rows(decoded_lines(records.path, records.tolerance), options, records.path)


def _rows(
    lines: Iterator[str | ValueError], options: dict[str, Any], path: Path
) -> Iterator[Record]:
    """Yield each row that is not blank, with its first line's number."""
    columns: list[str] = []
    for line, row in _cells(lines, options, path):
        if not columns:
            columns = _check_header(or_raise(row), path, line)
        elif isinstance(row, ValueError):
            yield line, line, row
        elif len(row) > len(columns):
            wrong = f"{len(row)} cells, but the header has {len(columns)}"
            yield line, line, located(path, line, wrong)
        else:  # a row that is too short lacks the last fields
            yield line, line, dict(zip(columns, row, strict=False))
    if not columns:
        fail(path, None, "no header: expected the names of the columns in the first line")


def _cells(
    lines: Iterator[str | ValueError], options: dict[str, Any], path: Path
) -> Iterator[tuple[int, list[str] | ValueError]]:
    """Yield each row that is not blank with its first line's number, or what is wrong there.

    A quote that is never closed would take the rest of the file with it: after an error, reading
    goes on in the line below that where the row began.
    """
    back = _Lookback(lines, path)
    reader = csv.reader(back, strict=True, **options)
    while True:
        line = back.begin()
        try:
            row = next(reader)
        except StopIteration:
            return
        except (csv.Error, ValueError) as error:
            wrong = error if isinstance(error, ValueError) else located(path, line, str(error))
            yield line, back.refused[0] if back.refused else wrong
            back.go_back()
            reader = csv.reader(back, strict=True, **options)
        else:
            for refused in back.refused:
                yield line, refused
            if row and not back.refused:
                yield line, row


class _Lookback:
    """Lines of which those since a row began can be read again; no row may be too large.

    In place of a line that cannot be read there is a blank one, so that quotes around it are
    closed where they should be; ``refused`` says what is wrong with those of the row.
    """

    def __init__(self, lines: Iterator[str | ValueError], path: Path) -> None:
        self._lines, self._path, self._limit = lines, path, size_limit()
        self._again: list[str | ValueError] = []  # the next one last
        self._row: list[str | ValueError] = []
        self._read, self._held, self._reread = 0, 0, 0
        self.refused: list[ValueError] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.pop() if self._again else next(self._lines)
        self._read += 1
        text = line if isinstance(line, str) else "\n"
        self._held += len(text)
        if self._held > self._limit:
            raise too_large(self._path, self._first, "row")
        if self._held <= _MOST_HELD:
            self._row.append(line)
        if isinstance(line, ValueError):
            self.refused.append(line)
        return text

    def begin(self) -> int:
        """Begin a row, and return the number of its first line."""
        self._row, self._held, self._first = [], 0, self._read + 1
        self.refused = []
        return self._first

    def go_back(self) -> None:
        """Read again what came after the first line of the row; nothing if that is too much."""
        self._reread += self._held
        if self._held <= _MOST_HELD and self._reread <= _MOST_AGAIN:
            told = self.refused[:1]
            self._again += ["\n" if line in told else line for line in reversed(self._row[1:])]
            self._read -= len(self._row) - 1


def _check_header(columns: list[str], path: Path, line: int) -> list[str]:
    columns = [column.strip() for column in columns]
    twice = sorted(column for column, count in Counter(columns).items() if count > 1)
    if twice:
        fail(path, line, f"the header has {twice[0]!r} twice")
    return columns

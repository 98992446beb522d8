"""Parquet and Arrow files, with pyarrow.

pyarrow is the reference implementation of both formats, Apache-licensed, and has wheels for every
Python that we support.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any

from bm25rag.common.optional import load
from bm25rag.readers.lines import PACKED, OtherContentError, fail, open_bytes
from bm25rag.readers.records import ID_FIELDS, Record, Records, record_reader

# Rows that are Python objects at once: half a megabyte of passages.
_ROWS = 1024
# How the file format and the stream format begin. Other files are called ".arrows" too.
_BEGINNINGS = (b"ARROW1", b"\xff\xff\xff\xff")
# Bytes of a column that are read at once; pyarrow's default is all of a row group.
_BUFFER = 1 << 20


@record_reader
def read_parquet(records: Records) -> Iterator[Record]:
    """Read a Parquet file, a megabyte of each column at a time; see ``RecordReader``.

    Structs and maps become dicts, dictionaries their values, timestamps datetimes in microseconds,
    and decimals ``Decimal``, which an index stores as a string. A row without an id gets
    ``file#1``, ``file#2``, ... Columns that are not asked for are not read. A ``ValueError`` names
    the column, or the row group: one that is damaged or missing, exists twice, or has a type that
    metadata cannot hold (binary, times, durations).
    """
    _require_pyarrow()
    from pyarrow.parquet import ParquetFile

    path = records.path
    if not _is_plain(path):
        fail(path, None, "Parquet files are read from their end: unpack it, and give the file")
    with open_bytes(path) as stream:
        with _reading(path, "Parquet"):
            file = ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False)
        columns = _columns(file.schema_arrow, records)
        yield from _rows(_of_row_groups(file, columns, path), columns, path)


@record_reader
def read_arrow(records: Records) -> Iterator[Record]:
    """Read an Arrow file, a record batch at a time; as ``read_parquet``.

    Arrow has a file format, which is also Feather's, and a stream format, which is that of
    Hugging Face's datasets. Packed files and standard input must have the latter. A stream that
    ends between two batches cannot be told from a complete one.
    """
    _require_pyarrow()
    from pyarrow.ipc import open_file, open_stream

    path = records.path
    with open_bytes(path) as stream:
        head = b""
        if _is_plain(path):
            head = stream.read(6)
            stream.seek(0)
        if head.startswith(b"FEA1"):
            problem = "the first version of Feather; pyarrow.feather.write_feather writes today's"
            fail(path, None, problem)
        if path.suffix == ".arrows" and not head.startswith(_BEGINNINGS):
            raise OtherContentError(f"{path}: not an Arrow file, by how it begins")
        with _reading(path, "Arrow"):
            if head == b"ARROW1":
                file = open_file(stream)
                batches = map(file.get_batch, range(file.num_record_batches))
            else:
                file = batches = open_stream(stream)
        columns = _columns(file.schema, records)
        yield from _rows(_of_arrow(batches, columns, path), columns, path)


def _require_pyarrow() -> None:
    load("pyarrow", "Parquet and Arrow need pyarrow", "arrow")


def _is_plain(path: Path) -> bool:
    return str(path) != "-" and path.suffix.lower() not in PACKED


@contextmanager
def _reading(path: Path, kind: str, part: str | None = None) -> Iterator[None]:
    """Name the file, and the part of it, in what pyarrow raises."""
    from pyarrow import ArrowException

    try:
        yield
    except (OSError, ArrowException) as cause:
        if isinstance(cause, OSError) and cause.errno is not None:
            raise  # of the system, not of the contents
        problem = f"not a complete {kind} file ({cause})"
        if kind == "Arrow" and not _is_plain(path):
            problem += "; here it must have the stream format"
        fail(path, part, problem, cause)


# --- columns ------------------------------------------------------------------------


def _columns(schema: Any, records: Records) -> list[str]:
    """Return the names of the columns to read, which are all there and can be stored."""
    path, fields = records.path, records.fields
    names: list[str] = schema.names
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        fail(path, None, f"the column {twice[0]!r} is there twice")
    # Whatever is wrong with a row that has every column is wrong with the schema.
    row = {name: None if name == fields.vector else "-" for name in names}
    strings = [name for name in names if _is_string(schema.field(name).type)]
    texts = fields.texts or [name for name in strings if name not in chain(*ID_FIELDS)] or None
    records._replace(fields=fields._replace(texts=texts)).document(row, 0, "schema")
    kept = fields.metadata
    if kept is not None:
        ids = chain(*ID_FIELDS) if fields.id is None else (fields.id,)
        wanted = {*ids, *(texts or ()), *kept, fields.vector}
        names = [name for name in names if name in wanted]
    for name in names:
        refused = _refused(schema.field(name).type)
        if refused is not None and name != fields.vector:  # whose terms may be numbers
            problem = f"column {name!r}: {refused} cannot be text or metadata; cast it, or leave"
            fail(path, None, f"{problem} it out by naming the columns to keep as metadata")
    return names


def _is_string(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any((types.is_string(kind), types.is_large_string(kind), types.is_string_view(kind)))


def _refused(kind: Any) -> Any:
    """Return the type, or that of an inner field, whose values cannot be stored; else None."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _refused(kind.value_type)
    if types.is_map(kind) and not types.is_string(kind.key_type):
        return kind
    for is_refused in (
        *(types.is_binary, types.is_large_binary, types.is_binary_view),
        *(types.is_fixed_size_binary, types.is_time, types.is_duration, types.is_interval),
    ):
        if is_refused(kind):
            return kind
    inner = (_refused(kind.field(number).type) for number in range(kind.num_fields))
    return next(filter(None, inner), None)


# --- rows ---------------------------------------------------------------------------


def _of_row_groups(file: Any, columns: list[str], path: Path) -> Iterator[tuple[str, Any]]:
    """Yield batches of rows, each with the name of its row group."""
    for number in range(file.num_row_groups):
        part = f"row group {number}"
        # The build takes the cores; columns are decoded in no time beside it.
        batches = file.iter_batches(_ROWS, [number], columns, use_threads=False)
        while (batch := _next(batches, path, "Parquet", part)) is not None:
            yield part, batch


def _of_arrow(batches: Iterator[Any], columns: list[str], path: Path) -> Iterator[tuple[str, Any]]:
    """Yield record batches, each with its name.

    pyarrow takes the lengths and offsets of a batch as they are in the file: wrong ones would end
    the process.
    """
    for number in count():
        part = f"record batch {number}"
        if (batch := _next(batches, path, "Arrow", part)) is None:
            return
        batch = batch.select(columns)
        with _reading(path, "Arrow", part):
            batch.validate(full=True)
        yield part, batch


def _next(batches: Iterator[Any], path: Path, kind: str, part: str) -> Any:
    with _reading(path, kind, part):
        return next(batches, None)


def _rows(batches: Iterator[tuple[str, Any]], columns: list[str], path: Path) -> Iterator[Record]:
    number = 0
    for part, batch in batches:
        for start in range(0, batch.num_rows, _ROWS):
            values = [
                _values(batch.column(name).slice(start, _ROWS), path, f"{part}: {name!r}")
                for name in columns
            ]
            for row in zip(*values, strict=True):
                number += 1
                yield number, f"{part}: row {number}", dict(zip(columns, row, strict=True))


def _values(column: Any, path: Path, part: str) -> list[Any]:
    """Return a column as Python values."""
    import pyarrow as pa

    kind = column.type
    try:
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            # With pandas they would be its timestamps, and without an error.
            column = column.cast(pa.timestamp("us", kind.tz), safe=False)
        values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    except (ValueError, ArithmeticError, KeyError) as cause:  # a decimal's scale, too
        fail(path, part, f"not a value that Python has: {cause}", cause)
    return values

"""Parquet and Arrow files to documents."""

from __future__ import annotations

import datetime as dt
import io
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from bm25rag import BM25Index, Document
from bm25rag.errors import MissingDependencyError
from bm25rag.readers import Fields, read_arrow, read_parquet
from support.cases import first
from support.commands import write

Read = Callable[..., Iterator[Document]]
ROWS = [
    {"id": "a", "title": "One", "text": "first", "year": 2020},
    {"id": "b", "title": None, "text": "second", "year": None},
    {"id": "", "title": "Three", "text": "", "year": 2022},
]


def write_parquet(table: pa.Table, name: str, **options: Any) -> Path:
    parquet.write_table(table, name, **options)
    return Path(name)


def write_file(table: pa.Table, name: str, rows: int | None = None) -> Path:
    with ipc.new_file(name, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return Path(name)


def write_stream(table: pa.Table, name: str, rows: int | None = None) -> Path:
    with pa.OSFile(name, "wb") as file, ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return Path(name)


def write_feather(table: pa.Table, name: str, rows: int | None = None) -> Path:
    feather.write_feather(table, name, compression="lz4", chunksize=rows)
    return Path(name)


FORMATS = {
    "parquet": (read_parquet, lambda table, rows: write_parquet(table, "t", row_group_size=rows)),
    "file": (read_arrow, lambda table, rows: write_file(table, "t", rows)),
    "stream": (read_arrow, lambda table, rows: write_stream(table, "t", rows)),
    "feather": (read_arrow, lambda table, rows: write_feather(table, "t", rows)),
}


def test_an_id_in_capitals_is_no_text() -> None:
    path = write_parquet(pa.table({"ID": ["7"], "Text": ["A red boat"]}), "t.parquet")
    for kept in (None, []):
        assert list(read_parquet(path, Fields(metadata=kept))) == [Document("7", "A red boat")]


@pytest.fixture(params=FORMATS)
def read(request: pytest.FixtureRequest) -> Callable[..., list[Document]]:
    """Write a table in some format, ``rows`` in each part, and read it."""
    reader, writer = FORMATS[request.param]

    def run(table: pa.Table, *words: Any, rows: int | None = None, **options: Any) -> Any:
        return list(reader(writer(table, rows), *words, **options))

    return run


@pytest.mark.parametrize("rows", [None, 1, 2])
def test_a_row_is_a_document(read: Any, rows: int | None) -> None:
    assert read(pa.Table.from_pylist(ROWS), rows=rows) == [
        Document("a", "One first", {"year": 2020}),
        Document("b", "second", {"year": None}),
        Document("t#3", "Three", {"year": 2022}),
    ]


def test_fields_are_columns_and_in_a_folder_the_name_begins_the_id(read: Any) -> None:
    table = pa.table({"url": [7], "body": ["x"], "lang": ["en"], "raw": [b"\0"]})
    fields = Fields("url", ("body",), ("lang",))
    assert read(table, fields) == [Document("7", "x", {"lang": "en"})]
    assert read(table, fields, name="d/t")[0].id == "d/t#7"


def test_an_empty_table_has_no_documents(read: Any) -> None:
    assert read(pa.Table.from_pylist(ROWS[:0], pa.schema({"text": pa.string()}))) == []


def test_parts_of_thousands_of_rows_are_read_in_order(read: Any) -> None:
    table = pa.table({"text": [f"number {number}" for number in range(5000)]})
    documents = read(table, rows=3000)
    assert [document.text for document in documents] == table["text"].to_pylist()
    assert documents[-1].id == "t#5000"


def test_values_come_back_from_an_index_as_metadata(read: Any) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    columns: dict[str, tuple[pa.Array, Any]] = {
        "struct": (pa.array([{"a": {"b": [1, None]}}]), {"a": {"b": [1, None]}}),
        "list": (pa.array([["x", "y"]]), ["x", "y"]),
        "map": (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())), {"k": 1}),
        "dictionary": (pa.array(["u"]).dictionary_encode(), "u"),
        "naive": (pa.array([dt.datetime(2024, 1, 1)]), dt.datetime(2024, 1, 1)),
        "zoned": (pa.array([moment], pa.timestamp("s", "Europe/Berlin")), moment),
        "fine": (pa.array([1001], pa.timestamp("ns")), dt.datetime(1970, 1, 1, 0, 0, 0, 1)),
        "day": (pa.array([dt.date(2024, 2, 29)]), dt.date(2024, 2, 29)),
        "decimal": (pa.array([Decimal("1.50")]), "1.50"),
        "bool": (pa.array([True]), True),
        "big": (pa.array([2**64 - 1], pa.uint64()), 2**64 - 1),
        "single": (pa.array([0.5], pa.float32()), 0.5),
        "null": (pa.nulls(1), None),
        "large": (pa.array(["z"], pa.large_string()), "z"),
    }
    arrays = {name: array for name, (array, _) in columns.items()}
    index = BM25Index()
    index.add_documents(read(pa.table({"id": ["1"], "text": ["x"], **arrays})))
    (document,) = index.get(["1"])
    assert document.metadata == {name: value for name, (_, value) in columns.items()}


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (pa.array([b"x"]), "binary"),
        (pa.array([b"x"], pa.binary(1)), "fixed_size_binary[1]"),
        (pa.array([dt.time(1)]), "time64[us]"),
        (pa.array([dt.timedelta(1)]), "duration[us]"),
        (pa.array([[{"image": b"x"}]]), "binary"),
        (pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())), "map<int8, int8"),
    ],
)
def test_a_column_that_cannot_be_stored_is_named_before_anything_is_read(
    read: Any, array: pa.Array, shown: str
) -> None:
    table = pa.table({"text": ["x"], "odd": array})
    complaint = f"^t: column 'odd': {re.escape(shown)}.* cannot be text or metadata; cast it"
    with pytest.raises(ValueError, match=complaint):
        read(table)
    assert read(table, Fields(metadata=()))[0].metadata == {}


@pytest.mark.parametrize(
    ("table", "fields", "complaint"),
    [
        ({"id": ["1"], "size": [5]}, None, "schema: no text field 'title' or 'text'; fields are"),
        ({"text": ["x"]}, Fields(id="url"), "schema: no id field 'url'; fields are ['text']"),
        ({"text": [5]}, None, "row 1: text field 'text': expected a string, got int"),
        ({"text": [None]}, None, "row 1: no text field"),
        ({"id": [1.5], "text": ["x"]}, None, "row 1: id field 'id': expected a string or an"),
    ],
)
def test_a_wrong_row_or_schema_is_named(
    read: Any, table: dict[str, Any], fields: Fields | None, complaint: str
) -> None:
    with pytest.raises(ValueError, match=f"^t: .*{re.escape(complaint)}"):
        read(pa.table(table), fields)


def test_a_value_that_python_has_none_for_is_named_by_column_and_part(read: Any) -> None:
    table = pa.table({"text": ["x", "y"], "at": pa.array([0, 10**13], pa.timestamp("ms"))})
    far = table.set_column(1, "at", pa.array([0, 10**17], pa.timestamp("ms")))
    assert len(read(table, rows=1)) == 2
    with pytest.raises(ValueError, match=r"^t: (row group|record batch) 1: 'at': not a value"):
        read(far, rows=1)


@pytest.mark.parametrize("writer", [write_file, write_stream])
def test_a_decimal_whose_scale_python_cannot_read_is_named(writer: Callable[..., Path]) -> None:
    """Any scale that is in a file is one to pyarrow."""
    kind = pa.decimal128(3, 100)
    value = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes([12, *bytes(15)]))])
    path = writer(pa.table({"text": ["x"], "price": value}), "t")
    with pytest.raises(ValueError, match=r"^t: record batch 0: 'price': not a value that Python"):
        list(read_arrow(path))


def test_a_column_twice_is_an_error(read: Any) -> None:
    table = pa.table([pa.array(["x"]), pa.array(["y"])], names=["text", "text"])
    with pytest.raises(ValueError, match=r"^t: the column 'text' is there twice$"):
        read(table)


# --- files that are not what they seem ------------------------------------------


@pytest.mark.parametrize("content", [b"", b"no", b"id,text\n1,a file of another kind\n" * 9])
@pytest.mark.parametrize(("read", "kind"), [(read_parquet, "Parquet"), (read_arrow, "Arrow")])
def test_another_kind_of_file_is_named(read: Read, kind: str, content: bytes) -> None:
    path = write("t", content)
    with pytest.raises(ValueError, match=f"^t: not a complete {kind} file"):
        list(read(path))


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_cut_off_is_named(name: str) -> None:
    read, writer = FORMATS[name]
    path = writer(pa.table({"text": [f"number {number}" for number in range(3000)]}), 1000)
    whole = path.read_bytes()
    for size in (len(whole) - 20, len(whole) // 2, 20):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"^t: (.*: )?not a complete (Parquet|Arrow) file"):
            list(read(path))


def test_a_damaged_row_group_is_named() -> None:
    table = pa.table({"text": [f"number {number}" for number in range(3000)]})
    path = write_parquet(table, "t", row_group_size=1000, compression="gzip")
    content = bytearray(path.read_bytes())
    start = parquet.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    content[start : start + 500] = bytes(500)
    path.write_bytes(content)
    documents = read_parquet(path)
    assert next(documents).text == "number 0"
    with pytest.raises(ValueError, match=r"^t: row group 1: not a complete Parquet file"):
        list(documents)


def test_the_first_version_of_feather_is_named() -> None:
    with pytest.raises(ValueError, match=r"^t: the first version of Feather"):
        list(read_arrow(write("t", b"FEA1" + bytes(40) + b"FEA1")))


@pytest.mark.parametrize("read", [read_parquet, read_arrow])
def test_the_errors_of_the_system_are_left_as_they_are(read: Read) -> None:
    with pytest.raises(FileNotFoundError):
        list(read(Path("missing")))
    with pytest.raises(IsADirectoryError):
        list(read(Path()))


@pytest.mark.parametrize("read", [read_parquet, read_arrow])
def test_without_pyarrow_the_extra_is_named(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bm25rag\[arrow\]'"):
        list(read(Path("t")))


# --- packed, and from standard input --------------------------------------------


def test_only_a_stream_can_be_read_without_seeking(monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    table = pa.Table.from_pylist(ROWS)
    stream, file = write_stream(table, "s"), write_file(table, "f")
    write("s.gz", gzip.compress(stream.read_bytes()))
    assert len(list(read_arrow(Path("s.gz")))) == 3
    write("f.gz", gzip.compress(file.read_bytes()))
    with pytest.raises(ValueError, match="here it must have the stream format"):
        list(read_arrow(Path("f.gz")))
    with pytest.raises(ValueError, match="read from their end: unpack it"):
        list(read_parquet(Path("f.gz")))
    stdin = io.TextIOWrapper(io.BytesIO(stream.read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert [document.id for document in read_arrow(Path("-"))] == ["a", "b", "<stdin>#3"]


# --- memory ---------------------------------------------------------------------


@pytest.mark.untraced
@pytest.mark.parametrize("name", first(1, FORMATS))
def test_the_first_document_comes_before_the_file_is_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of columns that do not compress."""
    import numpy as np

    numbers = np.random.default_rng(1).integers(0, 2**63, (4, 50_000)).astype(str).tolist()
    table = pa.table({"text": numbers[0], "a": numbers[1], "b": numbers[2], "c": numbers[3]})
    read, writer = FORMATS[name]
    path = writer(table, 2000)
    del table
    bytes_read, before = 0, pa.total_allocated_bytes()

    class Counted(io.FileIO):
        def readinto(self, buffer: Any) -> int | None:
            nonlocal bytes_read
            count = super().readinto(buffer)
            bytes_read += count or 0
            return count

    monkeypatch.setattr(Path, "open", lambda self, mode: io.BufferedReader(Counted(self)))
    documents = read(path)
    assert next(documents).text == numbers[0][0]
    assert bytes_read < path.stat().st_size / 4
    held = [pa.total_allocated_bytes() - before for document in documents]
    assert len(held) == 49_999
    assert max(held) < path.stat().st_size / 2


def test_columns_that_nobody_asks_for_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_parquet(pa.table({"text": ["x"] * 9, "raw": [bytes(9)] * 9}), "t")
    content = bytearray(path.read_bytes())
    start = parquet.ParquetFile(path).metadata.row_group(0).column(1).dictionary_page_offset
    content[start : start + 10] = b"\xff" * 10
    path.write_bytes(content)
    assert len(list(read_parquet(path, Fields(metadata=())))) == 9


@pytest.mark.parametrize("writer", [write_file, write_stream])
def test_a_damaged_record_batch_is_named(writer: Callable[..., Path]) -> None:
    """By pyarrow, a text that ends beyond its buffer is read from what is in memory there."""
    path = writer(pa.table({"text": ["first one", "other one"], "n": [1, 2]}), "t", 1)
    content = path.read_bytes()
    damaged = content.replace(b"\x09\x00\x00\x00other one", b"\x0a\x00\x00\x00other one")
    assert damaged != content
    path.write_bytes(damaged)
    documents = read_arrow(path)
    assert next(documents).text == "first one"
    with pytest.raises(ValueError, match=r"^t: record batch 1: not a complete Arrow file"):
        next(documents)

"""What the command line reads, what it skips, and what it says about that."""

from __future__ import annotations

import gc
import gzip
import io
import os
import re
import sys
from datetime import datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from bm25rag import BM25Index, Document
from bm25rag.cli.app import commands
from bm25rag.cli.sources import Sources
from support.commands import fails, ids, indexes, ok, run, write

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PAGE = "<html><body><h1>Page</h1><p>words</p></body></html>"


# --- kinds ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", "id,text\n7,x\n", ["7"]),
        ("a.csv.gz", gzip.compress(b"id,text\n7,x\n", mtime=0), ["7"]),
        ("a.tsv", "id\ttext\n7\tx\n", ["7"]),
        ("a.json", '[{"id": 7, "text": "x"}, {"text": "y"}]', ["7", "a.json#2"]),
        ("a.html", PAGE, ["a.html#1"]),
        ("A.HTM", PAGE, ["A.HTM#1"]),
        ("a.ndjson", '{"id": 7, "text": "x"}\n', ["7"]),
        ("a.md", "# One\n\ntext\n\n# Two\n", ["a.md"]),
        ("a.log", "text", ["a.log"]),
    ],
)
def test_a_file_is_read_as_its_name_says(
    name: str, content: str | bytes, expected: list[str]
) -> None:
    write(name, content)
    indexes(0, expected, name)


@pytest.mark.parametrize(
    ("format_", "content", "expected"),
    [
        ("csv", "id,text\n7,x\n", ["7"]),
        ("tsv", "id\ttext\n7\tx\n", ["7"]),
        ("json", '[{"id": 7, "text": "x"}]', ["7"]),
        ("html", PAGE, ["data#1"]),
        ("text", "x", ["data"]),
        ("lines", "x\n\ny\n", ["data#1", "data#3"]),
    ],
)
def test_a_format_says_it_where_the_name_does_not(
    format_: str, content: str, expected: list[str]
) -> None:
    write("data", content)
    indexes(0, expected, "data", "--format", format_)
    ok("index", "-", "-o", "piped", "--format", format_, input=content)
    assert ids("piped") == [id.replace("data", "<stdin>") for id in expected]


def test_columns_are_chosen_by_the_options_of_fields() -> None:
    write("a.csv", "isbn,name,blurb,price,junk\n7,Emma,a novel,5,x\n")
    fields = ["--id-field", "isbn", "--text-field", "name", "--text-field", "blurb"]
    ok("index", "a.csv", "-o", "saved", *fields, "--metadata-field", "price")
    (document,) = BM25Index.open("saved").get(["7"])
    assert (document.text, document.metadata) == ("Emma a novel", {"price": "5"})


def test_a_column_that_is_missing_names_the_option() -> None:
    write("a.csv", "name,blurb\nEmma,a novel\n")
    complaint = "fields are ['blurb', 'name']; --text-field names another"
    fails(3, complaint, "index", "a.csv", "-o", "saved")


def test_a_cell_may_be_an_article() -> None:
    write("a.csv", "id,text\n7," + "word " * 100_000 + "\n")
    indexes(0, ["7"], "a.csv")


def make_folder() -> None:
    write("d/guide.md", "# One\n\ntext\n\n# Two\n\ntext")
    write("d/page.html", PAGE)
    write("d/a.csv", "id,text\n1,x\n")
    write("d/b/a.csv", "id,text\n1,y\n")
    write("d/list.json", '[{"text": "x"}]')
    write("d/more.jsonl.gz", gzip.compress(b'{"id": 1, "text": "x"}', mtime=0))
    write("d/empty.txt", "")


EVERYTHING = [
    *("a.csv#1", "guide.md#1", "guide.md#2", "list.json#1", "more.jsonl.gz#1", "page.html#1"),
    "b/a.csv#1",
]


def test_a_folder_is_read_with_all_that_is_in_it() -> None:
    make_folder()
    indexes(0, EVERYTHING, "d")
    index = BM25Index.open("saved")
    assert [document.metadata["source"] for document in index.get(EVERYTHING)] == [
        id.partition("#")[0] for id in EVERYTHING
    ]


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        ("passages", ["guide.md#1", "guide.md#2", "page.html#1"]),
        ("text", ["empty.txt", "guide.md"]),
        ("csv", ["a.csv#1", "b/a.csv#1"]),
        ("html", ["page.html#1"]),
    ],
)
def test_a_format_chooses_the_files_of_a_folder(format_: str, expected: list[str]) -> None:
    make_folder()
    indexes(0, expected, "d", "--format", format_)


# --- what is left out -----------------------------------------------------------


def test_what_is_left_out_is_reported_with_the_reason() -> None:
    make_folder()
    for name in (".git/x.md", ".env", "node_modules/p/readme.md", "b/node_modules/x.md"):
        write(f"d/{name}", "x")
    for number in range(5):
        write(f"d/{number}.png", b"\x89PNG")
    write("d/package.json", '{"name": "x"}')
    result = indexes(0, EVERYTHING, "d")
    lines = result.stderr.splitlines()
    assert "Left out 2 paths (hidden): .env, .git" in lines
    assert "Left out 2 paths (node_modules): node_modules, b/node_modules" in lines
    assert "Left out 5 paths (not of a kind that is read): 0.png, 1.png, 2.png and 2 more" in lines
    not_array = "expected a JSON array of objects, got dict"
    assert f"Left out 1 path ({not_array}): package.json" in lines
    assert lines[-1].startswith("Indexed 7 documents in ")


@pytest.mark.skipif(os.name == "nt", reason="links need rights there, and there are no pipes")
def test_loops_of_links_and_pipes_do_not_hold_it_up() -> None:
    write("d/a.md", "x")
    Path("d/loop").symlink_to(".")
    os.mkfifo("d/pipe.txt")
    result = indexes(0, ["a.md#1"], "d")
    assert "Left out 1 path (a link to a folder): loop" in result.stderr
    assert "Left out 1 path (not a regular file): pipe.txt" in result.stderr


# --- what cannot be read --------------------------------------------------------

BAD: dict[str, Any] = {
    "binary.md": (b"a\0b", "d/binary.md:1: not a text: there is a NUL byte"),
    "bad.csv": ("id,name\n1,x\n", "d/bad.csv:2: no text field 'title' or 'text'"),
    "bad.json": ("[1]", "d/bad.json: item 1: expected a JSON object, got int"),
    "bad.jsonl": ("{\n", "d/bad.jsonl:1: invalid JSON"),
    "deep.jsonl": ('{"text": "x", "a": ' + "[" * 150 + "]" * 150 + "}", "d/deep.jsonl: "),
    "twice.csv": ("id,text\n1,x\n1,y\n", "d/twice.csv: the id 'twice.csv#1' occurs twice"),
    "twice.jsonl": ('{"id": 1, "text": "x"}\n' * 2, "d/twice.jsonl: the id 'twice.jsonl#1'"),
    "bad.html": (b"<meta charset=utf-8><p>\xff", "d/bad.html: cannot be read as utf-8"),
    "bad.txt.gz": (b"no gzip", "d/bad.txt.gz: not a complete gzip file"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_file_that_cannot_be_read_does_not_end_the_run(name: str) -> None:
    content, complaint = BAD[name]
    write("d/a.txt", "good")
    write(f"d/{name}", content)
    write("d/z.txt", "good too")
    result = run("index", "d", "-o", "saved")
    assert result.exit_code == 4
    assert f"Skipped {complaint}" in result.stderr
    assert ids() == ["a.txt#1", "z.txt#1"]


@pytest.mark.parametrize("name", BAD)
def test_on_error_stop_ends_the_run_and_nothing_is_saved(name: str) -> None:
    content, complaint = BAD[name]
    write("d/a.txt", "good")
    write(f"d/{name}", content)
    fails(3, f"Error: {complaint}", "index", "d", "-o", "saved", "--on-error", "stop")
    assert not Path("saved").exists()


def test_a_file_is_in_the_index_whole_or_not_at_all() -> None:
    """Its first lines were readable."""
    write("d/a.txt", "good")
    write("d/bad.csv.gz", gzip.compress(b"id,text\n1,x\n" * 99, mtime=0)[:-9])
    assert run("index", "d", "-o", "saved").exit_code == 4
    assert ids() == ["a.txt#1"]


@pytest.mark.parametrize(("on_duplicate", "text"), [("skip", "x"), ("replace", "y")])
def test_an_id_twice_in_a_file_is_no_reason_to_skip_it_where_on_duplicate_says_what_to_do(
    on_duplicate: str, text: str
) -> None:
    write("d/a.csv", "id,text\n1,x\n1,y\n")
    ok("index", "d", "-o", "saved", "--on-duplicate", on_duplicate)
    assert BM25Index.open("saved").get(["a.csv#1"])[0].text == text


def test_rows_with_blank_ids_are_named_by_their_lines() -> None:
    write("d/c.csv", "id,text\n,x\n,y\n7,z\n")
    indexes(0, ["c.csv#2", "c.csv#3", "c.csv#7"], "d")


def test_of_several_sources_the_others_are_read_too() -> None:
    """As in: bm25rag index *.txt."""
    write("a.txt", "good")
    write("b.txt", b"a\0b")
    result = indexes(4, ["a.txt"], "a.txt", "b.txt")
    assert "Skipped b.txt:1: not a text" in result.stderr
    write("c.txt", "new")
    write("package.json", "{}")
    assert run("add", "saved", "b.txt", "package.json", "c.txt").exit_code == 4
    assert ids() == ["a.txt", "c.txt"]
    fails(3, "b.txt:1", "add", "saved", "b.txt", "c.txt", "--on-error", "stop")


def test_a_source_that_stands_alone_is_no_part_to_skip() -> None:
    write("a.txt", b"a\0b")
    fails(3, "Error: a.txt:1: not a text", "index", "a.txt", "-o", "saved")
    write("d/a.txt", b"a\0b")
    fails(3, "Error: d: no file could be read; nothing was written", "index", "d", "-o", "saved")
    assert not Path("saved").exists()


def test_a_kind_without_its_extra_is_skipped_in_a_folder_and_an_error_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    write("d/a.txt", "good")
    write("d/page.arrow", "x")
    line = "Parquet and Arrow need pyarrow: pip install 'bm25rag[arrow]'"
    result = indexes(4, ["a.txt#1"], "d")
    assert f"Skipped page.arrow: {line}" in result.stderr
    write("d/other.arrow", "x")
    result = run("index", "d", "-o", "saved", "--force")
    assert f"Skipped 2 files (other.arrow, page.arrow): {line}" in result.stderr
    fails(3, f"Error: {line}", "index", "d/page.arrow", "-o", "alone")


def test_the_exit_code_is_documented() -> None:
    shown = ok("--help").stdout
    assert "4    done, but some files could not be read and were skipped (they are named)" in shown
    for name in ("index", "add", "sync"):
        assert "exit code is 4" in " ".join(ok(name, "--help").stdout.split())
    assert set(commands.commands) >= {"sync"}


# --- tables of Parquet and Arrow, packed files, patterns ------------------------


def write_tables() -> None:
    table = pa.table(
        {"id": ["1", "2"], "text": ["x", "y"], "year": [2020, 2021], "raw": [b"", b""]}
    )
    Path("d").mkdir(exist_ok=True)
    parquet.write_table(table.drop_columns("raw"), "d/b.parquet")
    feather.write_feather(table.drop_columns("raw"), "d/a.feather")
    parquet.write_table(table, "d/raw.parquet")
    write("d/z.csv.zst", zstd.compress(b"id,text\n1,x\n"))


def test_tables_and_packed_files_of_a_folder_are_read() -> None:
    write_tables()
    result = run("index", "d", "-o", "saved")
    assert result.exit_code == 4
    assert "Skipped d/raw.parquet: column 'raw': binary cannot be text or metad" in result.stderr
    assert ids() == ["a.feather#1", "a.feather#2", "b.parquet#1", "b.parquet#2", "z.csv.zst#1"]
    ok("index", "d", "-o", "chosen", "--format", "parquet", "--metadata-field", "year")
    assert ids("chosen") == ["b.parquet#1", "b.parquet#2", "raw.parquet#1", "raw.parquet#2"]
    metadata = {"source": "b.parquet", "year": 2021}
    assert BM25Index.open("chosen").get(["b.parquet#2"])[0].metadata == metadata


def test_a_table_may_come_from_standard_input_as_a_stream() -> None:
    write_tables()
    stream = io.BytesIO()
    with ipc.new_stream(stream, pa.schema({"text": pa.string()})) as writer:
        writer.write_table(pa.table({"text": ["x"]}))
    indexes(0, ["<stdin>#1"], "-", "--format", "arrow", input=stream.getvalue())


def test_sync_leaves_rows_alone_whose_values_are_stored_in_another_form() -> None:
    moment = datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    table = pa.table({"text": ["x"], "price": [Decimal("1.50")], "at": [moment]})
    Path("d").mkdir()
    parquet.write_table(table, "d/a.parquet")
    ok("index", "d", "-o", "saved")
    assert "0 replaced, 1 unchanged" in ok("sync", "d", "saved").stderr


def test_a_pattern_stands_for_all_that_match_in_order() -> None:
    for name in ("d/2.txt", "d/10.txt", "d/1.txt", "d/e/3.txt", "d/.4.txt", "d/5.csv"):
        write(name, "x")
    ok("index", "d/*.txt", "-o", "flat")
    assert ids("flat") == ["1.txt#1", "10.txt#1", "2.txt#1"]
    ok("index", "d/**/[123].txt", "-o", "deep")
    assert ids("deep") == ["1.txt#1", "2.txt#1", "e/3.txt#1"]


def test_a_pattern_without_a_match_is_an_error_and_a_name_with_signs_is_a_name() -> None:
    write("a[1].txt", "x")
    indexes(0, ["a[1].txt"], "a[1].txt")
    fails(3, "Error: d/*.parquet: no file matches", "index", "d/*.parquet", "-o", "other")
    fails(3, "Error: b.txt: No such file or directory", "add", "saved", "b.txt")


def test_of_the_files_of_a_pattern_those_that_cannot_be_read_are_skipped() -> None:
    write_tables()
    result = indexes(4, ["1", "2"], "d/*.parquet")
    assert "Skipped d/raw.parquet: column 'raw'" in result.stderr
    fails(3, "column 'raw'", "index", "d/*.parquet", "-o", "other", "--on-error", "stop")


# --- memory ---------------------------------------------------------------------


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.cli.sources._MOST_HELD", 10)


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("name", sorted(set(BAD) - {"twice.csv", "twice.jsonl"}))
def test_a_large_file_is_read_whole_or_not_at_all_too(name: str) -> None:
    content, complaint = BAD[name]
    write("d/a.csv", "id,text\n1,good\n2,also good\n")
    write(f"d/{name}", content)
    result = indexes(4, ["a.csv#1", "a.csv#2"], "d")
    assert f"Skipped {complaint}" in result.stderr


@pytest.mark.usefixtures("all_large")
def test_an_id_twice_in_a_large_file_is_an_error() -> None:
    """To know all ids would take memory; the index knows them."""
    write("d/a.csv", "id,text\n1,x\n1,y\n")
    fails(3, "'a.csv#1' occurs twice in what was read", "index", "d", "-o", "saved")


@pytest.mark.parametrize("stops", [True, False])
def test_large_files_are_never_held(all_large: None, stops: bool) -> None:
    for name in ("d/a.csv", "d/b.csv"):
        write(name, "text\n" + "a passage\n" * 100)
    options = {"format_": "auto", "on_error": "stop" if stops else "skip"}
    fields = {"id_field": None, "text_fields": ("text",), "metadata_fields": ()}
    options |= {"passage_size": 1000, "vector_field": None}
    gc.collect()
    before = _held()
    for _ in islice(Sources([Path("d")], options | fields, Path("saved")), 50, 60):
        assert _held() - before < 5


def _held() -> int:
    return sum(isinstance(thing, Document) for thing in gc.get_objects())


# --- progress -------------------------------------------------------------------


def bar(*arguments: object, input: str | None = None) -> str:
    lines = ok("index", *arguments, "-o", "saved", "--force", input=input).stderr
    return [line for line in re.split(r"[\r\n]", lines) if line.startswith("indexing:")][-1]


def test_a_terminal_is_shown_how_much_of_the_files_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    make_folder()
    size = sum(path.stat().st_size for path in Path("d").rglob("*.*"))
    found = bar("d")
    assert "100%" in found
    assert f"{size}/{size} [" in found
    assert found.rstrip().endswith("7 docs]")
    monkeypatch.setattr("bm25rag.cli.sources._MOST_HELD", 50)
    assert "100%" in bar("d", "d/a.csv", "--on-duplicate", "skip")


def test_where_the_size_is_not_known_documents_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert bar("-", input='{"text": "x"}\n' * 3).startswith("indexing: 3 docs [")

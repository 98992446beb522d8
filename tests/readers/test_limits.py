"""What a file may take: nothing that is held in memory at once is without a limit."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bm25rag.readers import (
    KINDS,
    Fields,
    Note,
    Tolerance,
    read_arrow,
    read_csv,
    read_file,
    read_html,
    read_json,
    read_jsonl,
    read_lines,
    read_parquet,
    read_passages,
    read_pdf,
    read_text,
    read_tsv,
    size_limit,
)
from bm25rag.readers.decoding import _raw_lines
from support.cases import first
from support.commands import fails, ok, run, write
from support.timing import takes_linear_time


@pytest.fixture
def limit() -> Iterator[int]:
    before = size_limit(10_000)
    yield 10_000
    size_limit(before)


TOO_LARGE = [
    (read_text, "a.txt", "x" * 10_001, "a file, which is read whole,"),
    (read_passages, "a.md", "x\n" * 5_001, "a file, which is read whole,"),
    (read_html, "a.html", "<p>" * 5_000, "a file, which is read whole,"),
    (read_json, "a.json", "[" + " " * 10_000 + "]", "a file, which is read whole,"),
    (read_jsonl, "a.jsonl", '{"text": "%s"}' % ("x" * 10_000), "a line"),
    (read_lines, "a.txt", "\n" + "x" * 10_001, "a line"),
    (read_tsv, "a.tsv", "text\n" + "x" * 10_001, "a line"),
    (read_csv, "a.csv", 'text\nx\n"' + "x\n" * 10_000, "a row"),
]


@pytest.mark.parametrize(("read", "name", "content", "what"), TOO_LARGE)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_what_is_too_large_is_named_with_the_option_that_allows_it(
    limit: int,
    read: Callable[[Path], Iterator[Any]],
    name: str,
    content: str,
    what: str,
    packed: bool,
) -> None:
    path = write(name + ".gz" * packed, gzip.compress(content.encode()) if packed else content)
    with pytest.raises(ValueError, match=rf"^{path.name}.*{what} has more .* by --max-size"):
        list(read(path))


LINES = {
    "a.jsonl": (read_jsonl, "{}", '{"text": "red"}', '{"text": "green"}'),
    "a.txt": (read_lines, "{}", "red", "green"),
    "a.tsv": (read_tsv, "text\n{}", "red", "green"),
    "a.csv": (read_csv, "text\n{}", "red", "green"),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize(
    ("bad", "encoding", "problem"),
    [
        (b"y" * 25_000, None, "a line has more than 10,000 bytes"),
        (b"\x01\xff", None, "not a text, by its control characters"),
        (b"\xff", "utf-8", "not UTF-8 text: byte 0xff"),
    ],
    ids=["large", "control", "encoding"],
)
def test_a_line_that_cannot_be_read_is_refused_alone(
    limit: int, name: str, packed: bool, bad: bytes, encoding: str | None, problem: str
) -> None:
    read, form, *good = LINES[name]
    # A head of ordinary text, by which the encoding is told.
    lines = form.format("\n".join([*good[:1] * 500, "BAD", *good[1:], "BAD"])).encode() + b"\n"
    content = lines.replace(b"BAD", bad)
    path = write(name + ".gz" * packed, gzip.compress(content) if packed else content)
    notes: list[Note] = []
    told = Tolerance(encoding, notes.append, lenient=True)
    texts = [one.text for one in read(path, tolerance=told)]
    assert texts == ["red"] * 500 + ["green"]
    numbers = [lines[:at].count(b"\n") + 1 for at in (lines.index(b"BAD"), lines.rindex(b"BAD"))]
    said = [note.text for note in notes if note.kind == "line"]
    assert [one.partition(": ")[0] for one in said] == [f"{path}:{number}" for number in numbers]
    assert all(problem in one for one in said)
    with pytest.raises(ValueError, match=f":{numbers[0]}: "):
        list(read(path, tolerance=told._replace(lenient=False, encoding=encoding or "utf-8")))


def test_a_row_with_a_line_that_cannot_be_read_is_refused_and_quotes_end_where_they_should(
    limit: int,
) -> None:
    rows = [b'1,"red\n\xff\nred"', b"2,green", b'3,"blue', b'\xff"', b"4,pink", b"\xff", b'5,"x']
    path = write("a.csv", b"id,text\n" + b"\n".join(rows) + b"\n" + b"z\n" * 6_000 + b'6",y\n')
    notes: list[Note] = []
    found = list(read_csv(path, tolerance=Tolerance("utf-8", notes.append, lenient=True)))
    assert [(one.id, one.text) for one in found][:2] == [("2", "green"), ("4", "pink")]
    lines = [note.text.partition(": ")[0] for note in notes if note.kind == "line"]
    assert lines[:4] == ["a.csv:3", "a.csv:7", "a.csv:9", "a.csv:10"]


def test_a_file_of_one_line_without_end_is_not_held(limit: int) -> None:
    class Endless:
        """A line of 10 GB."""

        asked, left, ended = 0, 10 << 30, False

        def readline(self, size: int) -> bytes:
            self.asked = max(self.asked, size)
            size = min(size, self.left, 1 << 30)
            self.left -= 1 << 30 if size > limit + 1 else size
            return bytes(size if self.left > 0 else 0)

    endless = Endless()
    (error,) = _raw_lines(endless, Path("a.jsonl"))  # type: ignore[arg-type]
    assert "a line has more than 10,000 bytes" in str(error)
    assert endless.asked <= 1 << 20


def test_records_of_ordinary_size_are_read_however_many_there_are(limit: int) -> None:
    lines = "".join(
        json.dumps({"text": f"{number * 7919} {number}"}) + "\n" for number in range(9_999)
    )
    path = write("a.jsonl.gz", gzip.compress(lines.encode()))
    assert sum(1 for _ in read_jsonl(path)) == 9_999
    rows = "text\n" + "".join(f'"{number * 7919}\n{number}"\n' for number in range(9_999))
    assert sum(1 for _ in read_csv(write("a.csv.gz", gzip.compress(rows.encode())))) == 9_999


@pytest.mark.untraced
@pytest.mark.parametrize("line", first(1, [b"\n", b'{"text":""}\n', b'{"text": "x"}\n']))
def test_a_bomb_of_small_lines_does_not_go_on_for_ever(limit: int, line: bytes) -> None:
    path = write("a.jsonl.gz", gzip.compress(line * 300_000, 9))
    with pytest.raises(ValueError, match=r"^a\.jsonl\.gz: unpacks to more than 200 times its size"):
        for _ in read_jsonl(path):
            pass


def test_in_a_folder_what_is_too_large_is_skipped_and_named() -> None:
    write("d/a.txt", "good")
    write("d/b.txt.gz", gzip.compress(bytes(100_000_000)))
    write("d/c.html", "<p>x" * 500)
    result = run("index", "d", "-o", "saved", "--max-size", "1kB")
    assert result.exit_code == 4
    assert "b.txt.gz: a file, which is read whole, has more than 1,000 bytes" in result.stderr
    assert "Skipped d/c.html: " in result.stderr
    assert "c.html" not in run("index", "d", "-o", "two").stderr
    fails(2, "--max-size must be a size", "index", "d", "-o", "three", "--max-size", "big")
    assert size_limit() == 64 << 20
    ok("index", "d/c.html", "-o", "four")


def test_a_pdf_file_obeys_the_limit(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.readers.pdf.find_spec", lambda name: name)  # not needed for this
    path = write("a.pdf", b"%PDF-1.4\n" + b" " * limit)
    with pytest.raises(
        ValueError, match=r"^a\.pdf: a file, .* more than 10,000 bytes; .* --max-size"
    ):
        list(read_pdf(path))


# What is repeated in files of each kind; what stands before "..." is there once.
HOSTILE = {
    "md": ("x\n\n", "# x\n", "x\n=\n", "```\n", "[", "[x](y) ", "> ", "|x", "x ", "# ... #"),
    "ipynb": ('{"cells": [{"source": ... ["x"], "source": ', '{"cells": [ ... {"source": "# x"}, '),
    "csv": ("text\n ... x\n", 'text\n ... "x\n', 'text\n ... "x"y\n', 'text\n ... """"'),
    "tsv": ("text\n ... x\n", 'text\n ... "x\n', "text\n ... x\ty\n"),
    "jsonl": ("{\n", "[", '{"text": "x"}\n', '{"text": " ... \\u0061'),
}


@pytest.mark.parametrize(
    ("ending", "form"),
    first(1, [(ending, form) for ending, forms in HOSTILE.items() for form in forms]),
)
def test_hostile_files_take_linear_time(ending: str, form: str) -> None:
    once, _, unit = form.rpartition(" ... ")

    def read(size: int) -> None:
        path = write(f"a.{ending}", once + unit * (size // len(unit)))
        tolerance = Tolerance(report=lambda note: None, lenient=True)
        with suppress(ValueError):  # JSON without an end
            for _ in read_file(
                path, KINDS[path.suffix], path.name, True, Fields(), size, tolerance
            ):
                pass

    assert takes_linear_time(read, 50_000)


def test_passages_that_may_be_long_take_linear_time() -> None:
    def read(size: int) -> None:
        path = write("a.md", ("x" * 1_000 + "\n\n") * (size // 1_000))
        assert len(list(read_passages(path, 2 * size))) == 1

    assert takes_linear_time(read, 1_000_000)


@pytest.mark.parametrize("kind", first(1, ["csv", "jsonl", "parquet", "arrow"]))
def test_many_columns_take_linear_time(kind: str) -> None:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    def read(columns: int) -> None:
        names = ["text", *(f"c{number}" for number in range(columns))]
        if kind == "csv":
            list(read_csv(write("a.csv", f"{','.join(names)}\n{'x,' * columns}x\n")))
        elif kind == "jsonl":
            list(read_jsonl(write("a.jsonl", json.dumps(dict.fromkeys(names, "x")))))
        else:
            table = pa.table({name: ["x"] for name in names})
            if kind == "parquet":
                write_table(table, "a.parquet")
                list(read_parquet(Path("a.parquet")))
            else:
                with pa.ipc.new_file("a.arrow", table.schema) as file:
                    file.write_table(table)
                list(read_arrow(Path("a.arrow")))

    assert takes_linear_time(read, 2_000)

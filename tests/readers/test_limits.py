"""What a file may take: nothing that is held in memory at once is without a limit."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bm25rag.readers import (
    read_arrow,
    read_csv,
    read_html,
    read_json,
    read_jsonl,
    read_lines,
    read_parquet,
    read_passages,
    read_text,
    read_tsv,
    size_limit,
)
from support.commands import fails, ok, run, write
from support.timing import takes_linear_time


@pytest.fixture
def limit() -> Iterator[int]:
    """Let nothing be larger than 10,000 bytes."""
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


def test_records_of_ordinary_size_are_read_however_many_there_are(limit: int) -> None:
    lines = "".join(
        json.dumps({"text": f"{number * 7919} {number}"}) + "\n" for number in range(9_999)
    )
    path = write("a.jsonl.gz", gzip.compress(lines.encode()))
    assert sum(1 for _ in read_jsonl(path)) == 9_999
    rows = "text\n" + "".join(f'"{number * 7919}\n{number}"\n' for number in range(9_999))
    assert sum(1 for _ in read_csv(write("a.csv.gz", gzip.compress(rows.encode())))) == 9_999


@pytest.mark.parametrize("line", [b"\n", b'{"text":""}\n', b'{"text": "x"}\n'])
def test_a_bomb_of_small_lines_does_not_go_on_for_ever(limit: int, line: bytes) -> None:
    path = write("a.jsonl.gz", gzip.compress(line * 1_000_000, 9))
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


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
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

"""Nothing in documents, ids, file names or errors can control a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.table import Table
from rich.text import Text

from bm25rag import Analyzer, BM25Index
from bm25rag.cli.app import commands
from bm25rag.cli.terminal import counted, readable, result_console
from bm25rag.common.visible import UNSAFE, one_line, visible
from support.commands import fails, ok, rows, write, write_jsonl

# One of each kind: C0, DEL, C1, bidi controls, a lone surrogate.
EVIL = "\x1b]0;x\x07\r\x7f\x9b31m\u202e\u2066\u200f\u061c\ud800"


def raw_run(*arguments: str) -> Result:
    """Run with the colours that click removes when the output is not a terminal."""
    return CliRunner().invoke(commands, arguments, color=True, catch_exceptions=False)


@pytest.fixture
def evil() -> Path:
    index = BM25Index(Analyzer(token_pattern=r"\S+"))
    text = f"red {EVIL}boat {EVIL}"
    index.add([text], ids=[f"id{EVIL}"], metadata=[{"source": EVIL, f"key{EVIL}": [EVIL]}])
    path = Path("index\x1b[31m\u202e")
    index.save(path)
    return path


# --- every code point -----------------------------------------------------------


def is_unsafe(point: int) -> bool:
    """Decide about a code point without using the pattern under test."""
    if chr(point) in "\n\t":
        return False
    bidi = {0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    return point < 32 or 0x7F <= point < 0xA0 or point in bidi or 0xD800 <= point < 0xE000


@pytest.mark.slow
def test_every_control_code_point_is_escaped_and_no_other_is_touched() -> None:
    for point in range(sys.maxunicode + 1):
        character = chr(point)
        if not is_unsafe(point):
            assert visible(character) == character
        else:
            escaped = visible(character)
            assert escaped.isascii()
            assert escaped.encode().decode("unicode_escape", "surrogatepass") == character


def test_a_name_is_one_line_and_a_text_for_reading_has_no_escapes() -> None:
    assert one_line("a\nb\tc\x1b") == r"a\nb\tc\x1b"
    assert readable("a \n\t b\x1b[31m\u200f\u202ec") == "a b\ufffd[31mc"


# --- every command --------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["search", "{}", "red"],
        ["search", "{}", f"boat {EVIL}"],
        ["search", "{}", "--queries", "queries"],
        ["search", "{}", "--queries", "queries", "--format", "jsonl"],
        ["search", "{}", "red", "--json"],
        ["search", "{}", "red", "--format", "trec"],
        [
            "search",
            "{}",
            "red",
            "--filter",
            json.dumps({"a": {f"$ {EVIL}": 1}}, ensure_ascii=False),
        ],
        ["search", "{}", "red", "--filter", EVIL],
        ["search", "{}", "red", f"--{EVIL}"],
        ["search", EVIL[1:-1], "red"],
        ["explain", "{}", f"red {EVIL} x{EVIL}", f"id{EVIL}"],
        ["explain", "{}", "red", f"no{EVIL}"],
        ["delete", "{}", "nothing"],
        ["stats", "{}"],
        ["stats", "{}", EVIL],
        ["stats", "{}", "--json"],
        ["stats", "{}", "--untrusted"],
        ["verify", "{}"],
        ["compact", "{}"],
        ["index", "folder", "-o", "{}", "--force"],
        ["index", "folder", "-o", "{}"],
        ["add", "{}", "folder", "--on-duplicate", "error"],
        ["sync", "folder", "{}"],
        ["--debug", "index", f"folder/bad{EVIL[:-1]}.txt", "-o", "{}", "--force"],
        [f"no-command-{EVIL}"],
        [f"--{EVIL}"],
    ],
    ids=lambda words: ascii(" ".join(words))[:60],
)
@pytest.mark.parametrize("terminal", [False, True])
def test_no_command_writes_what_could_steer_a_terminal(
    evil: Path, words: list[str], terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    write(f"folder/bad\n{EVIL[:-1]}.txt", b"\xff")
    write(f"folder/bad{EVIL[:-1]}.txt", b"\xff")
    write(f"folder/good{EVIL[:-1]}.txt", f"text {EVIL[:-1]}")
    write(f"folder/.hidden\n{EVIL[:-1]}.txt", "x")
    query = json.dumps({"id": EVIL, "text": f"red {EVIL}"}, ensure_ascii=False)
    write("queries", query.encode("utf-8", "surrogatepass").replace(b"\xed\xa0\x80", b""))
    result = raw_run(*(word.format(evil) if word == "{}" else word for word in words))
    # What rich itself writes to a terminal: colours, and clearing a line for the progress bar.
    written = re.sub(r"\x1b\[[0-9;]*[mA]", "", result.output).replace("\r", "")
    assert written
    assert not UNSAFE.search(written)


def test_a_warning_cannot_either(evil: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning about a changed stemmer quotes words from the index."""
    index = BM25Index.open(evil)

    def open_with_a_warning(path: Path, **options: object) -> BM25Index:
        warnings.warn(f"words\n{EVIL}", stacklevel=2)
        return index

    monkeypatch.setattr(BM25Index, "open", open_with_a_warning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        said = raw_run("search", "any", "red").stderr
    assert said.startswith(r"Warning: words\n\x1b]0;x")
    assert not UNSAFE.search(said)
    assert said.count("\n") == 1


def test_a_console_escapes_what_nobody_has_escaped_before() -> None:
    shown = io.StringIO()
    console = result_console(shown)
    console.print(Text(f"one {EVIL}", style="bold"), EVIL)
    table = Table(EVIL)
    table.add_row(EVIL)
    console.print(table)
    assert shown.getvalue().count(r"\x1b]0;x") >= 4
    assert not UNSAFE.search(shown.getvalue())


def test_a_name_cannot_begin_a_line_of_its_own() -> None:
    write("folder/a\nError: all is lost.txt", b"a\0b")
    write("folder/b.txt", "fine")
    result = raw_run("index", "folder", "-o", "saved")
    assert result.exit_code == 4
    assert "\nError" not in result.stderr
    assert r"a\nError: all is lost.txt:1: not a text" in result.stderr


def test_json_says_the_same_with_escapes(evil: Path) -> None:
    output = raw_run("search", str(evil), "red", "--format", "jsonl").stdout
    assert r"\u001b]0;x\u0007\r\u007f\u009b31m\u202e\u2066\u200f\u061c\ud800" in output
    (row,) = rows(output)
    (hit,) = BM25Index.open(evil).search("red")
    assert (row["id"], row["text"], row["metadata"]) == (hit.id, hit.text, hit.metadata)


def test_a_trec_run_which_has_no_escapes_refuses_such_ids() -> None:
    for id in ("a\x9b", "a\u202e", "a\x1b"):
        write_jsonl(Path("c.jsonl"), [{"id": id, "text": "red"}])
        ok("index", "c.jsonl", "-o", "saved", "--force")
        complaint = "has control characters in it; use --format jsonl"
        fails(3, complaint, "search", "saved", "red", "--format", "trec")


def test_a_bug_shows_its_traceback_without_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bm25rag.cli import main

    def broken(path: Path, untrusted: bool) -> BM25Index:
        raise RuntimeError(f"bug {EVIL}")

    monkeypatch.setattr(BM25Index, "open", broken)
    with pytest.raises(SystemExit) as exit:
        main(["stats", "saved"])
    assert exit.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert "bug" in said
    assert not UNSAFE.search(said)


# --- on a real terminal ---------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals there")
def test_on_a_real_terminal_words_that_match_are_bold_and_nothing_else_passes(evil: Path) -> None:
    import pty
    import subprocess

    reading, writing = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "bm25rag", "search", str(evil), "red"],
        stdout=writing,
        stderr=writing,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(writing)
    shown = b""
    while True:
        try:
            more = os.read(reading, 65536)
        except OSError:  # what Linux reports when the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(reading)
    assert process.wait(timeout=60) == 0
    text = shown.decode()
    assert "\x1b[1mred\x1b[0m" in text
    assert not UNSAFE.search(re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n"))


@pytest.mark.parametrize("columns", ["0", "12", "25", "40", "200"])
def test_a_narrow_terminal_folds_ids_and_loses_nothing(
    columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    write_jsonl(Path("c.jsonl"), [{"id": "an-id-of-some-length", "text": "a red boat sails"}])
    ok("index", "c.jsonl", "-o", "saved")
    for options in ((), ("--group", "$text")):
        table = "".join(ok("search", "saved", "boat", *options).stdout.split())
        for part in ("1", "0.1308", "boat", "sails", "an-i"):
            assert part in table


# --- numbers --------------------------------------------------------------------


def test_one_document_is_no_documents() -> None:
    assert [counted(n, "document") for n in (0, 1, 2, 1000)] == [
        "0 documents",
        "1 document",
        "2 documents",
        "1,000 documents",
    ]
    write("one.txt", "one")
    assert ok("index", "one.txt", "-o", "saved").stderr.startswith("Indexed 1 document in ")
    assert ok("compact", "saved").stderr.startswith("Compacted 1 document in ")
    assert ok("delete", "saved", "gone").stderr == "Deleted 0 of 1 document from saved.\n"
    assert (
        ok("delete", "saved", "--filter", '{"missing": null}').stderr
        == "Deleted 1 document from saved.\n"
    )
    index = BM25Index.from_texts(["x"])
    assert repr(index).startswith("BM25Index(1 document, ")
    index.add(["y"])
    assert repr(index).startswith("BM25Index(2 documents, ")

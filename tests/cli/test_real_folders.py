"""Folders as they are: source code, links, pipes, other encodings, bad lines, full disks."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.cli.app import commands
from support.cases import first
from support.commands import fails, ids, indexes, ok, run, write

posix = pytest.mark.skipif(
    os.name == "nt", reason="links need rights there, and there are no pipes"
)


def found(query: str, path: str = "saved") -> list[str]:
    return [hit.id for hit in BM25Index.open(path).search(query)]


# --- ids ------------------------------------------------------------------------


def test_files_of_one_name_that_a_pattern_matches_differ_by_their_paths() -> None:
    write("src/a/__init__.py", "alpha = 1")
    write("src/b/__init__.py", "beta = 2")
    indexes(0, ["a/__init__.py#1", "b/__init__.py#1"], "src/**/*.py")
    assert "2 unchanged, 0 deleted" in ok("sync", "src", "saved").stderr
    ok("index", Path("src").absolute() / "**/*.py", "-o", "absolute")
    assert ids("absolute") == ids()


def test_files_that_are_named_are_called_from_their_common_root() -> None:
    write("src/a/x.py", "alpha")
    write("src/b/x.py", "beta")
    indexes(0, ["a/x.py", "b/x.py"], "src/a/x.py", "src/b/x.py")


def test_records_of_two_files_without_ids_differ_by_the_paths_of_these() -> None:
    write("in/a/x.jsonl", '{"text": "one"}\n{"id": "own", "text": "two"}')
    write("in/b/x.jsonl", '{"text": "three"}')
    indexes(0, ["a/x.jsonl#1", "own", "b/x.jsonl#1"], "in/**/*.jsonl")


# --- kinds ----------------------------------------------------------------------


def test_source_code_settings_and_files_without_endings_are_read() -> None:
    names = [
        "x.py",
        "x.rs",
        "x.tsx",
        "x.rst",
        "x.log",
        "x.toml",
        "Makefile",
        "Dockerfile",
        "LICENSE",
    ]
    for name in names:
        write(f"d/{name}", "some words")
    write("d/x.png", b"\x89PNG\0")
    result = ok("index", "d", "-o", "saved")
    assert sorted(ids()) == sorted(f"{name}#1" for name in names)
    assert "Left out 1 path (not of a kind that is read): x.png" in result.stderr
    assert "Read 9 files; left out 1 path, skipped 0 files and 0 lines." in result.stderr


def test_a_notebook_is_its_sources_and_what_they_printed_without_images() -> None:
    outputs = [
        {"output_type": "stream", "text": ["printed\n"]},
        {"output_type": "display_data", "data": {"image/png": "aGlkZGVu", "text/plain": "shown"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Boats\n", "by sea"]},
        {"cell_type": "code", "source": "sail()", "outputs": outputs},
    ]
    write("d/n.ipynb", json.dumps({"cells": cells, "nbformat": 4}))
    ok("index", "d", "-o", "saved")
    (document,) = BM25Index.open("saved").get(ids())
    assert document.text == "Boats\n\nby sea\n\nsail()\n\nprinted\n\nshown"
    assert document.metadata["heading"] == "Boats"


def word_document(name: str, body: str, compressed: bool = True) -> None:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    path = write(name, b"")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {space}>{body}</w:document>")


def test_a_word_document_is_passages_below_its_headings() -> None:
    style = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
    word_document(
        "d/a.docx",
        f"<w:p>{style}<w:r><w:t>Boats</w:t></w:r></w:p><w:p><w:r><w:t>A sail</w:t></w:r></w:p>",
    )
    ok("index", "d", "-o", "saved")
    (document,) = BM25Index.open("saved").get(["a.docx#1"])
    assert (document.text, document.metadata["heading"]) == ("Boats\n\nA sail", "Boats")


def test_hostile_word_documents_are_skipped() -> None:
    write("d/a.md", "fine")
    word_document("d/bomb.docx", "<w:p><w:r><w:t>" + "x" * (101 << 20) + "</w:t></w:r></w:p>")
    write("d/encrypted.docx", b"\xd0\xcf\x11\xe0" + b"\0" * 600)
    write("d/no.docx", "no zip")
    entity = '<!DOCTYPE x [<!ENTITY a "aaaa">]>'
    with zipfile.ZipFile("d/entity.docx", "w") as archive:
        archive.writestr("word/document.xml", f"{entity}<x>&a;</x>")
    result = indexes(4, ["a.md#1"], "d")
    for complaint in (
        "d/bomb.docx: its text is larger than 100 MB",
        "d/encrypted.docx: not a DOCX file: it is encrypted",
        "d/no.docx: not a complete DOCX file",
        "d/entity.docx: not a DOCX file: its XML has a document type",
    ):
        assert f"Skipped {complaint}" in result.stderr


def pdf(text: str) -> bytes:
    stream = f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    made, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(made))
        made += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(made)
    made += b"xref\n0 6\n0000000000 65535 f \n" + table
    return made + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % start


def test_a_pdf_file_is_passages_with_their_pages() -> None:
    pytest.importorskip("pypdf")
    write("d/a.pdf", pdf("A boat sails"))
    write("d/b.pdf", b"%PDF-1.4\nnothing")
    write("d/c.pdf", "no PDF")
    result = indexes(4, ["a.pdf#1"], "d")
    (document,) = BM25Index.open("saved").get(["a.pdf#1"])
    assert (document.text, document.metadata["page"]) == ("A boat sails", 1)
    assert "Skipped d/c.pdf: not a PDF file" in result.stderr
    assert "Skipped d/b.pdf: not a PDF file that can be read" in result.stderr


def test_a_pdf_file_that_takes_too_long_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pypdf")
    hang = write("hang.py", "import time; time.sleep(60)")
    monkeypatch.setattr("bm25rag.readers.pdf.pdf_process.__file__", str(hang))
    monkeypatch.setattr("bm25rag.readers.pdf._MOST_SECONDS", 0.5)
    write("d/a.pdf", pdf("A boat sails"))
    write("d/b.md", "fine")
    result = indexes(4, ["b.md#1"], "d")
    assert "a.pdf: it could not be read in" in result.stderr


def test_pdf_without_its_extra_is_named_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bm25rag.readers.pdf.find_spec", lambda name: None)
    write("d/a.pdf", pdf("A boat sails"))
    write("d/b.md", "fine")
    result = indexes(4, ["b.md#1"], "d")
    assert "Skipped a.pdf: PDF needs pypdf: pip install 'bm25rag[pdf]'" in result.stderr


def test_a_text_whose_name_ends_like_arrows_is_no_arrow_file() -> None:
    write("d/inputrc.arrows", "# keys of arrows\nset editing-mode vi\n")
    write("d/a.md", "fine")
    result = ok("index", "d", "-o", "saved")
    assert "Left out 1 path (not an Arrow file, by how it begins): inputrc.arrows" in result.stderr


# --- which files ----------------------------------------------------------------


def make_tree() -> None:
    for name in ("a.py", "a.md", "docs/b.md", "docs/c.py", "tests/t.py", "build/x.md", "l.log"):
        write(f"d/{name}", "words")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--include *.py", ["a.py", "docs/c.py", "tests/t.py"]),
        ("--include *.py --exclude tests/", ["a.py", "docs/c.py"]),
        ("--include /*.md --include docs/", ["a.md", "docs/b.md", "docs/c.py"]),
        ("--exclude *.py --exclude build --exclude *.log", ["a.md", "docs/b.md"]),
        ("--include docs/**/*.md", ["docs/b.md"]),
    ],
)
def test_include_and_exclude_choose_files(words: str, expected: list[str]) -> None:
    make_tree()
    indexes(0, [f"{name}#1" for name in expected], "d", *words.split())
    assert "0 added, 0 replaced" in ok("sync", "d", "saved", *words.split()).stderr


def test_what_gitignore_files_name_is_left_out() -> None:
    make_tree()
    write("d/.gitignore", "build/\n*.log\n*.py\n!a.py\n")
    write("d/docs/.gitignore", "!c.py\n/b.md\n")
    result = indexes(0, ["a.md#1", "a.py#1", "docs/c.py#1"], "d")
    assert "(in .gitignore): l.log, build, docs/b.md" in result.stderr
    ok("index", "d", "-o", "all", "--no-gitignore")
    assert len(ids("all")) == 7


def test_gitignore_files_above_count_in_a_repository_unless_they_name_the_folder() -> None:
    make_tree()
    write("d/.git/HEAD", "")
    write("d/.gitignore", "c.py\nbuild/\n")
    indexes(0, ["b.md#1"], "d/docs")
    ok("index", "d/build", "-o", "built")
    assert ids("built") == ["x.md#1"]


def test_virtual_environments_are_left_out() -> None:
    write("d/env/pyvenv.cfg", "")
    write("d/env/lib/x.py", "words")
    write("d/a.py", "words")
    result = indexes(0, ["a.py#1"], "d")
    assert "Left out 1 path (a virtual environment): env" in result.stderr


def test_hidden_files_are_read_on_demand_but_never_git() -> None:
    write("d/.github/a.yml", "words")
    write("d/.git/b.yml", "words")
    indexes(0, [".github/a.yml#1"], "d", "--hidden")


# --- links, pipes and what else there is ----------------------------------------


@posix
def test_links_that_lead_out_are_refused_unless_asked_for() -> None:
    write("out/secret.md", "secret words")
    write("out/deep/more.md", "more secrets")
    write("d/a.md", "mine")
    Path("d/file.md").symlink_to("../out/secret.md")
    Path("d/folder").symlink_to("../out/deep")
    Path("d/second.md").symlink_to("file.md")
    Path("d/inside.md").symlink_to("a.md")
    Path("out/deep/back").symlink_to("../../d")
    result = indexes(0, ["a.md#1", "inside.md#1"], "d")
    reason = "a link that leads out of the folder"
    assert f"Left out 3 paths ({reason}): file.md, second.md, folder" in result.stderr
    ok("index", "d/*.md", "-o", "pattern")
    assert ids("pattern") == ids()
    ok("index", "d", "-o", "followed", "--follow-links")
    names = ["a.md", "file.md", "inside.md", "second.md", "folder/more.md"]
    assert ids("followed") == [f"{name}#1" for name in names]
    ok("sync", "d", "followed")
    assert ids("followed") == ids()


@posix
def test_nothing_that_is_no_file_holds_it_up() -> None:
    write("d/a.md", "fine")
    os.mkfifo("d/pipe.md")
    Path("d/device.md").symlink_to("/dev/zero")
    Path("d/gone.md").symlink_to("nowhere.md")
    Path("d/loop.md").symlink_to("loop.md")
    write("d/" + "n" * 250 + ".md", "long")
    write("d/new\nline.md", "line")
    Path(os.fsdecode(b"d/\xff.md")).write_text("name")
    result = run("index", "d", "-o", "saved", "--follow-links")
    assert result.exit_code == 4
    assert sorted(ids()) == ["a.md#1", "new\nline.md#1", "n" * 250 + ".md#1"]
    assert r"d/\udcff.md: its name is not UTF-8: rename it" in result.stderr
    fails(3, "d/pipe.md: not a regular file", "index", "d/pipe.md", "-o", "alone")
    fails(3, "/dev/zero: not a regular file", "index", "/dev/zero", "-o", "alone")


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="there is no /proc")
def test_folders_that_the_system_makes_up_are_refused() -> None:
    fails(3, "/proc: a file system that the system makes up", "index", "/proc", "-o", "saved")


@pytest.mark.parametrize(
    ("error", "why"),
    [(FileNotFoundError, "No such file or directory"), (PermissionError, "Permission denied")],
)
def test_a_file_that_goes_or_that_the_system_refuses_is_skipped(
    monkeypatch: pytest.MonkeyPatch, error: type[OSError], why: str
) -> None:
    for name in "abc":
        write(f"d/{name}.md", "words")
    open_path = Path.open

    def refuse(self: Path, *words: Any, **options: Any) -> Any:
        if self.name == "b.md":
            raise error(0, why, str(self))
        return open_path(self, *words, **options)

    monkeypatch.setattr(Path, "open", refuse)
    result = indexes(4, ["a.md#1", "c.md#1"], "d")
    assert f"Skipped d/b.md: {why}" in result.stderr


# --- encodings ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "guess"),
    [
        ("die grüne Brücke".encode(), None),
        ("die grüne Brücke".encode("utf-8-sig"), None),
        ("die grüne Brücke".encode("utf-16"), None),
        ("die grüne Brücke".encode("utf-32"), None),
        ("die grüne Brücke".encode("latin-1"), "cp1252"),
        ("ü\n".encode() * 3 + "die grüne Brücke".encode("latin-1"), "cp1252"),
        ("die grüne Brücke".encode("utf-16-le"), "utf-16-le"),
        ("die grüne Brücke".encode("utf-16-be"), "utf-16-be"),
    ],
)
def test_encodings_are_recognised_or_guessed_with_a_report(raw: bytes, guess: str | None) -> None:
    write("d/a.txt", raw)
    result = ok("index", "d", "-o", "saved")
    assert found("brücke") == ["a.txt#1"]
    if guess is None:
        assert "a guess" not in result.stderr
    else:
        assert f"Read 1 file as {guess}, a guess (a.txt)" in result.stderr


def test_an_encoding_can_be_named() -> None:
    write("a.csv", "id;text\n7;зелёный мост\n".encode("cp1251"))
    ok("index", "a.csv", "-o", "saved", "--encoding", "windows-1251", "--language", "russian")
    assert found("мост") == ["7"]
    write("b.txt", "über".encode("latin-1"))
    fails(3, "b.txt:1: not UTF-8", "index", "b.txt", "-o", "other", "--encoding", "utf-8")
    fails(2, "is no encoding", "index", "b.txt", "-o", "other", "--encoding", "klingon")


# --- lines and columns ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "bad", "kept"),
    [
        ("a.jsonl", '{"id": 1, "text": "x"}\n{\n{"id": 3, "text": "y"}\n{\n', 2, ["1", "3"]),
        ("a.csv", "id,text\n1,x\n2,y,z,z\n3,w\n", 3, ["1", "3"]),
        ("a.csv", 'id,text\n1,x\n2,"y\n3,"w"\n4,v\n', 3, ["1", "3", "4"]),
        ("a.csv", 'id,text\n1,x\n2,"y\n3,w\n', 3, ["1", "3"]),
        ("a.tsv", "id\ttext\n1\tx\n2\ty\tz\n", 3, ["1"]),
        ("a.json", '[{"id": 1, "text": "x"}, 5]', None, ["1"]),
    ],
)
def test_a_bad_line_is_skipped_counted_and_named(
    name: str, content: str, bad: int | None, kept: list[str]
) -> None:
    write(name, content)
    result = indexes(4, kept, name)
    where = f"{name}: item 2" if bad is None else f"{name}:{bad}:"
    assert re.search(rf"Skipped \d lines?: {where}", result.stderr)
    fails(3, where, "index", name, "-o", "other", "--on-error", "stop")
    assert not Path("other").exists()


def test_documents_of_lines_that_cannot_be_read_stay_in_a_sync() -> None:
    write("d/a.jsonl", '{"id": 1, "text": "x"}\n{"id": 2, "text": "y"}\n')
    ok("index", "d", "-o", "saved")
    write("d/a.jsonl", '{"id": 1, "text": "x"}\n{"id": 2, "tex\n')
    assert run("sync", "d", "saved").exit_code == 4
    assert ids() == ["a.jsonl#1", "a.jsonl#2"]


@pytest.mark.parametrize(
    ("header", "texts"),
    [
        ("id,title,body", "title, body"),
        ("id,title,review", "title, review"),
        ("id,Title,Description", "Title, Description"),
        ("id,kind,story", "story"),
    ],
)
def test_columns_with_text_are_chosen_by_name_and_content_and_told(header: str, texts: str) -> None:
    write("a.csv", f"{header}\n1,Boats,a long journey over the sea\n2,Cars,the road was long\n")
    result = ok("index", "a.csv", "-o", "saved")
    assert found("journey") == ["1"]
    assert f"Text of a.csv: {texts} (--text-field chooses" in result.stderr
    (document,) = BM25Index.open("saved").get(["1"])
    assert sorted(document.metadata) == sorted(set(header.split(",")) - {"id", *texts.split(", ")})


# --- help, interruptions, disks -------------------------------------------------


def test_the_filters_in_the_help_find_what_index_makes() -> None:
    write("docs/guide.md", "# Guide\n\nHow to install it.")
    ok("index", "docs/", "-o", "docs.bm25")
    lines = re.findall(
        r"^  bm25rag (search .*--filter.*)$", commands.commands["search"].epilog, re.M
    )
    assert lines
    for line in lines:
        assert "guide.md#1" in ok(*shlex.split(line)).stdout


@posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", first(1, ["search saved words", "--help", "index --help"]))
def test_an_output_that_is_full_is_no_bug(words: str) -> None:
    write("a.txt", "words")
    ok("index", "a.txt", "-o", "saved")
    line = f"{shlex.quote(sys.executable)} -m bm25rag {words} > /dev/full"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "Error: the output: No space left on device\n"


def test_too_little_memory_is_no_bug_and_says_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    def starve(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("bm25rag.index.BM25Index.add_documents", starve)
    write("a.txt", "words")
    fails(3, "Error: not enough memory; 'bm25rag index --memory", "index", "a.txt", "-o", "saved")


def limited(limit: int, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command that may write files of so many bytes."""
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from bm25rag.cli import main; main()"
    )
    words = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


@posix
@pytest.mark.parametrize("words", first(1, [[], ["--memory", "512MiB"], ["--shards", "1"]]))
def test_a_disk_that_takes_no_more_is_named_and_no_half_folder_is_left(words: list[str]) -> None:
    write("a.jsonl", "".join(f'{{"text": "word{n} {n * n}"}}\n' for n in range(5000)))
    done = limited(20_000, "index", "a.jsonl", "-o", "new/saved", *words)
    assert done.returncode == 3
    assert re.search(r"^Error: new/saved/.*: File too large$|/new/saved/.*File", done.stderr, re.M)
    assert not Path("new").exists()


@posix
def test_ctrl_c_says_what_is_kept_and_how_to_go_on(start: Callable[..., Any]) -> None:
    process = start("index", "-", "-o", "saved")
    process.stdin.write(b'{"text": "x"}\n' * 20_000)  # more than a pipe holds: it is reading
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"nothing was written to saved; run the same command again" in err
    assert not Path("saved").exists()


def test_the_bar_of_one_big_file_ends_at_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("bm25rag.cli.sources._MOST_HELD", 1000)
    size = write("d/a.txt", "word " * 20_000).stat().st_size
    shown = run("index", "d", "-o", "saved").stderr
    last = [line for line in re.split(r"[\r\n]", shown) if line.startswith("indexing:")][-1]
    assert "100%" in last
    assert f"{size // 1000}k/{size // 1000}k [" in last

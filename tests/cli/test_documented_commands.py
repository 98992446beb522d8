"""The command-line page: its commands are run, and its tables match the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bm25rag import BM25Index
from bm25rag.cli.app import commands
from bm25rag.readers import KINDS
from support.commands import ok, write
from support.environment import ROOT

PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")


def test_the_commands_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("notes/guide.md", "# Install\n\nHow to install it.")
    write("notes/archive/old.txt", "How it was installed.")
    write("docs.jsonl", "\n".join(re.findall(r'^\{"id": .*\}$', PAGE, re.MULTILINE)))
    lines = re.findall(r"^\$ bm25rag (.*)$", PAGE, re.MULTILINE)
    assert len(lines) >= 5
    for line in lines:
        ok(*shlex.split(line))
    assert BM25Index.open("notes.bm25").ids() == ["guide.md#1"]
    assert BM25Index.open("docs.bm25").vectors.vocabulary() == ["12", "7", "dog", "pet"]


def test_every_kind_of_file_is_in_the_table() -> None:
    assert set(KINDS) <= set(re.findall(r"`(\.\w+)`", PAGE))


def test_the_exit_codes_are_those_of_the_help() -> None:
    in_page = re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)
    in_help = re.findall(r"^  (\d+) +\w", commands.epilog or "", re.MULTILINE)
    assert in_page == in_help
    assert len(in_page) == 7


def test_every_command_is_named() -> None:
    assert [name for name in commands.commands if f"`{name}`" not in PAGE] == []

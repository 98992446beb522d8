"""``bm25rag inspect`` as a command: what it says, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from support.commands import fails
from support.inspected import small


def test_a_port_in_use_is_named_and_another_one_suggested(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        fails(3, f"port {port} of 127.0.0.1 is in use", "inspect", folder, "--port", port)
        fails(3, "--port 0 takes any that is free", "inspect", folder, "--port", port)


def test_a_host_that_is_not_here_is_named(folder: Path) -> None:
    fails(
        3,
        "cannot listen at 192.0.2.1, port 0",
        "inspect",
        folder,
        "--host",
        "192.0.2.1",
        "--port",
        0,
    )


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("nowhere",), 3, "nowhere"),
        (("{folder}", "--qrels", "judged.txt"), 3, "must end in .tsv"),
        (("{folder}", "--qrels", "nowhere/judged.tsv"), 3, "make it first"),
        (("{folder}", "--queries", "queries.tsv"), 2, "needs --qrels"),
        (("{folder}", "--restrict", "{}"), 2, "restrict"),
        (("{folder}", "--commit", "9-9c110871ccf2b11b"), 3, "9-9c110871ccf2b11b"),
        (("{folder}", "--commit", "the last"), 2, "--commit must be the id of a commit"),
        (("{folder}", "--port", "70000"), 2, "70000"),
        (("{folder}", "--host", ""), 2, "--host must not be empty"),
    ],
)
def test_a_wrong_command_line_is_explained(
    arguments: tuple[str, ...], code: int, complaint: str, folder: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    fails(code, complaint, "inspect", *(one.replace("{folder}", str(folder)) for one in arguments))


def test_a_missing_package_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    fails(3, "bm25rag[inspect]", "inspect", folder)


def test_an_index_of_a_stranger_is_opened_as_such(tmp_path: Path) -> None:
    from bm25rag import Analyzer

    small(analyzer=Analyzer(token_pattern=r"\w+")).save(tmp_path / "index")
    fails(3, "token_pattern", "inspect", tmp_path / "index", "--untrusted")


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT as a POSIX terminal does")
def test_it_tells_its_address_answers_and_ends_with_ctrl_c(folder: Path) -> None:
    command = [sys.executable, "-m", "bm25rag", "inspect", str(folder), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        told = process.stderr.readline()
        assert "5 documents" in told
        (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", told)
        with urlopen(f"{address}search?q=red") as answer:
            assert b"boat" in answer.read()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT as a POSIX terminal does")
def test_what_opening_warns_of_is_told_at_the_start_and_under_health(
    folder: Path, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, warnings\n"
        "from bm25rag import BM25Index\n"
        "from bm25rag.cli import main\n"
        "open_index = BM25Index.open.__func__\n"
        "def warning(cls, *given, **named):\n"
        "    warnings.warn('stems\\nhave changed')\n"
        "    return open_index(cls, *given, **named)\n"
        "BM25Index.open = classmethod(warning)\n"
        "main(['inspect', sys.argv[1], '--port', '0'])\n"
    )
    command = [sys.executable, str(program), str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == "Warning: stems\\nhave changed\n"
        (address,) = re.findall(r"http://127\.0\.0\.1:\d+/", process.stderr.readline())
        with urlopen(f"{address}health.json") as answer:
            assert b"stems" in answer.read()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

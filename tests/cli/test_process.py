"""The command line as a process: pipes, Ctrl-C, missing packages."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.errors import LockedError
from support.cases import first
from support.commands import run
from support.environment import ROOT

# --- as a process ---------------------------------------------------------------


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_module_is_the_command(saved: Path, start: Callable[..., Any]) -> None:
    out, err = start("search", saved, "sea", "--format", "trec", "-k", 1).communicate(timeout=60)
    assert out.startswith(b"1 Q0 sea 1 ")
    assert err == b""


@pytest.mark.parametrize("shape", first(1, ["trec", "table", "json"]))
def test_a_reader_that_goes_away_is_no_complaint(
    saved: Path, shape: str, start: Callable[..., Any]
) -> None:
    queries = "".join(f"{n}\tred sea bird\n" for n in range(4_000))
    Path("queries.tsv").write_text(queries, encoding="utf-8")
    process = start("search", saved, "--queries", "queries.tsv", "--format", shape)
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=60)
    assert (err, process.returncode) == (b"", 141)


@pytest.mark.skipif(os.name == "nt", reason="closes streams as a POSIX shell does")
@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    first(
        2,
        [
            ("search saved sea --format trec >&-", 0, ""),
            ("search saved --queries - <&-", 3, "Error: <stdin>: standard input is closed"),
            ("stats saved >&-", 0, ""),
            ("delete saved gone >&-", 0, "Deleted 0 of 1 document from saved."),
            ("search gone sea >&- 2>&-", 3, ""),
            ("add saved - <&-", 3, "Error: <stdin>: standard input is closed"),
        ],
    ),
)
def test_a_closed_stream_is_no_bug(saved: Path, words: str, code: int, complaint: str) -> None:
    line = f"{shlex.quote(sys.executable)} -m bm25rag {words}"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr.strip(), done.returncode) == ("", complaint, code)


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole groups of processes")
def test_ctrl_c_is_quiet(saved: Path, start: Callable[..., Any]) -> None:
    process = start("search", saved, "--queries", "-")
    # More than a pipe holds: once it is written, the command is running and reading.
    process.stdin.write(b"".join(b"%d\tred\n" % n for n in range(50_000)))
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (err, process.returncode) == (b"", 130)


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_the_message_has_the_pip_line(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from bm25rag.cli import main; main([])"
    result = run_python(code)
    assert result.returncode == 3
    assert result.stderr == (
        f"bm25rag: the command line needs {missing}: pip install 'bm25rag[cli]'\n"
    )


def test_the_command_line_itself_is_imported_without_the_extra() -> None:
    code = "import sys, bm25rag.cli; print({'click', 'rich', 'tqdm'} & set(sys.modules))"
    assert run_python(code).stdout == "set()\n"


def test_a_command_is_imported_without_the_others() -> None:
    code = """if True:
        import sys
        from bm25rag.cli.app import commands
        print(commands.commands["search"].name)
        print({"bm25rag.evaluation", "bm25rag.cli.indexing", "tqdm"} & {*sys.modules})
        print(all(one.name == name for name, one in commands.commands.items()))
    """
    assert run_python(code).stdout == "search\nset()\nTrue\n"


def test_without_a_terminal_nothing_is_drawn(saved: Path, start: Callable[..., Any]) -> None:
    Path("d").mkdir()
    Path("d/a.txt").write_text("one", encoding="utf-8")
    out, err = start("sync", "d", saved).communicate(timeout=60)
    assert out == b""
    assert len(err.splitlines()) == 1
    assert b"\x1b" not in err
    assert b"\r" not in err.replace(b"\r\n", b"\n")


def test_ctrl_c_within_a_string_that_is_executed_has_our_exit_code() -> None:
    # As `python -m` and what dataclasses do; it would end by SIGINT (a shell's 130) otherwise.
    Path("sitecustomize.py").write_text(
        "import sys\n"
        "class _Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'bm25rag.cli.app': exec('raise KeyboardInterrupt')\n"
        "sys.meta_path.insert(0, _Interrupts())\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "bm25rag", "--version"],
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
        check=False,
        timeout=60,
    )
    assert done.returncode == 130


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole groups of processes")
def test_ctrl_c_during_a_sync_leaves_the_index_as_it_was(saved: Path) -> None:
    before = BM25Index.open(saved).ids()
    Path("d").mkdir()
    Path("d/new.txt").write_text("new", encoding="utf-8")
    # The folder is checked when the documents have been added, before anything is committed.
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time\n"
            "from bm25rag.cli import main, watching\n"
            "def check(folder):\n"
            "    print('added', flush=True)\n"
            "    time.sleep(100)\n"
            "watching.SameFolder.check = check\n"
            "main(['sync', 'd', sys.argv[1]])\n",
            saved,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"added\n"
    with pytest.raises(LockedError):
        BM25Index.open(saved, mode="w")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    said = b"Interrupted: saved is as it was; run the same command again\n"
    assert (err, process.returncode) == (said, 130)
    assert BM25Index.open(saved, verify=True).ids() == before


@pytest.mark.parametrize("words", ["add saved new.txt", "index new.txt -o new"])
def test_ctrl_c_after_the_commit_does_not_say_that_nothing_was_written(
    saved: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who ran the same command again was told that there is an index, or added twice."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    Path("new.txt").write_text("new", encoding="utf-8")
    monkeypatch.setattr("bm25rag.storage.folder_writer.drop_expired", interrupt)
    result = run(*words.split())
    path = "saved" if "saved" in words else "new"
    said = f"Interrupted: {path} had been written already; 'bm25rag stats' tells what it holds\n"
    assert (result.stderr, result.exit_code) == (said, 130)
    assert "new.txt" in BM25Index.open(path, verify=True)


@pytest.mark.parametrize(
    "words", first(1, ["explain saved 東京☃ boat", "search saved boat", "verify ☃", "stats saved"])
)
def test_results_are_utf8_whatever_the_locale_says(
    saved: Path, words: str, monkeypatch: pytest.MonkeyPatch, start: Callable[..., Any]
) -> None:
    with BM25Index.open(saved, mode="w") as index:
        index.add(["a boat in 東京 ☃"], ids=["☃"])
    BM25Index.open(saved).save("☃")
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    out, err = start(*words.split()).communicate(timeout=60)
    assert err == b""
    assert out.decode()


@pytest.mark.parametrize("shell", first(1, ["bash", "zsh", "fish"]))
def test_completion_is_there_for_the_shells_that_the_documentation_names(shell: str) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("click asks bash for its version")
    page = ROOT / "docs" / "command-line.md"
    assert f"_BM25RAG_COMPLETE={shell}_source bm25rag" in page.read_text(encoding="utf-8")
    code = "from bm25rag.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"_BM25RAG_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert f"_BM25RAG_COMPLETE={shell}_complete" in done.stdout


def test_commands_and_options_are_completed() -> None:
    code = "from bm25rag.cli import main; main()"
    for words, expected in (("bm25rag se", "search"), ("bm25rag search --un", "--untrusted")):
        environment = {"_BM25RAG_COMPLETE": "zsh_complete", "COMP_WORDS": words}
        environment["COMP_CWORD"] = str(len(words.split()) - 1)
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert expected in done.stdout.splitlines()

"""The demo, on a small library of its own and, once, on Python's."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from bm25rag import BM25Index
from bm25rag.cli.app import commands
from bm25rag.cli.demo import QUESTIONS, run_demo
from bm25rag.cli.docstrings import read_docstrings, standard_library
from bm25rag.cli.terminal import result_console

SOURCE = '''"""About the module."""

class Outer:
    """About the class."""

    def method(self):
        """Split a string like the shell."""
        def local():
            """Nobody can call this from outside."""

if True:
    async def waits():
        """About the function."""
else:
    def bare(): ...
'''


def write(path: Path, source: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source.encode() if isinstance(source, str) else source)


def test_docstrings_are_named_by_their_dotted_path(tmp_path: Path) -> None:
    write(tmp_path / "package" / "module.py", SOURCE)
    documents = list(read_docstrings(tmp_path))
    assert [document.id for document in documents] == [
        "package.module",
        "package.module.Outer",
        "package.module.Outer.method",
        "package.module.Outer.method.local",
        "package.module.waits",
    ]
    assert documents[4].text == "package.module.waits\n\nAbout the function."
    assert documents[4].metadata == {
        "module": "package.module",
        "kind": "function",
        "path": "package/module.py",
        "line": 12,
    }
    assert [document.metadata["kind"] for document in documents[:2]] == ["module", "class"]


def test_tests_and_what_does_not_parse_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "package" / "__init__.py", '"""A package."""')
    write(tmp_path / "test" / "a.py", '"""A test."""')
    write(tmp_path / "site-packages" / "a.py", '"""Of others."""')
    write(tmp_path / "broken.py", '"""Broken.""" (')
    write(tmp_path / "null.py", b'"""Null."""\0')
    write(tmp_path / "latin.py", '# coding: latin-1\n"""Gr\xfcn, "\\d"."""'.encode("latin-1"))
    found = {document.id: document.text for document in read_docstrings(tmp_path)}
    assert found == {"package": "package\n\nA package.", "latin": 'latin\n\nGr\xfcn, "\\d".'}


def test_a_library_without_docstrings_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no Python source with docstrings"):
        run_demo(result_console(io.StringIO()), tmp_path)


def test_a_tiny_library_is_shown_whole(tmp_path: Path) -> None:
    write(tmp_path / "module.py", SOURCE)
    stream = io.StringIO()
    run_demo(result_console(stream), tmp_path)
    assert "5 passages from 1 module in" in stream.getvalue()


def test_an_index_that_forgets_makes_the_demo_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "module.py", SOURCE)
    monkeypatch.setattr(BM25Index, "delete", lambda self, ids: 0)
    with pytest.raises(RuntimeError, match="the demo failed: a deleted document is gone"):
        run_demo(result_console(io.StringIO()), tmp_path)


@pytest.mark.slow
def test_the_demo_runs_on_pythons_own_library_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = CliRunner().invoke(commands, ["demo"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert all(question in result.stdout for question in QUESTIONS)
    assert "shlex.split" in result.stdout
    assert "the same answers, to the last bit" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_standard_library_is_where_python_says() -> None:
    assert (standard_library() / "json" / "decoder.py").is_file()

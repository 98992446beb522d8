"""The documentation is executed: Python snippets, command lines, links, names of targets."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.environment import ROOT

README = ROOT / "README.md"
# The migration pages show the frameworks' code, which the adapters' own tests run.
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "integrations" / "README.md",
    *sorted(path for path in (ROOT / "docs").glob("*.md") if not path.name.startswith("migrate-")),
]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks(page: Path, language: str) -> list[str]:
    """Fenced blocks of a page in one language."""
    text = page.read_text(encoding="utf-8")
    return [body for kind, body in FENCE.findall(text) if kind == language]


def commands(page: Path, program: str) -> list[str]:
    """Arguments of the lines of a page that call a program."""
    start = f"$ {program} "
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line.removeprefix(start) for line in lines if line.startswith(start)]


def promised(block: str) -> Iterator[str]:
    """Yield the comment lines at the left margin that follow a line of code: its output."""
    expecting = False
    for line in block.splitlines():
        if line.startswith("# ") and expecting:
            yield line.removeprefix("# ")
        else:
            expecting = "print(" in line or (expecting and not line)


def name_of(page: Path) -> str:
    """Path of a page below the repository."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_snippets_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    for block in blocks(page, "python"):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(block, str(page), "exec"), namespace)
        assert output.getvalue().splitlines() == list(promised(block))


def test_the_quick_start_shows_its_results() -> None:
    assert sum(len(list(promised(block))) for block in blocks(README, "python")) >= 10


def test_command_lines_of_the_readme_work(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    lines = commands(README, "bm25rag")
    assert {line.split()[0] for line in lines} >= {"index", "search", "verify"}
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    for line in lines:
        done = subprocess.run(
            [sys.executable, "-m", "bm25rag", *shlex.split(line)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"
        assert done.stdout or line.startswith(("index", "sync", "verify"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"(?:`|\$ )make (?:[A-Z]+=\S+ )?([a-z-]+)", text)
    assert set(named) <= targets


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_changelog_tells_of_the_present_version() -> None:
    from bm25rag import __version__

    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"## [{__version__}]" in text
    assert f'\nversion = "{__version__}"\n' in project

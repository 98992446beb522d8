"""The site names every page, and every public name of the library."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from support.commands import ok
from support.environment import ROOT

SITE = ROOT / "docs" / "site"
REFERENCE = "".join(path.read_text("utf-8") for path in sorted(SITE.glob("reference/*.md")))
EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "bm25rag").rglob("*.py"))
    if ">>>" in path.read_text("utf-8")
]


def test_the_navigation_has_every_page_once() -> None:
    front = (SITE / "index.md").read_text("utf-8")
    listed = re.findall(r"^(docs|reference|notebooks)/([\w.-]+)$", front, re.MULTILINE)
    pages = {("docs", path.stem) for path in (ROOT / "docs").glob("*.md")} - {("docs", "index")}
    pages |= {("reference", path.stem) for path in SITE.glob("reference/*.md")}
    pages |= {("notebooks", path.stem) for path in SITE.glob("notebooks/*.ipynb")}
    assert sorted(listed) == sorted(pages)


def test_the_reference_has_the_modules_that_adapters_may_import_and_pages_name() -> None:
    named = set(re.findall(r"automodule:: (\S+)", REFERENCE))
    public = "agents analysis errors filters following fusion hybrid telemetry vectors"
    assert {"bm25rag", *(f"bm25rag.{name}" for name in public.split())} <= named
    for name in named:
        if name.startswith("bm25rag") and "distributed" not in name:
            assert importlib.import_module(name).__all__


def test_notebooks_are_kept_without_what_they_print() -> None:
    for path in sorted(SITE.glob("notebooks/*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert code
        assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_docstrings_print_what_they_say(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted
    assert not done.failed


def test_snippets_of_the_tutorial_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, object] = {}
    for page in (SITE / "index.md", SITE / "start.md"):
        for block in re.findall(
            r"^```python\n(.*?)^```$", Path(page).read_text("utf-8"), re.M | re.S
        ):
            exec(compile(block, str(page), "exec"), namespace)
            said = [line[2:] for line in block.splitlines() if line.startswith("# ")]
            assert capsys.readouterr().out.splitlines() == said


def test_commands_of_the_tutorial_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("site"))
    monkeypatch.chdir(tmp_path)
    page = (SITE / "start.md").read_text("utf-8")
    commands = re.findall(r"^\$ bm25rag (.*)$|^`bm25rag (sync [^`]*)`", page, re.MULTILINE)
    for command in map("".join, commands):
        ok(*shlex.split(command))
    assert len(commands) >= 5

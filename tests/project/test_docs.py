"""The documentation is executed: Python snippets, command lines, links, names of targets.

Snippets that import a framework are run by its adapter's tests, those for a cluster on one.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import ModuleType
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
# Links are checked in all of them.
LINKED = [
    *PAGES,
    *sorted(ROOT.glob("docs/migrate-*.md")),
    *sorted(ROOT.glob("integrations/*/README.md")),
]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FRAMEWORKS = re.compile(
    r"^from (langchain|llama_index|haystack|bm25rag\.distributed)", re.MULTILINE
)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
ANCHOR = re.compile(r"\]\((?!https?:)([^)#]*)#([^)]+)\)")
DISTRIBUTIONS = [ROOT, *sorted(path.parent for path in ROOT.glob("integrations/*/pyproject.toml"))]


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [body for kind, body in FENCE.findall(text) if kind == language]


def promised(block: str) -> Iterator[str]:
    """Yield the comment lines at the left margin that follow a line of code: its output."""
    expecting = False
    for line in block.splitlines():
        if line.startswith("# ") and expecting:
            yield line.removeprefix("# ")
        else:
            expecting = "print(" in line or (expecting and not line)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_snippets_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    for block in blocks(page, "python"):
        if FRAMEWORKS.search(block):
            continue
        if re.search(r"^import micropip", block, re.MULTILINE):  # run by tools/pyodide.mjs
            continue
        if re.search(r"^import pandas", block, re.MULTILINE):
            pytest.importorskip("pandas")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(block, str(page), "exec"), namespace)
        assert output.getvalue().splitlines() == list(promised(block))


def test_the_readme_is_a_landing_page() -> None:
    """At most 120 lines; every snippet shows its output; a picture with machine and date below."""
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert all(list(promised(block)) for block in blocks(README, "python"))
    assert re.search(
        r"^!\[.*\]\(.*\.svg\)\n\n\*.*\n.* on \d{4}-\d\d-\d\d on .* cores", text, re.MULTILINE
    )


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"(?:`|\$ )make (?:[A-Z]+=\S+ )?([a-z-]+)", text)
    assert set(named) <= targets


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_into_a_page_lead_to_headings(page: Path) -> None:
    for path, anchor in ANCHOR.findall(page.read_text(encoding="utf-8")):
        text = (page.parent / path if path else page).read_text(encoding="utf-8")
        assert anchor in {slug(one) for one in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def test_the_table_of_contents_names_every_page_and_the_examples() -> None:
    linked = LINK.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages <= set(linked)
    assert "../examples/" in linked


@pytest.mark.parametrize(
    "path", [*LINKED, *sorted(ROOT.glob("examples/*.py"))], ids=lambda path: path.name
)
def test_install_lines_work_in_a_checkout(path: Path) -> None:
    """Nothing of ours is on a package index yet; the folders and extras named exist."""
    for line in re.findall(r"pip install (.*)", path.read_text(encoding="utf-8")):
        assert "bm25rag" not in line
        for folder, extras in re.findall(r"(?<!\S)\"?(\.(?:/[\w/]+)?)(?:\[([\w,]+)\])?", line):
            text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
            known = tomllib.loads(text)["project"]["optional-dependencies"]
            assert set(filter(None, extras.split(","))) <= set(known)


@pytest.fixture
def publishing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the tool that prepares distributions for a package index."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("publishing")


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda path: path.name)
def test_a_published_readme_has_absolute_links_and_urls_from_the_one_setting(
    folder: Path, publishing: ModuleType, tmp_path: Path
) -> None:
    made = publishing.prepare(folder, tmp_path / "made")
    project = tomllib.loads((made / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    start = f"{publishing.repository()}/"
    assert project["urls"]["Repository"] + "/" == start
    assert all(url.startswith(start[:-1]) for url in project["urls"].values())
    text = (made / "README.md").read_text(encoding="utf-8")
    assert LINK.findall(text) == []
    ours = re.findall(rf"(!?)\[[^]]*\]\({start}(\w+)/v{project['version']}/([^)#]*)", text)
    assert ours
    for picture, kind, path in ours:
        assert (ROOT / path).exists()
        assert kind == ("raw" if picture else "blob")
    assert start not in (folder / "README.md").read_text(encoding="utf-8")


def test_links_in_code_stay_as_they_are(publishing: ModuleType) -> None:
    text = "[a](b.md#c) ![d](../e.svg) [f](https://f.org) [g](#g)\n```text\n[a](b.md)\n```\n"
    made = publishing.absolute(text, PurePosixPath("integrations/x"), "1.0")
    start = publishing.repository()
    assert made == (
        f"[a]({start}/blob/v1.0/integrations/x/b.md#c) ![d]({start}/raw/v1.0/integrations/e.svg) "
        "[f](https://f.org) [g](#g)\n```text\n[a](b.md)\n```\n"
    )


def test_the_changelog_tells_of_the_present_version() -> None:
    from bm25rag import __version__

    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"## [{__version__}]" in text
    assert f'\nversion = "{__version__}"\n' in project

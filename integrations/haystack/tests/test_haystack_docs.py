"""The code in the README, on the migration page and in docstrings runs unchanged."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

HERE = Path(__file__).parents[1]
PAGES = [HERE / "README.md", HERE.parents[1] / "docs" / "migrate-haystack.md"]


OTHER_SCRIPTS = [
    "我喜欢机器学习",
    "机器学习 with Python 3",
    "\uff46\uff55\uff4c\uff4c \uff57\uff49\uff44\uff54\uff48 \uff8a\uff9d\uff76\uff78",
    "カタカナとひらがな",
    "한국어 문장",
    "C and R",
    "Café Cafe\u0301 İstanbul",
    "a_b x-y 1.5",
]
QUERIES_IN_OTHER_SCRIPTS = [
    "机器",
    "学习 python",
    "ハンカク \uff8a\uff9d",
    "ひらがな",
    "한국",
    "café",
    "full width",
    "\uff57\uff49\uff44\uff54\uff48",
]


def run_page(page: Path) -> dict[str, Any]:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not page.is_file():
        pytest.skip(f"{page.name} is in the repository, not in the distribution")
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_projects_readme_shows_what_the_adapter_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = HERE.parents[1] / "README.md"
    if not page.is_file():
        pytest.skip("the project's README is in the repository, not in the distribution")
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (block,) = (one for one in blocks if "haystack_integrations" in one)
    exec(block, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", block, re.MULTILINE)


def test_the_pages_recipe_gives_the_old_scores_in_all_scripts(
    documents: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = PAGES[1]
    if not page.is_file():
        pytest.skip(f"{page.name} is in the repository, not in the distribution")
    monkeypatch.chdir(tmp_path)
    ours, theirs = run_page(page)["old_way"], InMemoryDocumentStore()
    for store in (ours, theirs):
        store.write_documents([*documents, *(Document(content=text) for text in OTHER_SCRIPTS)])
    asked = ["the cat", "Dogs and cats", "der hund sat", "swim", "unheard of", "r", "x y"]
    for query in [*asked, *QUERIES_IN_OTHER_SCRIPTS]:
        new, old = ours.bm25_retrieval(query, top_k=99), theirs.bm25_retrieval(query, top_k=99)
        assert {one.id: one.score for one in new} == pytest.approx(
            {one.id: one.score for one in old}, rel=1e-6
        ), query


@pytest.mark.parametrize(
    "name",
    [
        "haystack_integrations.document_stores.bm25rag.document_store",
        "haystack_integrations.components.retrievers.bm25rag.retrievers",
    ],
)
def test_the_examples_of_a_docstring_run(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0

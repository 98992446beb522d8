"""The code in the README, on the migration page and in docstrings runs as it stands."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
PAGES = [HERE / "README.md", HERE.parents[1] / "docs" / "migrate-haystack.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not page.is_file():
        pytest.skip(f"{page.name} is in the repository, not in the distribution")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    exec("\n".join(blocks), {})


@pytest.mark.parametrize(
    "name",
    [
        "haystack_integrations.document_stores.bm25rag.document_store",
        "haystack_integrations.components.retrievers.bm25rag.bm25_retriever",
    ],
)
def test_the_examples_of_a_docstring_run(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0

"""The distribution: a namespace package, typed; its documentation runs."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import llama_index
import llama_index.retrievers
import llama_index.vector_stores
import pytest
from llama_index.retrievers import bm25rag
from llama_index.vector_stores import bm25rag as vector_stores

HERE = Path(__file__).parents[1]
ROOT = HERE.parent.parent
PAGES = [HERE / "README.md", ROOT / "docs" / "migrate-llamaindex.md"]


def test_nothing_is_put_at_the_shared_levels() -> None:
    for shared in (llama_index, llama_index.retrievers, llama_index.vector_stores):
        assert getattr(shared, "__file__", None) is None
    for ours in (bm25rag, vector_stores):
        assert ours.__file__ is not None
        package = Path(ours.__file__).parent
        assert not (package.parent / "__init__.py").exists()
        assert not (package.parent.parent / "__init__.py").exists()


def test_it_is_typed_and_small() -> None:
    assert files(bm25rag).joinpath("py.typed").is_file()
    assert bm25rag.__all__ == ["BM25Retriever", "SyncResult", "agent_tools", "search_tool"]
    assert bm25rag.__all__ == sorted(bm25rag.__all__)
    assert files(vector_stores).joinpath("py.typed").is_file()
    assert vector_stores.__all__ == [
        "BM25VectorStore",
        "DenseStoreError",
        "NoEmbedding",
        "SparseEncoderError",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_documentation_runs(page: Path) -> None:
    if not page.exists():
        pytest.skip("the documentation is in the repository alone")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page.name, "exec"), {})


def test_the_projects_readme_shows_what_the_adapter_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = ROOT / "README.md"
    if not page.exists():
        pytest.skip("the project's README is in the repository alone")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (one for one in blocks if "llama_index.retrievers.bm25rag" in one)
    exec(block, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", block, re.MULTILINE)

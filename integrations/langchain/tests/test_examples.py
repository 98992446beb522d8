"""The example runs as it is, offline and with models; so does the code of the documentation."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder

PAGES = [ROOT / "integrations/langchain/README.md", ROOT / "docs/migrate-langchain.md"]

sys.path.append(str(ROOT / "tests"))
rag_examples = pytest.importorskip(
    "support.rag_examples", reason="the examples are in the repository alone"
)


@pytest.fixture
def example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> rag_examples.Example:
    return rag_examples.Example("langchain_rag.py", tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("check", rag_examples.OFFLINE, ids=lambda check: check.__name__)
def test_the_example_does_what_all_do(
    example: rag_examples.Example, check: Callable[[rag_examples.Example], None]
) -> None:
    check(example)


def test_models_embed_and_answer(example: rag_examples.Example) -> None:
    pytest.importorskip("langchain_openai")
    rag_examples.check_models(example)


def test_a_cross_encoder_ranks_again(
    example: rag_examples.Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangChain's class is in langchain-community and needs torch; this one has its arguments."""

    class HuggingFaceCrossEncoder(BaseCrossEncoder):
        def __init__(self, *, model_name: str) -> None:
            self.encoder = rag_examples.Encoder(model_name)

        def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
            return list(self.encoder.predict(text_pairs))

    fake = ModuleType("langchain_community.cross_encoders")
    fake.HuggingFaceCrossEncoder = HuggingFaceCrossEncoder  # type: ignore[attr-defined]
    for module in (ModuleType("langchain_community"), fake):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    rag_examples.check_cross_encoder(example)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All blocks of a page, in order; ``assert`` in them holds."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert blocks
    source = "\n".join(blocks)
    assert "assert" in source
    scope: dict[str, Any] = {"__name__": page.stem}
    exec(compile(source, page.name, "exec"), scope)
    if "records" in scope:
        scope["records"].engine.dispose()  # Python 3.13 warns of a database that is never closed


def test_the_projects_readme_shows_what_the_adapter_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its lines of code print what the comments behind them say."""
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (block,) = (one for one in blocks if "langchain_bm25rag" in one)
    exec(block, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", block, re.MULTILINE)

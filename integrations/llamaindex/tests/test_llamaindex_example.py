"""The example runs as it is: offline, and with models of all three kinds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "tests"))
rag_examples = pytest.importorskip(
    "support.rag_examples", reason="the examples are in the repository alone"
)


@pytest.fixture
def example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> rag_examples.Example:
    return rag_examples.Example("llamaindex_rag.py", tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("check", rag_examples.OFFLINE, ids=lambda check: check.__name__)
def test_the_example_does_what_all_do(
    example: rag_examples.Example, check: Callable[[rag_examples.Example], None]
) -> None:
    check(example)


def test_models_embed_and_answer(example: rag_examples.Example) -> None:
    pytest.importorskip("llama_index.embeddings.openai_like", exc_type=ImportError)
    pytest.importorskip("llama_index.llms.openai_like", exc_type=ImportError)
    rag_examples.check_models(example)


def test_a_cross_encoder_ranks_again(
    example: rag_examples.Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks_torch = "llama_index.core.postprocessor.sbert_rerank.infer_torch_device"
    monkeypatch.setattr(asks_torch, lambda: "cpu")
    rag_examples.check_cross_encoder(example)

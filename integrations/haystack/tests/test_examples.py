"""The examples run as they are: offline, and with models of all three kinds."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType

import pytest
from haystack import Document, component

sys.path.append(str(Path(__file__).parents[3] / "tests"))
rag_examples = pytest.importorskip(
    "support.rag_examples", reason="the examples are in the repository alone"
)


@pytest.fixture
def example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> rag_examples.Example:
    return rag_examples.Example("haystack_rag.py", tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("check", rag_examples.OFFLINE, ids=lambda check: check.__name__)
def test_the_example_does_what_all_do(
    example: rag_examples.Example, check: Callable[[rag_examples.Example], None]
) -> None:
    check(example)


def test_models_embed_and_answer(example: rag_examples.Example) -> None:
    rag_examples.check_models(example)


def test_a_ranker_ranks_again(
    example: rag_examples.Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its class is in a distribution that brings torch; this one has its arguments."""

    @component
    class SentenceTransformersSimilarityRanker:
        def __init__(self, *, model: str, top_k: int) -> None:
            self.encoder, self.top_k = rag_examples.Encoder(model), top_k

        @component.output_types(documents=list[Document])
        def run(self, *, query: str, documents: list[Document]) -> dict[str, list[Document]]:
            scores = self.encoder.predict([(query, each.content or "") for each in documents])
            return {"documents": [documents[place] for place in (-scores).argsort()[: self.top_k]]}

    rankers = ModuleType("haystack_integrations.components.rankers")
    fake = ModuleType(f"{rankers.__name__}.sentence_transformers")
    rankers.sentence_transformers = fake  # type: ignore[attr-defined]
    fake.SentenceTransformersSimilarityRanker = SentenceTransformersSimilarityRanker  # type: ignore[attr-defined]
    for module in (rankers, fake):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    rag_examples.check_cross_encoder(example)


@pytest.mark.skipif(
    not {"langchain-bm25rag", "llama-index-retrievers-bm25rag"}
    <= {distribution.name for distribution in distributions()},
    reason="needs the three adapters in one environment, as `make together` has them",
)
def test_all_frameworks_give_the_same_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(rag_examples.EXAMPLES / "frameworks.py")
    monkeypatch.setattr(sys, "argv", [path, "How are dates compared in a filter?"])
    runpy.run_path(path, run_name="__main__")
    same, own = capsys.readouterr().out.split("ids and scores are equal")
    assert [name in same for name in ("langchain", "llamaindex", "haystack")] == [True] * 3
    assert same.count("filters.md#") >= 3
    title, *lines = own.split("\n\n")[1].splitlines()
    assert "InMemoryBM25Retriever" in title
    assert len(lines) == 3

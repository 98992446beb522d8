"""What a language's analyzer gains, on the shared test collections."""

from __future__ import annotations

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.evaluation import Collection, Evaluation, compare, evaluate, load_beir, run_of
from support.environment import collection as folder_of

pytestmark = pytest.mark.slow
pytest.importorskip("pytrec_eval")


def evaluated(collection: Collection, language: str | None) -> Evaluation:
    """Evaluate the default index with the analyzer of a language, or with none."""
    index = BM25Index(analyzer=Analyzer(language=language))
    index.add_documents(collection.read())
    return evaluate(run_of(index, collection.queries), collection.qrels, "nDCG@10")


# docs/evaluation.md shows these figures.
@pytest.mark.parametrize(
    ("name", "language", "without", "with_language"),
    [
        ("cranfield", "en", 0.494, 0.524),
        ("scifact", "en", 0.664, 0.689),
        ("xquad-de", "de", 0.923, 0.947),
        ("xquad-es", "es", 0.951, 0.967),
        ("xquad-ru", "ru", 0.871, 0.954),
        ("xquad-ar", "ar", 0.885, 0.946),
    ],
)
def test_the_analyzer_of_a_language_gains_significantly(
    name: str, language: str, without: float, with_language: float
) -> None:
    collection = load_beir(folder_of(name))
    found = compare(evaluated(collection, language), evaluated(collection, None), "nDCG@10")
    assert found.significant
    assert found.baseline == pytest.approx(without, abs=0.005)
    assert found.mean == pytest.approx(with_language, abs=0.005)

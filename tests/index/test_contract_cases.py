"""Metadata comes back as given, and the cases that other retrievers get wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import Analyzer, BM25Index, Hit

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture
def index() -> BM25Index:
    texts = ["red apples and green pears", "green tea", "a red boat on the red sea", ""]
    return BM25Index.from_texts(texts, ids=["fruit", "tea", "boat", "nothing"])


def names(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]


ODD_METADATA: list[dict[str, Any]] = [
    {},
    {"": "", "a.b": 1, "$x": 2, "é": "ü", "\x00": "\x00"},
    {"ints": [0, -1, 2**63, -(2**63) - 1, 10**100], "floats": [0.0, 0.1, 1e308, 5e-324, 1.0]},
    {"true": True, "false": False, "null": None, "one": 1, "real": 1.0},
    {"nested": {"list": [[], [{}], {"x": [None]}]}},
    {"date": date(2024, 2, 29), "old": date(1, 1, 1)},
    {"naive": datetime(2024, 2, 29, 12, 30, 1, 999999), "utc": datetime(2024, 1, 1, tzinfo=UTC)},
    {"zone": datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))},
    {"looks like a date": "2024-01-01", "__date__": "2024-01-01", "$date": "2024-01-01"},
    {"type": "date", "value": "2024-01-01"},
]


@pytest.mark.parametrize("stored", [False, True])
def test_metadata_comes_back_as_given(stored: bool, tmp_path: Path) -> None:
    index = BM25Index.from_texts(["word"] * len(ODD_METADATA), metadata=ODD_METADATA)
    if stored:
        index.save(tmp_path / "index")
        index = BM25Index.open(tmp_path / "index")
    found = [document.metadata for document in index.get(index.ids())]
    assert found == ODD_METADATA
    assert repr(found).replace("datetime.timezone.utc", "UTC") == repr(ODD_METADATA).replace(
        "datetime.timezone.utc", "UTC"
    )


# -- where today's retrievers go wrong


def test_nothing_that_does_not_match_is_returned(index: BM25Index) -> None:
    for query in ("unknown", "", "   ", "the and of", [], "?!"):
        assert index.search(query) == []
        assert index.search_batch([query]).hits() == [[]]
    assert names(index.search("red", k=10)) == ["boat", "fruit"]


def test_an_empty_corpus_answers_everything(tmp_path: Path) -> None:
    for index in (BM25Index(), BM25Index.from_texts([])):
        assert index.search("red") == index.ids() == index.get(["x"]) == index.vocabulary() == []
        assert index.scores("red").shape == (0,)
        assert index.search_batch(["red"], k=3).rows.shape == (1, 0)
        assert index.to_scipy().shape == (0, 0)
        assert (len(index), index.count(), index.delete(["x"])) == (0, 0, [])
        assert index.stats()["documents"] == 0
        assert index.tune(variant="bm25l").search("red") == []
        assert index.add([]) == []
        index.save(tmp_path / "index")
        assert BM25Index.open(tmp_path / "index").search("red") == []


def test_documents_without_terms_count_and_are_never_found() -> None:
    index = BM25Index.from_texts(["", "?!", "red", []])
    assert len(index) == 4
    assert names(index.search("red the")) == ["2"]
    # N = 4, df = 1, one term in four documents: avgdl = 1/4
    norm = 1 - 0.75 + 0.75 * 1 / 0.25
    expected = np.log(1 + 3.5 / 1.5) / (1 + 1.2 * norm)
    assert index.search("red")[0].score == pytest.approx(expected, rel=1e-6)


def test_an_emptied_index_is_as_good_as_new(index: BM25Index) -> None:
    index.delete(index.ids())
    assert index.search("red") == index.ids() == index.vocabulary() == []
    index.add(["red"], ids=["fruit"])
    assert names(index.search("red")) == ["fruit"]
    assert index.search("red")[0].score == BM25Index.from_texts(["red"]).search("red")[0].score


def test_language_and_parameters_survive_a_reload(tmp_path: Path) -> None:
    analyzer = Analyzer(language="german")
    index = BM25Index(analyzer=analyzer, variant="atire", k1=0.7, b=0.2)
    index.add(["Die Häuser stehen am Fluss", "Ein Haus"])
    index.save(tmp_path / "index")
    opened = BM25Index.open(tmp_path / "index")
    assert opened.analyzer == analyzer
    assert (opened.variant, opened.k1, opened.b) == ("atire", 0.7, 0.2)
    assert opened.search("häusern") == index.search("häusern") != []

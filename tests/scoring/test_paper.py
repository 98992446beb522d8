"""Tables 2 and 3 of the BM25S paper on SciFact, each figure within 0.15 of a point.

Lù 2024, "BM25S: Orders of magnitude faster lexical search via eager sparse scoring",
NDCG@10 times 100, titles and texts joined by a space.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.analysis import PAPER
from support.environment import collection
from support.ndcg import ndcg

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.untraced]


def test_ndcg_of_a_ranking_computed_by_hand() -> None:
    """Grades 3, 0, 2 found at ranks 1 to 3 and a 1 that was missed.

    DCG = 3/log2(2) + 0/log2(3) + 2/log2(4) = 3 + 0 + 1 = 4
    ideal = 3/log2(2) + 2/log2(3) + 1/log2(4) = 3 + 1.26186 + 0.5 = 4.76186
    """
    grades = {"a": 3, "b": 2, "c": 1}
    assert ndcg(["a", "x", "b"], grades) == pytest.approx(4 / 4.76186, abs=1e-6)
    assert ndcg(["a", "b", "c"], grades) == 1
    assert ndcg([], grades) == ndcg(["x"], grades) == 0
    assert ndcg(["x", "a"], {"a": 1}, depth=1) == 0
    assert ndcg(["x", "a"], {"a": 1}) == pytest.approx(1 / math.log2(3))


@dataclass(frozen=True)
class Collection:
    """A collection in BEIR's layout."""

    texts: dict[str, str]
    queries: dict[str, str]
    grades: dict[str, dict[str, int]]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


@pytest.fixture(scope="module")
def scifact() -> Collection:
    folder = collection("scifact")
    texts = {row["_id"]: f"{row['title']} {row['text']}" for row in lines(folder / "corpus.jsonl")}
    queries = {row["_id"]: row["text"] for row in lines(folder / "queries.jsonl")}
    grades: dict[str, dict[str, int]] = {}
    judged = (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    for query, document, grade in (line.split("\t") for line in judged):
        grades.setdefault(query, {})[document] = int(grade)
    return Collection(texts, queries, grades)


def analyzer(stop: bool, stem: bool) -> Analyzer:
    """English with the paper's pattern, with or without stop words and stemmer."""
    return Analyzer(
        language="english",
        token_pattern=PAPER,
        stopwords="auto" if stop else None,
        stemmer="auto" if stem else None,
    )


def score(index: BM25Index, collection: Collection, depth: int = 10) -> float:
    asked = list(collection.grades)
    batch = index.search_batch([collection.queries[name] for name in asked], k=depth)
    found = [
        ndcg(ranking, collection.grades[name])
        for name, ranking in zip(asked, batch.ids(), strict=True)
    ]
    return 100 * sum(found) / len(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stop", "stem", "published"),
    [(True, True, 68.7), (True, False, 66.2), (False, True, 68.5), (False, False, 66.1)],
    ids=["stop words and stemmer", "stop words", "stemmer", "neither"],
)
def test_table_of_stop_words_and_stemmers(
    scifact: Collection, stop: bool, stem: bool, published: float
) -> None:
    index = BM25Index(analyzer=analyzer(stop, stem), variant="lucene", k1=1.5, b=0.75)
    index.add(scifact.texts.values(), ids=list(scifact.texts))
    assert score(index, scifact) == pytest.approx(published, abs=0.15)


@pytest.fixture(scope="module")
def indexed(scifact: Collection) -> BM25Index:
    """SciFact with the paper's token pattern, which is one setting away."""
    analyzer = Analyzer(token_pattern=PAPER)
    return BM25Index.from_texts(scifact.texts.values(), ids=list(scifact.texts), analyzer=analyzer)


@pytest.mark.parametrize(
    ("variant", "k1", "b", "published"),
    [
        ("lucene", 1.5, 0.75, 68.7),
        ("lucene", 1.2, 0.75, 68.0),
        ("atire", 1.2, 0.75, 68.1),
        ("bm25+", 1.2, 0.75, 68.1),
        ("bm25l", 1.2, 0.75, 68.7),
        ("robertson", 1.2, 0.75, 68.3),
        ("lucene", 0.9, 0.4, 67.6),
    ],
)
def test_table_of_variants(
    indexed: BM25Index, scifact: Collection, variant: str, k1: float, b: float, published: float
) -> None:
    view = indexed.tune(variant=variant, k1=k1, b=b)
    assert score(view, scifact) == pytest.approx(published, abs=0.15)


def test_the_first_ten_do_not_depend_on_how_many_are_asked_for(
    indexed: BM25Index, scifact: Collection
) -> None:
    questions = list(scifact.queries.values())[:100]
    deep = indexed.search_batch(questions, k=1000)
    expected = score(indexed, scifact, 1000)
    for depth in (10, 20, 100):
        shallow = indexed.search_batch(questions, k=depth)
        assert (shallow.rows == deep.rows[:, :depth]).all()
        assert (shallow.scores == deep.scores[:, :depth]).all()
        assert score(indexed, scifact, depth) == expected

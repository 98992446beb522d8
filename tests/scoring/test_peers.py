"""Scores agree with published worked examples and with other people's code."""

from __future__ import annotations

import math
from typing import Any

import bm25s
import numpy as np
import pytest
import rank_bm25

from bm25rag import BM25Index

pytestmark = pytest.mark.usefixtures("backend")

# The default delta of all of bm25s's methods.
BM25S_DELTA = 0.5


@pytest.fixture(scope="module")
def corpus() -> list[list[str]]:
    """300 documents of Zipf-like terms; some terms are in more than half of them."""
    generator = np.random.default_rng(11)
    weights = 1 / np.arange(1, 201)
    vocabulary = [f"t{number}" for number in range(200)]
    return [
        generator.choice(vocabulary, size, p=weights / weights.sum()).tolist()
        for size in generator.integers(1, 120, 300)
    ]


@pytest.fixture(scope="module")
def questions() -> list[list[str]]:
    """Draw queries of one to eight terms, frequent, rare and repeated ones."""
    generator = np.random.default_rng(12)
    drawn = [
        [f"t{number}" for number in (generator.random(size) ** 3 * 200).astype(int)]
        for size in generator.integers(1, 9, 60)
    ]
    return [*drawn, ["t0"], ["t0", "t0", "t1"], ["t199"]]


def assert_close(
    ours: np.ndarray, theirs: np.ndarray, relative: float, absolute: float = 0.0
) -> None:
    """Compare as pytest.approx does, which takes a hundred times as long for an array."""
    assert ours.shape == theirs.shape
    assert np.all(np.abs(ours - theirs) <= np.maximum(relative * np.abs(theirs), absolute))


def scored_by_bm25s(
    corpus: list[list[str]], questions: list[list[str]], **options: Any
) -> list[np.ndarray]:
    """Return the scores of every document for every query, as bm25s computes them."""
    retriever = bm25s.BM25(**options)
    retriever.index(corpus, show_progress=False)
    known = set(retriever.vocab_dict)
    return [
        retriever.get_scores([term for term in question if term in known]) for question in questions
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"variant": "lucene"},
        {"variant": "robertson"},
        {"variant": "atire"},
        {"variant": "bm25l", "delta": BM25S_DELTA},
        {"variant": "bm25+", "delta": BM25S_DELTA},
        {"variant": "bm25l", "delta": 1.3},
        {"variant": "bm25+", "delta": 1.0},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (2.0, 1.0), (1.2, 0.0)])
def test_scores_are_those_of_bm25s(
    corpus: list[list[str]],
    questions: list[list[str]],
    settings: dict[str, Any],
    k1: float,
    b: float,
) -> None:
    index = BM25Index.from_texts(corpus, k1=k1, b=b, **settings)
    delta = settings.get("delta", BM25S_DELTA)
    theirs = scored_by_bm25s(corpus, questions, method=settings["variant"], k1=k1, b=b, delta=delta)
    for question, expected in zip(questions, theirs, strict=True):
        # theirs are sums of float32
        assert_close(index.scores(question), expected, 2e-6, 2e-6)


@pytest.mark.parametrize(
    ("frequency", "weight"),
    [("lucene", "atire"), ("robertson", "lucene"), ("atire", "robertson"), ("bm25+", "bm25l")],
)
def test_each_part_alone_is_that_of_bm25s(
    corpus: list[list[str]], frequency: str, weight: str
) -> None:
    """bm25s takes idf from one method and f from another; explain shows both parts apart."""
    retriever = bm25s.BM25(k1=1.2, b=0.75, delta=1.0, method=frequency, idf_method=weight)
    retriever.index(corpus, show_progress=False)
    for_idf = BM25Index.from_texts(corpus, variant=weight)
    for_f = BM25Index.from_texts(
        corpus, variant=frequency, delta=1.0 if frequency == "bm25+" else None, delta_on="matched"
    )
    for term in ("t0", "t3", "t40"):
        theirs = retriever.get_scores([term])
        for row, name in enumerate(for_f.ids()):
            if term in corpus[row]:
                idf = for_idf.explain([term], name).terms[0].idf
                f = for_f.explain([term], name).terms[0].f
                assert idf * f == pytest.approx(theirs[row], rel=2e-6)


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (2.0, 1.0)])
def test_robertson_times_k1_plus_1_is_rank_bm25s_okapi_without_epsilon(
    corpus: list[list[str]], questions: list[list[str]], k1: float, b: float
) -> None:
    theirs = rank_bm25.BM25Okapi(corpus, k1=k1, b=b, epsilon=0)
    ours = BM25Index.from_texts(corpus, variant="robertson", k1=k1, b=b)
    for question in questions:
        expected = theirs.get_scores(question)
        assert_close((k1 + 1) * ours.scores(question), expected, 1e-6, 1e-9)


@pytest.mark.parametrize(("k1", "b", "delta"), [(1.5, 0.75, 1), (0.9, 0.4, 0.3), (2.0, 1.0, 2)])
def test_bm25_plus_is_rank_bm25s(
    corpus: list[list[str]], questions: list[list[str]], k1: float, b: float, delta: float
) -> None:
    theirs = rank_bm25.BM25Plus(corpus, k1=k1, b=b, delta=delta)
    ours = BM25Index.from_texts(corpus, variant="bm25+", k1=k1, b=b, delta=delta)
    for question in questions:
        assert_close(ours.scores(question), theirs.get_scores(question), 1e-6, 1e-12)


def test_bm25l_is_rank_bm25s_where_its_error_does_not_show(corpus: list[list[str]]) -> None:
    """The released BM25L multiplies by tf once too often, so tf = 1 alone agrees, tf = 0 not."""
    theirs = rank_bm25.BM25L(corpus, k1=1.5, b=0.75, delta=0.5)
    ours = BM25Index.from_texts(corpus, variant="bm25l", k1=1.5, b=0.75)
    for term in ("t0", "t9", "t120"):
        counts = np.array([document.count(term) for document in corpus])
        matched = counts > 0
        expected = theirs.get_scores([term])[matched] / counts[matched]
        assert ours.scores([term])[matched] == pytest.approx(expected, rel=1e-6)


# -- numbers printed elsewhere ------------------------------------------------------


def test_the_explanation_in_elasticsearchs_reference() -> None:
    """Elasticsearch 7 and 8, "Explain API": message:elasticsearch scores 1.6943597.

    There n = 1, N = 5, freq = 1, k1 = 1.2, b = 0.75, dl = 3, avgdl = 5.4, boost = 2.2
    (the k1 + 1 that Lucene 8 took out of the formula):

    idf = ln(1 + (5 - 1 + 0.5) / (1 + 0.5)) = ln 4 = 1.3862944
    tf  = 1 / (1 + 1.2 * (1 - 0.75 + 0.75 * 3 / 5.4)) = 1 / (1 + 1.2 * 0.6666667) = 0.5555555
    2.2 * 1.3862944 * 0.5555555 = 1.6943597
    """
    texts = [["elasticsearch", "x", "x"], *[["x"] * 6] * 4]  # 27 terms / 5 = 5.4
    index = BM25Index.from_texts(texts, variant="lucene", k1=1.2, b=0.75)
    part = index.explain(["elasticsearch"], "0").terms[0]
    assert part.idf == pytest.approx(1.3862944, abs=1e-7)
    assert part.f == pytest.approx(0.5555555, abs=1e-7)
    assert 2.2 * index.search(["elasticsearch"])[0].score == pytest.approx(1.6943597, abs=3e-7)


def test_the_explanation_in_elasticsearchs_older_reference() -> None:
    """Elasticsearch 5, "Explain API": the same with dl = 4 scores 1.55077.

    tfNorm = 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 4 / 5.4)) = 2.2 / 1.9666667 = 1.1186441
    1.3862944 * 1.1186441 = 1.55077
    """
    texts = [["elasticsearch", "x", "x", "x"], *[["x"] * 6] * 3, ["x"] * 5]
    index = BM25Index.from_texts(texts, variant="lucene", k1=1.2, b=0.75)
    part = index.explain(["elasticsearch"], "0").terms[0]
    assert 2.2 * part.f == pytest.approx(1.1186441, abs=1e-7)
    assert 2.2 * index.scores(["elasticsearch"])[0] == pytest.approx(1.55077, abs=3e-7)


@pytest.mark.slow
def test_president_lincoln() -> None:
    """Croft, Metzler and Strohman, "Search Engines", section 7.2.2, table 7.2.

    N = 500,000, n = 40,000 for "president" and 300 for "lincoln", K = 1.11, k1 = 1.2;
    their query factor (k2 + 1) * qf / (k2 + qf) is 1 for a term that occurs once.
    K stands for k1 * B, so b = 0 and k1 = 1.11 give it whatever the lengths; the factor
    k1 + 1 = 2.2, which our robertson leaves out, is put in below.

    ln(460000.5 / 40000.5) * 15 * 2.2 / (15 + 1.11) = 2.4424 * 2.0484 =  5.00
    ln(499700.5 /   300.5) * 25 * 2.2 / (25 + 1.11) = 7.4163 * 2.1065 = 15.62
    """
    frequencies = [(15, 25), (15, 1), (15, 0), (1, 25), (0, 25)]
    texts = [["president"] * p + ["lincoln"] * n for p, n in frequencies]
    texts += [["president"]] * (40_000 - 4) + [["lincoln"]] * (300 - 4)
    texts += [[]] * (500_000 - len(texts))
    index = BM25Index.from_texts(texts, variant="robertson", k1=1.11, b=0.0)
    scores = 2.2 * index.scores(["president", "lincoln"])[:5]
    # The book rounds each part to two digits and more on the way.
    assert scores == pytest.approx([20.66, 12.74, 5.00, 18.2, 15.66], abs=0.06)
    parts = [math.log(460000.5 / 40000.5) * 33 / 16.11, math.log(499700.5 / 300.5) * 55 / 26.11]
    assert scores[0] == pytest.approx(sum(parts), rel=1e-6)


def test_arithmetic_of_every_variant_by_hand() -> None:
    """N = 4, df = 1, tf = 2, |d| = 4, avgdl = 8 / 4 = 2; k1 = 1, b = 1/2, so B = 3/2.

    lucene     ln(1 + 3.5/1.5) * 2 / (2 + 1.5)              = ln(10/3) * 4/7
    robertson  ln(3.5/1.5) * 4/7
    atire      ln 4 * 2 * 2 / 3.5                           = ln 4 * 8/7
    bm25l      ln(5/1.5) * 2 * (4/3 + .5) / (1 + 4/3 + .5)  = ln(10/3) * 22/17
    bm25+      ln 5 * (8/7 + 1)
    tfldp      ln 5 * (1 + ln(1 + ln(4/3 + 1)))
    tfidf      ln 4 * 2/4
    """
    texts = [["a", "a", "b", "c"], ["b"], ["b"], ["c", "d"]]
    expected = {
        "lucene": math.log(10 / 3) * 4 / 7,
        "robertson": math.log(7 / 3) * 4 / 7,
        "atire": math.log(4) * 8 / 7,
        "bm25l": math.log(10 / 3) * 22 / 17,
        "bm25+": math.log(5) * 15 / 7,
        "tfldp": math.log(5) * (1 + math.log(1 + math.log(7 / 3))),
        "tfidf": math.log(4) / 2,
    }
    for variant, score in expected.items():
        index = BM25Index.from_texts(texts, variant=variant, k1=1, b=0.5)
        assert index.search(["a"])[0].score == pytest.approx(score, rel=2e-7)

"""Single cases of exactness that random tests may miss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bm25rag import BM25Index
from bm25rag.scoring.variants import Parameters
from support.cases import first
from support.environment import INTERPRETED
from support.holding import assert_same_scores, assert_same_statistics, bits, build
from support.reference import SHIFTED, VARIANTS, Reference

pytestmark = pytest.mark.usefixtures("backend")


@pytest.mark.parametrize("delta_on", ["all", "matched"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("texts", "query"),
    [
        ([["a"]], ["a"]),
        ([["a", "a"], []], ["a", "a", "b"]),
        ([["a"], ["a"], ["a"]], ["a"]),
        ([["a", "b"], ["a", "c"], ["b", "a"]], ["a", "c", "a"]),
        ([["a"], ["b"]], ["a", "b"]),
        ([[], [], []], ["a"]),
    ],
    ids=["one document", "with an empty one", "ties", "df = N", "df = N/2", "only empty"],
)
def test_edge_corpora(
    variant: str, delta_on: str, texts: list[list[str]], query: list[str]
) -> None:
    index, reference = build(texts, variant=variant, delta_on=delta_on)
    assert_same_scores(index, reference, query)


@pytest.mark.parametrize("variant", VARIANTS[: 1 if INTERPRETED else None])
@pytest.mark.parametrize("delta_on", ["all", "matched"])
def test_a_frequency_beyond_sixteen_bits(variant: str, delta_on: str) -> None:
    index, reference = build([["a"] * 70_000, ["a", "b"]], variant=variant, delta_on=delta_on)
    assert_same_scores(index, reference, ["b", "a"])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("k1", [0.0, 1e-300, 5e-324, 1e30])
@pytest.mark.parametrize("b", [0.0, 5e-324, 1.0])
def test_extreme_parameters(variant: str, k1: float, b: float) -> None:
    texts = [["a", "b"], ["a", "a", "b", "c"], ["c"], []]
    index, reference = build(texts, variant=variant, k1=k1, b=b)
    assert_same_scores(index, reference, ["a", "c", "b", "a"])


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_idf_of_one_frequency_has_the_bits_that_it_has_among_others(variant: str) -> None:
    parameters = Parameters(variant=variant)
    for documents in (1, 7, 5_183, 8_841_823):
        frequencies = np.unique(np.geomspace(1, documents, 500).round())
        each = [parameters.idf_of(documents, int(one)) for one in frequencies]
        assert each == parameters.idf(documents, frequencies).tolist()


@pytest.mark.parametrize("variant", ["bm25l", "bm25+"])
@pytest.mark.parametrize("k1", [0.0, 1.2])
def test_a_delta_of_zero(variant: str, k1: float) -> None:
    index, reference = build([["a", "b"], ["a"], []], variant=variant, k1=k1, delta=0.0)
    assert_same_scores(index, reference, ["a", "b"])


@pytest.mark.parametrize("variant", ["robertson", "atire", "tfidf"])
def test_a_match_that_scores_zero_is_still_a_match(variant: str) -> None:
    index = BM25Index.from_texts([["a"], ["a", "b"], ["a"]], variant=variant)
    assert bits(index.search(["a"])) == [("0", "0x0.0p+0"), ("1", "0x0.0p+0"), ("2", "0x0.0p+0")]
    assert index.search(["a"], min_score=5e-324) == []
    assert len(index.search(["a"], min_score=0)) == 3


@pytest.mark.parametrize("delta_on", ["all", "matched"])
def test_a_match_of_negative_score_is_ranked_and_a_non_match_above_it_is_not(delta_on: str) -> None:
    # avgdl is 0.8, so tf/B is 0.08 and 0.05, and f = 1 + ln(1 + ln(tf/B + 0.38)) negative.
    texts = [["a", *"bcdefghij"], ["b"], ["a", *"bcdefghijklmnop"], *[[]] * 30]
    chosen = {"variant": "tfldp", "delta": 0.38, "delta_on": delta_on, "b": 1.0}
    index, reference = build(texts, **chosen)
    found = index.search(["a"])
    assert bits(found) == bits(reference.matches(["a"]))
    assert {hit.id for hit in found} == {"0", "2"}
    assert all(hit.score < 0 for hit in found)


@pytest.mark.parametrize("variant", SHIFTED)
def test_the_shift_reaches_documents_without_a_term_only_where_delta_is_on_all(
    variant: str,
) -> None:
    texts = [["a"], ["b"], []]
    every = BM25Index.from_texts(texts, variant=variant).scores(["a"])
    matched = BM25Index.from_texts(texts, variant=variant, delta_on="matched").scores(["a"])
    assert every[1] == every[2] != 0
    assert matched[1] == matched[2] == 0


def test_delta_of_bm25_plus_ranks_only_where_it_is_summed_over_matched_terms() -> None:
    texts = [["a", "b", *"vwxyz"], ["a"], ["c"], ["d"]]
    query = ["a", "b"]

    def order(delta: float, delta_on: str) -> list[str]:
        index = BM25Index.from_texts(
            texts, variant="bm25+", delta=delta, delta_on=delta_on, b=1.0, k1=3.0
        )
        return [hit.id for hit in index.search(query)]

    assert order(0.0, "all") == order(50.0, "all") == order(0.0, "matched")
    reference = Reference("bm25+", 3.0, 1.0, 50.0, "matched")
    reference.add(texts)
    assert order(50.0, "matched") == [hit.id for hit in reference.matches(query)] == ["0", "1"]
    assert order(50.0, "all") == ["1", "0"]


def test_ties_stand_in_document_order_and_a_replaced_document_moves_to_the_end() -> None:
    index = BM25Index.from_texts([["a"]] * 40)
    assert [hit.id for hit in index.search(["a"], k=3)] == ["0", "1", "2"]
    index.add([["a"]], ids=["1"], on_duplicate="replace")
    assert [hit.id for hit in index.search(["a"], k=2)] == ["0", "2"]
    assert [hit.id for hit in index.search(["a"], k=40)][-1] == "1"
    index.update_metadata(["0"], [{"changed": True}])
    assert index.search(["a"], k=1)[0].id == "0"


@pytest.mark.parametrize("term", ["", "\x00", "\ud800", "a b", "\U0001f600", "A", "the"])
def test_any_string_is_a_term_where_terms_are_given(term: str, tmp_path: Path) -> None:
    index, reference = build([[term, "b"], ["b"], [term, term, "c"]])
    assert_same_scores(index, reference, [term])
    assert_same_statistics(index, reference)
    index.save(tmp_path / "index")
    assert_same_scores(BM25Index.open(tmp_path / "index"), reference, [term])


def test_two_thousand_documents_with_many_ties_at_every_k() -> None:
    generator = np.random.default_rng(7)
    weights = 1 / np.arange(1, 41)
    vocabulary = [f"t{number}" for number in range(40)]
    texts = [
        generator.choice(vocabulary, size, p=weights / weights.sum()).tolist()
        for size in generator.integers(0, 12, 2000)
    ]
    index, reference = build(texts)
    for query in (["t0"], ["t0", "t1", "t2"], ["t39", "t0", "t39", "t17"], vocabulary):
        expected = bits(reference.matches(query))
        for k in (1, 2, 10, 99, 100, 1000, 1999, 2000, 5000):
            assert bits(index.search(query, k)) == expected[:k]


@pytest.mark.parametrize(
    "size",
    [pytest.param(65_536, marks=pytest.mark.slow), pytest.param(65_537, marks=pytest.mark.further)],
)
def test_document_numbers_beyond_sixteen_bits(size: int) -> None:
    texts = [["a"] if number % 3 else ["a", "b"] for number in range(size - 1)] + [["b"]]
    index, reference = build(texts)
    expected = bits(reference.matches(["b"]))
    assert bits(index.search(["b"], k=size)) == expected
    assert expected[0][0] == str(size - 1)
    assert [s.hex() for s in index.scores(["b", "a"])] == [
        s.hex() for s in reference.scores(["b", "a"])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("documents", [1000, 1030])
def test_impact_codes_beyond_sixteen_bits(documents: int) -> None:
    """Each document has another length, and 64 terms with as many frequencies."""
    words = [f"t{number}" for number in range(64)]
    common = [word for times, word in enumerate(words, start=1) for _ in range(times)]
    texts = [[*common, *["x"] * number] for number in range(documents)]
    index, reference = build(texts, variant="bm25l", b=0.9)
    assert (index.stats()["impact_codes"] > 65_536) is (documents > 1010)
    for query in (["t0"], ["t63", "t32", "x"], ["t7", "t7"]):
        assert_same_scores(index, reference, query)


@pytest.mark.parametrize("variant", SHIFTED)
@pytest.mark.parametrize("light", first(2, [1e-30, 1e-16, 1e-12, 1e-8]))
def test_documents_tie_whose_sums_a_shift_absorbs(variant: str, light: float) -> None:
    count = 300 if INTERPRETED else 4000
    texts = [["b", *"c" * (number % 7)] for number in range(count)] + [["a"]]
    index, _ = build(texts, variant=variant)
    for query in ({"a": 1.0, "b": light}, {"a": 1e30, "b": light * 1e30}):
        scores = index.scores(query)
        for k in (1, 5, 100):
            expected = np.lexsort((np.arange(len(texts)), -scores))[:k]
            batch = index.search_batch([query], k)
            assert batch.rows[0].tolist() == expected.tolist()
            assert batch.scores[0].tolist() == scores[expected].tolist()

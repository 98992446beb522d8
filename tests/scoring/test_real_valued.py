"""Scores agree with the real-valued formulas, in plain float64, to a millionth."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.holding import build
from support.reference import VARIANTS
from support.strategies import corpora, parameters, queries

pytestmark = pytest.mark.usefixtures("backend")

# Parts are float32, which has fewer digits below its smallest normal number, 1.2e-38.
SMALLEST = 1e-37


@pytest.mark.parametrize("variant", VARIANTS)
@given(data=st.data(), texts=corpora, query=queries)
def test_scores_are_the_formulas_to_a_millionth(
    variant: str, data: st.DataObject, texts: list[list[str]], query: list[str]
) -> None:
    chosen = data.draw(parameters(variant))
    if variant == "tfldp" and chosen["delta"] is not None:
        chosen["delta"] = max(1.0, chosen["delta"])  # below it f changes sign, see the next test
    index, reference = build(texts, **chosen)
    for score, real in zip(index.scores(query), reference.real_scores(query), strict=True):
        assert math.isclose(score, real, rel_tol=1e-6, abs_tol=SMALLEST)


@given(texts=corpora, query=queries, delta=st.floats(0.38, 1), b=st.floats(0, 1))
def test_where_parts_cancel_the_error_is_a_millionth_of_their_size(
    texts: list[list[str]], query: list[str], delta: float, b: float
) -> None:
    index, reference = build(texts, variant="tfldp", b=b, delta=delta)
    for row, (score, real) in enumerate(
        zip(index.scores(query), reference.real_scores(query), strict=True)
    ):
        parts = reference.explain(query, reference.ids[row]).values()
        size = sum(map(abs, parts)) + abs(reference.shift(query))
        assert math.isclose(score, real, abs_tol=max(1e-6 * size, SMALLEST))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_term_of_every_query_word_counts_as_often_as_it_occurs(variant: str) -> None:
    index, _ = build([["a", "b"], ["b", "c"], ["c"]], variant=variant)
    once, thrice = index.scores(["a"]), index.scores(["a", "a", "a"])
    assert thrice == pytest.approx(3 * once, rel=1e-6)

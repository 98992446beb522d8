"""Rankings are fused as the formulas say, to the bit, and what cannot be fused is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag.fusion import FusionMethod, check_fusion, fuse

METHODS = get_args(FusionMethod)
LARGEST = 1.7976931348623157e308

ids = st.sampled_from("abcdefgh")
# Few values, so that ties are the rule, and the edges of what a float can hold.
scores = st.sampled_from([0.0, 1.0, 2.0, 0.5, 5e-324, LARGEST, -LARGEST]) | st.floats(-9, 9)


@st.composite
def a_ranking(draw: st.DrawFn) -> list[tuple[str, float]]:
    found = sorted(draw(st.lists(scores, max_size=8)), reverse=draw(st.booleans()))
    return list(zip(draw(st.lists(ids, min_size=8, max_size=8)), found, strict=False))


rankings = st.lists(a_ranking(), max_size=4)
settings = st.fixed_dictionaries(
    {"method": st.sampled_from(METHODS), "rank_constant": st.integers(0, 100)}
)


def reference(
    rankings: list[list[tuple[str, float]]], method: str, weights: list[float], rank_constant: int
) -> list[tuple[str, float]]:
    """Compute each document on its own, ranking by ranking, from the published formulas."""
    totals: dict[str, tuple[float, tuple[int, int]]] = {}
    for id in {id for ranking in rankings for id, _ in ranking}:
        total, places = 0.0, []
        for number, ranking in enumerate(rankings):
            first: dict[str, float] = {}
            for other, score in ranking:
                if other not in first:
                    first[other] = score
            if id in first:
                places.append((list(first).index(id) + 1, number))
            total += weights[number] * value(id, first, method, rank_constant)
        totals[id] = (total, min(places))
    order = sorted(totals, key=lambda id: (-totals[id][0], totals[id][1]))
    return [(id, totals[id][0]) for id in order]


def value(id: str, found: dict[str, float], method: str, rank_constant: int) -> float:
    if method == "rrf":
        return 1 / (rank_constant + list(found).index(id) + 1) if id in found else 0.0
    ordered = list(found.values())
    if not ordered or max(ordered) == min(ordered):
        return float(id in found)
    best, last = ordered[0], ordered[-1]

    def scaled(score: float) -> float:
        if best - last in (math.inf, -math.inf):
            return (score / 2 - last / 2) / (best / 2 - last / 2)
        return (score - last) / (best - last)

    if method == "minmax":
        return scaled(found[id]) if id in found else 0.0
    total = 0.0
    for score in ordered:
        total += scaled(score)
    mean = total / len(ordered)
    squares = 0.0
    for score in ordered:
        squares += (scaled(score) - mean) ** 2
    return (scaled(found.get(id, last)) - mean) / math.sqrt(squares / len(ordered))


@given(rankings=rankings, chosen=settings, data=st.data())
def test_ids_order_and_bits_are_the_references(
    rankings: list[list[tuple[str, float]]], chosen: dict[str, Any], data: st.DataObject
) -> None:
    one = st.sampled_from([0.0, 1.0, 0.3, 1e30]) | st.floats(0.001, 10)
    count = len(rankings)
    weights = data.draw(
        st.lists(one, min_size=count, max_size=count).filter(lambda w: any(w) or not w)
    )
    found = fuse(rankings, weights=weights, **chosen)
    expected = reference(rankings, weights=weights, **chosen)
    assert [id for id, _ in found] == [id for id, _ in expected]
    assert np.array([s for _, s in found]).tobytes() == np.array([s for _, s in expected]).tobytes()
    assert fuse(rankings, weights=weights, k=3, **chosen) == found[:3]


@given(rankings=rankings, chosen=settings)
def test_weights_are_1_by_default(
    rankings: list[list[tuple[str, float]]], chosen: dict[str, Any]
) -> None:
    assert fuse(rankings, **chosen) == fuse(rankings, weights=[1] * len(rankings), **chosen)


@given(ranking=a_ranking(), chosen=settings)
def test_one_ranking_keeps_its_order(
    ranking: list[tuple[str, float]], chosen: dict[str, Any]
) -> None:
    assert [id for id, _ in fuse([ranking], **chosen)] == list(dict.fromkeys(dict(ranking)))


@given(ranking=a_ranking().filter(bool), missed=a_ranking(), chosen=settings)
def test_what_a_ranking_has_never_gets_less_than_what_it_lacks(
    ranking: list[tuple[str, float]], missed: list[tuple[str, float]], chosen: dict[str, Any]
) -> None:
    missed = [(f"missed {id}", score) for id, score in missed]
    fused = dict(fuse([ranking, missed], weights=[1, 0], **chosen))
    if missed:
        worst = min(fused[id] for id, _ in ranking)
        assert worst >= max(fused[id] for id, _ in missed)


@given(
    values=st.lists(st.integers(-1000, 1000), min_size=2, max_size=9, unique=True),
    method=st.sampled_from(["minmax", "zscore"]),
)
def test_values_are_the_formulas_in_real_numbers(values: list[int], method: Any) -> None:
    values.sort(reverse=True)
    fused = dict(fuse([[(str(value), value) for value in values]], method))
    mean = Fraction(sum(values), len(values))
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    for value in values:
        minmax = (value - values[-1]) / (values[0] - values[-1])
        expected = minmax if method == "minmax" else float(value - mean) / deviation
        assert fused[str(value)] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_reciprocal_ranks_are_cormacks() -> None:
    words, vectors = [("a", 9.0), ("b", 7.0)], [("b", 0.9), ("c", 0.8)]
    expected = [("b", 1 / 62 + 1 / 61), ("a", 1 / 61), ("c", 1 / 62)]
    assert fuse([words, vectors], "rrf") == expected


@pytest.mark.parametrize("method", METHODS)
def test_distances_and_similarities_say_the_same(method: Any) -> None:
    words = [("a", 9.0), ("b", 7.0), ("c", 5.0)]
    distances = [("d", 0.25), ("b", 0.5), ("a", 1.0)]
    similarities = [("d", -0.25), ("b", -0.5), ("a", -1.0)]
    assert fuse([words, distances], method) == fuse([words, similarities], method)


@pytest.mark.parametrize("method", METHODS)
def test_a_single_result_of_one_ranking_counts(method: Any) -> None:
    many = [(str(n), 1.0 - n / 10) for n in range(5)]
    assert "rare" in [id for id, _ in fuse([[("rare", 3.0)], many], method, k=4)]


@pytest.mark.parametrize("method", METHODS)
def test_nothing_fused_is_nothing(method: Any) -> None:
    assert fuse([], method) == fuse([[], []], method) == fuse([[("a", 1.0)]], method, k=0) == []
    assert fuse([[], [("a", 1.0)]], method, weights=[0, 1]) != []


def test_numbers_of_numpy_become_pythons() -> None:
    ((id, score),) = fuse([[(np.str_("a"), np.float32(2))]], weights=[np.float64(0.5)])
    assert (type(id), type(score), score) == (str, float, 0.5)


def test_ranks_need_no_order_of_scores() -> None:
    unordered = [("a", 1.0), ("b", 3.0), ("c", 2.0)]
    assert [id for id, _ in fuse([unordered], "rrf")] == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"rankings\[1\] must fall or rise .* use method='rrf'"):
        fuse([[], unordered], "zscore")


PAIR = [("a", 1.0)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rankings": [[("a", math.nan)]]}, ValueError, r"score of 'a' in rankings\[0\].*nan"),
        ({"rankings": [PAIR, [("b", -math.inf)]]}, ValueError, r"'b' in rankings\[1\].*finite"),
        ({"rankings": [[("a", None)]]}, TypeError, r"score of 'a' in rankings\[0\]"),
        ({"rankings": [[(1.5, 1.0)]]}, TypeError, r"id of rankings\[0\]\[0\] must be a str"),
        ({"rankings": [["a"]]}, TypeError, r"rankings\[0\]\[0\] must be a pair"),
        ({"rankings": [["ab"]]}, TypeError, r"rankings\[0\]\[0\] must be a pair"),
        ({"rankings": [{"a": 1.0}]}, TypeError, r"rankings\[0\] must be an iterable"),
        ({"rankings": "ab"}, TypeError, "rankings must be"),
        ({"method": "sum"}, ValueError, "method must be one of 'minmax', 'zscore', 'rrf'"),
        ({"weights": [1, 1]}, ValueError, "weights must have one for each of 1 rankings"),
        ({"weights": [-1]}, ValueError, r"weights\[0\] must be a number from 0"),
        ({"weights": [math.nan]}, ValueError, r"weights\[0\]"),
        ({"weights": [0]}, ValueError, "not all be 0"),
        ({"weights": 1.0}, TypeError, "weights must be an iterable"),
        ({"k": -1}, ValueError, "k must be an integer >= 0"),
        ({"k": 1.5}, TypeError, "k must be"),
        ({"rank_constant": -1}, ValueError, "rank_constant must be"),
    ],
)
def test_what_cannot_be_fused_is_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fuse(**({"rankings": [PAIR]} | arguments))
    if not arguments.keys() & {"rankings", "k"}:
        given: dict[str, Any] = {"method": "minmax", "count": 1, **arguments}
        with pytest.raises(error, match=message):
            check_fusion(**given)


def test_a_check_gives_the_weights() -> None:
    assert check_fusion("rrf") == [1.0, 1.0]
    assert check_fusion("zscore", [np.float64(2), 0], count=2) == [2.0, 0.0]

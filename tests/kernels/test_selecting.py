"""The selection against sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag.common.arrays import Float64, Int64
from bm25rag.kernels import backend
from bm25rag.kernels.memory import empty, view, zeros

if (reason := backend.why_not_compiled()) is not None:
    pytest.skip(reason, allow_module_level=True)
from bm25rag.kernels import selecting

# Few values, so that ties are common; the extremes of floats among them.
few = st.sampled_from(
    [-3.5, 0.0, 5e-324, 1e-320, 0.1, 1 / 3, 2.0, 1e300, -1e300, 1.7e308, -1.7e308]
)
lists = st.lists(few | st.floats(0, 30), min_size=1, max_size=300)
spread = st.integers(65, 3000).map(
    lambda size: (np.random.default_rng(size).gamma(2.0, 3.0, size) // 0.01 * 0.01).tolist()
)


def work(count: int) -> Any:
    return empty(max(selecting.WORK, count + 1), np.int64)


@given(values=lists | spread, data=st.data())
def test_the_kth_is_that_of_a_sorted_list(values: list[float], data: st.DataObject) -> None:
    k, count = data.draw(st.integers(1, len(values))), len(values)
    scores = np.array(values)
    found = selecting.kth(view(scores), count, k, empty(count), work(count))
    assert found == sorted(values, reverse=True)[k - 1]
    assert scores.tolist() == values


@given(values=lists | spread)
def test_equal_scores_are_sorted_by_number(values: list[float]) -> None:
    count = len(values)
    numbers, scores = np.random.default_rng(count).permutation(count), np.array(values)
    expected = sorted(zip(numbers.tolist(), values, strict=True), key=lambda one: (-one[1], one[0]))
    spare = empty(count, np.int64), empty(count)
    selecting.sort(view(numbers), view(scores), count, *spare, work(count))
    assert list(zip(numbers.tolist(), scores.tolist(), strict=True)) == expected


@given(
    values=st.lists(st.just(0.0) | st.floats(0, 30), min_size=1, max_size=300),
    least=st.floats(0, 30),
    data=st.data(),
)
def test_sums_above_a_value_are_taken_out(
    values: list[float], least: float, data: st.DataObject
) -> None:
    width = -(-len(values) // 64) * 64
    sums = np.zeros(width)
    sums[: len(values)] = values
    expected = [(place, sum_) for place, sum_ in enumerate(values) if sum_ > least]

    def taken(places: Int64, drained: Float64, found: int) -> list[tuple[int, float]]:
        return list(zip(places[:found].tolist(), drained[:found].tolist(), strict=True))

    places, drained = np.empty(width, np.int64), np.empty(width)
    taken_out = view(places), view(drained)
    maxima = view(sums.reshape(-1, 64).max(axis=1))
    for known in (0, data.draw(st.integers(0, len(values) // 64)), len(values) // 64):
        dense = sums.copy()
        found = selecting.drain(view(dense), 0, len(values), least, 1.0, maxima, known, *taken_out)
        assert taken(places, drained, found) == expected
        assert not dense.any()


@given(values=st.lists(st.floats(0, 30), min_size=1, max_size=300), k=st.integers(1, 40))
def test_at_least_k_sums_reach_what_is_returned(values: list[float], k: int) -> None:
    sums = zeros(-(-len(values) // 64) * 64)
    for place, value in enumerate(values):
        sums[place] = value
    spare = empty(len(sums)), empty(len(sums))
    reached = selecting.kth_lower_bound(sums, 0, len(values), k, *spare, work(len(sums)))
    assert reached == 0.0 or sum(value >= reached for value in values) >= k


@given(
    values=st.lists(st.integers(0, 32000), min_size=1, max_size=200),
    least=st.floats(-5, 40000),
    base=st.sampled_from([0, 64]),
)
def test_sums_in_units_above_a_value_are_taken_out(
    values: list[int], least: float, base: int
) -> None:
    end = base + len(values)
    units = np.zeros(-(-end // 64) * 64 + 64, np.int16)
    units[base:end] = values
    units[end // 64 * 64 + 64 :] = 7  # of the next window
    units[:base] = 7
    places, drained = np.empty(256, np.int64), np.empty(256)
    maxima = empty(4)
    taken_out = view(places), view(drained)
    found = selecting.drain(view(units), base, end, least, 0.5, maxima, 0, *taken_out)
    expected = [(place, one / 2) for place, one in enumerate(values) if one > max(least, 0)]
    assert list(zip(places[:found].tolist(), drained[:found].tolist(), strict=True)) == expected
    assert not units[base : end // 64 * 64 + 64].any()
    assert (units[:base] == 7).all()
    assert (units[end // 64 * 64 + 64 :] == 7).all()


@given(values=st.lists(st.integers(1, 32000), min_size=1, max_size=400), k=st.integers(1, 6))
def test_at_least_k_sums_in_units_reach_what_is_returned(values: list[int], k: int) -> None:
    units = np.zeros(64 + len(values), np.int16)
    units[:64], units[64:] = 32000, values
    spare = empty(len(units)), empty(len(units))
    reached = selecting.kth_lower_bound(view(units), 64, len(units), k, *spare, work(len(units)))
    assert (reached > 0.0) == (len(values) >= selecting.chunk_length(len(values), k) * k)
    assert reached == 0.0 or sum(value >= reached for value in values) >= k

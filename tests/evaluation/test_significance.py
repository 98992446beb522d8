"""Intervals and tests, against exact enumeration and their nominal error rates."""

from __future__ import annotations

import itertools
import random

import pytest

from bm25rag.evaluation import Evaluation, bootstrap_interval, compare


def evaluation(values: list[float]) -> Evaluation:
    per_query = {f"q{number}": {"RR": value} for number, value in enumerate(values)}
    return Evaluation({"RR": sum(values) / len(values)}, per_query)


def exact_p(differences: list[float]) -> float:
    """Return the share of all sign flips whose mean is at least as far from 0."""
    observed = abs(sum(differences))
    means = [
        abs(sum(sign * one for sign, one in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(mean >= observed - 1e-12 for mean in means) / len(means)


@pytest.mark.parametrize("seed", range(5))
def test_of_few_queries_the_p_value_is_exact(seed: int) -> None:
    chance = random.Random(seed)
    before = [chance.random() for _ in range(8)]
    after = [value + chance.gauss(0.2, 0.3) for value in before]
    found = compare(evaluation(after), evaluation(before), "RR")
    differences = [new - old for new, old in zip(after, before, strict=True)]
    assert found.p_value == pytest.approx(exact_p(differences))


@pytest.mark.slow
def test_where_nothing_differs_few_tests_are_significant() -> None:
    chance = random.Random(1)
    significant = 0
    for _ in range(100):
        before = [chance.random() for _ in range(30)]
        after = [value + chance.gauss(0, 0.2) for value in before]
        significant += compare(evaluation(after), evaluation(before), "RR").significant
    assert 0 <= significant <= 12  # 5 are expected


def test_a_large_gain_is_significant_and_its_interval_is_above_0() -> None:
    chance = random.Random(2)
    before = [chance.random() * 0.5 for _ in range(100)]
    after = [value + 0.1 + chance.gauss(0, 0.1) for value in before]
    found = compare(evaluation(after), evaluation(before), "RR")
    assert found.significant
    assert found.interval is not None
    assert 0 < found.interval.low < found.difference < found.interval.high
    assert found.p_value is not None
    assert found.p_value < 0.001


def test_the_interval_holds_the_true_mean_about_as_often_as_it_says() -> None:
    chance = random.Random(3)
    held = 0
    for _ in range(100):
        interval = bootstrap_interval([chance.random() for _ in range(50)])
        assert interval is not None
        held += interval.low <= 0.5 <= interval.high
    assert 88 <= held <= 100


def test_gains_and_losses_come_with_the_largest_first() -> None:
    found = compare(evaluation([1, 0.5, 0, 0.2]), evaluation([0, 0.2, 1, 0.2]), "RR")
    assert [change.query for change in found.gained()] == ["q0", "q1"]
    assert [change.query for change in found.lost()] == ["q2"]
    assert found.gained(1)[0] == ("q0", 0, 1, 1)
    assert found.to_dict()["gained"] == 2
    assert found.to_dict()["lost"] == 1


def test_equal_runs_differ_by_nothing() -> None:
    found = compare(evaluation([0.5, 1]), evaluation([0.5, 1]), "RR")
    assert found.p_value == 1
    assert found.interval == (0, 0)
    assert not found.significant
    assert found.changes == ()


def test_one_query_says_nothing_of_chance() -> None:
    found = compare(evaluation([1]), evaluation([0]), "RR")
    assert found.p_value is None
    assert found.interval is None
    assert not found.significant
    assert bootstrap_interval([1.0]) is None


def test_the_same_seed_gives_the_same_numbers() -> None:
    chance = random.Random(4)
    values = [chance.random() for _ in range(40)]
    assert bootstrap_interval(values, seed=7) == bootstrap_interval(values, seed=7)
    assert bootstrap_interval(values, seed=7) != bootstrap_interval(values, seed=8)


def test_evaluations_of_other_queries_are_not_compared() -> None:
    with pytest.raises(ValueError, match="'q1' is in only one"):
        compare(evaluation([1, 0]), evaluation([1]), "RR")
    with pytest.raises(ValueError, match="'AP' was not evaluated"):
        compare(evaluation([1]), evaluation([1]), "AP")
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        bootstrap_interval([1, 0], confidence=95)

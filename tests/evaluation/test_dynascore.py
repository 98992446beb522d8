"""Dynascore against other people's numbers, its definition, and its edges; and costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bm25rag.evaluation import (
    PRICES,
    Instance,
    cheapest,
    cost_by_latency,
    cost_by_throughput,
    dynascore,
    read_prices,
)

# Ma et al. 2021, Table 1, natural language inference: performance, throughput, memory, fairness,
# robustness; and the scores that the implementation of C. Potts gives
# for them (course CS224u, 2023). Memory counts as what is left of 16 GB.
DYNABOARD = {
    "DeBERTa": ((69.54, 7.41, 5.71, 91.97, 75.70), 38.730978),
    "RoBERTa": ((69.07, 9.23, 4.82, 90.94, 74.82), 38.492792),
    "ALBERT": ((67.29, 9.60, 2.18, 89.94, 74.12), 37.548582),
    "T5": ((67.16, 7.10, 10.62, 91.89, 73.47), 37.539321),
    "BERT": ((64.82, 9.39, 4.13, 92.11, 66.38), 36.228453),
    "Majority Baseline": ((32.41, 77.33, 1.15, 100.00, 100.00), 22.552271),
    "FastText": ((31.29, 73.94, 2.20, 83.23, 69.14), 20.941156),
}
QUANTITIES = ("accuracy", "throughput", "memory", "fairness", "robustness")


def test_scores_of_dynaboards_table_come_out() -> None:
    rows = {
        name: dict(zip(QUANTITIES, values, strict=True)) for name, (values, _) in DYNABOARD.items()
    }
    for row in rows.values():
        row["memory"] += 16  # as the published run of that implementation has it
    weights = dict(zip(QUANTITIES, (0.5, 0.125, 0.125, 0.125, 0.125), strict=True))
    found = dynascore(rows, weights, higher_is_better=QUANTITIES[1:])
    published = {name: score for name, (_, score) in DYNABOARD.items()}
    assert found.scores == pytest.approx(published, abs=1e-5)
    assert list(found.scores) == list(published), "the best comes first"


def test_a_score_computed_by_hand() -> None:
    """Steps: 10 to 20 costs 30 ms, 20 to 40 costs 10 ms: rates 3 and 0.5, on average 1.75."""
    rows: dict[str, dict[str, float]] = {
        "slow": {"accuracy": 20, "latency": 35},
        "good": {"accuracy": 40, "latency": 25},
        "fast": {"accuracy": 10, "latency": 5},
    }
    found = dynascore(rows, {"accuracy": 0.5, "latency": 0.5})
    assert found.rates == {"accuracy": 1.0, "latency": pytest.approx(1.75)}
    expected = {
        "good": 0.5 * 40 - 0.5 * 25 / 1.75,
        "fast": 0.5 * 10 - 0.5 * 5 / 1.75,
        "slow": 0.5 * 20 - 0.5 * 35 / 1.75,
    }
    assert found.scores == pytest.approx(expected)


def test_the_order_and_the_unit_of_rows_do_not_matter() -> None:
    rows = {
        name: {"accuracy": values[0], "latency": values[1], "cost": values[2]}
        for name, (values, _) in DYNABOARD.items()
    }
    weights = {"accuracy": 0.5, "latency": 0.25, "cost": 0.25}
    in_seconds = {name: row | {"latency": row["latency"] / 1000} for name, row in rows.items()}
    found = dynascore(dict(reversed(in_seconds.items())), weights)
    assert found.scores == pytest.approx(dynascore(rows, weights).scores)


def test_with_all_weight_on_accuracy_the_scores_are_the_accuracies() -> None:
    rows = {"a": {"accuracy": 30.0, "latency": 1.0}, "b": {"accuracy": 40.0, "latency": 9.0}}
    assert dynascore(rows, {"accuracy": 1.0}).scores == {"b": 40, "a": 30}
    assert dynascore(rows, {"latency": 1.0}).scores == {"a": -1 / 0.8, "b": -9 / 0.8}


def test_systems_of_equal_accuracy_give_no_rate() -> None:
    rows = {
        "a": {"accuracy": 30.0, "latency": 1.0},
        "twin": {"accuracy": 30.001, "latency": 900.0},
        "b": {"accuracy": 40.0, "latency": 901.0},
    }
    found = dynascore(rows, {"accuracy": 0.5, "latency": 0.5})
    assert found.rates["latency"] == pytest.approx(1 / 9.999)


def test_a_quantity_that_is_the_same_for_all_adds_nothing() -> None:
    rows = {"a": {"accuracy": 30.0, "cost": 5.0}, "b": {"accuracy": 40.0, "cost": 5.0}}
    assert dynascore(rows, {"accuracy": 0.5, "cost": 0.5}).scores == {"b": 20, "a": 15}


@pytest.mark.parametrize(
    ("change", "weights", "message"),
    [
        ({}, {"accuracy": 0.5, "latency": 0.6}, "must sum to one, .* sum to 1.1"),
        ({}, {"accuracy": 1.5, "latency": -0.5}, r"weights\['accuracy'\] must be a number"),
        ({}, {"accuracy": 0.5, "price": 0.5}, "the row of 'a' has no 'price'; it has"),
        ({"latency": None}, {"accuracy": 0.5, "latency": 0.5}, "'latency' of 'a' .* leave out"),
        ({"latency": float("nan")}, {"accuracy": 0.5, "latency": 0.5}, "finite number, got nan"),
        ({"accuracy": 40.0}, {"accuracy": 1.0}, "at least two systems that differ in 'accuracy'"),
    ],
)
def test_what_cannot_be_scored_is_said(
    change: dict[str, Any], weights: dict[str, float], message: str
) -> None:
    rows = {"a": {"accuracy": 30.0, "latency": 1.0} | change, "b": {"accuracy": 40, "latency": 9}}
    with pytest.raises(ValueError, match=message):
        dynascore(rows, weights)


# The rates of MS MARCO in Santhanam et al. 2023: milliseconds, and dollars for a million queries,
# that a point of MRR@10 costs (test_dynascore_paper.py).
RATES_OF_THE_PAPER = {"latency": 33.05, "cost": 10.44}


def test_rates_of_another_table_give_scores_that_compare_with_it() -> None:
    """Also for one system alone, which has no rates of its own."""
    rows = {"mine": {"accuracy": 36.0, "latency": 66.1, "cost": 5.22}}
    weights = {"accuracy": 0.5, "latency": 0.25, "cost": 0.25}
    found = dynascore(rows, weights, rates=RATES_OF_THE_PAPER)
    assert found.scores == {"mine": pytest.approx(0.5 * 36 - 0.25 * 2 - 0.25 * 0.5)}
    assert found.rates == {"accuracy": 1.0} | RATES_OF_THE_PAPER
    with pytest.raises(ValueError, match="rates have no 'cost'; they have"):
        dynascore(rows, weights, rates={"latency": 33.05})
    with pytest.raises(ValueError, match=r"rates\['cost'\] must be a number above 0, got 0"):
        dynascore(rows, weights, rates={"latency": 33.05, "cost": 0})


def test_the_rates_of_a_table_score_it_as_it_scores_itself() -> None:
    rows = {
        name: {"accuracy": values[0], "latency": values[1], "cost": values[2]}
        for name, (values, _) in DYNABOARD.items()
    }
    weights = {"accuracy": 0.5, "latency": 0.25, "cost": 0.25}
    alone = dynascore(rows, weights)
    assert dynascore(rows, weights, rates=alone.rates) == alone


# --- cost -------------------------------------------------------------------------------


def test_costs_are_price_times_time() -> None:
    """A dollar an hour; 3.6 ms a query are an hour a million queries."""
    machine = Instance("x", 1, 4, 1.0)
    assert cost_by_latency(machine, 0.0036) == pytest.approx(1.0)
    assert cost_by_throughput(machine, 1 / 0.0036) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="greater than 0"):
        cost_by_throughput(machine, 0)
    with pytest.raises(ValueError, match="seconds"):
        cost_by_latency(machine, float("nan"))


def test_memory_and_cpus_decide_which_machine_qualifies() -> None:
    names = [one.name for memory in (0.5, 2.1, 4.1, 8.1, 16.1) if (one := cheapest(memory))]
    assert names == ["c7g.medium", "m7g.medium", "r7g.medium", "r7g.large", "r7g.xlarge"]
    smallest = cheapest(4)
    assert smallest is not None
    assert (smallest.cpus, smallest.memory) == (1, 4), "the paper's smallest machine"
    assert cheapest(0.5, cpus=4) == min(
        (one for one in PRICES if one.cpus >= 4), key=lambda one: one.dollars_per_hour
    )
    assert cheapest(10_000) is None


def test_prices_within_a_family_are_for_the_cpus() -> None:
    """But for the smallest, which are rounded to a hundredth of a cent."""
    for first in PRICES[::5]:
        family = [one for one in PRICES if one.name[:3] == first.name[:3]]
        assert [one.cpus for one in family] == [1, 2, 4, 8, 16]
        assert {one.memory / one.cpus for one in family} == {first.memory}
        for one in family:
            assert one.dollars_per_hour == pytest.approx(
                family[1].dollars_per_hour / 2 * one.cpus, abs=1e-4 * one.cpus
            )


def test_prices_can_be_replaced(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    row = {"name": "mine", "cpus": 2, "memory": 8, "dollars_per_hour": 0.01}
    file.write_text(json.dumps([row]), encoding="utf-8")
    prices = read_prices(file)
    assert cheapest(1, prices=prices) == Instance("mine", 2, 8, 0.01)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "[1]",
        '[{"name": "x"}]',
        '[{"name":"x","cpus":1,"memory":-1,"dollars_per_hour":1}]',
    ],
)
def test_a_wrong_table_of_prices_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"prices\.json"):
        read_prices(file)

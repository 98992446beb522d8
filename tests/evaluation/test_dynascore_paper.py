"""The Dynascores of Santhanam et al. (Findings of ACL 2023): Tables 3, 4, 7 and 8."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from bm25rag.evaluation import dynascore
from bm25rag.evaluation.published import read_published
from bm25rag.evaluation.report import about, dynascores, to_html, to_markdown
from support.environment import COLLECTIONS as BESIDE
from support.evaluation import row, some_report
from support.quicksort import quicksort_order

FILE = BESIDE.parent / "papers" / "santhanam-2023.json"
QUANTITIES = ("accuracy", "latency", "cost")
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason=f"{FILE.name} is not there")


@pytest.fixture(scope="module")
def paper() -> Any:
    return json.loads(FILE.read_text("utf-8"))


def table_3(paper: Any, collection: str) -> dict[str, dict[str, float]]:
    """Return accuracy, latency and cost by system and hardware, in the order of the table."""
    accuracy = paper["accuracy"][collection]
    return {
        name_of(row): {
            "accuracy": accuracy[row["system"]]["MRR@10"],
            "latency": row["latency_ms"],
            "cost": row["dollars_per_million"],
        }
        for row in paper["efficiency"][collection]
    }


def name_of(row: Any) -> str:
    return f"{row['system']}, {row['hardware']}"


def published_scores(table: Any) -> dict[str, float]:
    return {name_of(row): row["dynascore"] for row in table["rows"]}


def worst_difference(
    paper: Any, collection: str, rates: dict[str, float], exact: bool = False
) -> float:
    """Return how far the scores of all weightings are from the published ones, at the most."""
    rows = table_3(paper, collection)
    if exact:
        for row, one in zip(rows.values(), unrounded(paper, collection), strict=True):
            row["accuracy"] = one["accuracy"]
    differences = []
    for table in paper["dynascores"][collection]:
        published = published_scores(table)
        scores = dynascore(rows, table["weights"], rates=rates).scores
        assert published.keys() == scores.keys()
        differences += [abs(scores[name] - published[name]) for name in published]
    return max(differences)


@pytest.mark.parametrize(("collection", "count"), [("MS MARCO", 28), ("XOR-TyDi", 24)])
def test_the_published_scores_follow_from_one_pair_of_rates(
    paper: Any, collection: str, count: int
) -> None:
    """Within what the rounding of Table 3 leaves open: a tenth of a point, a millisecond."""
    fitted = paper["rates_fitted"][collection]
    rates = {"latency": fitted["latency_ms"], "cost": fitted["dollars_per_million"]}
    assert [len(table["rows"]) for table in paper["dynascores"][collection]] == [count] * 4
    assert worst_difference(paper, collection, rates) < 0.036


def test_a_report_shows_the_published_rows_beside_measured_ones_with_their_scores(
    paper: Any, tmp_path: Path
) -> None:
    fitted = paper["rates_fitted"]["MS MARCO"]
    published = {
        "source": paper["source"],
        "rates": {"latency": fitted["latency_ms"], "cost": fitted["dollars_per_million"]},
        "rows": [
            {"system": name, "measures": {"RR@10": one["accuracy"] / 100}} | one
            for name, one in table_3(paper, "MS MARCO").items()
        ],
    }
    file = tmp_path / "paper.json"
    file.write_text(json.dumps(published), encoding="utf-8")
    ours = row("bm25rag lucene", 0.0, 1.0, 0.01) | {"measures": {"RR@10": 0.187}}
    report = some_report(rows=[ours], beside=read_published(file, "RR@10"))
    report["setting"]["measures"] = ["RR@10"]
    scores = dynascores(report)
    for one in paper["dynascores"]["MS MARCO"][0]["rows"]:
        assert scores[name_of(one)] == pytest.approx(one["dynascore"], abs=0.036)
    assert scores["bm25rag lucene"] > scores["BM25, 1 CPU, 4 GB memory"]
    assert "| BM25, 1 CPU, 4 GB memory | 9.263 | 0.187 | 11 |  |" in to_markdown(report)
    said = " ".join(about(report))
    assert f"({paper['source']})" in said
    assert "a point of accuracy costs 32.98 ms or 10.436 dollars" in said
    assert '"beside"' in to_html(report)


# --- the unrounded table ---------------------------------------------------------------


@pytest.mark.parametrize("collection", ["MS MARCO", "XOR-TyDi"])
def test_four_weightings_give_the_accuracies_of_table_3_to_a_hundredth(
    paper: Any, collection: str
) -> None:
    """Four equations for a row's accuracy, latency and cost, the latter two in points."""
    found: dict[str, list[float]] = {}
    for one in unrounded(paper, collection):
        found.setdefault(one["system"], []).append(one["given"])
        assert abs(one["given"] - one["accuracy"]) < 0.001, "a hundredth, but for the scores' own"
    for system, values in found.items():
        assert max(values) - min(values) < 0.0015, "on all machines the same"
        assert abs(values[0] - paper["accuracy"][collection][system]["MRR@10"]) < 0.051


# The systems of MS MARCO in an order of Table 3 that gives its rates: by kind of retriever.
BY_KIND = ["BM25", "DPR", "BT-SPLADE-L", "ColBERTv2-S", "ColBERTv2-M", "ColBERTv2-L"]
# Neighbours nearer than this do not count; Dynaboard's code has 0.0001.
LEAST = 0.001


@pytest.mark.parametrize(
    ("collection", "systems"), [("MS MARCO", BY_KIND), ("XOR-TyDi", None)], ids=str
)
def test_the_rates_follow_from_table_3_in_the_order_of_an_unstable_sort(
    paper: Any, collection: str, systems: list[str] | None
) -> None:
    """Rows of equal accuracy stand where NumPy's quicksort of that time left them.

    So the rates depend on the order of rows, and a table sorted otherwise gives others. In units
    of the paper's own rates, which its scores imply, both rates must be 1.
    """
    rows = unrounded(paper, collection)
    if systems is not None:
        machines = list(dict.fromkeys(row["machine"] for row in rows))
        rows.sort(key=lambda row: (machines.index(row["machine"]), systems.index(row["system"])))
    ordered = [rows[i] for i in quicksort_order([row["accuracy"] for row in rows])]
    rates = rates_of(ordered)
    assert rates["latency in points"] == pytest.approx(1, abs=0.0015)
    assert rates["cost in points"] == pytest.approx(1, abs=0.0015)
    fitted = paper["rates_fitted"][collection]
    assert rates["latency"] == pytest.approx(fitted["latency_ms"], rel=0.003)
    assert rates["cost"] == pytest.approx(fitted["dollars_per_million"], rel=0.008)
    assert worst_difference(paper, collection, rates, exact=True) < 0.0045
    stable = rates_of(sorted(rows, key=lambda row: row["accuracy"]))
    assert stable["latency"] > 4 * rates["latency"], "a stable sort gives other rates"


@pytest.mark.slow
@pytest.mark.long
def test_of_all_orders_by_machine_or_by_system_few_give_the_rates_of_ms_marco(paper: Any) -> None:
    """The systems, BM25's rows with 4 GB among them in any place, and the machines in any order.

    A stable sort of any of them gives other rates, and so does each machine alone.
    """
    rows = unrounded(paper, "MS MARCO")
    by_name = {
        (found["machine"], "BM25, 4 GB" if "4 GB" in one["hardware"] else found["system"]): found
        for found, one in zip(rows, paper["efficiency"]["MS MARCO"], strict=True)
    }
    machines = list(dict.fromkeys(machine for machine, _ in by_name))
    tried, found, stable = 0, [], 0
    for systems, turned in itertools.product(orders_of_systems(), itertools.permutations(machines)):
        for names in (
            [(machine, system) for machine in turned for system in systems],
            [(machine, system) for system in systems for machine in turned],
        ):
            some = [by_name[name] for name in names]
            order = quicksort_order([row["accuracy"] for row in some])
            tried += 1
            if are_the_papers([some[i] for i in order]):
                found.append(turned == tuple(machines))
            stable += are_the_papers(sorted(some, key=lambda row: row["accuracy"]))
    assert (tried, len(found), sum(found), stable) == (241_920, 34, 4, 0)
    for machine, systems in itertools.product(machines, orders_of_systems()):
        some = [by_name[machine, system] for system in systems]
        assert not are_the_papers(sorted(some, key=lambda row: row["accuracy"]))


def orders_of_systems() -> list[list[str]]:
    return [
        [*order[:place], "BM25, 4 GB", *order[place:]]
        for order in itertools.permutations(BY_KIND)
        for place in range(7)
    ]


def are_the_papers(ordered: list[dict[str, Any]]) -> bool:
    """Whether rows in this order give both rates of the paper, within .0015 of each."""
    rates = rates_of(ordered)
    return all(abs(rates[f"{name} in points"] - 1) < 0.0015 for name in ("latency", "cost"))


def unrounded(paper: Any, collection: str) -> list[dict[str, Any]]:
    """Return the rows of Table 3 with what its scores say of them before rounding.

    A score is ``a * accuracy - l * latency / rate - c * cost / rate``, and there are four for each
    row: enough for the accuracy, and for latency and cost divided by their rates ("in points").
    """
    tables = paper["dynascores"][collection]
    weights = np.array([[t["weights"][name] for name in QUANTITIES] for t in tables]) * [1, -1, -1]
    rows = []
    for one in paper["efficiency"][collection]:
        scores = [published_scores(table)[name_of(one)] for table in tables]
        given, *_ = np.linalg.lstsq(weights, np.array(scores), rcond=None)[0]
        accuracy = round(float(given), 2)
        points = np.linalg.lstsq(
            weights[:, 1:], np.array(scores) - accuracy * weights[:, 0], rcond=None
        )[0]
        rows.append(
            {
                "system": one["system"],
                "machine": one["hardware"].replace("4 GB", "32 GB"),
                "given": float(given),
                "accuracy": accuracy,
                "latency": one["latency_ms"],
                "cost": one["dollars_per_million"],
                "latency in points": float(points[0]),
                "cost in points": float(points[1]),
            }
        )
    return rows


def rates_of(ordered: list[dict[str, Any]]) -> dict[str, float]:
    """Return the mean rates of neighbours, in the order given."""
    least = LEAST * max(row["accuracy"] for row in ordered)
    steps = [
        (low, high)
        for low, high in itertools.pairwise(ordered)
        if high["accuracy"] - low["accuracy"] > least
    ]
    return {
        name: fmean(
            abs(high[name] - low[name]) / (high["accuracy"] - low["accuracy"])
            for low, high in steps
        )
        for name in ("latency", "cost", "latency in points", "cost in points")
    }

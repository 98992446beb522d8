"""The Dynascores of Santhanam et al. (Findings of ACL 2023): Tables 3, 4, 7 and 8."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from bm25rag.evaluation import dynascore
from bm25rag.evaluation.published import read_published
from bm25rag.evaluation.report import about, dynascores, to_html, to_markdown
from support.environment import COLLECTIONS as BESIDE
from support.evaluation import row, some_report
from support.quicksort import quicksort_order

FILE = BESIDE.parent / "papers" / "santhanam-2023.json"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason=f"{FILE.name} is not there")


@pytest.fixture(scope="module")
def paper() -> Any:
    return json.loads(FILE.read_text("utf-8"))


def table_3(paper: Any, collection: str) -> dict[str, dict[str, float]]:
    """Return accuracy, latency and cost by system and hardware, in the order of the table."""
    accuracy = paper["accuracy"][collection]
    return {
        f"{row['system']}, {row['hardware']}": {
            "accuracy": accuracy[row["system"]]["MRR@10"],
            "latency": row["latency_ms"],
            "cost": row["dollars_per_million"],
        }
        for row in paper["efficiency"][collection]
    }


def worst_difference(paper: Any, collection: str, rates: dict[str, float]) -> float:
    """Return how far the scores of all weightings are from the published ones, at the most."""
    rows = table_3(paper, collection)
    differences = []
    for table in paper["dynascores"][collection]:
        published = {f"{r['system']}, {r['hardware']}": r["dynascore"] for r in table["rows"]}
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
        name = f"{one['system']}, {one['hardware']}"
        assert scores[name] == pytest.approx(one["dynascore"], abs=0.036)
    assert scores["bm25rag lucene"] > scores["BM25, 1 CPU, 4 GB memory"]
    assert "| BM25, 1 CPU, 4 GB memory | 9.263 | 0.187 | 11 |  |" in to_markdown(report)
    said = " ".join(about(report))
    assert f"({paper['source']})" in said
    assert "a point of accuracy costs 32.98 ms or 10.436 dollars" in said
    assert '"beside"' in to_html(report)


def test_the_rates_of_xor_tydi_follow_from_table_3_in_the_order_of_an_unstable_sort(
    paper: Any,
) -> None:
    """Rows of equal accuracy stand where NumPy's quicksort of that time left them.

    So the rates depend on the order of rows, and a table sorted otherwise gives others.
    """
    rows = [*table_3(paper, "XOR-TyDi").values()]
    ordered = [rows[i] for i in quicksort_order([row["accuracy"] for row in rows])]
    steps = [
        (low, high)
        for low, high in itertools.pairwise(ordered)
        if high["accuracy"] > low["accuracy"]
    ]
    rates = {
        name: fmean(
            abs(high[name] - low[name]) / (high["accuracy"] - low["accuracy"])
            for low, high in steps
        )
        for name in ("latency", "cost")
    }
    fitted = paper["rates_fitted"]["XOR-TyDi"]
    assert rates["latency"] == pytest.approx(fitted["latency_ms"], rel=0.002)
    assert rates["cost"] == pytest.approx(fitted["dollars_per_million"], rel=0.003)
    assert worst_difference(paper, "XOR-TyDi", rates) < 0.036
    by_hardware_first = dynascore(table_3(paper, "XOR-TyDi"), {"accuracy": 1.0, "latency": 0.0})
    assert by_hardware_first.rates["latency"] > 4 * rates["latency"], "a stable sort: 88 ms"

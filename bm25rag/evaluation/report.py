"""The report of a benchmark, as a Markdown table and as a page with plots."""

from __future__ import annotations

import html
import json
from typing import Any

from bm25rag.evaluation.dynascore import dynascore
from bm25rag.evaluation.page import PAGE

__all__ = ["WEIGHTS", "dynascores", "to_html", "to_markdown"]

WEIGHTS = {"accuracy": 0.5, "latency": 0.25, "cost": 0.25}


def dynascores(report: dict[str, Any], weights: dict[str, float] | None = None) -> dict[str, float]:
    """Score the systems that were measured, by the first measure times 100.

    Parameters
    ----------
    report
        As ``benchmark`` returns it.
    weights
        Of ``accuracy``, ``latency`` and ``cost``; ``None`` for a half and two quarters.

    Returns
    -------
    scores
        By system, best first; nothing where no two systems differ in accuracy, or where the
        cost of one is not known and counts.
    """
    measure = report["setting"]["measures"][0]
    table = {
        row["system"]: {
            "accuracy": 100 * row["measures"][measure],
            "latency": row["latency"]["mean"],
            "cost": row["cost"],
        }
        for row in report["rows"]
        if "error" not in row
    }
    try:
        return dynascore(table, WEIGHTS if weights is None else weights).scores
    except ValueError:
        return {}


def to_markdown(report: dict[str, Any]) -> str:
    """Return the rows as a Markdown table, the best Dynascore first, failures last."""
    scores = dynascores(report)
    measures = report["setting"]["measures"]
    heads = ["system", "Dynascore", *measures, "mean ms", "p95", "p99", "queries/s", "peak MiB"]
    heads += ["build s", "cold start s", "$ a million"]
    measured = [row for row in report["rows"] if "error" not in row]
    measured.sort(key=lambda row: -scores.get(row["system"], 0.0))
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    for row in measured:
        time = row["latency"]
        numbers = [
            scores.get(row["system"]),
            *(row["measures"][name] for name in measures),
            *(time[name] for name in ("mean", "p95", "p99")),
            max(row["throughput"].values()),
            None if row["peak"] is None else row["peak"] / (1 << 20),
            row["build_seconds"],
            row["cold_start"],
            row["cost"],
        ]
        lines.append(f"| {_cell(row['system'])} | " + " | ".join(map(_number, numbers)) + " |")
    for row in report["rows"]:
        if "error" in row:
            why = _cell(row["error"])
            lines.append(f"| {_cell(row['system'])} | {why} |" + " |" * (len(heads) - 2))
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"


def to_html(report: dict[str, Any]) -> str:
    """Return a self-contained page, in which the weights can be changed."""
    data = json.dumps(report).replace("<", "\\u003c")  # so that nothing ends the script element
    title = html.escape(str(report["setting"]["collection"]))
    return PAGE.replace("__TITLE__", title).replace("__REPORT__", data)

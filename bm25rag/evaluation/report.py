"""The report of a benchmark, as a Markdown table and as a page with plots."""

from __future__ import annotations

import html
import json
import math
import re
from pathlib import Path
from typing import Any

from bm25rag.common.json_values import finite
from bm25rag.evaluation.dynascore import Dynascores, dynascore

WEIGHTS = {"accuracy": 0.5, "latency": 0.25, "cost": 0.25}


def dynascores(report: dict[str, Any], weights: dict[str, float] | None = None) -> dict[str, float]:
    """Score the systems that were measured, best first, by the first measure times 100.

    Nothing where no two systems differ in accuracy. A system whose cost is not known has no score,
    nor has one whose accuracy or latency is no number. If no cost is known, accuracy and latency
    alone count. Published rows are scored with the others, by the rates of the publication if it
    has any.
    """
    scored = _scored(report, weights or WEIGHTS)
    return {} if scored is None else scored.scores


def _scored(report: dict[str, Any], weights: dict[str, float]) -> Dynascores | None:
    measure = report["setting"]["measures"][0]
    known = [
        row
        for row in _shown(report)
        if math.isfinite(row["measures"][measure]) and math.isfinite(row["latency"]["mean"])
    ]
    priced = [row for row in known if row["cost"] is not None and math.isfinite(row["cost"])]
    rows = priced or known
    table = {
        row["system"]: {
            "accuracy": 100 * row["measures"][measure],
            "latency": row["latency"]["mean"],
            "cost": row["cost"],
        }
        for row in rows
    }
    given = {name: one for name, one in weights.items() if priced or name != "cost"}
    total = sum(given.values())
    try:
        shares = {name: one / total for name, one in given.items()}
        return dynascore(table, shares, rates=(report.get("beside") or {}).get("rates"))
    except (ValueError, ZeroDivisionError):
        return None


def about(report: dict[str, Any]) -> list[str]:
    """Return sentences that say what was measured, where, and under which limits."""
    setting, machine = report["setting"], report["machine"]
    days = [row["date"][:10] for row in report["rows"]]
    dates = " to ".join(dict.fromkeys([min(days), max(days)]))
    memory = f" and {setting['memory']:g} GiB" if setting["memory"] else ""
    said = [
        f"{setting['documents']:,} documents, {setting['queries']:,} queries, k={setting['k']}; "
        f"{setting['trials']} trials of single queries, each system in a process of its own with "
        f"{setting['cpus']} CPU{'s' * (setting['cpus'] > 1)}{memory}.",
        f"Measured on {machine['processor']}, {machine['cores']} cores"
        + (f", {machine['memory']}" if machine["memory"] else "")
        + f", {machine['system']}, Python {machine['python']}; {dates}.",
        f"Prices: {report['prices']}.",
    ]
    asked = {f"{setting['cpus']} CPU", *([f"{setting['memory']:g} GiB"] if memory else [])}
    for row in measured(report):
        if set(row["limits"]) != asked:
            held = " and ".join(row["limits"]) or "nothing"
            said.append(f"This platform limited processes to {held}.")
            break
    versions = {row["system"]: row["version"] for row in measured(report) if row["version"]}
    engines = {f"{name.split()[0]} {version}": None for name, version in versions.items()}
    if engines:
        said.append(f"Versions: {', '.join(engines)}.")
    if beside := report.get("beside"):
        names = ", ".join(row["system"] for row in beside["rows"])
        said.append(f"Published, not measured here: {names} ({beside['source']}).")
        if rates := beside["rates"]:
            said.append(
                f"Dynascores have the rates of that publication: a point of accuracy costs "
                f"{rates['latency']:g} ms or {rates['cost']:g} dollars for a million queries."
            )
    return [*said, *(f"Note: {note}." for note in report["notes"])]


def measured(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the systems that could be measured."""
    return [row for row in report["rows"] if "error" not in row]


def _shown(report: dict[str, Any]) -> list[dict[str, Any]]:
    published = report.get("beside") or {"rows": []}
    return [*measured(report), *published["rows"]]


def to_markdown(report: dict[str, Any]) -> str:
    """Return the rows as a Markdown table, the best Dynascore first, failures last."""
    scores = dynascores(report)
    measures = report["setting"]["measures"]
    heads = ["system", "Dynascore", *measures, "mean ms", "trials", "median", "p95", "p99"]
    heads += ["queries/s", "peak MiB", "resident MiB", "disk MiB", "build s", "cold start s"]
    heads += ["$ a million", "in batches"]
    rows = sorted(_shown(report), key=lambda row: -scores.get(row["system"], -math.inf))
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    for row in rows:
        time = row["latency"]
        cells = [
            _number(scores.get(row["system"])),
            *(_number(row["measures"].get(name)) for name in measures),
            _number(time["mean"]),
            " to ".join(_number(time[name]) for name in _TRIALS if name in time),
            *(_number(time.get(name)) for name in ("median", "p95", "p99")),
            _number(max(row.get("throughput", {}).values(), default=None)),
            *(_number(row.get(name), 1 << 20) for name in ("peak", "resident", "disk")),
            *(_number(row.get(name)) for name in _PLAIN),
        ]
        lines.append(f"| {_cell(row['system'])} | {' | '.join(cells)} |")
    for row in report["rows"]:
        if "error" in row:
            why = _cell(row["error"])
            lines.append(f"| {_cell(row['system'])} | {why} |" + " |" * (len(heads) - 2))
    return "\n".join(lines) + "\n"


_TRIALS = ("least_trial", "largest_trial")
_PLAIN = ("build_seconds", "cold_start", "cost", "cost_in_batches")


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _number(value: float | None, unit: int = 1) -> str:
    """Return three digits, as a person reads them."""
    if value is None or not math.isfinite(value):
        return ""
    value /= unit
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def to_html(report: dict[str, Any]) -> str:
    """Return a self-contained page, in which the weights can be changed."""
    scored = _scored(report, WEIGHTS)
    rates = None if scored is None else scored.rates
    shown = finite(report | {"about": about(report), "rates": rates})
    data = json.dumps(shown, allow_nan=False)
    page = Path(__file__).with_name("page.html").read_text("utf-8")
    title = html.escape(str(report["setting"]["collection"]))
    parts = {
        "__TITLE__": title.encode("utf-8", "replace").decode("utf-8"),
        "__REPORT__": data.replace("<", "\\u003c"),  # so that nothing ends the script element
    }
    # At once: a part may hold the name of another.
    return re.sub("|".join(parts), lambda match: parts[match[0]], page)

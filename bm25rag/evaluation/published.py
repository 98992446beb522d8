"""Rows that others have published, which a report shows beside measured ones."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from bm25rag.common.checks import check_real
from bm25rag.common.urls import from_home

_FORM = (
    '{"source": "...", "rates": {"latency": 33.05, "cost": 10.44}, "rows": [{"system": "...", '
    '"measures": {"RR@10": 0.187}, "latency": 11, "cost": 0.14}]}, where rates may be left out'
)


def read_published(path: str | PathLike[str], measure: str) -> dict[str, Any]:
    """Read published rows, in the form of a report; each must have ``measure``, its accuracy.

    A file is a JSON object: ``source``, where they were published; ``rows``, each with ``system``,
    ``measures`` by name, ``latency`` in milliseconds and ``cost`` in dollars for a million queries;
    and ``rates``, if scores are to be computed with the rates of substitution of the publication:
    what a point of accuracy costs, in milliseconds and dollars. A ``ValueError`` says what is wrong
    with it.
    """
    file = Path(from_home(path))
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
        source, rates = str(given["source"]), given.get("rates")
        if rates is not None:
            rates = {name: _number(rates, name) for name in ("latency", "cost")}
            if not min(rates.values()) > 0:
                raise ValueError("rates must be above 0")
        rows = [_row(row, measure) for row in given["rows"]]
    except (ValueError, TypeError, KeyError, AttributeError) as cause:
        why = f"there is no {cause}" if isinstance(cause, KeyError) else str(cause)
        raise ValueError(f"{file}: {why}; expected {_FORM}") from cause
    return {"source": source, "rates": rates, "rows": rows}


def _row(row: dict[str, Any], measure: str) -> dict[str, Any]:
    system = row["system"]
    if not isinstance(system, str):
        raise TypeError(f"system must be a text, got {system!r}")
    measures = {name: _number(row["measures"], name) for name in row["measures"]}
    if measure not in measures:
        raise ValueError(f"{system} has no {measure}, the first measure of the report")
    return {
        "system": system,
        "measures": measures,
        "latency": {"mean": _number(row, "latency")},
        "cost": _number(row, "cost"),
    }


def _number(values: dict[str, Any], name: str) -> float:
    check_real(name, values[name], 0.0, 1e12)
    return float(values[name])

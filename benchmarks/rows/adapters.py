"""A question through each framework, beside a retriever that does nothing."""

from __future__ import annotations

from statistics import median

from benchmarks.report import Report, Row
from benchmarks.workers import Figure, start

_FRAMEWORKS = {"LangChain, invoke": "LangChain", "LlamaIndex, retrieve": "LlamaIndex"}
_FRAMEWORKS["Haystack, run"] = "Haystack"
_TARGETS = {"LangChain": (20, 12), "LlamaIndex": (40, 25), "Haystack": (25, 15)}
_NOTE = "Ten documents a question; SciFact. `theirs` is the class that the adapter replaces."


def measure(report: Report, quick: bool) -> None:
    """Measure every adapter."""
    for work, name in _FRAMEWORKS.items():
        report.add(_row(work, name, 3 if quick else 10))


def _row(work: str, name: str, rounds: int) -> Row:
    figures: dict[str, Figure | str]
    above = None
    worker = start(f"benchmarks.frameworks:{name}")
    if isinstance(worker, str):
        figures = {"ours": worker}
    else:
        with worker:
            measured: dict[str, Figure] = worker.call("measure", rounds)
        pairs = zip(measured["ours"].rounds, measured["nothing"].rounds, strict=True)
        above = median(ours - nothing for ours, nothing in pairs)
        figures = {**measured}
    work = f"{work}, above doing nothing"
    targets = _TARGETS[name]
    row = Row("adapters", work, "µs", figures, above, "µs", "nothing", *targets, at_least=False)
    row.note = _NOTE
    return row

"""The pictures: latency against the number of documents, and how many times as fast we are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.engines import OURS
from benchmarks.report import Results, Row
from benchmarks.workers import Figure

_COLOURS = {
    OURS: "#c1272d",
    "bm25s numba": "#0000a7",
    "tantivy": "#eecc16",
    "PISA": "#008176",
    "Lucene": "#b3b3b3",
}


def draw(results: Results, folder: Path) -> list[str]:
    """Draw what there are figures for, and return what shows it in the README."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "bm25rag"  # the same figures, the same file
    made = []
    if latencies := results.growth.get("one by one"):
        made.append(_curve(latencies, folder / "latency.svg"))
    if rows := [row for row in results.rows if row.group == "batch search"]:
        made.append(_bars(rows, folder / "speed-up.svg"))
    return [f"![{path.stem}](benchmarks/results/{path.name})" for path in made]


def _curve(latencies: Mapping[str, Mapping[str, Mapping[str, float]]], path: Path) -> Path:
    """Draw mean and 99th percentile of single queries against N."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas((7, 4), layout="constrained")
    axes = canvas.subplots()
    for name, sizes in latencies.items():
        colour, numbers = _COLOURS.get(name), sorted(map(int, sizes))
        for what, style in (("mean", "-"), ("p99", ":")):
            values = [sizes[str(number)][what] / 1000 for number in numbers]
            label = name if what == "mean" else None
            axes.plot(numbers, values, style, marker=".", color=colour, label=label)
    axes.set(xscale="log", yscale="log", xlabel="documents", ylabel="ms a query")
    axes.set_title("k=10, one query at a time: mean (solid) and 99th percentile (dotted)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,.9g}")
    axes.grid(alpha=0.3)
    axes.legend()
    canvas.savefig(path, metadata={"Date": None})
    return path


def _bars(rows: Sequence[Row], path: Path) -> Path:
    """Draw, for each row, how many times as long as ours each engine takes."""
    from matplotlib.figure import Figure as Canvas

    names = [name for name in _COLOURS if name != OURS and any(_times(row, name) for row in rows)]
    canvas = Canvas((7, 4), layout="constrained")
    axes = canvas.subplots()
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        heights = [_times(row, name) for row in rows]
        left = [number + place * width for number in range(len(rows))]
        bars = axes.bar(left, heights, width, color=_COLOURS[name], label=name)
        axes.bar_label(bars, fmt="%.1f", fontsize=7)
    axes.axhline(1, color=_COLOURS[OURS], label=OURS)
    centres = [number + width * (len(names) - 1) / 2 for number in range(len(rows))]
    axes.set_xticks(centres, [row.work.replace(", ", "\n") for row in rows])
    axes.set(ylabel="times as long as bm25rag", title="a batch of queries, one thread")
    canvas.legend(loc="outside lower center", ncols=len(_COLOURS))
    canvas.savefig(path, metadata={"Date": None})
    return path


def _times(row: Row, name: str) -> float:
    ours, theirs = row.figures.get(OURS), row.figures.get(name)
    if isinstance(ours, Figure) and isinstance(theirs, Figure):
        return theirs.median / ours.median
    return 0.0

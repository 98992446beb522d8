"""The pictures: throughput, latency against the number of documents, and speed-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.engines import OURS
from benchmarks.report import Results, Row
from benchmarks.workers import Figure

# The background is transparent. Each colour has about the same contrast to white as to a dark page.
_INK = "#76797e"
_COLOURS = {
    OURS: "#e0442e",
    "bm25s numba": "#3f7fd1",
    "tantivy": "#a8791a",
    "PISA": "#2f8f7b",
    "Lucene": "#8f8f8f",
}


def draw(results: Results, folder: Path) -> dict[str, Path]:
    """Draw what there are figures for, and return the pictures by name."""
    import matplotlib as mpl

    mpl.use("svg")
    style = {
        "svg.hashsalt": "bm25rag",  # the same figures, the same file
        "savefig.transparent": True,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlecolor": _INK,
        **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), _INK),
        **dict.fromkeys(("xtick.color", "ytick.color", "grid.color"), _INK),
    }
    made = []
    with mpl.rc_context(style):
        if latencies := results.growth.get("one by one"):
            made.append(_curve(latencies, folder / "latency.svg"))
        if rows := [row for row in results.rows if row.group == "batch search"]:
            made.append(_bars(rows, folder / "speed-up.svg"))
            made.append(_throughput(rows[:3], folder / "throughput.svg"))
    return {path.stem: path for path in made}


def _throughput(rows: Sequence[Row], path: Path) -> Path:
    """Draw how many queries a second the first corpus's engines answer, for each k."""
    from matplotlib.figure import Figure as Canvas

    names = [OURS, "bm25s numba", "tantivy"]
    canvas = Canvas((7.5, 3.4), layout="constrained")
    axes = canvas.subplots()
    height = 0.8 / len(names)
    for place, name in enumerate(names):
        figures = [row.figures.get(name) for row in rows]
        rates = [1e6 / one.median if isinstance(one, Figure) else 0.0 for one in figures]
        middles = [number + place * height for number in range(len(rows))]
        bars = axes.barh(
            middles, rates, height * 0.92, color=_COLOURS[name], label=name.removesuffix(" numba")
        )
        weight = "bold" if name == OURS else "normal"
        axes.bar_label(bars, fmt="{:,.0f}", padding=4, fontweight=weight)
    centres = [number + height for number in range(len(rows))]
    labels = ["k = " + row.work.rpartition("k=")[2] for row in rows]
    axes.set_yticks(centres, labels, fontsize=11)
    axes.invert_yaxis()
    axes.tick_params("y", length=0)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.margins(x=0.09)
    axes.set_title("queries per second, one thread", loc="left", fontsize=12)
    axes.legend(loc="lower right", fontsize=11)
    canvas.savefig(path, metadata={"Date": None})
    return path


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

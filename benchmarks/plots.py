"""The pictures: throughput, latency against the number of documents, speed-ups, and systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.engines import OURS
from benchmarks.report import Results, Row
from benchmarks.workers import Figure
from bm25rag.evaluation.report import measured

# The background is transparent. Each colour has about the same contrast to white as to a dark page.
_INK = "#76797e"
_COLOURS = {
    OURS: "#e0442e",
    "bm25s numba": "#3f7fd1",
    "tantivy": "#a8791a",
    "PISA": "#2f8f7b",
    "Lucene": "#8f8f8f",
}
STYLE = {
    "svg.hashsalt": "bm25rag",  # the same figures, the same file
    "savefig.transparent": True,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlecolor": _INK,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), _INK),
    **dict.fromkeys(("xtick.color", "ytick.color", "grid.color"), _INK),
}


def draw(results: Results, folder: Path) -> dict[str, Path]:
    """Draw what there are figures for, and return the pictures by name."""
    import matplotlib as mpl

    mpl.use("svg")
    made = []
    with mpl.rc_context(STYLE):
        if latencies := results.growth.get("one by one"):
            made.append(_curve(latencies, folder / "latency.svg"))
        if rows := [row for row in results.rows if row.group == "batch search"]:
            made.append(_bars(rows, folder / "speed-up.svg"))
            made.append(_throughput(rows[:3], folder / "throughput.svg"))
        if results.systems:
            made.append(_systems(results.systems, folder / "systems.svg"))
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


# --- systems ----------------------------------------------------------------------------


class Box(NamedTuple):
    """A rectangle, in points of the picture."""

    left: float
    low: float
    right: float
    high: float

    def meets(self, other: Box) -> bool:
        """Whether they overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.low < other.high
            and other.low < self.high
        )


def frontier(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return, by latency, those than which nothing is both faster and better."""
    kept, best = [], float("-inf")
    for name, (_, accuracy) in sorted(points.items(), key=lambda one: (one[1][0], -one[1][1])):
        if accuracy > best:
            kept.append(name)
            best = accuracy
    return kept


def placed(points: Mapping[str, tuple[float, float]], within: Box, size: float) -> dict[str, Box]:
    """Find a place for each name where it covers no point and no other name.

    Parameters
    ----------
    points
        Where the points are, by name.
    within
        Where names may be.
    size
        Of the letters, in points.
    """
    taken = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in points.values()]
    found = {}
    for name, (x, y) in points.items():
        width, half = 0.63 * size * len(name), 0.65 * size
        tried = [
            Box(left, y + up - half, left + width, y + up + half)
            for away in range(20)
            for up in (2 * half * away, -2 * half * away)
            for left in (x + 7, x - 7 - width)
        ]
        free = (
            box
            for box in tried
            if box.left >= within.left
            and box.right <= within.right
            and box.low >= within.low
            and box.high <= within.high
            and not any(map(box.meets, taken))
        )
        found[name] = next(free, tried[0])
        taken.append(found[name])
    return found


def _systems(report: Mapping[str, Any], path: Path) -> Path:
    """Draw the accuracy of systems against the mean latency of a query, and the frontier."""
    from matplotlib.figure import Figure as Canvas

    measure = report["setting"]["measures"][0]
    points = {
        row["system"]: (row["latency"]["mean"], 100 * row["measures"][measure])
        for row in measured(dict(report))
    }
    canvas = Canvas((8, 4.8), dpi=72)  # so that points are those of letters
    axes = canvas.add_axes((0.08, 0.11, 0.9, 0.8))
    front = frontier(points)
    axes.plot(*zip(*(points[name] for name in front), strict=True), color=_COLOURS[OURS], zorder=1)
    for name, (latency, accuracy) in points.items():
        colour = _COLOURS[OURS] if name.startswith(OURS) else _COLOURS["bm25s numba"]
        axes.scatter(latency, accuracy, 60 if name in front else 24, color=colour, zorder=2)
    axes.set(xscale="log", xlabel="mean ms of one query at a time")
    axes.margins(0.06, 0.12)
    axes.set_title(
        f"{measure} times 100; the line joins those than which none is faster and better",
        loc="left",
        fontsize=10,
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3)
    canvas.draw_without_rendering()
    # The frontier has the first choice of places, then the best.
    order = sorted(points, key=lambda name: (name not in front, -points[name][1]))
    where = {name: tuple(axes.transData.transform(points[name])) for name in order}
    for name, box in placed(where, Box(*axes.bbox.extents), 9).items():
        left = box.left > where[name][0]
        edge, middle = (box.left if left else box.right), (box.low + box.high) / 2
        axes.annotate(
            name,
            points[name],
            (edge, middle),
            textcoords="figure pixels",
            fontsize=9,
            ha="left" if left else "right",
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "lw": 0.6,
                "color": _INK,
                "shrinkA": 0,
                "shrinkB": 4,
                "relpos": (0.0 if left else 1.0, 0.5),
            }
            if abs(middle - where[name][1]) > 2
            else None,
        )
    canvas.savefig(path, metadata={"Date": None})
    return path

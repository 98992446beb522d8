"""Draws what idf, k1 and b do, for docs/course.md, from the formulas that searches use.

python -m benchmarks.course
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.plots import STYLE
from bm25rag.common.arrays import Float64
from bm25rag.scoring.variants import VARIANTS

FOLDER = Path(__file__).parents[1] / "docs"
_DOCUMENTS = 10.0
_COLOURS = ("#e0442e", "#3f7fd1", "#a8791a", "#2f8f7b")
_LUCENE = VARIANTS["lucene"]


def idf_curves() -> tuple[Float64, dict[str, Float64]]:
    """Return document frequencies, and idf by name."""
    frequencies = np.arange(1, _DOCUMENTS + 1)
    names = {"ln(N / df)": "tfidf", "BM25": "lucene", "BM25, Robertson's": "robertson"}
    curves = {
        shown: np.log(VARIANTS[name].inverse(_DOCUMENTS, frequencies))
        for shown, name in names.items()
    }
    return frequencies, curves


def k1_curves() -> tuple[Float64, dict[str, Float64]]:
    """Return term frequencies in a document of average length, and their weights by k1."""
    counts = np.arange(0, 21.0)
    one = np.ones_like(counts)
    curves = {
        f"k1 = {k1:g}": np.where(counts > 0, _LUCENE.tf(np.maximum(counts, 1), one, one, k1, 0), 0)
        for k1 in (0.0, 0.6, 1.2, 3.0)
    }
    return counts, curves


def b_curves() -> tuple[Float64, dict[str, Float64]]:
    """Return lengths, as shares of the average, and the weights of two occurrences by b."""
    lengths = np.linspace(0.1, 4, 40)
    counts = np.full_like(lengths, 2.0)
    curves = {}
    for b in (0.0, 0.4, 0.75, 1.0):
        curves[f"b = {b:g}"] = _LUCENE.tf(counts, 1 - b + b * lengths, lengths, 1.2, 0)
    return lengths, curves


PICTURES: Mapping[str, tuple[Callable[[], tuple[Float64, dict[str, Float64]]], str, str]] = {
    "course-idf": (idf_curves, "documents of ten that have the word", "idf"),
    "course-k1": (k1_curves, "occurrences in a document of average length", "term weight"),
    "course-b": (b_curves, "length of the document, in average lengths", "term weight, k1 = 1.2"),
}


def draw(folder: Path = FOLDER) -> list[Path]:
    """Draw all pictures."""
    import matplotlib as mpl

    mpl.use("svg")
    made = []
    # Text as text, or its outlines would be most of a file.
    with mpl.rc_context(STYLE | {"svg.fonttype": "none", "font.family": "sans-serif"}):
        from matplotlib.figure import Figure

        for name, (curves, across, up) in PICTURES.items():
            canvas = Figure((6, 3.2), layout="constrained")
            axes = canvas.subplots()
            where, values = curves()
            for (label, line), colour in zip(values.items(), _COLOURS, strict=False):
                axes.plot(where, line, color=colour, label=label)
            axes.set(xlabel=across, ylabel=up)
            axes.set_ylim(bottom=0)
            axes.legend()
            canvas.savefig(folder / f"{name}.svg", metadata={"Date": None})
            made.append(folder / f"{name}.svg")
    return made


if __name__ == "__main__":
    for path in draw():
        print(path)

"""The pictures of the page for students show the formulas that searches use."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are in the checkout only")

from benchmarks import course
from bm25rag import Analyzer, BM25Index
from support.environment import ROOT


def test_the_curves_are_what_a_search_scores() -> None:
    index = BM25Index(analyzer=Analyzer(stopwords=None, stemmer=None))
    index.add([" ".join(["word"] * 3 + ["filler"] * 7), "filler " * 10, *["other " * 10] * 8])
    (word, filler) = index.explain("word filler", "0").terms
    frequencies, idf = course.idf_curves()
    assert idf["BM25"][frequencies == 1] == pytest.approx(word.idf)
    assert idf["BM25"][frequencies == 2] == pytest.approx(filler.idf)
    counts, weights = course.k1_curves()
    assert weights["k1 = 1.2"][counts == 3] == pytest.approx(word.f)
    lengths, by_length = course.b_curves()
    near = abs(lengths - 1).argmin()
    assert by_length["b = 0.75"][near] == pytest.approx(2 / (2 + 1.2), rel=0.05)
    assert all(math.isfinite(value) for values in by_length.values() for value in values)


def test_the_page_shows_the_pictures_that_are_drawn(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "course.md").read_text("utf-8")
    for name in course.PICTURES:
        assert f"({name}.svg)" in page
        assert (ROOT / "docs" / f"{name}.svg").stat().st_size < 25_000
    pytest.importorskip("matplotlib")
    made = {path.name: path.read_text("utf-8") for path in course.draw(tmp_path)}
    for name in made:
        assert made[name].count("<path") == (ROOT / "docs" / name).read_text("utf-8").count("<path")

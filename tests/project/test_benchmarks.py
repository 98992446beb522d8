"""The benchmarks run, on a tiny corpus and beside one peer; what they measure is not looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are in the checkout only")

from benchmarks import quality
from benchmarks.engines import OURS
from benchmarks.living import FILTERS, FIRST
from benchmarks.report import (
    SMALL_GROUP,
    Report,
    Results,
    Row,
    about,
    brief_table,
    details,
    put_into,
    raced,
)
from benchmarks.rows.searching import field
from benchmarks.synthetic import Recipe, statistics
from benchmarks.workers import Figure, NotInstalledError, Worker

TINY = Recipe("synthetic-tiny", 300, terms=2000, topics=10, topic_terms=20)
PEER = "bm25s numpy"


@pytest.fixture(scope="module")
def corpus() -> Path:
    TINY.prepare()
    return TINY.folder


def test_engines_race_and_agree_and_the_report_shows_it(corpus: Path, tmp_path: Path) -> None:
    report = Report()
    report.describe()
    with field([OURS, PEER], corpus, 200) as engines:
        engines.choose(corpus, "questions")
        report.add(raced("search", "tiny, k=10", "µs a query", engines.race(2, 10), 1e-9, 1e-9))
        report.checks += engines.check("tiny", 10)
    assert report.checks[0]["overlap"] == 1
    assert report.checks[0]["difference"] < 1e-6
    assert report.rows[0].verdict == "goal met"
    Results({"searching": report}).write(tmp_path / "full.json")
    results = Results.read(tmp_path / "full.json")
    assert results == Results({"searching": report})
    assert results.rows[0].against == PEER
    assert "| tiny, k=10" in details(results)
    readme = tmp_path / "README.md"
    readme.write_text("before <!-- benchmarks -->old<!-- /benchmarks --> after", "utf-8")
    put_into(readme, [about(results), brief_table(results.rows)])
    written = readme.read_text("utf-8")
    assert written.startswith("before <!-- benchmarks -->")
    assert written.endswith("<!-- /benchmarks --> after")
    assert "tiny, k=10" in written
    assert "old" not in written


def test_an_index_that_changes_can_be_measured(corpus: Path, tmp_path: Path) -> None:
    with Worker("benchmarks.living:Living", corpus, 200, tmp_path / "living") as living:
        for method in ("add_one", "add_batch", "tune", "refresh"):
            assert living.call(method, 0) > 0
        assert len(living.call("commit_one", 0)) == 3
        for how in (next(iter(FILTERS)), "unfiltered", "exhaustive"):
            assert min(living.call("filtered", how, 10, 0)) > 0
        assert living.call("first", next(iter(FIRST)), 0) > 0
        assert living.call("readers", True, 0.0)


def test_small_corpora_share_a_line_that_the_worst_of_them_judges() -> None:
    rows = [
        Row(SMALL_GROUP, f"{name}, k={k}", "", {}, judged, required=1.5, goal=2.0)
        for name, k, judged in (("a", 10, 1.7), ("b", 10, 1.4), ("a", 100, 2.5), ("c", 10, 2.1))
    ]
    *_, of_ten, of_hundred = brief_table(rows).splitlines()
    assert of_ten.startswith("| 3 small corpora, k=10 |")
    assert "1.4x (b) to 2.1x (c)" in of_ten
    assert "missed" in of_ten
    assert "goal met" in of_hundred


def test_groups_measured_in_different_runs_say_so() -> None:
    older, newer = Report(), Report()
    older.describe()
    newer.describe()
    newer.about["command"] = "python -m benchmarks --only growth"
    said = about(Results({"searching": older, "growth": newer}))
    assert said.count("Measured by") == 1
    assert ", `python -m benchmarks --only growth`" in said
    newer.about["date"] = "2001-01-01"
    said = about(Results({"searching": older, "growth": newer}))
    assert said.count("Measured by") == 2
    assert "`python -m benchmarks --only growth` (growth)\non 2001-01-01" in said


def test_a_peer_that_is_not_installed_is_said_to_be() -> None:
    with pytest.raises(NotInstalledError):
        Worker("benchmarks.engines.no_such_engine:Engine")


def test_what_goes_wrong_in_a_worker_is_told() -> None:
    with (
        Worker("collections:Counter") as worker,
        pytest.raises(RuntimeError, match="AttributeError"),
    ):
        worker.call("no_such_method")


def test_synthetic_documents_are_drawn_alike_each_time(corpus: Path) -> None:
    counted = statistics(corpus, [["t0"]], 300)
    assert 55 < counted["tokens a document"] < 85
    assert counted["terms a query"] == 1


@pytest.mark.parametrize(
    ("measured", "at_least", "verdict"),
    [
        (3.0, True, "goal met"),
        (2.0, True, "met"),
        (1.9, True, "**missed**"),
        (2.5, False, "**missed**"),
        (None, True, "not measured"),
    ],
)
def test_a_target_is_met_or_missed(measured: float | None, at_least: bool, verdict: str) -> None:
    goal = 3.0 if at_least else 1.0
    figures = {OURS: Figure(1.0, [1.0])}
    row = Row("a", "b", "s", {**figures}, measured, "x", "", 2.0, goal, at_least)
    assert row.verdict == verdict


def test_quality_is_measured_on_a_collection_and_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "xquad-en"
    (folder / "qrels").mkdir(parents=True)
    texts = {"a": "It is written in C.", "b": "It is written in C++.", "c": "red boats"}
    rows = [json.dumps({"_id": id, "title": "", "text": text}) for id, text in texts.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows), "utf-8")
    asked = json.dumps({"_id": "q", "text": "What is in C++?"})
    (folder / "queries.jsonl").write_text(asked, "utf-8")
    (folder / "qrels" / "test.tsv").write_text("query\tdocument\tgrade\nq\tb\t1", "utf-8")
    monkeypatch.delenv("LUCENE_JAR", raising=False)
    collection = quality.load(folder, "english")
    assert quality.measure(collection, "now") == (100.0, 6)
    assert quality.measure(collection, "0.1")[0] < 100
    written = quality.table(tmp_path, ["xquad-en"])
    assert "| xquad-en | english |" in written
    assert "Lucene: not measured, LUCENE_JAR does not name a jar" in written

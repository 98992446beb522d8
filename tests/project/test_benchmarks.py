"""The benchmarks run, on a tiny corpus and beside one peer; their figures are ignored."""

from __future__ import annotations

import json
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are in the checkout only")

from benchmarks import earlier, hybrid, large, passages, quality, scale, strips, vectors
from benchmarks.corpora import Corpus
from benchmarks.engines import OURS
from benchmarks.living import FILTERS, FIRST
from benchmarks.plots import Box, frontier, placed
from benchmarks.report import SMALL_GROUP, Report, Results, Row, about, details, raced
from benchmarks.rows import asking
from benchmarks.rows.searching import field
from benchmarks.summary import HEADLINES, behind_table, cost_table, headlines, publish, speed_table
from benchmarks.synthetic import Recipe, statistics
from benchmarks.workers import Figure, Worker, start
from bm25rag import BM25Index
from bm25rag.evaluation.processes import FailedError
from support.environment import ROOT, collection
from support.evaluation import some_report

TINY = Recipe("synthetic-tiny", 300, terms=2000, topics=10, topic_terms=20)
PEER = "bm25s numpy"


@pytest.fixture(scope="module")
def corpus() -> Path:
    TINY.prepare()
    return TINY.folder


@pytest.mark.slow
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


def test_a_large_index_is_built_and_served_by_its_own_process(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    assert large.build(large.Ours(), TINY, folder, 512 << 20)["passages a second"] > 0
    served = large.serve(large.Ours(), TINY, folder)
    assert len(served["mean, ms"]) == len(served["p99, ms"]) == 3
    ranked = large.rank(TINY, folder)
    assert list(ranked) == [f"k={k}: mean, p99, ms" for k in (10, 100, 1000)]
    assert all(mean > 0 and p99 > 0 for mean, p99 in ranked.values())  # one pause lifts the mean


def test_documents_are_judged_by_the_rank_of_their_best_passage() -> None:
    texts = {"long": "red boat " * 9 + "green car", "short": "a green tree", "none": "sky"}
    texts |= {f"d{number}": "sea" for number in range(3)}
    judged = passages.Judged("english", texts, {"q": "green car"}, {"q": {"long": 1}})
    assert [len(judged.cut(texts["long"], size)) for size in (20, 9)] == [1, 3]
    found = [judged.ranked(judged.indexed(size)).mean["nDCG@10"] for size in (None, 9, 1)]
    assert found == [pytest.approx(0.63, abs=0.01), 1, 1]
    fives = judged.in_fives()
    assert [*fives.texts] == ["long", "d2"]
    assert fives.grades == {"q": {"long": 1}}
    unspaced = judged._replace(language="chinese")
    assert unspaced.cut("東京大学院", 1) == ["東京", "大学", "院"]
    assert unspaced.cut("", 1) == judged.cut("", 1) == [""]


@pytest.mark.slow
def test_new_questions_are_asked_in_new_processes() -> None:
    corpus = Corpus("xquad-de", "german")
    collection(corpus.collection)
    report = Report()
    asking.ask(report, corpus, "questions", 1, (1e-9, 1e-9), (None, None))
    assert [row.work.split(", ")[-1] for row in report.rows] == ["new", "a batch of texts"]
    assert all(row.figures[OURS].median > 0 for row in report.rows)


@pytest.mark.slow
def test_two_versions_take_turns(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with earlier.Version(ROOT) as before, earlier.Version(ROOT) as now:
        earlier.compare(before, now, [(TINY, "questions", 10)], rounds=1)
    *_, row = capsys.readouterr().out.splitlines()
    name, *figures = (cell.strip() for cell in row.strip("|").split("|"))
    assert name == "synthetic-tiny, questions, k=10"
    assert all(float(figure) > 0 for figure in figures)


def test_the_page_on_scale_shows_what_was_measured() -> None:
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    rows = json.loads(scale.KEPT.read_text(encoding="utf-8"))["rows"]
    assert scale.measured_table(rows) in page
    assert scale.plan_snippet(rows) in page
    failed = {"engine": "PISA", "passages": 10_000, "error": "build: no room"}
    assert scale.measured_table([failed]).splitlines()[-1].startswith("| 10,000 | PISA | build: no")


@pytest.mark.slow
def test_an_index_that_changes_can_be_measured(corpus: Path, tmp_path: Path) -> None:
    with Worker("benchmarks.living:Living", corpus, 200, tmp_path / "living") as living:
        for method in ("add_one", "add_batch", "tune", "refresh"):
            assert living.call(method, 0) > 0
        assert len(living.call("commit_one", 0)) == 3
        for how in (next(iter(FILTERS)), "unfiltered", "exhaustive"):
            assert min(living.call("filtered", how, 10, 0)) > 0
        assert living.call("first", next(iter(FIRST)), 0) > 0
        assert living.call("readers", True, 0.0)


def raced_rows(group: str, work: str, ours: float, **others: float) -> Row:
    figures = {name: Figure(value, [value]) for name, value in {OURS: ours, **others}.items()}
    return raced(group, work, "µs a query", figures)


def test_the_documentation_gets_pictures_and_tables_between_its_markers(tmp_path: Path) -> None:
    report = Report([raced_rows("batch search", HEADLINES[1].work, 10.0, tantivy=25.0)])
    report.describe()
    report.about["versions"].update(bm25s="1", tantivy="2")
    readme, page = tmp_path / "README.md", tmp_path / "docs" / "performance.md"
    page.parent.mkdir()
    readme.write_text("a <!-- picture -->old<!-- /picture --> b <!-- speed --><!-- /speed --> c")
    page.write_text("a <!-- benchmarks -->old<!-- /benchmarks --> b")
    picture = tmp_path / "benchmarks" / "throughput.svg"
    publish(Results({"searching": report}), {"throughput": picture}, tmp_path)
    written = readme.read_text("utf-8")
    assert written.startswith("a <!-- picture -->\n\n![")
    assert "](benchmarks/throughput.svg)" in written
    assert f"Measured on {report.about['date']} on " in written
    assert "| tantivy | is 2.5 times as fast |" in written
    assert written.endswith("<!-- /speed --> c")
    written = page.read_text("utf-8")
    assert f"| {HEADLINES[1].work}" in written
    assert "throughput" not in written
    assert "old" not in written


def test_systems_have_a_picture_and_a_table_with_the_command(tmp_path: Path) -> None:
    """The page has both, and the README the picture beneath its rows."""
    searching = Report([raced_rows("batch search", HEADLINES[1].work, 10.0, tantivy=25.0)])
    searching.describe()
    systems = Report(systems=some_report(), about=searching.about)
    readme, page = tmp_path / "README.md", tmp_path / "docs" / "performance.md"
    page.parent.mkdir()
    readme.write_text("a <!-- speed --><!-- /speed --> c")
    page.write_text("a <!-- benchmarks -->old<!-- /benchmarks --> b")
    results = Results({"searching": searching, "systems": systems})
    publish(results, {"systems": tmp_path / "benchmarks" / "systems.svg"}, tmp_path)
    written = readme.read_text("utf-8")
    assert "tantivy | is 2.5 times as fast |\n\n![nDCG@10 of each retriever" in written
    assert "SciFact: `bm25rag bench scifact/ --output measured/` ([" in written
    written = page.read_text("utf-8")
    assert "](../benchmarks/systems.svg)\n\n| system | Dynascore | nDCG@10 |" in written
    assert "python -m benchmarks --only systems" in written
    assert "each system in a process of its own with 1 CPU and 4 GiB." in written
    assert "Measured on P, 2 cores, 8 GiB" in details(results)


def test_names_of_points_cover_neither_points_nor_each_other() -> None:
    points = {f"system {n}": (100.0 + n % 3, 100.0 + n // 3) for n in range(9)}
    within = Box(0.0, 0.0, 500.0, 300.0)
    boxes = list(placed(points, within, 9).values())
    assert not any(one.meets(other) for one, other in combinations(boxes, 2))
    for x, y in points.values():
        assert not any(one.meets(Box(x - 4, y - 4, x + 4, y + 4)) for one in boxes)
    assert all(one.left >= 0 and one.low >= 0 for one in boxes)


def test_nothing_is_faster_and_better_than_what_is_on_the_frontier() -> None:
    points = {
        "a": (1.0, 50.0),
        "b": (2.0, 60.0),
        "c": (2.0, 55.0),
        "d": (3.0, 60.0),
        "e": (9.0, 61),
    }
    assert frontier(points) == ["a", "b", "e"]


def test_the_readme_says_where_another_engine_needs_less() -> None:
    rows = [raced_rows("growth", HEADLINES[-1].work, 500.0, tantivy=100.0)]
    assert "| tantivy | is behind: it needs 5 times as much |" in headlines(rows)
    assert "| tantivy | 5 " in behind_table(rows)
    assert behind_table([raced_rows("growth", "search", 1.0, tantivy=2.0)]) == ""
    rows[0].judged = None
    assert "| 500 µs a query | tantivy 100 µs a query |" in cost_table(rows)


def test_small_corpora_share_a_line_from_the_lowest_to_the_highest() -> None:
    rows = [
        raced_rows(SMALL_GROUP, f"{name}, k={k}", 1.0, tantivy=ratio)
        for name, k, ratio in (("a", 10, 1.7), ("b", 10, 1.4), ("a", 100, 2.5), ("c", 10, 2.1))
    ]
    *_, of_ten, of_hundred = speed_table(rows).splitlines()
    assert of_ten.startswith("| 3 corpora, k=10 ")
    assert "| 1.4 to 2.1 |" in of_ten
    assert of_hundred.startswith("| 1 corpora, k=100 ")
    assert "| 2.5 " in of_hundred


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
    said = start("benchmarks.engines.no_such_engine:Engine")
    assert said == "not installed: No module named 'benchmarks.engines.no_such_engine'"


@pytest.mark.slow
def test_an_engine_that_fails_to_index_costs_its_own_figures_only(tmp_path: Path) -> None:
    with field([OURS, PEER], tmp_path / "nowhere") as engines:
        assert engines.workers == {}
    assert set(engines.missing) == {OURS, PEER}
    assert engines.missing[PEER].startswith("failed: FileNotFoundError")


def test_what_goes_wrong_in_a_worker_is_told() -> None:
    with (
        Worker("collections:Counter") as worker,
        pytest.raises(FailedError, match="AttributeError"),
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
    monkeypatch.setenv("LUCENE_JAR", "nowhere.jar")
    collection = quality.load(folder, "english")
    assert quality.measure(collection, "bm25rag") == (100.0, 6)
    written = quality.analysis_table(tmp_path, ["xquad-en"])
    assert "| xquad-en | english |" in written
    assert "Lucene, english: not measured, " in written
    for which, settings in (("variants", 7), ("words", 4)):
        head, _, published, row = quality.columns_table(which, tmp_path, ["xquad-en"]).splitlines()
        assert published.startswith("| scifact, published | 68.7 |")
        assert row.startswith("| xquad-en | ")
        assert head.count("|") == published.count("|") == row.count("|") == settings + 2
    *_, row = quality.columns_table("accents", tmp_path, ["xquad-en"]).splitlines()
    assert row == "| xquad-en | 100.00 | 100.00 | 100.00 | 100.00 |"
    assert quality.without_accents("Ärger, año, آب") == "Arger, ano, اب"


@pytest.mark.slow
def test_hybrid_figures_are_those_of_the_parts_and_of_their_fusions() -> None:
    def exact(_: quality.Collection) -> tuple[hybrid.Vectors, hybrid.Vectors]:
        return np.eye(3), np.eye(3)[:2]

    def absent(_: quality.Collection) -> tuple[hybrid.Vectors, hybrid.Vectors]:
        raise ImportError

    partners = {"exact": ("", partial(hybrid.dense_run, exact))}
    partners |= {"absent": ("", partial(hybrid.dense_run, absent))}
    texts = ["red boats", "blue cars", "red red cars"]
    questions, grades = {"q": "red", "r": "cars"}, {"q": {"a": 1}, "r": {"b": 1}}
    few = quality.Collection(["a", "b", "c"], texts, questions, grades, "english")
    (row,) = hybrid.rows(few, partners)
    assert row[:3] == ["exact", "81.5", "100.0"]
    assert len(row) == 9


def test_searches_by_sparse_vectors_are_timed_beside_others() -> None:
    rows = list(vectors.rows(50, 3, 1))
    assert [len(row) for row in rows] == [4] * 4
    assert all(float(row[-1].removesuffix(" ms")) > 0 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("correlated", [True, False])
def test_many_vectors_are_walked_and_searched_by_strips(correlated: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.segments.strip_rows.STRIPS_FROM", 1 << 14)
        patch.setattr(strips, "_TIMES", 1)
        patch.setattr(strips, "_OTHERS", 40)
        name, k, *times, bounds = strips.measure(20_000, correlated, 5, number=20)
    assert name == "20,000" + ("" if correlated else ", without topics")
    assert k == "5"
    assert len(times) == 6
    assert int(bounds.removesuffix(" MiB")) > 0


def test_all_of_them_find_the_same_sums() -> None:
    rng = np.random.default_rng(1)
    passages, questions = vectors.draw(rng, 50, 40), vectors.draw(rng, 3, 30)
    index = BM25Index.from_texts([[]] * 50, vectors=passages)
    for row in range(3):
        question = questions[[row]]
        ours = [int(hit.id) for hit in index.vectors.search(question, vectors.K)]
        for search in (vectors.by_numpy(passages), vectors.by_scipy(passages)):
            assert list(search(question))[: len(ours)] == ours  # behind them, those without a match

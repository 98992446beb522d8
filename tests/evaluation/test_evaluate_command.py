"""``bm25rag evaluate``: what it prints, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.commands import fails, ok
from support.evaluation import QUERIES, RELEVANT, TEXTS

pytest.importorskip("pytrec_eval")


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def judged() -> tuple[str, ...]:
    """Index four documents, and judge four queries; return the arguments that name them."""
    corpus = [{"_id": id, "text": text} for id, text in TEXTS.items()]
    Path("corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)), encoding="utf-8")
    Path("q.tsv").write_text("\n".join(map("\t".join, QUERIES.items())), encoding="utf-8")
    rows = [f"{query} 0 {document} 1" for query, document in RELEVANT.items()]
    Path("qrels.txt").write_text("\n".join(rows), encoding="utf-8")
    ok("index", "corpus.jsonl", "--output", "saved")
    return ("saved", "--queries", "q.tsv", "--qrels", "qrels.txt")


def test_means_and_intervals_are_printed(judged: tuple[str, ...]) -> None:
    result = ok("evaluate", *judged, "-m", "RR@10", "-m", "P@1")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[1][:2] == ["RR@10", "0.8750"]
    assert lines[2][:2] == ["P@1", "0.7500"]
    assert lines[-1] == ["4", "judged", "queries"]
    assert result.stderr == ""


def test_json_has_every_query(judged: tuple[str, ...]) -> None:
    facts = json.loads(ok("evaluate", *judged, "-m", "RR@10", "--json").stdout)
    assert facts["queries"] == 4
    assert facts["mean"] == {"RR@10": 0.875}
    assert facts["per_query"]["3"] == {"RR@10": 0.5}
    low, high = facts["intervals"]["RR@10"]
    assert low <= 0.875 <= high


def test_a_run_is_written_and_is_a_baseline_afterwards(judged: tuple[str, ...]) -> None:
    ok("evaluate", *judged, "--run-to", "before.run")
    assert Path("before.run").read_text(encoding="utf-8").startswith("1 Q0 apple 1 ")
    same = ok("evaluate", *judged, "-m", "RR@10", "--baseline", "before.run")
    assert "RR@10: 0.8750 to 0.8750, +0.0000 (p = 1.0000, not significant)" in same.stdout
    rows = ["1 Q0 car 1 1.0 x", "2 Q0 boat 1 1.0 x", "3 Q0 pear 1 1.0 x", "4 Q0 pear 1 1.0 x"]
    Path("other.run").write_text("\n".join(rows), encoding="utf-8")
    found = ok("evaluate", *judged, "-m", "RR@10", "--baseline", "other.run").stdout
    changes = [line.split() for line in found.splitlines()[-2:]]
    assert changes == [["1", "0.0000", "1.0000", "+1.0000"], ["3", "1.0000", "0.5000", "-0.5000"]]
    text = ok("evaluate", *judged, "-m", "RR@10", "--baseline", "other.run", "--json").stdout
    [comparison] = json.loads(text)["comparisons"]
    assert comparison["changes"] == [["1", 0, 1, 1], ["3", 1, 0.5, -0.5]]


def test_scoring_options_evaluate_a_view(judged: tuple[str, ...]) -> None:
    facts = json.loads(ok("evaluate", *judged, "--variant", "bm25l", "--b", "0", "--json").stdout)
    assert facts["queries"] == 4


def test_what_is_left_out_is_told(judged: tuple[str, ...]) -> None:
    with Path("q.tsv").open("a", encoding="utf-8") as file:
        file.write("\n9\tunjudged")
    with Path("qrels.txt").open("a", encoding="utf-8") as file:
        file.write("\n8 0 boat 1\n1 0 gone 1")
    result = ok("evaluate", *judged)
    assert "Note: 1 queries have no judgements and are left out" in result.stderr
    assert "Note: 1 judged queries have no text and are left out" in result.stderr
    assert "Note: 1 relevant documents are not in the index: ['gone']" in result.stderr


def test_measures_of_fewer_results_than_they_count_are_told(judged: tuple[str, ...]) -> None:
    """R@100 of ten results looked like any other R@100."""
    result = ok("evaluate", *judged, "-k", "2", "-m", "R@100", "-m", "RR@2")
    told = "R@100 counts only the best 2 results of each query: -k is 2"
    assert result.stderr == f"Note: {told}\n"
    facts = json.loads(ok("evaluate", *judged, "-k", "2", "-m", "R@100", "--json").stdout)
    assert facts["notes"] == [told]
    assert ok("evaluate", *judged, "-k", "4", "-m", "R@100").stderr == ""  # all there are


def test_what_a_baseline_lacks_is_told(judged: tuple[str, ...]) -> None:
    """A run that was cut off looked like a worse one."""
    Path("cut.run").write_text("1 Q0 apple 1 1.0 x\n7 Q0 pear 1 1.0 x\n", encoding="utf-8")
    asked = ("evaluate", *judged, "-m", "RR@10", "--baseline", "cut.run")
    told = [
        "cut.run: 3 judged queries have no results and count as 0: '2', '3', '4'",
        "cut.run: 1 queries have no judgements and do not count: '7'",
    ]
    assert ok(*asked).stderr.splitlines() == [f"Note: {one}" for one in told]
    assert json.loads(ok(*asked, "--json").stdout)["notes"] == told


def test_wrong_input_is_told_without_a_traceback(judged: tuple[str, ...]) -> None:
    fails(2, "unknown measure 'best'; measures are such as", "evaluate", *judged, "-m", "best")
    fails(3, "nowhere.txt: No such file", "evaluate", *judged[:3], "--qrels", "nowhere.txt")
    fails(3, "gone.run: No such file", "evaluate", *judged, "--baseline", "gone.run")
    Path("bad.txt").write_text("1 0 apple good\n", encoding="utf-8")
    fails(3, "bad.txt:1: the grade must be", "evaluate", *judged[:3], "--qrels", "bad.txt")
    Path("other.txt").write_text("q1 0 apple 1\n", encoding="utf-8")
    fails(3, "no query is judged", "evaluate", *judged[:3], "--qrels", "other.txt")
    fails(2, "Missing option '--qrels'", "evaluate", *judged[:3])

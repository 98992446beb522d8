"""Judgements: what a click writes, and how good the settings are for what is judged."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bm25rag import BM25Index
from bm25rag.evaluation.files import read_qrels
from bm25rag.inspector.judgements import Judgements
from support.commands import ok
from support.inspected import Elements, Inspected

Start = Callable[..., Inspected]


def test_a_click_writes_a_judgement_as_beir_has_it_and_goes_back(
    inspected: Inspected, tmp_path: Path
) -> None:
    answer = inspected.judge(2, q="red  sea", id="boat", k1="0.5")
    assert (answer.status, answer.headers["location"]) == (303, "/search?q=red%20%20sea&k1=0.5")
    inspected.judge(0, q="red sea", id="car")
    inspected.judge(1, q="bird", id="bird")
    assert (tmp_path / "judged.tsv").read_text() == (
        "query-id\tcorpus-id\tscore\nred sea\tboat\t2\nred sea\tcar\t0\nbird\tbird\t1\n"
    )
    grades = {hit["id"]: hit["grade"] for hit in inspected.json("search", q="red sea")["hits"]}
    assert grades == {"boat": 2, "car": 0, "sea": None}


def test_the_buttons_of_a_page_need_no_script(inspected: Inspected, tmp_path: Path) -> None:
    page = Elements(inspected.page("search", q="red sea"))
    form = page.all("form", **{"class": "judge"})[0]
    assert form["method"] == "post"
    answer = inspected.ask(form["action"], "POST", "grade=3", Origin=inspected.base)
    assert answer.status == 303
    (first, *_) = inspected.json("search", q="red sea")["hits"]
    assert first["grade"] == 3
    pressed = Elements(inspected.ask(answer.headers["location"]).text).all(
        "button", **{"aria-pressed": "true"}
    )
    assert [one["value"] for one in pressed] == ["3"]


def test_a_judgement_can_be_changed_and_removed(inspected: Inspected, tmp_path: Path) -> None:
    for grade in (1, 2, "none"):
        inspected.judge(grade, q="red", id="boat")
    assert (tmp_path / "judged.tsv").read_text() == "query-id\tcorpus-id\tscore\n"
    assert inspected.json("judged")["judged"] == 0
    assert inspected.judge("none", q="red", id="boat").status == 303


def test_judgements_of_others_are_kept_and_seen(inspected: Inspected, tmp_path: Path) -> None:
    inspected.judge(1, q="red", id="boat")
    with (tmp_path / "judged.tsv").open("a") as file:
        file.write("red\tcar\t2\n")
    assert inspected.json("search", q="red")["judged"] == 2
    inspected.judge(1, q="sea", id="sea")
    assert read_qrels(tmp_path / "judged.tsv") == {"red": {"boat": 1, "car": 2}, "sea": {"sea": 1}}


@pytest.mark.parametrize("body", ["", "grade=", "grade=-1", "grade=12", "grade=x", "g" * 5000])
def test_what_is_no_grade_is_refused(body: str, inspected: Inspected, tmp_path: Path) -> None:
    answer = inspected.post("judge", body, q="red", id="boat")
    assert answer.status == 400
    assert "a grade is from 0 to 9" in answer.text
    assert not (tmp_path / "judged.tsv").exists()


@pytest.mark.parametrize("id", ["a\tb", "a\nb", "a\u2028b", "a\0b", "lone \ud800"])
def test_an_id_that_the_file_cannot_hold_is_refused_and_the_file_stays(
    id: str, inspected: Inspected, tmp_path: Path
) -> None:
    inspected.judge(1, q="red", id="boat")
    assert inspected.judge(1, q="red", id=id).status == 400
    assert inspected.json("judged")["judged"] == 1
    assert read_qrels(tmp_path / "judged.tsv") == {"red": {"boat": 1}}
    assert [path.name for path in tmp_path.glob("*.tsv")] == ["judged.tsv"]
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_nothing_is_judged_without_a_file_a_question_or_a_document(
    folder: Path, start: Start, inspected: Inspected
) -> None:
    assert "--qrels" in start(folder).judge(1, q="red", id="boat").text
    assert "no question" in inspected.judge(1, q=" ", id="boat").text
    assert "no document" in inspected.judge(1, q="red").text
    page = Elements(start(folder).page("search", q="red"))
    assert page.all("form", **{"class": "judge"}) == []


def test_questions_of_a_file_have_its_ids(folder: Path, tmp_path: Path, start: Start) -> None:
    queries = {"q1": "red sea", "q2": "bird"}
    inspected = start(folder, qrels=tmp_path / "judged.tsv", queries=queries)
    inspected.judge(1, q="red  sea ", id="boat")
    inspected.judge(1, q="another", id="boat")
    assert read_qrels(tmp_path / "judged.tsv") == {"q1": {"boat": 1}, "another": {"boat": 1}}
    questions = inspected.json("judged")["questions"]
    assert [one["question"] for one in questions] == ["red sea", "another"]


def test_the_measure_is_that_of_the_evaluation(
    folder: Path, inspected: Inspected, tmp_path: Path
) -> None:
    pytest.importorskip("pytrec_eval")
    from bm25rag.evaluation import evaluate, run_of

    for question, id, grade in (("red sea", "car", 2), ("red sea", "sea", 1), ("sky", "bird", 1)):
        inspected.judge(grade, q=question, id=id)
    qrels = read_qrels(tmp_path / "judged.tsv")
    index = BM25Index.open(folder)
    for given in ({}, {"b": 0.0, "k1": 3.0}):
        tuned = index.tune(**given) if given else index
        expected = evaluate(run_of(tuned, {id: id for id in qrels}, 100), qrels, "nDCG@10")
        data = inspected.json("judged", **given)
        assert data["mean"] == pytest.approx(expected.mean["nDCG@10"])
        for one in data["questions"]:
            assert one["a"] == pytest.approx(expected.per_query[one["id"]]["nDCG@10"])
        quality = inspected.json("search", q="red sea", **given)["quality"]
        assert quality["mean"] == pytest.approx(expected.per_query["red sea"]["nDCG@10"])
    compared = inspected.json("compare", q="red sea", b_b=0, b_k1=3)
    assert compared["b"]["quality"]["mean"] == pytest.approx(
        expected.per_query["red sea"]["nDCG@10"]
    )


def test_two_settings_are_compared_over_all_judged_questions(tmp_path: Path, start: Start) -> None:
    pytest.importorskip("pytrec_eval")
    pytest.importorskip("scipy")
    texts = ["red " * n + "grey " * (n * n) for n in range(1, 20)]
    BM25Index.from_texts(texts).save(tmp_path / "index")
    inspected = start(tmp_path / "index", qrels=tmp_path / "judged.tsv")
    for question in ("red", "red grey", "grey"):
        inspected.judge(1, q=question, id="18")
    data = inspected.json("judged", b_b=0)
    comparison = data["comparison"]
    assert comparison["baseline"] == pytest.approx(data["mean"])
    assert comparison["mean"] == pytest.approx(sum(one["b"] for one in data["questions"]) / 3)
    assert comparison["gained"] + comparison["lost"] > 0
    assert inspected.json("judged", b=0, b_b=0)["comparison"] is None


def test_without_the_package_for_measures_judging_still_works(
    inspected: Inspected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pytrec_eval", None)
    inspected.judge(1, q="red", id="boat")
    assert "bm25rag[eval]" in inspected.json("search", q="red")["quality"]["missing"]
    data = inspected.json("judged")
    assert "bm25rag[eval]" in data["missing"]
    assert [one["question"] for one in data["questions"]] == ["red"]
    assert "bm25rag[eval]" in inspected.page("judged")
    assert "1 judged" in inspected.page("search", q="red")


def test_a_file_of_judgements_is_checked_when_the_inspector_starts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.tsv"):
        Judgements(tmp_path / "judged.txt")
    with pytest.raises(FileNotFoundError, match="make it first"):
        Judgements(tmp_path / "nowhere" / "judged.tsv")
    (tmp_path / "judged.tsv").write_text("this is\nno file of judgements\n")
    with pytest.raises(ValueError, match=r"judged\.tsv:1"):
        Judgements(tmp_path / "judged.tsv")
    (tmp_path / "judged.tsv").write_text("")
    assert Judgements(tmp_path / "judged.tsv").all() == {}


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_to_the_file_of_judgements_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.tsv").touch(mode=0o640)
    (tmp_path / "judged.tsv").symlink_to(tmp_path / "real.tsv")
    Judgements(tmp_path / "judged.tsv").judge("red", "boat", 1)
    assert (tmp_path / "judged.tsv").is_symlink()
    assert read_qrels(tmp_path / "real.tsv") == {"red": {"boat": 1}}
    assert (tmp_path / "real.tsv").stat().st_mode & 0o777 == 0o640


def test_what_was_judged_is_what_the_command_evaluates(
    folder: Path, inspected: Inspected, tmp_path: Path
) -> None:
    pytest.importorskip("pytrec_eval")
    inspected.judge(1, q="red sea", id="car")
    lines = (f"{one['id']}\t{one['question']}\n" for one in inspected.json("judged")["questions"])
    (tmp_path / "queries.tsv").write_text("".join(lines))
    given = ("--queries", tmp_path / "queries.tsv", "--qrels", tmp_path / "judged.tsv")
    printed = ok("evaluate", folder, *given, "--measure", "nDCG@10", "--json").output
    mean = json.loads(printed)["mean"]["nDCG@10"]
    assert mean == pytest.approx(inspected.json("judged")["mean"])

"""Tuning finds the best settings and reports the gain on queries it did not see."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.evaluation import evaluate, load_beir, other_analyzers, run_of, tune
from bm25rag.evaluation.tuning import B, cross_validate
from support.commands import fails, ok
from support.environment import collection

pytest.importorskip("pytrec_eval")

QUERIES = {f"q{number}": f"word{number}" for number in range(24)}


def where_length_matters() -> tuple[BM25Index, dict[str, dict[str, int]]]:
    """Make an index whose long documents repeat the word that the short ones are about.

    Without length normalisation the long ones come first, and they are wrong.
    """
    filler = " ".join(f"filler{number}" for number in range(80))
    texts, qrels = {}, {}
    for query, word in QUERIES.items():
        texts[f"short-{query}"] = f"{word} briefly"
        texts[f"long-{query}"] = f"{word} {word} {filler}"
        qrels[query] = {f"short-{query}": 1}
    return BM25Index.from_texts(texts.values(), ids=list(texts), b=0.0), qrels


def test_a_gain_on_held_out_queries_is_found_told_and_applied() -> None:
    index, qrels = where_length_matters()
    found = tune(index, QUERIES, qrels, "RR@10", b=[0.0, 0.75])
    assert (found.held_out.baseline, found.held_out.mean, found.best_mean) == (0.5, 1.0, 1.0)
    assert found.held_out.significant
    assert found.best.b == 0.75
    assert "0.5000 to 1.0000, +0.5000 (p = 0.0" in str(found)
    assert "a significant gain" in str(found)
    tuned = found.apply(index)
    assert evaluate(run_of(tuned, QUERIES), qrels, "RR@10").mean == {"RR@10": 1.0}
    assert (index.b, tuned.b) == (0.0, 0.75), "the index itself stays as it is"


def test_weights_of_fields_are_tried(tmp_path: Path) -> None:
    texts, qrels = {}, {}
    for query, word in QUERIES.items():
        texts[f"text-{query}"] = {"title": "it", "text": f"{word} {word}"}
        texts[f"title-{query}"] = {"title": word, "text": "about it, in some more words"}
        qrels[query] = {f"title-{query}": 1}
    index = BM25Index.from_texts(texts.values(), ids=list(texts), fields={"title": 0.5})
    weights = [{"title": 1.0}, {"title": 9.0}]
    found = tune(index, QUERIES, qrels, "RR@10", variants=["lucene"], k1=[1.2], fields=weights)
    assert found.best.fields == {"title": 9.0, "text": 1.0}
    assert found.apply(index).fields == found.best.fields
    assert "title=9, text=1" in str(found)
    assert len(found.points) == 3 * len(B)
    index.save(tmp_path / "saved")
    (tmp_path / "q.tsv").write_text("".join(f"{q}\t{w}\n" for q, w in QUERIES.items()))
    (tmp_path / "r").write_text("".join(f"{q} 0 title-{q} 1\n" for q in QUERIES))
    told = ("tune", tmp_path / "saved", "--queries", tmp_path / "q.tsv", "--qrels", tmp_path / "r")
    assert "title=9" in ok(*told, "--variant", "lucene", "--field", "title=9").stdout
    fails(2, "there is no field 'body'", *told, "--field", "body=9")


def test_a_tuned_index_is_saved_and_written_to_like_any_other(tmp_path: Path) -> None:
    index, qrels = where_length_matters()
    found = tune(index, QUERIES, qrels, b=[0.0, 0.75])
    found.apply(index).save(tmp_path / "tuned")
    with BM25Index.open(tmp_path / "tuned", mode="w") as writer:
        assert (writer.variant, writer.k1, writer.b) == found.best[:3]
        writer.add(["another"])


def test_where_nothing_can_be_gained_the_present_settings_stay_and_it_is_said() -> None:
    texts = [f"{word} alone" for word in QUERIES.values()]
    index = BM25Index.from_texts(texts, ids=list(QUERIES), k1=1.3, b=0.35)
    found = tune(index, QUERIES, {query: {query: 1} for query in QUERIES})
    assert found.best == found.present
    assert set(found.chosen) == {found.present}
    assert not found.held_out.significant
    assert "not significant: chance may explain it" in str(found)


def test_every_point_has_the_mean_that_evaluate_gives() -> None:
    index, qrels = where_length_matters()
    found = tune(index, QUERIES, qrels, "nDCG@10", variants=["bm25+", "tfidf"], k1=[0.5], b=[0, 1])
    names = [(one.variant, one.k1, one.b) for one, _ in found.points]
    present = ("lucene", 1.2, 0.0)
    assert names == [present, ("bm25+", 0.5, 0.0), ("bm25+", 0.5, 1.0), ("tfidf", 1.2, 0.0)]
    for settings, mean in found.points:
        view = index.tune(variant=settings.variant, k1=settings.k1, b=settings.b)  # type: ignore[arg-type]
        expected = evaluate(run_of(view, QUERIES), qrels, "nDCG@10").mean["nDCG@10"]
        assert mean == pytest.approx(expected, abs=1e-12)


def test_no_query_is_tested_under_settings_that_it_helped_to_choose() -> None:
    """Against the same computed fold by fold; and each point is good for one query alone."""
    values = np.eye(7)
    chosen, held_out = cross_validate(values, folds=7, seed=3)
    assert held_out.tolist() == [0] * 7
    assert len(chosen) == 7
    random = np.random.default_rng(5).random((9, 23))
    chosen, held_out = cross_validate(random, folds=4, seed=1)
    tested = [np.flatnonzero(held_out == random[point]) for point in range(9)]
    for point in set(chosen):
        rest = np.setdiff1d(np.arange(23), tested[point])
        if chosen.count(point) == 1:
            assert random[:, rest].mean(axis=1).argmax() == point
    assert sum(len(some) for some in tested) == 23


def test_settings_that_fit_noise_are_told_to_gain_nothing() -> None:
    """Random values: the best of 200 points looks good on the queries it was chosen by."""
    values = np.random.default_rng(0).random((200, 50))
    _, held_out = cross_validate(values, folds=5, seed=0)
    assert values.mean(axis=1).max() > 0.58
    assert abs(held_out.mean() - 0.5) < 0.1


def test_analyzers_are_tried_and_applied() -> None:
    texts = {"u": "the marketing of mars", "v": "the markets of mars"}
    index = BM25Index.from_texts(texts.values(), ids=list(texts))
    queries = {"1": "markets", "2": "markets mars", "3": "marketing", "4": "marketing mars"}
    qrels = {"1": {"v": 1}, "2": {"v": 1}, "3": {"u": 1}, "4": {"u": 1}}
    others = other_analyzers(index.analyzer)
    assert [(one.stemmer, bool(one.stopwords)) for one in others] == [
        ("english", False),
        (None, True),
        (None, False),
    ]
    found = tune(index, queries, qrels, "P@1", analyzers=others, k1=[1.2], b=[0.75])
    assert found.best.analyzer.stemmer is None
    assert found.best_mean == 1
    tuned = found.apply(index)
    assert tuned.analyzer == found.best.analyzer
    assert [hit.id for hit in tuned.search("marketing")] == ["u"]


def test_what_cannot_be_tuned_is_said() -> None:
    index, qrels = where_length_matters()
    with pytest.raises(ValueError, match="at least two judged queries"):
        tune(index, {"q0": "word0"}, qrels)
    with pytest.raises(ValueError, match="unknown measure"):
        tune(index, QUERIES, qrels, "best")
    with pytest.raises(ValueError, match="variant"):
        tune(index, QUERIES, qrels, variants=["bm26"])
    with pytest.raises(ValueError, match="folds"):
        tune(index, QUERIES, qrels, folds=1)
    bare = BM25Index()
    bare.add(["word0 a", "word1 b"], ids=["short-q0", "short-q1"], store_text=False)
    with pytest.raises(ValueError, match="texts of 2 of 2 documents are not"):
        tune(bare, QUERIES, qrels, analyzers=other_analyzers(bare.analyzer))
    with pytest.raises(ValueError, match="tokenizer"):
        other_analyzers(Analyzer(tokenizer=str.split))


def test_the_command_tells_saves_and_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    index, qrels = where_length_matters()
    index.save("docs")
    Path("q.tsv").write_text("\n".join(map("\t".join, QUERIES.items())), encoding="utf-8")
    rows = [f"{query} 0 {id} 1" for query, grades in qrels.items() for id in grades]
    Path("qrels.txt").write_text("\n".join(rows), encoding="utf-8")
    judged = ("docs", "--queries", "q.tsv", "--qrels", "qrels.txt", "-m", "RR@10")
    result = ok("tune", *judged, "--b", 0, "--b", 0.75, "--output", "tuned")
    assert "a significant gain" in result.stdout
    assert BM25Index.open("tuned").b == 0.75
    assert BM25Index.open("docs").b == 0.0
    facts = json.loads(ok("tune", *judged, "--variant", "lucene", "--analyzers", "--json").stdout)
    assert facts["best_mean"] == 1
    assert len(facts["points"]) == 6 * 7 * 4
    fails(3, "tuned: is an index already", "tune", *judged, "--output", "tuned")
    fails(2, "b must be", "tune", *judged, "--b", 2)
    fails(2, "unknown measure", "tune", *judged, "-m", "best")


@pytest.mark.slow
def test_hundreds_of_points_on_scifact_find_better_ones_than_the_defaults() -> None:
    scifact = load_beir(collection("scifact"))
    index = BM25Index()
    index.add_documents(scifact.read())
    found = tune(index, scifact.queries, scifact.qrels)
    assert len(found.points) > 200
    assert found.best_mean > found.held_out.baseline

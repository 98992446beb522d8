"""Several analyses in one index: what users give and get; scores are in ``tests/scoring``."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import Analyzer, BM25Index, Query
from bm25rag.errors import (
    AnalyzerChangedWarning,
    CorruptIndexError,
    TokenizerRequiredError,
    UntrustedIndexError,
)
from bm25rag.evaluation import tune
from support.commands import fails, ok
from support.forging import Folder
from support.holding import bits

TEXTS = ["Cats sat down.", "A catapult and a cat", "dogs", "", "the cat of cats"]
RUNS = Analyzer(None, ngrams=4)


def words(text: str) -> list[str]:
    """Stand for a dictionary."""
    return text.split()


BOTH = Analyzer(also=[(RUNS, 0.1), (Analyzer(tokenizer=words), 2.0)])


@pytest.fixture
def index() -> BM25Index:
    return BM25Index.from_texts(TEXTS, analyzer=BOTH)


def test_scores_are_sums_of_those_of_each_analysis(index: BM25Index) -> None:
    query = "cats catapulted"
    alone = [
        weight * BM25Index.from_texts(TEXTS, analyzer=one).scores(query)
        for one, weight in ((Analyzer(), 1.0), *BOTH.also)
    ]
    np.testing.assert_allclose(index.scores(query), sum(alone), rtol=1e-12)
    first = BM25Index.from_texts(TEXTS)
    assert bits(index.tune(also=[0, 0]).search(query)) == bits(first.search(query))
    assert index.stats()["average_length"] == first.stats()["average_length"]


def test_runs_of_characters_have_the_edges_of_words() -> None:
    assert RUNS.terms("Cats, 1,000 of C++") == [
        *(" cat", "cats", "ats ", " 100", "1000", "000 ", " of ", " c++", "c++ ")
    ]  # fmt: skip
    assert Analyzer(None, ngrams=10).query_terms("of it") == [" of ", " it "]
    assert BM25Index.from_texts(TEXTS, analyzer=RUNS).search("catapult")[0].spans[0][:2] == (2, 10)


def test_settings_are_saved_and_a_tokenizer_is_given_again(
    index: BM25Index, tmp_path: Path
) -> None:
    index.save(tmp_path)
    with pytest.raises(TokenizerRequiredError, match=r"made with the tokenizer .*words"):
        BM25Index.open(tmp_path)
    opened = BM25Index.open(tmp_path, tokenizer=words, verify=True)
    assert opened.analyzer == index.analyzer == pickle.loads(pickle.dumps(opened)).analyzer
    assert bits(opened.search("cats")) == bits(index.search("cats"))
    with BM25Index.open(tmp_path, mode="w", analyzer=BOTH) as writer:
        writer.add(["more cats"])
    assert BM25Index.open(tmp_path, tokenizer=words).search("more")[0].id == "5"
    with pytest.raises(ValueError, match="analyzer is"):
        BM25Index.open(tmp_path, analyzer=BOTH.weighing([1, 1]))
    view = index.tune(also=[0.3, 0])
    view.save(tmp_path / "view")
    again = BM25Index.open(tmp_path / "view", tokenizer=words)
    assert [weight for _, weight in again.analyzer.also] == [0.3, 0.0]
    assert repr(again.analyzer).count("ngrams=4") == 1
    plain = BM25Index.from_texts(TEXTS)
    plain.save(tmp_path / "plain")
    settings = json.loads((tmp_path / "plain" / "manifest.json").read_text("utf-8"))
    assert not {"also", "ngrams"} & settings["body"]["settings"]["analyzer"].keys()


def test_parts_phrases_and_places_are_of_the_first_analysis(index: BM25Index) -> None:
    assert [hit.id for hit in index.search(Query("dogs", must=["cats"]))] == ["4", "1", "0"]
    assert [hit.id for hit in index.search(Query("cats", phrases=["the cat of"]))] == ["4"]
    assert [hit.id for hit in index.search(Query("catapults", must_not=["catapult"]))] != []
    hit = next(hit for hit in index.search("catapulting") if hit.id == "1")
    assert hit.spans == [(2, 10, "catapult")]
    plain = BM25Index.from_texts(TEXTS)
    asked = Query("cats", also={"dogs": 0.5})
    expected = 0.5 * index.scores("dogs") + index.scores("cats")
    np.testing.assert_allclose(index.scores(asked), expected, rtol=1e-12)
    assert index.correct("catapolt").corrections == plain.correct("catapolt").corrections
    assert set(index.expand("cats")) - set(BOTH.query_terms("cats")) >= {"\x01cats"}
    feedback = {term for term in index.expand("cats") if term >= " "}
    assert feedback == set(plain.expand("cats"))


def test_an_explanation_says_of_which_analysis_a_term_is(index: BM25Index) -> None:
    why = index.explain("cats", "4")
    assert [(one.term, one.analysis, one.count, one.tf) for one in why.terms] == [
        ("cat", 0, 1.0, 2),
        *((run, 1, 0.1, tf) for run, tf in ((" cat", 2), ("cats", 1), ("ats ", 1))),
        ("cats", 2, 2.0, 1),
    ]
    assert "ats  +1" in str(why)
    assert BM25Index.from_texts(TEXTS).explain("cats", "4").terms[0].analysis is None


def test_lists_of_terms_are_of_the_first_analysis(index: BM25Index) -> None:
    index.add([["cat", "\x01cat"]], ["list"])
    assert "list" in {hit.id for hit in index.search("cat")}
    assert index.vocabulary()[-1] != "\x01cat"
    assert "\x08\x01cat" in index.vocabulary()
    assert [hit.id for hit in index.search(["\x01cats"])] == ["0", "4"]


def test_reanalysis_and_tuning_know_further_analyses(index: BM25Index) -> None:
    pytest.importorskip("pytrec_eval")
    assert bits(index.reanalyze().search("cats")) == bits(index.search("cats"))
    assert index.reanalyze(Analyzer()).stats()["postings"] < index.stats()["postings"]
    qrels = {"a": {"0": 1}, "b": {"1": 1}}
    tried = [BOTH.weighing([weight, 0.0]) for weight in (0.0, 1.0)]
    index.add([["x"]])  # a text that is not stored could not be analysed again
    tuning = tune(
        *(index, {"a": "cats", "b": "catapult"}, qrels),
        variants=["lucene"], k1=[1.2], b=[0.75], analyzers=tried,
    )  # fmt: skip
    assert len(tuning.points) == 3
    assert tuning.apply(index).analyzer in (BOTH, *tried)


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        ({"also": 5}, TypeError, "also must be an iterable of pairs"),
        ({"also": RUNS}, TypeError, "also must be an iterable of pairs"),
        ({"also": [RUNS]}, TypeError, r"also\[0\] must be a pair"),
        ({"also": [("4-grams", 1.0)]}, TypeError, r"also\[0\]\[0\] must be an Analyzer"),
        ({"also": [(BOTH, 1.0)]}, ValueError, "has further analyses itself"),
        ({"also": [(RUNS, -0.1)]}, ValueError, r"also\[0\]\[1\] must be a number from 0"),
        ({"also": [(RUNS, float("inf"))]}, ValueError, r"also\[0\]\[1\] must be"),
        ({"also": [(RUNS, "1")]}, TypeError, r"also\[0\]\[1\] must be a number"),
        ({"also": [(RUNS, 1.0)] * 8}, ValueError, "at most 7 analyses, got 8"),
        ({"also": [(Analyzer(tokenizer=words), 1.0)] * 2}, ValueError, "one analysis with a tok"),
        ({"ngrams": 1}, ValueError, "ngrams must be an integer >= 2"),
        ({"ngrams": 11}, ValueError, "at most 10"),
        ({"ngrams": True}, TypeError, "ngrams must be an integer"),
        ({"ngrams": 4, "stemmer": "german"}, ValueError, "no stop words and no stemmer"),
        ({"ngrams": 4, "tokenizer": words}, ValueError, "tokenizer replaces the other"),
    ],
)
def test_wrong_settings_are_refused(
    chosen: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Analyzer(**chosen)


def test_what_does_not_fit_an_index_is_refused(index: BM25Index) -> None:
    with pytest.raises(ValueError, match="fields are for an analyzer without further analyses"):
        BM25Index(BOTH, fields={"title": 2.0})
    with pytest.raises(ValueError, match="a weight for each of 2 further analyses, got 1"):
        index.tune(also=[1.0])
    with pytest.raises(ValueError, match=r"also\[1\]\[1\] must be a number"):
        index.tune(also=[1.0, -1.0])


def test_opening_checks_further_analyses(tmp_path: Path) -> None:
    pattern = Analyzer(None, token_pattern=r"(a+)+b")
    BM25Index.from_texts(TEXTS, analyzer=Analyzer(also=[(pattern, 1.0)])).save(tmp_path / "saved")
    with pytest.raises(UntrustedIndexError, match=r"token_pattern '\(a\+\)\+b'"):
        BM25Index.open(tmp_path / "saved", untrusted=True)
    settings = RUNS.to_dict()
    for number, (also, message) in enumerate(
        [
            (None, "a segment has other fields or analyses"),
            ([[settings, 1.0]] * 2, "a segment has other fields or analyses"),
            (5, r"settings\['also'\] must be a list"),
            ([[settings, -1.0]], "cannot be made here"),
            ([[settings | {"also": [[settings, 1.0]]}, 1.0]], "cannot be made here"),
            ([[{}, 1.0]], "cannot be made here"),
        ]
    ):
        folder = Folder.read(tmp_path / "saved")
        folder.settings["analyzer"]["also"] = also
        if also is None:
            del folder.settings["analyzer"]["also"]
        folder.write(tmp_path / str(number))
        with pytest.raises((CorruptIndexError, ValueError), match=message):
            BM25Index.open(tmp_path / str(number))
        with pytest.raises(CorruptIndexError):
            BM25Index.verify(tmp_path / str(number))


def test_postings_of_several_analyses_are_checked(tmp_path: Path) -> None:
    BM25Index.from_texts(TEXTS, analyzer=Analyzer(also=[(RUNS, 1.0)])).save(tmp_path / "saved")
    for number, name in enumerate(("code_length", "lengths", "code_tf", "text_fields.counts")):
        folder = Folder.read(tmp_path / "saved")
        segment = folder.pieces[0].segment
        segment[name] = np.roll(segment[name], 1)
        folder.write(tmp_path / str(number))
        with pytest.raises(CorruptIndexError):
            BM25Index.verify(tmp_path / str(number))


def test_stemmers_of_further_analyses_are_compared(tmp_path: Path) -> None:
    index = BM25Index.from_texts(TEXTS, analyzer=Analyzer(None, also=[(Analyzer("english"), 1.0)]))
    index.save(tmp_path / "saved")
    folder = Folder.read(tmp_path / "saved")
    assert folder.settings["probe"]["\x01having"] == "have"
    folder.settings["probe"]["\x01having"] = "having"
    folder.write(tmp_path / "old")
    with pytest.warns(AnalyzerChangedWarning, match="'having' was 'having', is 'have'"):
        BM25Index.open(tmp_path / "old")


def test_the_command_line_makes_further_analyses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cats.txt").write_text("\n".join(filter(None, TEXTS)), "utf-8")
    made = ("index", "cats.txt", "-o", "saved", "--format", "lines")
    ok(*made, "--also", "4-grams=0.1", "--also", "german=0.5")
    index = BM25Index.open("saved")
    assert index.analyzer == Analyzer(also=[(RUNS, 0.1), (Analyzer("german"), 0.5)])
    assert "ats  +1" in ok("explain", "saved", "cats", index.ids()[0]).output
    fails(2, "expected NAME=WEIGHT, such as 4-grams=0.1", *made, "--also", "4-grams")
    fails(2, "expected NAME=WEIGHT", *made, "--also", "klingon=1")
    fails(2, "must be a number from 0", *made, "--also", "4-grams=-1")

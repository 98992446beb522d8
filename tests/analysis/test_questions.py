"""Stop words that are removed from questions only."""

from __future__ import annotations

from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.analysis.languages import LANGUAGES

pytestmark = pytest.mark.usefixtures("backend")


def test_questions_have_the_long_list_of_stop_words_and_documents_the_short_one() -> None:
    analyzer = Analyzer()
    text = "What were the causes of it, and why don't they matter?"
    assert analyzer.terms(text) == ["what", "were", "caus", "whi", "dont", "matter"]
    assert analyzer.query_terms(text) == ["caus", "matter"]


def test_a_question_keeps_its_words_if_nothing_else_is_left() -> None:
    index = BM25Index.from_texts(["The Who played in Leeds.", "Who are you?", "A red boat"])
    assert [hit.id for hit in index.search("The Who")] == ["1", "0"]
    assert [hit.id for hit in index.search("who are you")] == ["1", "0"]
    assert index.search("the") == []


def test_search_scores_and_explain_ask_alike() -> None:
    index = BM25Index.from_texts(["how red boats sail", "how and why", "green tea"])
    question = "how do red boats sail"
    hit = index.search(question)[0]
    assert [one.id for one in index.search(question)] == ["0"]
    assert index.search_batch([question]).ids() == [["0"]]
    assert index.scores(question).tolist() == [hit.score, 0.0, 0.0]
    explanation = index.explain(question, "0")
    assert explanation.score == hit.score
    assert [part.term for part in explanation.terms] == ["red", "boat", "sail"]


def test_a_list_of_terms_loses_nothing() -> None:
    index = BM25Index.from_texts(["how red boats sail", "green tea"])
    assert [hit.id for hit in index.search(["how"])] == ["0"]
    assert index.search(["how", "tea"])[0].id in ("0", "1")
    assert len(index.search(["how", "tea"])) == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ["how", "red"]),
        (["red"], ["how"]),
        ("english_long", ["red"]),
        (["how", "red"], ["how", "red"]),
    ],
)
def test_the_stop_words_of_questions_may_be_chosen(given: Any, expected: list[str]) -> None:
    analyzer = Analyzer(query_stopwords=given)
    assert analyzer.query_terms("how red") == expected
    assert analyzer.terms("how red") == ["how", "red"]
    assert Analyzer.from_dict(analyzer.to_dict()) == analyzer


def test_only_english_with_its_own_stop_words_removes_more_words_from_questions() -> None:
    with_list = {one.name for one in LANGUAGES if Analyzer(one.name, stemmer=None).query_stopwords}
    assert with_list == {"english"}
    assert not Analyzer(stopwords=None).query_stopwords
    assert not Analyzer(stopwords=["red"]).query_stopwords


@pytest.mark.parametrize("wrong", [5, [b"red"], b"red", "klingon"])
def test_stop_words_of_questions_must_be_words(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="stopwords"):
        Analyzer(query_stopwords=wrong)


SETTINGS: list[dict[str, Any]] = [
    *({"language": one} for one in ("english", "german", "french", "russian", "arabic")),
    *({"language": one} for one in ("chinese", "japanese", "korean", "thai", "turkish", "hindi")),
    {"language": "french", "query_stopwords": ["ete", "cafe"]},
    {"identifiers": True, "lowercase": False},
    {"identifiers": True},
    {"ngrams": 3},
    {"stemmer": None, "stopwords": None},
    {"token_pattern": r"\S+"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_questions_after_a_build_have_the_terms_that_they_have_without_one(
    settings: dict[str, Any],
) -> None:
    """A build leaves the terms of its words, so that questions need not stem them again."""
    words = ["running", "häuser", "Studies", "x" * 70, "x" * 130, "und", "the", "كتاب", "naïve"]
    words += ["running's", "été", "Cafés", "ёлки", "елки", "İstanbul", "ıspanak", "camelCaseName"]
    words += [
        "日本",
        "日本語",
        "本",
        "カタカナ",
        "한국어",
        "한",
        "ภาษาไทย",
        "काँच",
        "कांच",
        "a_b",
        "3.5",
        "c++",
        "ab",
    ]
    text = " ".join(words)
    index = BM25Index(Analyzer(**settings))
    index.add([text, text.upper(), *words])
    asked = [*words, text, text.upper(), "RUNNING häusern", "y" * 300, "語日", "\ud800"]
    fresh = Analyzer(**settings)
    expected = [fresh.query_terms(one) for one in asked]
    assert [*index.analyzer.query_terms_of_each(asked)] == expected
    assert [index.analyzer.query_terms(one) for one in asked] == expected
    assert [index.analyzer.whole_words(one) for one in asked] == [
        fresh.whole_words(one) for one in asked
    ]


def test_the_words_that_a_build_leaves_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.analysis.analyzer._MOST_LEARNT", 100)
    index = BM25Index(Analyzer())
    for first in range(0, 400, 40):
        letters = [chr(97 + n // 26) + chr(97 + n % 26) for n in range(first, first + 40)]
        words = [f"running{both}s" for both in letters]
        index.add([" ".join([*words, "z" * 101, "Smith-Jones", "don't"])])
    known = index.analyzer._wanted_terms._known
    assert len(known) == 100
    assert known.get("z" * 101) is None


@pytest.mark.parametrize("language", ["english", None])
@pytest.mark.parametrize("pattern", [r"\w*", r"\b", "", r"(\d*)[a-z]"])
def test_what_a_pattern_finds_that_is_empty_is_no_word(pattern: str, language: str | None) -> None:
    text = "red boats 5x"
    analyzer = Analyzer(language, token_pattern=pattern)
    index = BM25Index.from_texts([text, ""], analyzer=analyzer)
    terms = Analyzer(language, token_pattern=pattern).query_terms(text)
    assert "" not in terms
    assert sorted(terms) == index.vocabulary()
    assert index.analyzer.query_terms(text) == index.analyzer.terms(text) == terms
    assert [*index.analyzer.query_terms_of_each([text] * 3)] == [terms] * 3

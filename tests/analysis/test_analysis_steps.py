"""What becomes of each word of a text, and why some are dropped."""

from __future__ import annotations

import pytest

from bm25rag import Analyzer
from bm25rag.analysis.steps import Step, analysis_steps, not_words, why_no_word

RUN_AND_WORDS = "東京都の天気 is fine"
TEXTS = ["How are the running cats?", "Der Hund läuft", RUN_AND_WORDS, "", "x_y C++ 3.14"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("language", ["english", "german", "japanese", None])
def test_the_terms_of_the_steps_are_those_of_a_document(language: str | None, text: str) -> None:
    analyzer = Analyzer(language=language)
    terms = [step.term for step in analysis_steps(analyzer, text) if step.term is not None]
    assert terms == analyzer.terms(text)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("language", ["english", "german", None])
def test_the_terms_of_the_steps_are_those_of_a_question(language: str | None, text: str) -> None:
    analyzer = Analyzer(language=language)
    steps = analysis_steps(analyzer, text, question=True)
    terms = [step.term for step in steps if step.term for _ in range(step.times)]
    assert terms == analyzer.query_terms(text)
    if text == RUN_AND_WORDS:  # a word beside a run is one step
        assert {step.times for step in steps if step.term and step.term.isascii()} == {3}


def test_words_are_dropped_with_a_reason() -> None:
    assert analysis_steps(Analyzer(), "How are cats", question=True) == [
        Step("how", None, "a stop word of questions"),
        Step("are", None, "a stop word"),
        Step("cats", "cat"),
    ]


def test_the_words_of_a_tokenizer_are_terms_as_they_are() -> None:
    analyzer = Analyzer(tokenizer=str.split)
    assert analysis_steps(analyzer, "The Cats", question=True) == [
        Step("The", "The"),
        Step("Cats", "Cats"),
    ]


def test_what_is_no_word_is_told_with_the_pattern() -> None:
    analyzer = Analyzer(token_pattern=r"(?u)\b\w\w+\b")
    assert not_words(analyzer, "vitamin C, and C") == ["C"]
    assert "token pattern" in why_no_word(analyzer)

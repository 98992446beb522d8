"""Arabic words with the article are the same terms as without it, whatever is before it."""

from __future__ import annotations

import pytest

from bm25rag import Analyzer, BM25Index
from tests.support.analysis import skip_without_stemmer

ARABIC = Analyzer("arabic")
# Beginning with letters that are prefixes elsewhere, with alif in its forms, with two letters.
WORDS = "بيتكوين برلمان آيات إسلام أمم كتاب لغة فرنسا وزير جامعة سيارات مهندسون دم فن يد أب"


def stem(word: str, analyzer: Analyzer = ARABIC) -> str:
    (term,) = analyzer.terms(word)
    return term


@pytest.mark.parametrize("word", WORDS.split())
@pytest.mark.parametrize("before", ["", "و", "ف"])
def test_the_article_does_not_change_a_term(word: str, before: str) -> None:
    assert stem(f"{before}ال{word}") == stem(word)


@pytest.mark.parametrize("word", [word for word in WORDS.split() if len(word) > 2])
@pytest.mark.parametrize("article", ["بال", "كال", "لل", "وبال", "وكال", "ولل", "فبال", "فلل"])
def test_nor_do_prepositions_that_are_written_with_it(word: str, article: str) -> None:
    assert stem(article + word) == stem(word)


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("اَلْكِتَابُ", "كتاب"),
        ("والكـــتاب", "كتاب"),
        ("ٱلكتاب", "كتاب"),
        ("وكتاب", "كتاب"),
        ("بكتاب", "كتاب"),
    ],
)
@pytest.mark.parametrize("folds", [True, False])
def test_vowel_signs_tatweel_and_other_clitics_do_not_hide_it(
    written: str, word: str, folds: bool
) -> None:
    analyzer = Analyzer("arabic", fold_accents=folds)
    assert stem(written, analyzer) == stem(word, analyzer)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("الله", "له"),
        ("اللهم", "هم"),
        ("ألمانيا", "مانيا"),
        ("ألعاب", "عاب"),
        ("إلكترون", "كترون"),
        ("إلهام", "هام"),
        ("التهاب", "هاب"),
        ("ألف", "ف"),
        ("الو", "و"),
        ("والدها", "دها"),
        ("والدته", "دته"),
        ("بالغ", "غ"),
        ("فالح", "ح"),
        ("للغة", "غة"),
    ],
)
def test_a_word_that_only_looks_as_if_it_had_an_article_keeps_its_letters(
    first: str, second: str
) -> None:
    plain = Analyzer("arabic", stopwords=None)
    assert stem(first, plain) != stem(second, plain)


def test_a_father_and_god_are_one_term_each_whatever_is_joined_to_them() -> None:
    assert len({stem(word) for word in ["والد", "والده", "والدها", "والدته", "والديه"]}) == 1
    assert len({stem(word) for word in ["الله", "والله", "بالله", "تالله"]}) == 1
    assert stem("والد") != stem("ولد")


@pytest.mark.parametrize("article", ["ال", "وال", "بال", "لل"])
@pytest.mark.parametrize("word", ["إلكترونية", "ألماني", "ألعاب", "آلهة", "إله", "آلات"])
def test_a_hamza_that_is_left_out_after_the_article_changes_nothing(
    word: str, article: str
) -> None:
    assert stem(article + "ا" + word[1:]) == stem(article + word) == stem(word)


def test_adults_are_not_in_a_ghain() -> None:
    assert {stem(word) for word in ["بالغين", "بالغون", "البالغين"]} == {stem("بالغ")}


def test_a_question_without_the_article_finds_a_document_with_it() -> None:
    texts = ["وافق البرلمان على القانون.", "سعر البيتكوين اليوم"]
    index = BM25Index.from_texts(texts, analyzer=ARABIC)
    assert [hit.id for hit in index.search("برلمان")] == ["0"]
    assert [hit.id for hit in index.search("بيتكوين")] == ["1"]


@pytest.mark.parametrize("language", ["persian", "urdu", "sorani"])
def test_other_languages_in_arabic_script_keep_words_that_begin_like_it(language: str) -> None:
    skip_without_stemmer(language)
    analyzer = Analyzer(language, stopwords=None)
    assert stem("البته", analyzer) != stem("بته", analyzer)


def test_words_of_stretching_strokes_alone_stay() -> None:
    assert ARABIC.stems(["ـــ", "ال", "لل"]) == ["ـــ", "ال", "لل"]


def test_an_older_folder_shows_that_its_stems_differ() -> None:
    # Snowball's alone made the stems of the list's words that begin with an article.
    snowball = Analyzer("arabic", stemmer="arabic")
    words = [word for word in ARABIC.probe() if word.startswith("ال") and len(word) == 4]
    assert words
    assert ARABIC.stems(words) != snowball.stems(words)

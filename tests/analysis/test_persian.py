"""Persian: words with and without the endings of inflection are one term."""

from __future__ import annotations

import pytest

from bm25rag.analysis import Analyzer
from bm25rag.analysis.snowball import algorithms
from bm25rag.index import BM25Index

PERSIAN = Analyzer("persian")

# A word, and the same with endings of nouns and adjectives; a half space cuts most of them off.
INFLECTED = {
    "کتاب": [
        "کتابها",
        "کتابهای",
        "کتابهایی",
        "کتابهایم",
        "کتابهایش",
        "کتابهایشان",
        "کتابی",
        "کتابش",
    ],
    "مسلمان": ["مسلمانان", "مسلمانی", "مسلمان‌ها", "مسلمانها"],
    "ایران": ["ایرانی", "ایرانیان", "ایرانی‌ها", "ايراني"],  # the last with the Arabic ye
    "دانشجو": ["دانشجوی", "دانشجویان", "دانشجویی"],
    "بزرگ": ["بزرگتر", "بزرگترین", "بزرگی", "بزرگان"],
    "انتخاب": ["انتخابات", "انتخاباتی", "انتخابش"],
    "تاریخ": ["تاریخی", "تاریخش"],
    "کشور": ["کشورهای", "کشورهایی", "کشورهایمان", "کشوری", "کشورش"],
}


@pytest.mark.parametrize("word", INFLECTED)
def test_a_word_is_one_term_with_and_without_endings(word: str) -> None:
    for form in INFLECTED[word]:
        assert PERSIAN.terms(form) == PERSIAN.terms(word), form


@pytest.mark.parametrize(
    ("first", "second"),
    [("زبان", "زبر"), ("چین", "چیز"), ("رود", "رودخانه"), ("خانه", "خانم")],
)
def test_other_words_stay_apart(first: str, second: str) -> None:
    assert PERSIAN.terms(first) != PERSIAN.terms(second)


def test_three_letters_remain() -> None:
    words = ["شش", "آبی", "جان", "ذات", "تری", "ها", "چتر", "مات", "شبها"]
    assert PERSIAN.stems(words) == words


def test_a_question_finds_a_document_with_other_forms() -> None:
    texts = ["نویسنده‌ی بزرگ‌ترین رمان‌های ایرانی", "هوای تهران سرد است"]
    index = BM25Index.from_texts(texts, analyzer=PERSIAN)
    assert [hit.id for hit in index.search("رمان بزرگی از ایران")] == ["0"]


@pytest.mark.skipif("persian" not in algorithms(), reason="PyStemmer is too old for it")
def test_the_stemmer_of_snowball_is_there_by_its_name() -> None:
    assert Analyzer("persian", stemmer="persian").terms("تاریخی") == ["تاریخی"]

"""Scripts without spaces between words, and endings that Snowball leaves."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.analysis import scripts

pytestmark = pytest.mark.usefixtures("backend")

RUNS = {
    "thai": ("กรุงเทพเป็นเมืองหลวง", "เมือง", "ป็"),
    "lao": ("ວຽງຈັນເປັນນະຄອນ", "ນະຄອນ", "ຈັ"),
    "khmer": ("ភ្នំពេញជារាជធានី", "រាជធានី", "ជា"),
    "burmese": ("ရန်ကုန်သည်မြို့တော်", "မြို့", "ကု"),
}  # fmt: skip


@pytest.mark.parametrize("name", ["CJK", "HAN", "SINGLES", "SOUTHEAST_ASIAN"])
def test_letters_are_those_of_their_ranges(name: str) -> None:
    letters: scripts.Letters = getattr(scripts, name)
    every = "".join(map(chr, range(0x110000)))
    expected = {match.start() for match in re.finditer(f"[{letters.ranges}]", every)}
    assert set(np.flatnonzero(letters.among(np.arange(len(every)))).tolist()) == expected
    assert {ord(letter) for letter in every if letter in letters} == expected


@pytest.mark.parametrize("language", [*RUNS, "english", None])
@pytest.mark.parametrize("script", RUNS)
def test_a_word_within_a_run_is_found_in_any_language(language: str | None, script: str) -> None:
    document, word, cluster = RUNS[script]
    index = BM25Index.from_texts([document, "something else"], analyzer=Analyzer(language))
    assert [hit.id for hit in index.search(word)] == ["0"]
    assert [hit.id for hit in index.search(cluster)] == ["0"]
    assert index.search(document[0] * 2) == []


def test_marks_stay_with_their_letters_and_questions_ask_for_pairs() -> None:
    text = "ที่นี่ดี"
    first, second, third = "ที่", "นี่", "ดี"
    analyzer = Analyzer(language=None)
    assert analyzer.terms(text) == [first + second, first, second + third, second, third]
    assert analyzer.query_terms(text) == [first + second, second + third]
    assert analyzer.query_terms(third) == [third]
    off = Analyzer(language=None, southeast_asian=False)
    assert off.terms(text) == [text]


@pytest.mark.parametrize(
    ("document", "question"),
    [("猫が好き", "猫"), ("我的猫很好", "猫"), ("책을 읽다", "책"), ("A股市场", "A股")],
)
@pytest.mark.parametrize("language", ["japanese", "english"])
def test_a_question_of_one_character_finds_it_within_a_run(
    language: str, document: str, question: str
) -> None:
    index = BM25Index.from_texts([document, "red"], analyzer=Analyzer(language))
    assert [hit.id for hit in index.search(question)] == ["0"]


def test_characters_of_han_and_hangul_are_terms_beside_the_bigrams() -> None:
    analyzer = Analyzer(language=None)
    text = "東京とカナ 책을"
    pairs = ["東京", "京と", "とカ", "カナ", "책을"]
    singles = ["東", "京", "책", "을"]
    assert sorted(analyzer.terms(text)) == sorted(pairs + singles)
    assert sorted(analyzer.query_terms(text)) == sorted(pairs + singles[:2])
    assert Analyzer(language=None, cjk_characters=False).terms(text) == pairs


def test_a_morphological_tokenizer_can_be_plugged_in() -> None:
    tokenize = pytest.importorskip(
        "pythainlp", reason="pythainlp, a tokenizer for Thai, is not installed"
    ).word_tokenize

    def words(text: str) -> list[str]:
        return [word for word in tokenize(text.lower()) if word.strip()]

    index = BM25Index.from_texts(["แมวกินปลา", "หมานอน"], analyzer=Analyzer(tokenizer=words))
    assert {"แมว", "ปลา"} <= set(index.vocabulary())
    assert [hit.id for hit in index.search("ปลา")] == ["0"]


def test_arabic_endings_meet() -> None:
    analyzer = Analyzer("arabic")
    assert analyzer.stemmer == "arabic_light"
    snowball = Analyzer("arabic", stemmer="arabic")
    university, universities = "جامعة", "جامعات"
    assert analyzer.terms(university) == analyzer.terms(universities)
    assert snowball.terms(university) != snowball.terms(universities)
    assert analyzer.stems(["لا", "ي"]) == ["لا", "ي"]


def test_words_beside_a_run_count_three_times_in_questions() -> None:
    analyzer = Analyzer("japanese")
    assert analyzer.terms("2015年のUSB") == ["2015", "年の", "年", "usb"]
    assert analyzer.query_terms("2015年のUSB") == [*["2015"] * 3, "年の", "年", *["usb"] * 3]
    assert analyzer.query_terms("USB, 2015") == ["usb", "2015"]
    assert analyzer.query_terms("年の") == ["年の", "年"]
    index = BM25Index.from_texts(["年の初めの天気", "USBの規格", "雨"], analyzer=analyzer)
    assert [(one.term, one.count) for one in index.explain("USB初め", "1").terms] == [
        ("usb", 3), ("初め", 1), ("初", 1)
    ]  # fmt: skip
    assert [hit.id for hit in index.search("USBは年の")] == ["1", "0"]


MIXED = (
    "2015年のUSB", "年の", "usb", "", "\U00020000\U00020001 Bb", "ლამაზი 天気 \U0001f600",
    "天気\U0001f600", "ế xin 天", "แมว cats", "คา", "가나 다 x", "the 天気", "e-mailの type 2",
    "１２月 ﾃﾚﾋﾞ tv", "ⅷ x天", "天",
)  # fmt: skip


@pytest.mark.parametrize("language", ["english", "japanese", "vietnamese", None])
def test_questions_have_the_same_terms_alone_and_together(language: str | None) -> None:
    analyzer = Analyzer(language)
    asked = [*MIXED, *(f"{one} {other}" for one in MIXED for other in MIXED)]
    assert [*analyzer.query_terms_of_each(asked)] == [*map(analyzer.query_terms, asked)]


def test_what_is_cut_by_no_rule_is_no_run() -> None:
    off = Analyzer(None, cjk=False)
    assert off.query_terms("天気 usb") == ["天気", "usb"]
    assert Analyzer(None, ngrams=3).query_terms("天気 usb").count("usb") == 1

"""Chinese, Japanese and Korean questions lose what is only grammar; documents lose nothing."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest

from bm25rag.analysis import Analyzer
from bm25rag.analysis.question_grammar import without_grammar
from bm25rag.analysis.steps import QUESTION_GRAMMAR, analysis_steps
from bm25rag.index import BM25Index

KOREAN = Analyzer("korean")


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("도서관은 도서관이 도서관을 도서관의 도서관도 도서관만 도서관과", "도서관 " * 7),
        ("도서관에 도서관에서 도서관으로 도서관에게 도서관부터 도서관까지", "도서관 " * 6),
        ("지하철역는 지하철역가 지하철역를 지하철역와 지하철역로", "지하철역 " * 5),
        ("수도는 무엇인가요?", "수도는 ?"),
        ("누구인가? 언제는 어디에서 왜 몇 명입니까", "?     명"),
        ("있나요? 높은가요, 되는가! 좋습니까", "있 ? 높은가요, 되 ! 좋"),
    ],
)
def test_particles_question_words_and_endings_go(question: str, rest: str) -> None:
    assert without_grammar("korean", question).split() == rest.split()


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("什么是北京的人口？", "北京的人口？"),
        ("中国的首都是什么？", "中国的首都 ？"),
        ("如何安装软件吗？为什么", "安装软件 ？"),
        ("几个人？幾年？哪个好，谁呢", "个人？ 年？ 好， "),
        ("为什么的士在哪儿？赫敏因为什么走", "的士在 ？赫敏因为 走"),
        ("東京タワーはどこにありますか？", "東京タワーは あり ？"),
        ("富士山とは何ですか", "富士山とは"),
        ("どのようにして作るのか？いつから誰が", "して作る ？"),
        ("猫はなぜ鳴くのでしょうか。水がある?", "猫は 鳴くの 。水がある?"),
        ("日本のどの町、どうなる？水はいくら？祭はいつから", "日本の 町、 なる？水は ？祭は"),
    ],
)
def test_question_words_and_endings_go(question: str, rest: str) -> None:
    language = "japanese" if re.search("[ぁ-ん]", question) else "chinese"
    assert without_grammar(language, question).split() == rest.split()


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("chinese", "几何学 哪吒 哪咤 哪怕 呢喃 毛呢 毛呢　大衣 粗花呢 茶几种类 成为何人 認為何時"),
        (
            "japanese",
            "いつも あいつ などの本 幾何 何か 何者 いるか はるか 静か かな めだか めだか　飼い方 "
            "はだか ゆたか あたたか ほのか 冷やしちゅうか かいつぶり 追いつく 思いついた "
            "言いつける 酔いつぶれる 使いつつ いつか かいつまんで 猫などのような 猫などのように "
            "ぶどうです ぶどうなど うどんなど 細胞どうし じどうしゃ だけどこれ ほどこす "
            "のどの痛み 冬は、のどの痛み うどの大木 いくら丼 行くつもり もどれ こんなぜいたく",
        ),
    ],
)
def test_what_may_be_a_part_of_another_word_stays(language: str, words: str) -> None:
    for word in words.split(" "):
        assert without_grammar(language, word) == word


@pytest.mark.parametrize(
    ("language", "question", "texts"),
    [
        ("chinese", "什么是软件包？", ["什么是测试？什么是源？", "软件包含有程序和说明"]),
        ("japanese", "虹は何ですか？", ["雨は何ですか？風は何ですか？", "虹は光の帯"]),
    ],
)
def test_a_question_does_not_find_other_questions_first(
    language: str, question: str, texts: list[str]
) -> None:
    analyzer = Analyzer(language)
    assert BM25Index.from_texts(texts, analyzer=analyzer).search(question)[0].id == "1"
    assert BM25Index.from_texts(texts, analyzer=Analyzer(None)).search(question)[0].id == "0"
    assert [analyzer.terms(text) for text in texts] == [*map(Analyzer(None).terms, texts)]


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("chinese", "什么？"),
        ("chinese", "为什么"),
        ("japanese", "何ですか"),
        ("japanese", "どこ"),
        ("chinese", "谁_？"),
    ],
)
def test_a_question_of_nothing_but_grammar_keeps_it(language: str, question: str) -> None:
    terms = Analyzer(None).query_terms(question)
    assert Analyzer(language).query_terms(question) == terms != []
    assert [*Analyzer(language).query_terms_of_each([question, "猫"])] == [terms, ["猫"]]


@pytest.mark.parametrize(
    "word", ["회의", "나이", "고양이", "제주도", "방식으로", "무엇보다", "누구나", "인가요"]
)
def test_what_may_be_the_letters_of_a_word_stays(word: str) -> None:
    assert without_grammar("korean", word) == word


@pytest.mark.parametrize("question", ["무엇", "누구인가?", "왜", "어디에서 언제"])
def test_a_question_of_nothing_else_keeps_it(question: str) -> None:
    index = BM25Index.from_texts([question, "도서관"], analyzer=KOREAN)
    assert KOREAN.query_terms(question) == Analyzer("chinese").query_terms(question) != []
    assert [hit.id for hit in index.search(question)] == ["0"]
    assert index.search_batch([question, question], k=1).ids() == [["0"], ["0"]]


def test_documents_keep_all_pairs() -> None:
    text = "무엇인가 도서관에서"
    assert KOREAN.terms(text) == Analyzer("chinese").terms(text)
    assert KOREAN.whole_words(text) == Analyzer("chinese").whole_words(text)


def test_a_question_finds_what_it_is_about_and_not_other_questions() -> None:
    texts = ["건조 부패는 목재를 공격하는 곰팡이", "이유는 무엇인가요? 부패란 무엇인가요?", "날씨"]
    for analyzer, first in ((KOREAN, "0"), (Analyzer("chinese"), "1")):
        index = BM25Index.from_texts(texts, analyzer=analyzer)
        assert index.search("건조 부패는 무엇인가요?")[0].id == first


def test_decomposed_letters_and_a_batch_lose_the_same() -> None:
    questions = ["도서관에서 무엇인가요", "서울의 인구는 몇 명인가?", "무엇", "USB 2.0은 무엇", ""]
    expected = [KOREAN.query_terms(question) for question in questions]
    assert [*KOREAN.query_terms_of_each(questions)] == expected
    assert expected[0] == ["도서", "서관"]
    decomposed = [unicodedata.normalize("NFD", question) for question in questions]
    assert [*KOREAN.query_terms_of_each(decomposed)] == expected
    assert [KOREAN.query_terms(question) for question in decomposed] == expected


@pytest.mark.parametrize(
    "settings",
    [
        {"language": "english"},
        {"language": None},
        {"language": "korean", "cjk": False},
        {"language": "korean", "ngrams": 4},
        {"language": "korean", "normalize": None},
        {"language": "korean", "token_pattern": r"\w+"},
    ],
)
def test_other_languages_and_words_that_are_not_cut_into_pairs_keep_all(
    settings: dict[str, Any],
) -> None:
    question = "도서관에서 무엇인가요"
    analyzer = Analyzer(**settings)
    kept = Analyzer(**{**settings, "language": None})
    assert analyzer.query_terms(question) == kept.query_terms(question)


def test_what_a_question_loses_is_told() -> None:
    steps = analysis_steps(KOREAN, "도서관에서", question=True)
    lost = [step.word for step in steps if step.reason == QUESTION_GRAMMAR]
    assert lost == ["관에", "에서"]

"""Snippets: the part of a text that matches, with its words marked, in any script."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bm25rag import Analyzer
from bm25rag.cli.snippets import (
    Match,
    _densest,
    densest_part,
    find_matches,
    first_lines,
    snippet,
)
from support.commands import ok, write_jsonl
from support.timing import takes_linear_time

ENGLISH = Analyzer()


def marked(text: str, query: str, analyzer: Analyzer = ENGLISH, length: int = 240) -> list[str]:
    """Return what is bold in a snippet."""
    shown = snippet(text, analyzer, frozenset(analyzer.query_terms(query)), length)
    return [shown.plain[span.start : span.end] for span in shown.spans if span.style == "bold"]


def plain(text: str, query: str, analyzer: Analyzer = ENGLISH, length: int = 240) -> str:
    return snippet(text, analyzer, frozenset(analyzer.query_terms(query)), length).plain


# --- where the words are --------------------------------------------------------


def test_words_match_by_the_indexs_own_analyzer() -> None:
    text = "Start the art of Running: he runs, the RUNNER ran. Cats' cat-like concatenation."
    assert marked(text, "run cats") == ["Running", "runs", "Cats", "cat"]
    assert marked(text, "the of") == []
    assert marked(text, "art") == ["art"]
    assert marked("Die Häuser am Haus", "Haus", Analyzer("german")) == ["Häuser", "Haus"]
    own = Analyzer(token_pattern=r"[A-Z]\d+", lowercase=False, stemmer=None)
    assert marked("see A12, AA12 and a12", "A12", own) == ["A12", "A12"]


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("私は東京タワーを見た。京都も。", "東京", ["東京", "京"]),
        ("私は東京タワーを見た。", "東京タワー", ["東京タワー"]),
        ("ｶﾞｽ会社とガス", "ガス", ["ｶﾞｽ", "ガス"]),
        ("全角ＣＡＴＳとcat", "cats", ["ＣＡＴＳ", "cat"]),
        ("猫 sat", "猫", ["猫"]),
        ("私の猫が好き", "猫", ["猫"]),
        ("กรุงเทพเป็นเมืองหลวง", "เมือง", ["เมือง"]),
        ("나는 학교에 간다", "학교", ["학교"]),
    ],
)
def test_chinese_japanese_and_korean_are_marked(text: str, query: str, words: list[str]) -> None:
    assert marked(text, query) == words


@pytest.mark.parametrize(
    ("analyzer", "text", "query", "words"),
    [
        (Analyzer("french"), "un cafe\u0301 noir", "café", ["cafe\u0301"]),
        (Analyzer("turkish"), "İSTANBUL'da I ve ışık", "istanbul", ["İSTANBUL"]),
        (Analyzer(None), "İİİ ve kedi", "kedi", ["kedi"]),
        (
            Analyzer(query_stopwords=None),
            "Don't use C++17, John’s naïve co\xadop",
            "dont naive",
            ["Don't", "naïve"],
        ),
        (
            Analyzer(),
            "Don't use C++17, John’s naïve co\xadop",
            "c++ john coop",
            ["C++", "John", "co\xadop"],
        ),
        (Analyzer(), "On .NET and 1,000 U.S. nets", "net 1000 us", ["NET", "1,000", "U.S", "nets"]),
        (Analyzer(None), "ΟΔΟΣ και οδος, İ", "οδος", ["ΟΔΟΣ", "οδος"]),
        (Analyzer(None), "यह हिन्दी और क्‍ष है", "हिन्दी क्‍ष", ["हिन्दी", "क्‍ष"]),
        (Analyzer(None), "في الكِتاب", "الكِتاب", ["الكِتاب"]),
    ],
)
def test_words_are_found_where_folding_changes_lengths(
    analyzer: Analyzer, text: str, query: str, words: list[str]
) -> None:
    assert marked(text, query, analyzer) == words


# Words that are folded, joined, split into bigrams, or change their length.
TRICKY = (
    "abAB 1_.,-'\n東京猫ｶﾞｽーガＡéE\u0301ß İIıΣσςｱ\u0301\u200d\u200c\u0915\u094d\u0937ﬁÅ\ud800🐈가각"
)


@pytest.mark.parametrize(
    "analyzer",
    [
        Analyzer(None),
        Analyzer("english"),
        Analyzer("turkish"),
        Analyzer(None, normalize="NFKC"),
        Analyzer(None, normalize="NFD"),
        Analyzer(None, normalize=None, lowercase=False),
        Analyzer(None, cjk=False),
        Analyzer(None, token_pattern=r"\w+"),
        Analyzer(None, token_pattern=r"\w+?"),
    ],
    ids=repr,
)
@example("1A\u030a'1A")
@given(text=st.text(st.sampled_from(TRICKY), max_size=40))
def test_every_term_of_a_text_is_found_where_it_stands(analyzer: Analyzer, text: str) -> None:
    terms = analyzer.terms(text)
    matches = find_matches(text, analyzer, frozenset(terms))
    assert [match.term for match in matches] == terms
    for match in matches:
        # Whether a sigma is final may depend on the text around the word.
        found = [term.replace("ς", "σ") for term in analyzer.terms(text[match.start : match.end])]
        assert match.term.replace("ς", "σ") in found


def test_a_pattern_that_matches_nothing_at_all_is_no_trouble() -> None:
    own = Analyzer(token_pattern="a*", stemmer=None)
    assert marked("baa b", "aa", own) == ["aa"]
    assert marked("", "aa", own) == []


def test_a_whole_book_is_searched_to_its_end() -> None:
    book = "nothing here " * 100_000 + "but one zebra and a lion " + "nor here " * 10_000
    start = process_time()
    assert marked(book, "zebra lion") == ["zebra", "lion"]
    assert process_time() - start < 10


@pytest.mark.parametrize(
    "text", ["word ", "word and other ", "\u6771\u4eac", "x.y ", "\u0e01\u0e32\u0301"]
)
def test_a_snippet_takes_linear_time(text: str) -> None:
    analyzer = Analyzer(None)
    terms = frozenset(analyzer.terms(text))

    def show(size: int) -> None:
        long = text * (size // len(text))
        snippet(long, analyzer, terms)
        densest_part(long, analyzer, terms, size // 2)

    assert takes_linear_time(show, 10_000)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), max_size=30), st.integers(0, 40)
)
def test_the_densest_part_is_the_first_with_most_terms_and_then_words(
    drawn: list[tuple[int, str]], length: int
) -> None:
    starts = accumulate(gap for gap, _ in drawn)
    matches = [Match(at, at + 2, term) for at, (_, term) in zip(starts, drawn, strict=True)]
    near = [
        [one for one in matches[number:] if one is first or one.end - first.start <= length]
        for number, first in enumerate(matches)
    ]
    best = max(near, key=lambda part: (len({one.term for one in part}), len(part)), default=[])
    assert list(_densest(matches, length)) == best


# --- what is shown --------------------------------------------------------------


def test_the_match_is_shown_and_not_the_beginning() -> None:
    text = "filler " * 200 + "then the wanted word in context " + "filler " * 200
    shown = plain(text, "wanted")
    assert shown.startswith("…filler")
    assert shown.endswith("filler…")
    assert "then the wanted word in context" in shown
    assert 150 < len(shown) <= 242


def test_the_part_with_the_most_different_words_is_shown() -> None:
    text = "cat cat cat cat " + "filler " * 100 + "cat and dog " + "filler " * 100 + "dog dog"
    assert marked(text, "cat dog") == ["cat", "dog"]


def test_a_short_text_is_shown_whole_on_one_line() -> None:
    assert plain("A red\n\n  boat\tsails. ", "boat") == "A red boat sails. "
    assert marked("A red\n\n  boat\tsails.", "red boat") == ["red", "boat"]


def test_where_no_word_can_be_found_the_beginning_is_shown() -> None:
    assert plain("first words " * 100, "zebra") == first_lines("first words " * 100)
    assert plain("", "zebra") == ""


def test_a_match_that_is_longer_than_the_snippet_is_cut() -> None:
    assert len(plain("x" * 1000, "x" * 1000)) <= 242
    assert len(plain("a " * 300 + "東" * 1000, "東" * 10)) <= 242


def test_a_table_marks_nothing_where_there_is_no_terminal_and_bold_where_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "filler " * 100 + "cats sleep"
    write_jsonl(Path("c.jsonl"), [{"id": "a", "text": text}])
    ok("index", "c.jsonl", "-o", "saved")
    table = ok("search", "saved", "cat").stdout
    assert "cats sleep" in " ".join(table.split())
    assert "\x1b" not in table

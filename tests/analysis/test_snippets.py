"""Where the words of a query are: spans, lines and snippets, in any script."""

from __future__ import annotations

import pickle
import re
from copy import copy, deepcopy
from itertools import accumulate, pairwise
from time import process_time
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index, Hit
from bm25rag.analysis import scripts, snippets
from bm25rag.analysis.snippets import Match, QueryMatcher, densest
from bm25rag.analysis.stemming import installed_stemmers
from bm25rag.cli.marked_text import first_lines, marked_snippet
from bm25rag.documents import Line, Snippet, Span, matched
from bm25rag.hybrid import HybridSearch
from support.cases import first
from support.timing import takes_linear_time

ENGLISH = Analyzer()


def hit_of(text: str, query: str, analyzer: Analyzer = ENGLISH) -> Hit:
    """Return a hit for a text, whether or not the query finds it."""
    matcher = QueryMatcher(analyzer, analyzer.query_terms(query))
    return matched(matcher, "a", 1.0, text, {}, None, None)


def marked(text: str, query: str, analyzer: Analyzer = ENGLISH, length: int = 240) -> list[str]:
    shown = marked_snippet(hit_of(text, query, analyzer), length)
    return [shown.plain[span.start : span.end] for span in shown.spans if span.style == "bold"]


def plain(text: str, query: str, analyzer: Analyzer = ENGLISH, length: int = 240) -> str:
    return marked_snippet(hit_of(text, query, analyzer), length).plain


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
        (Analyzer(None), "a\xad\u0301b \u2060\ufeffc", "áb c", ["a\xad\u0301b", "c"]),
        (Analyzer(None, normalize="NFKC"), "ㅎㅏㄴ 글 ﾡￂ", "하 글 가", ["ㅎㅏ", "글", "ﾡￂ"]),
        (Analyzer(None, normalize="NFKC"), "㉠\xadㅏ 네ㅋㅋ", "가 네", ["㉠\xadㅏ", "네"]),
    ],
)
def test_words_are_found_where_folding_changes_lengths(
    analyzer: Analyzer, text: str, query: str, words: list[str]
) -> None:
    assert marked(text, query, analyzer) == words


# Words that are folded, joined, split into bigrams, or change their length.
TRICKY = (
    "abAB 1_.,-'\n東京猫ｶﾞｽーガＡéE\u0301ß İIıΣσςｱ\u0301\u200d\u200c\u0915\u094d\u0937ﬁÅ\ud800🐈가각"
    "\xad"
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
    matches = QueryMatcher(analyzer, terms).matches(text)
    assert [match.term for match in matches] == terms
    for match in matches:
        # Whether a sigma is final may depend on the text around the word.
        found = [term.replace("ς", "σ") for term in analyzer.terms(text[match.start : match.end])]
        assert match.term.replace("ς", "σ") in found


@pytest.mark.parametrize(
    "analyzer",
    [Analyzer(None), Analyzer("turkish"), Analyzer(None, normalize=None, cjk=False)],
    ids=repr,
)
@given(text=st.text(st.sampled_from(TRICKY), max_size=40))
def test_runs_are_folded_as_their_characters_are(analyzer: Analyzer, text: str) -> None:
    folded = snippets._fold(text, analyzer)
    assert folded.text == analyzer.splitter.fold(text).replace("ς", "σ")
    with patch.object(snippets, "_PLAIN", r"\0"):  # there are no runs
        snippets._clusters.cache_clear()
        each = snippets._fold(text, analyzer)
    snippets._clusters.cache_clear()
    assert each.text == folded.text
    parts = [(at, at + size) for at in range(len(each.text)) for size in (1, 2, 3)]
    parts = [(begin, stop) for begin, stop in parts if stop <= len(each.text)]
    assert [folded.span(*part) for part in parts] == [each.span(*part) for part in parts]


def test_plain_characters_keep_their_places() -> None:
    plain = re.findall(f"[{snippets._PLAIN}]", "".join(map(chr, range(0x110000))))
    assert len(plain) > 30_000
    for analyzer in (Analyzer(None), Analyzer("turkish")):
        assert all(snippets._keeps_places(one, analyzer) for one in plain)
        assert all(len(analyzer.splitter.fold(one)) == 1 for one in plain)
    assert not any(map(scripts.is_mark, plain))


@pytest.mark.parametrize("name", installed_stemmers())
def test_stemmers_keep_the_first_letters_of_runs(name: str) -> None:
    """Words of a text that begin with no letter of a term of the query are not analysed."""
    letters = "".join(map(chr, range(0xE00, 0x30000)))
    cut = re.findall(f"[{scripts.CJK.ranges}{scripts.SOUTHEAST_ASIAN.ranges}]", letters)[::7]
    words = [first + second for first, second in pairwise(cut)]
    stems = Analyzer(None, stemmer=name).stems(words)
    assert [stem[0] for stem in stems] == [word[0] for word in words]


def test_words_are_remembered_up_to_a_length() -> None:
    analyzer = Analyzer()
    matcher = QueryMatcher(analyzer, ["cat", "a" * 33])
    text = f"cats {'a' * 33} don't"
    for _ in range(2):
        assert [match.term for match in matcher.matches(text)] == ["cat", "a" * 33]
        assert set(analyzer.known_tokens) == {"cats", "don't"}
    assert analyzer.known_tokens["cats"] == ("cats", "cat")


def test_a_text_of_stop_words_alone_has_them_as_matches() -> None:
    matcher = QueryMatcher(ENGLISH, ["be", "東京"])
    assert [match.term for match in matcher.matches("to be")] == ["be"]
    assert [match.term for match in matcher.matches("to be 東京")] == ["東京"]
    assert matcher.matches("to be 京都") == []  # which is not analysed, but for this
    assert matcher.matches("to be cats") == []


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
    "text", first(2, ["word ", "word and other ", "\u6771\u4eac", "x.y ", "\u0e01\u0e32\u0301"])
)
def test_a_snippet_takes_linear_time(text: str) -> None:
    analyzer = Analyzer(None)
    terms = analyzer.terms(text)

    def show(size: int) -> None:
        long = text * (size // len(text))
        hit = matched(QueryMatcher(analyzer, terms), "a", 1.0, long, {}, None, None)
        hit.snippet(size // 2)
        assert len(hit.lines) == 1

    assert takes_linear_time(show, 10_000)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), max_size=30), st.integers(0, 40)
)
def test_the_densest_part_is_the_first_with_most_terms_and_then_words(
    drawn: list[tuple[int, str]], length: int
) -> None:
    starts = accumulate(gap for gap, _ in drawn)
    matches = [
        Match(at, at + 2, term, 0, 0, "") for at, (_, term) in zip(starts, drawn, strict=True)
    ]
    near = [
        [one for one in matches[number:] if one is first or one.end - first.start <= length]
        for number, first in enumerate(matches)
    ]
    best = max(near, key=lambda part: (len({one.term for one in part}), len(part)), default=[])
    assert list(densest(matches, length)) == best


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


# --- spans, lines and snippets of hits ------------------------------------------------


def search(text: str, query: str, analyzer: Analyzer = ENGLISH) -> Hit:
    (hit,) = BM25Index.from_texts([text], analyzer=analyzer).search(query)
    return hit


def test_a_hit_tells_where_the_words_of_its_query_are() -> None:
    hit = search("A cat ran.\n\nNo word here,\nbut cats\r\nthere.", "cats ran")
    assert hit.spans == [Span(2, 5, "cat"), Span(6, 9, "ran"), Span(30, 34, "cat")]
    assert [hit.text[start:end] for start, end, _ in hit.spans if hit.text] == [
        "cat",
        "ran",
        "cats",
    ]
    assert hit.lines == [
        Line(1, "A cat ran.", [Span(2, 5, "cat"), Span(6, 9, "ran")]),
        Line(4, "but cats", [Span(4, 8, "cat")]),
    ]
    assert hit.snippet(10) == Snippet("cat ran.\n", 2, [Span(0, 3, "cat"), Span(4, 7, "ran")])


def test_pairs_of_characters_become_runs_and_parts_give_way_to_wholes() -> None:
    assert search("私は東京タワーを見た。", "東京タワー").spans == [Span(2, 7, "東京タワー")]
    assert search("ＮＥＷ ｶﾞｽ会社", "ガス会社").spans == [Span(4, 9, "ガス会社")]
    assert search("กรุงเทพเป็นเมืองหลวง", "เมืองหลวง").spans == [Span(11, 20, "เมืองหลวง")]
    assert search("On .NET", ".net").spans == [Span(3, 7, ".net")]
    code = Analyzer(None, identifiers=True)
    assert search("the camelCase", "camelCase case", code).spans == [Span(4, 13, "camelcase")]
    assert search("the camelCase", "case", code).spans == [Span(9, 13, "case")]
    cased = Analyzer(None, lowercase=False)
    found = search("fooBar_foo", "Bar foo", code).spans
    assert found == [Span(0, 3, "foo"), Span(3, 6, "bar"), Span(7, 10, "foo")]
    assert search("Foo_foo", "foo", cased).spans == [Span(4, 7, "foo")]
    assert len(search("FY1" * 5_000, "fy", code).spans) == 5_000
    assert search("read_file_read", "read").spans == [Span(0, 4, "read"), Span(10, 14, "read")]


@pytest.mark.parametrize("analyzer", [ENGLISH, Analyzer(None), Analyzer("turkish")], ids=repr)
@given(st.text(st.sampled_from(TRICKY), max_size=60), st.integers(1, 70))
def test_spans_are_apart_and_snippets_are_parts(analyzer: Analyzer, text: str, width: int) -> None:
    matcher = QueryMatcher(analyzer, analyzer.terms(text)[::2])
    spans = matcher.spans(text)
    assert all(span.start < span.end <= len(text) for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    covered = {at for span in spans for at in range(span.start, span.end)}
    assert covered == {at for one in matcher.matches(text) for at in range(one.start, one.end)}
    lines = text.split("\n")
    assert sum(len(line.spans) for line in matcher.lines(text)) == len(spans)
    for line in matcher.lines(text):
        assert line.text == lines[line.number - 1]
        assert all(span.end <= len(line.text) for span in line.spans)
    part, start, inner = matcher.snippet(text, width)
    assert part == text[start : start + len(part)]
    assert len(part) <= width
    assert [(one.start + start, one.end + start) for one in inner] == [
        (max(one.start, start), min(one.end, start + len(part)))
        for one in spans
        if one.start < start + len(part) and one.end > start
    ]


def test_analyzers_are_not_compared_for_each_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Analyzer, "__eq__", lambda *_: pytest.fail("compared"))
    for _ in range(2):
        assert search("खोज\u200d", "खोज", Analyzer()).spans == [Span(0, 4, "खोज")]


def test_parts_that_are_not_found_in_a_long_word_hold_it_once() -> None:
    matches = QueryMatcher(Analyzer(None, ngrams=3), [" a "]).matches("'a" * 500)
    assert len(matches) == 500
    assert {id(match.folded) for match in matches} == {id(matches[0].folded)}


def test_a_word_is_whole_where_a_very_long_text_is_cut() -> None:
    hit = search("lion " * 30_000 + "x", "lion")
    assert len(hit.spans) == 30_000
    assert {end - start for start, end, _ in hit.spans} == {4}


def test_hits_keep_their_places_when_they_are_sent_and_copied() -> None:
    hit = search("Cats sleep", "cat")
    for other in (pickle.loads(pickle.dumps(hit)), copy(hit), deepcopy(hit)):
        assert other == hit
        assert other.spans == hit.spans == [Span(0, 4, "cat")]


def test_a_hit_of_a_tokenizer_of_ones_own_can_be_sent_but_not_its_places() -> None:
    index = BM25Index(analyzer=Analyzer(tokenizer=lambda text: text.split()))
    index.add(["Cats sleep"])
    (hit,) = index.search("Cats")
    assert hit.spans == deepcopy(hit).spans == [Span(0, 4, "Cats")]
    sent = pickle.loads(pickle.dumps(hit))
    assert sent == hit
    assert (sent.spans, sent.snippet(4)) == ([], Snippet("Cats", 0, []))


def test_every_kind_of_search_says_what_it_looked_for() -> None:
    index = BM25Index()
    index.add(["Cats sleep", "Dogs dream"], vectors=[{"a": 1.0}, {"b": 1.0}])
    both = index.search_batch(["cat", "dream"]).hits()
    assert [hit.spans for hits in both for hit in hits] == [
        [Span(0, 4, "cat")],
        [Span(5, 10, "dream")],
    ]
    assert index.search({"cat": 2.0})[0].spans == [Span(0, 4, "cat")]
    assert index.search("sleeep cat", correct=True)[0].spans == [
        Span(0, 4, "cat"),
        Span(5, 10, "sleep"),
    ]
    found = index.search_hybrid("sleep", {"b": 1.0})
    assert {hit.id: hit.spans for hit in found} == {"0": [Span(5, 10, "sleep")], "1": []}
    by_vector = index.vectors.search({"a": 1.0})[0]
    assert by_vector.spans == by_vector.lines == []
    assert by_vector.snippet(5) == Snippet("Cats", 0, [])
    search = HybridSearch(index, "cat")
    search.take([("1", 1.0), ("0", 0.5)])
    assert {hit.id: hit.spans for hit in search.hits()} == {"0": [Span(0, 4, "cat")], "1": []}


def test_a_hit_without_text_or_query_has_no_places() -> None:
    index = BM25Index()
    index.add([["cat"]], ids=["a"])
    (hit,) = index.search("cat")
    assert hit.text is None
    assert (hit.spans, hit.lines, hit.snippet()) == ([], [], Snippet("", 0, []))
    own = Hit("a", 1.0, "some text")
    assert (own.spans, own.lines, own.snippet(4)) == ([], [], Snippet("some", 0, []))


@pytest.mark.parametrize(("width", "error"), [(0, ValueError), (-1, ValueError), ("9", TypeError)])
def test_a_width_that_is_none_is_refused(width: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="width must be"):
        search("Cats sleep", "cat").snippet(width)


def test_a_span_that_begins_between_two_lines_is_at_the_start_of_one() -> None:
    index = BM25Index(Analyzer(None, token_pattern=r"\s\w+"))
    index.add(["a\r\nfoo bar"])
    (hit,) = index.search(["\nfoo"])
    assert hit.lines == [Line(2, "foo bar", [Span(0, 3, "\nfoo")])]

"""Grep finds what a naive look at every line finds, whatever the history and the pattern."""

from __future__ import annotations

import contextlib
import re
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import FilterError, MissingDependencyError
from bm25rag.grep import Grep, GrepMatch, has_regular_expressions

NEEDS_RE2 = pytest.mark.skipif(not has_regular_expressions(), reason="the extra grep is missing")
# Pieces whose joints matter to the analyzer: marks, joiners, contractions, signs, other spaces.
PIECES = (
    "a foo Foo bar it's 3.5 U.S. C++ ς Σ σ İ é É e\u0301"
    " \u0301 \u00ad \u200d ſ K \u00a0 \ufeff - _ x"
)
TEXTS = st.lists(st.sampled_from([*PIECES.split(" "), " ", " ", "\n", "\t"]), max_size=14)
WORDS = st.lists(
    st.sampled_from(["foo", "Foo", "bar", "a", "it", "3", "s", "k", "σ", "É", "ſ", " ", " "])
)


def found(index: BM25Index, pattern: str, *place: Any, **options: Any) -> list[tuple[Any, ...]]:
    matches = Grep(index, pattern, **options).matches(*place)
    return [
        (
            match.document.id,
            match.line.number,
            match.line.text,
            [span[:2] for span in match.line.spans],
        )
        for match in matches
        if isinstance(match, GrepMatch)
    ]


def naive(texts: dict[str, str], pattern: re.Pattern[str]) -> list[tuple[Any, ...]]:
    return [
        (id, number, line, [one.span() for one in pattern.finditer(line) if one[0]])
        for id, text in texts.items()
        for number, line in enumerate(text.split("\n"), 1)
        if pattern.search(line)
    ]


@given(texts=st.lists(TEXTS.map("".join), max_size=8), pattern=WORDS.map("".join), data=st.data())
def test_a_string_is_found_wherever_it_stands_and_nowhere_else(
    texts: list[str], pattern: str, data: st.DataObject
) -> None:
    pattern = pattern or "foo"
    identifiers = data.draw(st.booleans())
    index = BM25Index(Analyzer(identifiers=identifiers))
    cut = data.draw(st.integers(0, len(texts)))
    ids = [f"d{number}" for number in range(len(texts))]
    index.add(texts[:cut], ids[:cut])
    index.add(texts[cut:], ids[cut:])
    gone = data.draw(st.sets(st.sampled_from(ids))) if ids else set()
    index.delete(gone)
    left = {id: text for id, text in zip(ids, texts, strict=True) if id not in gone}
    assert found(index, pattern) == naive(left, re.compile(re.escape(pattern)))
    if "İ" not in "".join(texts):  # which Python takes for an i, and RE2 does not
        expected = naive(left, re.compile(re.escape(pattern), re.IGNORECASE))
        assert found(index, pattern, ignore_case=True) == expected


SIGNS = [
    "foo",
    "a",
    "bar",
    " ",
    r"\s",
    ".",
    "[a-f]",
    "(foo )",
    "(?:x|bar)",
    "*",
    "+",
    "?",
    "|",
    "^",
]


@NEEDS_RE2
@given(
    texts=st.lists(TEXTS.map("".join), max_size=6),
    signs=st.lists(st.sampled_from([*SIGNS, "$", "{2}", r"\."]), min_size=1, max_size=7),
    ignore_case=st.booleans(),
)
def test_words_that_narrow_an_expression_lose_no_line(
    texts: list[str], signs: list[str], ignore_case: bool
) -> None:
    index = BM25Index.from_texts(texts)
    try:
        narrowed = Grep(index, "".join(signs), regex=True, ignore_case=ignore_case)
    except ValueError:
        return
    whole = Grep(index, "".join(signs), regex=True, ignore_case=ignore_case)
    whole.terms = []
    one, other = (
        [(match.row, match.start) for match in grep.matches() if isinstance(match, GrepMatch)]
        for grep in (narrowed, whole)
    )
    assert one == other


def test_the_index_narrows_what_has_whole_words() -> None:
    index = BM25Index.from_texts(["run the red boats now", "a redboats b"])
    assert list(Grep(index, "the red boats now").terms) == ["red", "boat"]
    assert list(Grep(index, "red").terms) == []
    assert list(Grep(index, "x sky red cats x", ignore_case=True).terms) == ["red"]
    assert [one[0] for one in found(index, "redboat")] == ["1"]
    own = BM25Index(Analyzer(token_pattern=r"(?u)\b\w\w+\b"))
    assert list(Grep(own, "the red boats now").terms) == []


@NEEDS_RE2
@pytest.mark.parametrize(
    ("pattern", "terms"),
    [
        (r"a red\s+boat b", ["red", "boat"]),
        (r"a red boats* b", ["red"]),
        (r"a red (cat )?boat b", ["red"]),
        ("a red b|c", []),
        ("(?i)a red b", []),
        (r"a \Qred\E b", []),
        ("a [red ]+ boat b", ["boat"]),
        (r"a {0,2}red boat b", ["boat"]),
    ],
)
def test_only_words_that_every_match_has_narrow(pattern: str, terms: list[str]) -> None:
    index = BM25Index.from_texts(["x"])
    assert list(Grep(index, pattern, regex=True).terms) == terms


@NEEDS_RE2
@pytest.mark.parametrize("block", [1 << 20, 5])
def test_an_expression_matches_within_lines(block: int) -> None:
    texts = {
        "a": "one\ntwo three\n\nfour",
        "b": "",
        "c": "two\u00e9 t\u00fcr two",
        "d": "two\ud800",
    }
    index = BM25Index.from_texts(texts.values(), list(texts))
    options: dict[str, Any] = {"regex": True, "block": block}
    assert found(index, r"^t\w+$", **options) == []
    assert found(index, r"t\S+", **options)[:2] == naive(texts, re.compile(r"t\S+"))[:2]
    assert found(index, r"(?s)e.t", **options) == found(index, r"e\s+t", **options) == []
    assert [one[:2] for one in found(index, "^$", **options)] == [("a", 3), ("b", 1)]
    assert found(index, "TWO$", ignore_case=True, **options) == [("c", 1, texts["c"], [(9, 12)])]


@NEEDS_RE2
def test_texts_and_lines_of_any_length_are_searched_in_bounded_steps() -> None:
    text = "\u00e9" * 200_000 + "x\n" + "short y\n" * 20_000 + "z"
    index = BM25Index.from_texts(["a", text])
    large = r"\pL{3}x|y$|^z"  # some thousand steps, so that lines are cut
    matches = Grep(index, large, regex=True).matches()
    numbers = [match.line.number for match in matches if isinstance(match, GrepMatch)]
    assert numbers == list(range(1, 20_003))
    assert found(index, "\u00e9x") == [("1", 1, text.split("\n")[0], [(199_999, 200_001)])]


@NEEDS_RE2
@pytest.mark.parametrize("language", ["english", "german", "turkish"])
def test_stop_words_are_found_as_any_other(language: str) -> None:
    texts = ["see the cat in", "IN THE  end", "die katze in der not", "the"]
    index = BM25Index.from_texts(texts, analyzer=Analyzer(language))
    for pattern in ("see the cat", " in ", "katze in der not", r"\w+ the +end", "the"):
        for regex in (False, True):
            for ignore_case in (False, True):
                options: dict[str, Any] = {"regex": regex, "ignore_case": ignore_case}
                flags = re.IGNORECASE if ignore_case else 0
                naive = re.compile(pattern if regex else re.escape(pattern), flags)
                wanted = [str(id) for id, text in enumerate(texts) if naive.search(text)]
                assert [one[0] for one in found(index, pattern, **options)] == wanted


def test_one_may_go_on_anywhere_and_stop_at_any_time() -> None:
    index = BM25Index.from_texts(["x\nx", "no", "x", "yx\nx"])
    whole = [match for match in Grep(index, "x").matches() if isinstance(match, GrepMatch)]
    for place, match in enumerate(whole):
        rest = found(index, "x", match.row, match.start)
        assert rest == found(index, "x")[place + 1 :]
    assert list(Grep(index, "no").matches(2)) == [(4, 0)]
    assert list(Grep(BM25Index(), "no").matches()) == [(0, 0)]


@NEEDS_RE2
def test_however_little_time_there_is_it_goes_on_within_a_text_and_comes_to_the_end() -> None:
    """A cursor that leads to the same place for ever would keep an agent busy for ever."""
    index = BM25Index.from_texts(["a", "short y\n" * 20_000 + "z" * 500_000 + "\ny", "y"])
    for ignore_case in (False, True):
        options: dict[str, Any] = {"regex": True, "ignore_case": ignore_case, "block": 1 << 14}
        row, after, calls = 0, -1, 0
        lines: list[tuple[int, int]] = []
        while row < len(index):
            for match in Grep(index, r"\pL{3}x|y$", **options).matches(row, after, seconds=-1.0):
                if isinstance(match, GrepMatch):
                    lines.append((match.row, match.line.number))
                else:
                    assert match > (row, after + 1)
                    row, after = match.row, match.start - 1
            calls += 1
        assert lines == [*((1, number) for number in range(1, 20_001)), (1, 20_002), (2, 1)]
        assert calls > 3


def test_a_filter_holds_and_texts_that_are_not_stored_are_not_searched() -> None:
    index = BM25Index.from_texts(["red", "red"], metadata=[{"a": 1}, {"a": 2}])
    index.add(["red"], store_text=False)
    assert [one[0] for one in found(index, "red", filter={"a": 2})] == ["1"]
    assert [one[0] for one in found(index, "red", filter=lambda it: it.get("a") == 1)] == ["0"]
    assert [one[0] for one in found(index, "red")] == ["0", "1"]


BLOWN = [r"(x+x+)+y", r"(a|a)*$b", r"(.*)(.*)(.*)(.*)#", r"(.{0,30}){30}zz", r"(a?){500}a{500}"]


@NEEDS_RE2
@pytest.mark.parametrize("pattern", BLOWN)
def test_no_expression_takes_long(pattern: str) -> None:
    index = BM25Index.from_texts(["x" * 60_000, "lorem ipsum dolor " * 5_000] * 2)
    start = process_time()
    with contextlib.suppress(ValueError):
        list(Grep(index, pattern, regex=True).matches(seconds=0.2))
    assert process_time() - start < 10


@pytest.mark.parametrize("letter", ["a", "s", "\u00e9"])
def test_a_string_in_any_case_takes_linear_time_however_alike_the_texts_are(letter: str) -> None:
    index = BM25Index.from_texts([letter * 1_000_000])
    start = process_time()
    assert found(index, letter * 999 + "b", ignore_case=True) == []
    assert [one[:2] for one in found(index, letter.upper() * 999, ignore_case=True)] == [("0", 1)]
    assert process_time() - start < 10  # expressions of Python take 34 seconds


@pytest.mark.parametrize(
    ("complaint", "pattern", "options"),
    [
        ("pattern must be a string, got int", 5, {}),
        ("pattern must have 1 to 1,000 characters, got 0", "", {}),
        ("pattern must have 1 to 1,000 characters, got 1,001", "x" * 1001, {}),
        ("pattern must be within one line", "a\nb", {}),
        ("regex must be True or False", "a", {"regex": 1}),
        ("ignore_case must be True or False", "a", {"ignore_case": "no"}),
        ("unknown operator", "a", {"filter": {"a": {"$b": 1}}}),
    ],
)
def test_bad_arguments_are_named(complaint: str, pattern: Any, options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError, FilterError), match=complaint):
        Grep(BM25Index.from_texts(["x"]), pattern, **options)


@NEEDS_RE2
@pytest.mark.parametrize(
    ("complaint", "pattern"),
    [
        ("no regular expression of RE2", "("),
        ("no look-around or backreferences", r"(a)\1"),
        ("no look-around", "(?=a)"),
        ("lines are searched one by one", r"\Aa"),
        ("lines are searched one by one", "(?s-m)a"),
        ("lines are searched one by one", r"a\C"),
        ("pattern is too large", r"(\pL{20}x?){20}"),
        ("no regular expression", "((a{100}){100}){100}"),
    ],
)
def test_bad_expressions_are_refused_with_a_reason(complaint: str, pattern: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Grep(BM25Index.from_texts(["x"]), pattern, regex=True)


def test_without_the_engine_a_string_can_still_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    index = BM25Index.from_texts(["a.b"])
    assert not has_regular_expressions()
    assert found(index, "a.b")
    with pytest.raises(MissingDependencyError, match=r"pip install 'bm25rag\[grep\]'"):
        Grep(index, "a.b", regex=True)

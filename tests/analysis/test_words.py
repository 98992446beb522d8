"""What is a word: signs, numbers, apostrophes, identifiers, odd characters."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index
from bm25rag.analysis import PAPER, scripts

PLAIN = Analyzer(language=None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C, R and 2 of vitamin D", ["c", "r", "and", "2", "of", "vitamin", "d"]),
        ("C++ C# F#", ["c++", "c#", "f#"]),
        ("written in C.", ["written", "in", "c"]),
        ("in C++. In C#, too", ["in", "c++", "in", "c#", "too"]),
        ("C++17 and C/C++/C#9", ["c++", "17", "and", "c", "c++", "c#", "9"]),
        ("(C++) \u201cC#\u201d", ["c++", "c#"]),
        ("a+b C+++ CD4+ K+ notepad++ abc# #5", ["a", "b", "c", "cd4", "k", "notepad", "abc", "5"]),
        ("Python 3.11.4, v2.0", ["python", "3.11.4", "3.11", "v2.0", "2.0"]),
        ("It is 3.5. Then 4.", ["it", "is", "3.5", "then", "4"]),
        ("1,000 or 12,345,678.90 or 1,2,3", ["1000", "or", "12345678.90", "or", "1", "2", "3"]),
        (".NET Core", [".net", "net", "core"]),
        (
            "ASP.NET Node.js end.Start",
            ["asp", "net", "node", "js", "end", "start", "aspnet", "nodejs", "endstart"],
        ),
        (
            "e-mail, x-ray's AT&T a-b-c 12-15",
            [
                *("e", "mail", "x", "ray", "at", "t", "a", "b", "c", "12", "15"),
                *("email", "xray", "att"),
            ],
        ),
        (
            "docs.python.org 3.5-inch 1,000-mile",
            [*("docs", "python", "org", "3.5", "inch", "1000", "mile", "docspythonorg")],
        ),
        ("well...and so.", ["well", "and", "so"]),
        ("U.S. and U.S.A, e.g. z.B. т.е.", ["us", "and", "usa", "eg", "zb", "те"]),
        ("_emphasis_ __init__ ____", ["emphasis", "init"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        ("co\xadoperate \ufeffred\u2060boat", ["cooperate", "redboat"]),
        ("٢٠١٥ ३.५ ๔๒", ["2015", "3.5", "42"]),
        ("", []),
        (". , ' + # ++ _ .'", []),
    ],
)
def test_words_are_those_that_people_write(text: str, expected: list[str]) -> None:
    assert PLAIN.terms(text) == expected


@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\u02bc", "\uff07"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't can't won't", ["dont", "cant", "wont"]),
        (
            "John's dogs' we'll I'm they've you're he'd",
            ["john", "dogs", "we", "i", "they", "you", "he"],
        ),
        ("shouldn't've", ["shouldnt"]),
        ("o's's don't's x'll's", ["o", "dont", "x"]),
        ("l'homme d'été qu'il", ["homme", "été", "qu", "il"]),
        ("O'Brien's rock 'n' roll", ["brien", "obrien", "rock", "n", "roll"]),
        ("5'10 'quoted'", ["5", "10", "quoted"]),
    ],
)
def test_an_apostrophe_leaves_no_stray_letters(
    text: str, expected: list[str], apostrophe: str
) -> None:
    assert PLAIN.terms(text.replace("'", apostrophe)) == expected


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("apostrophe", ["'", "\u2019"])
def test_an_irish_name_is_no_turkish_pronoun(apostrophe: str) -> None:
    names = "O'Brien O'Neill'in O'Hara'ya o'donnell's"
    pronouns = "O'nun O'na O'ndan O'nunla O'ndaki O'nsuz O'ydu O'ymuş O'daki O'larda"
    text = f"{names} {pronouns} Ankara'nın C'deki".replace("'", apostrophe)
    analyzer = Analyzer("turkish", stemmer=None)
    expected = ["brien", "neill", "hara", "donnell"]
    expected = [term for name in expected for term in (name, f"o{name}")] + ["ankara", "c"]
    assert analyzer.terms(text) == analyzer.query_terms(text) == expected
    assert BM25Index.from_texts([text], analyzer=analyzer).vocabulary() == sorted(expected)


@pytest.mark.usefixtures("backend")
def test_a_french_name_has_no_turkish_ending() -> None:
    text = "D'Artagnan'ın d'artagnan Jeanne d'Arc L'Oréal'den d'Estaing L'Humanité"
    endings = "D'nin d'ler l'ye L'den A'dan Z'ye E'yi C'de"
    analyzer = Analyzer("turkish", stemmer=None)
    expected = ["artagnan", "artagnan", "jeanne", "arc", "oreal", "estaing", "humanite"]
    expected += ["d", "d", "l", "l", "a", "z", "e", "c"]
    assert analyzer.terms(f"{text} {endings}") == expected
    assert analyzer.query_terms(f"{text} {endings}") == expected


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("ukrainian", "п'ять", "п\u02bcять"),
        ("turkish", "İstanbul'da", "İstanbul'un"),
        ("hebrew", "צה\u05f4ל", "צהל"),
        ("english", "don't", "dont"),
    ],
)
def test_forms_with_and_without_an_apostrophe_meet(language: str, one: str, other: str) -> None:
    analyzer = Analyzer(language)
    assert analyzer.terms(one) == analyzer.terms(other) != []
    assert len(analyzer.terms(one)) == 1


@pytest.mark.usefixtures("backend")
def test_words_with_signs_are_found_exactly() -> None:
    texts = ["It is written in C.", "It is written in C++.", "C# on .NET 3.5", "net income 35", "R"]
    index = BM25Index.from_texts(texts)
    asked = ["C", "C++", "c#", "3.5", ".NET", "r", "35"]
    found = {one: [hit.id for hit in index.search(one)] for one in asked}
    assert found == {
        "C": ["0"], "C++": ["1"], "c#": ["2"], "3.5": ["2"], ".NET": ["2", "3"], "r": ["4"],
        "35": ["3"],
    }  # fmt: skip


def test_identifiers_are_found_whole_and_by_their_parts() -> None:
    analyzer = Analyzer(identifiers=True, language=None)
    assert analyzer.terms("getHTTPName") == ["gethttpname", "get", "http", "name"]
    assert analyzer.terms("snake_case os.path") == ["snake_case", "snake", "case", "os", "path"]
    assert analyzer.terms("Python 3.11.4") == ["python", "3.11.4", "3", "11", "4"]
    assert analyzer.terms("The ISTANBUL İ") == ["the", "istanbul", "i\u0307"]
    assert Analyzer(language=None).terms("getHTTPName") == ["gethttpname"]
    with pytest.raises(ValueError, match="identifiers"):
        Analyzer(identifiers=True, token_pattern=r"\w+")


def test_the_pattern_of_the_paper_is_one_setting_away() -> None:
    analyzer = Analyzer(token_pattern=PAPER)
    text = "The C++ of John's naïve 3.5 cafés"
    assert analyzer.words(text) == re.findall(PAPER, text.lower())
    assert analyzer.terms(text) == analyzer.query_terms(text) == ["of", "john", "naïv", "café"][1:]
    assert not analyzer.query_stopwords
    assert not analyzer.fold_accents


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u0440aypal", ["\u0440aypal"]),
        ("\U0001f468\u200d\U0001f4bb code \u2764️", ["\U0001f468", "\U0001f4bb", "code", "\u2764"]),
        ("\ud800red \udfff", ["red"]),
        ("می\u200cخواهم", ["می", "خواهم"]),
        ("\u0301\u0301", []),
        ("\x00a\x00", ["a"]),
    ],
)
def test_odd_texts_have_the_terms_one_would_expect(text: str, expected: list[str]) -> None:
    assert PLAIN.terms(text) == expected
    assert PLAIN.query_terms(text) == expected


def test_letters_around_a_character_are_words() -> None:
    assert PLAIN.terms("x漢y") == ["x", "漢", "y"]
    assert PLAIN.query_terms("x漢y") == ["x", "x", "x", "漢", "y", "y", "y"]


@pytest.mark.usefixtures("backend")
@given(st.text("aBz1_ .,'+#-&\t\n\x1c\"(\x00", max_size=12))
def test_words_in_ascii_are_those_of_the_pattern(text: str) -> None:
    assert scripts.find_ascii_words(text) == scripts.word_pattern(scripts.NO_PAGES).findall(text)


@given(st.text("a\u0301\u0e01\u0e31\u0e48\u093f\u0915\u064b\u0628\u2019 .", max_size=12))
def test_marks_of_the_text_are_enough(text: str) -> None:
    """Patterns know the marks of the pages that a text has; all marks find the same words."""
    every = frozenset(point >> 8 for point in range(0x110000) if scripts.is_mark(chr(point)))
    assert scripts.find_words(text) == scripts.word_pattern(every).findall(text)


def test_texts_of_many_scripts_have_few_patterns_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each new page of marks at most, and none for the 63 sets of six pages again."""
    monkeypatch.setattr(scripts, "_SEEN_PAGES", set())
    scripts.word_pattern.cache_clear()
    marked = [
        "\u00e9\u0301",
        "\u05d0\u05b0",
        "\u0628\u064b",
        "\u0915\u093f",
        "\u0e01\u0e31",
        "\u1000\u102b",
    ]
    for chosen in range(1, 64):
        words = [word for bit, word in enumerate(marked) if chosen >> bit & 1]
        assert scripts.find_words(" ".join(words)) == words
    assert scripts.word_pattern.cache_info().misses <= len(marked)

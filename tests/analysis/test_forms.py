"""A word meets itself in another case, width or normal form."""

from __future__ import annotations

import pytest

from bm25rag import Analyzer
from support.analysis import meets

pytestmark = pytest.mark.usefixtures("backend")


FORMS = ["NFC", "NFD", "NFKC", "NFKD"]


SAME_WORDS = [
    ("caf\u00e9", "cafe\u0301"),
    ("caf\u00e9", "\uff43\uff41\uff46\uff45\u0301"),
    ("caf\u00e9", "\uff23\uff21\uff26\uff25\u0301"),
    ("CAF\u00c9", "cafe\u0301"),
    ("\u0390\u03bd\u03b1\u03b2", "\u0390\u03bd\u03b1\u03b2".upper()),
    ("\u03b0\u03bd\u03b1\u03b2", "\u03b0\u03bd\u03b1\u03b2".upper()),
    ("\u1e96ab", "\u1e96ab".upper()),
    ("\u01f0ab", "\u01f0ab".upper()),
    ("\u212bngstr\u00f6m", "\u00e5ngstro\u0308m"),
    ("\u1100\u1161\u11a8\u1100\u1161", "\uac01\uac00"),
    ("\u0928\u093c\u0947\u0939\u0930\u0942", "\u0929\u0947\u0939\u0930\u0942"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("one", "other"), SAME_WORDS)
def test_a_word_meets_itself_in_another_case_width_or_normal_form(
    one: str, other: str, form: str
) -> None:
    analyzer = Analyzer(normalize=form, language=None)
    assert analyzer.terms(one) == analyzer.terms(other) != []
    assert meets(analyzer, f"first {one} last", other)


@pytest.mark.parametrize("form", [*FORMS, None])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u0130STANBUL", "istanbul"),
        ("I\u0307STANBUL", "istanbul"),
        ("I\u0307STANBUL", "\u0130stanbul"),
        ("DIYARBAKIR", "d\u0131yarbak\u0131r"),
    ],
)
def test_the_turkish_i_meets_itself_in_every_form(one: str, other: str, form: str | None) -> None:
    analyzer = Analyzer("turkish", normalize=form)
    assert analyzer.terms(one) == analyzer.terms(other) != []
    assert meets(analyzer, one, other)


@pytest.mark.parametrize("form", [*FORMS, None])
def test_a_dotted_and_a_dotless_i_are_two_letters_in_turkish(form: str | None) -> None:
    analyzer = Analyzer("turkish", normalize=form, stemmer=None)
    assert analyzer.terms("SIR") == analyzer.terms("s\u0131r") != analyzer.terms("sir")


def test_stop_words_are_stopped_in_every_case_and_form() -> None:
    analyzer = Analyzer("french", stopwords=["\u00e9t\u00e9"], stemmer=None)
    texts = ("\u00e9t\u00e9", "\u00c9T\u00c9", "e\u0301te\u0301", "\uff25\u0301\uff34\uff25\u0301")
    assert [analyzer.terms(f"{text} 7") for text in texts] == [["7"]] * 4

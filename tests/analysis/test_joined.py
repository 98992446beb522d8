"""What is also one word, as "e-mail" is: where it is found, shown and remembered."""

from __future__ import annotations

import re
from copy import copy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index, Query
from bm25rag.analysis import analyzer as analyzers
from bm25rag.analysis import links
from bm25rag.analysis.stemming import installed_stemmers
from bm25rag.analysis.steps import Step, analysis_steps
from bm25rag.analysis.unspaced_runs import BigramRules
from bm25rag.documents import Span
from bm25rag.kernels import backend as backends
from support.environment import INTERPRETED
from support.timing import takes_linear_time

TEXTS = {
    "mail": "Send an e-mail, or use the wi-fi.",
    "email": "An email is sent.",
    "host": "See docs.python.org or Node.js",
    "type": "Of type 2, not of covid19.",
    "emoji": "fine \U0001f600\U0001f468\u200d\U0001f4bb!",
    "who": "The Who",
}
INDEX = BM25Index.from_texts(list(TEXTS.values()), ids=list(TEXTS))


def spans(query: str, id: str) -> list[str]:
    """Return what is marked in a hit."""
    hits = {hit.id: hit for hit in INDEX.search(query)}
    text = TEXTS[id]
    return [text[span.start : span.end] for span in hits[id].spans] if id in hits else []


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("query", "id", "expected"),
    [
        ("email", "mail", ["e-mail"]),
        ("e-mail", "mail", ["e-mail"]),
        ("e-mails", "email", ["email"]),
        ("wifi", "mail", ["wi-fi"]),
        ("nodejs", "host", ["Node.js"]),
        ("python.org", "host", ["python", "org"]),
        ("docs.python.org", "host", ["docs.python.org"]),
        ("type2", "type", ["type", "2"]),
        ("covid 19", "type", ["covid19"]),
        ("\U0001f600", "emoji", ["\U0001f600"]),
        ("\U0001f4bb", "emoji", ["\U0001f4bb"]),
        ("the who", "who", ["Who"]),
        ("the email", "who", []),
    ],
)
def test_spans_are_of_the_parts_that_match(query: str, id: str, expected: list[str]) -> None:
    assert spans(query, id) == expected


@pytest.mark.usefixtures("backend")
def test_a_joined_word_is_explained_and_in_snippets_and_phrases() -> None:
    hit = next(hit for hit in INDEX.search("email") if hit.id == "mail")
    snippet = hit.snippet(12)
    assert [snippet.text[span.start : span.end] for span in snippet.spans] == ["e-mail"]
    assert hit.spans == [Span(8, 14, "email")]
    why = INDEX.explain("email", "mail")
    assert why.matched
    assert [(part.term, part.contribution > 0) for part in why.terms] == [("email", True)]
    for word in ("e-mail", "email"):
        for query in (Query(phrases=[f"an {word}"]), Query(must=[word])):
            assert {hit.id for hit in INDEX.search(query)} == {"mail", "email"}


@pytest.mark.usefixtures("backend")
def test_words_that_documents_have_are_still_asked_in_parts() -> None:
    """A build leaves words for later questions, but not those that questions split."""
    index = BM25Index.from_texts(["a covid19 ward", "a covid 19 ward", "3.11.4", "3.11"])
    assert len(index.search("covid19")) == len(index.search("covid 19")) == 2
    assert len(index.search("3.11.4")) == 2


@pytest.mark.usefixtures("backend")
def test_a_short_name_with_digits_is_no_question_for_its_letters() -> None:
    """Else coeliac disease (CD) would come before the protein CD44, in 44 patients."""
    index = BM25Index.from_texts(["CD44 in mice", "CD, that is coeliac disease", "44 CD patients"])
    assert [hit.id for hit in index.search("CD44")] == ["0"]
    assert len(index.search("16cd")) == 2


@pytest.mark.usefixtures("backend")
def test_texts_of_stop_words_alone_keep_them_and_others_do_not() -> None:
    analyzer = Analyzer()
    assert analyzer.terms("The who") == ["who"]
    assert analyzer.terms("to be or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert analyzer.terms("to be or not to be?") == analyzer.query_terms("to be or not to be")
    assert analyzer.terms("To be it") == ["to", "be", "it"]
    assert analyzer.terms("to be red") == ["red"]
    assert analyzer.terms(" -- ") == analyzer.query_terms(" -- ") == []


def test_steps_say_what_is_also_one_word() -> None:
    analyzer = Analyzer()
    assert analysis_steps(analyzer, "an e-mail") == [
        Step("an", None, "a stop word"),
        Step("e", "e"),
        Step("mail", "mail"),
        Step("email", "email", joined=True),
    ]
    assert analysis_steps(analyzer, "what type 2", question=True) == [
        Step("what", None, "a stop word of questions"),
        Step("type", "type"),
        Step("2", "2"),
        Step("type2", "type2", joined=True),
    ]
    assert [step.term for step in analysis_steps(analyzer, "to be")] == ["to", "be"]
    # "a-s" is also "as".
    assert analysis_steps(analyzer, "red a-s", question=True)[-1] == Step(
        "as", None, "a stop word", joined=True
    )


@given(
    st.lists(
        st.sampled_from(["e-mail", "the", "to", "a-s", "type", "2", "Red", "covid19", "AT&T", "é"])
    ).map(" ".join),
    st.booleans(),
)
def test_the_terms_of_the_steps_are_all_terms(text: str, question: bool) -> None:
    analyzer = Analyzer()
    terms = [step.term for step in analysis_steps(analyzer, text, question) if step.term]
    assert terms == (analyzer.query_terms(text) if question else analyzer.terms(text))


# --- hostile texts --------------------------------------------------------------------------------

PIECES = [
    "a-b-", "-", "ab.cd.", "\U0001f468\u200d\U0001f469\u200d", "\ud800-a", "x-\udfff", "1 a ",
    "\xe9 1 a ", "AT&T&", "1.2.", "v1.2 ", "ab12", "e-mail ", "type 2 ",
    "e\u2010mail ", "\u0301-a", "\u6f22-a", "o'o'",
]  # fmt: skip


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("piece", PIECES, ids=ascii)
def test_many_links_take_linear_time(piece: str) -> None:
    def analyse(size: int) -> None:
        analyzer, text = Analyzer(), "x" + piece * (size // len(piece))
        terms = analyzer.terms(text), analyzer.query_terms(text)
        # One for each character, and for each two what is also one word.
        assert all(len(own) <= 2 * len(text) for own in terms)

    assert takes_linear_time(analyse, 2_000 if INTERPRETED else 20_000)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("text", ["é 1{}b", "é 1{}", "{}-a", "a-{}", "é {} 1", "{}.{}", "a{}b"])
@pytest.mark.parametrize("filler", ["1", "a", "-", ".", "&", "'", "\u0301", "\xad", " "], ids=ascii)
def test_long_runs_take_linear_time(text: str, filler: str) -> None:
    def analyse(size: int) -> None:
        own = text.replace("{}", filler * size)
        Analyzer().terms(own)
        Analyzer().query_terms(own)

    assert takes_linear_time(analyse, 2_000 if INTERPRETED else 20_000)


@pytest.mark.usefixtures("backend")
def test_what_is_remembered_of_joined_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzers, "_MOST_WORDS", 20)
    analyzer = Analyzer()
    for number in range(200):
        for text in (f"e{number}-mail type {number}", f"é e{number}-mail type {number}"):
            assert f"e{number}mail" in analyzer.query_terms(text)
            assert f"type{number}" in analyzer.query_terms_of_each([text, "é"])[0]
    kept = (analyzer._wanted_terms, analyzer._question_terms, analyzer._document_terms)
    assert all(len(terms._known) < 40 for terms in kept)


@pytest.mark.parametrize("stemmer", installed_stemmers())
def test_no_stemmer_changes_numbers(stemmer: str) -> None:
    """So they are not stemmed in questions."""
    numbers = ["0", "7", "19", "2024", "3.5", "3.11", "100000", "0.05", "12345678901234567890"]
    assert Analyzer(None, stemmer=stemmer).stems(numbers) == numbers


# --- source code ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("getHTTPName", ["gethttpname", "get", "http", "name"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        ("sha256", ["sha256", "sha", "256"]),
        ("the x", ["the", "x"]),
        ("C++ running", ["c++", "running"]),
    ],
)
def test_code_is_found_whole_and_in_parts(text: str, terms: list[str]) -> None:
    analyzer = Analyzer("code")
    assert analyzer.terms(text) == analyzer.query_terms(text) == terms


def test_an_index_of_code_is_opened_as_it_was(tmp_path: Path) -> None:
    analyzer = Analyzer("code")
    assert Analyzer.from_dict(analyzer.to_dict()) == analyzer != Analyzer(None)
    assert analyzer.identifiers
    assert not Analyzer("code", identifiers=False).identifiers
    assert repr(analyzer) == "Analyzer(language='code', stemmer=None, stopwords=None)"
    BM25Index.from_texts(["def loadIndex(path): ..."], analyzer=analyzer).save(tmp_path / "i")
    index = BM25Index.open(tmp_path / "i")
    assert index.analyzer == analyzer
    for query in ("loadIndex", "load_index", "index", "DEF"):
        assert index.search(query)[0].spans
    with backends.use("numpy"):
        assert index.search("index")[0].spans


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "shapes"),
    [
        (
            "english",
            ["a{} 5 b", "5 {}a b", "e-{} m", "{}e-mail x", "type 2{} y", "{}type 2 z", "type {} 2"],
        ),
        ("turkish", ["aI {}5 b", "5{} I b", "İ{}-mail", "x.I{}.y-z", "{}2 İa"]),
    ],
)
def test_questions_know_every_sign_beside_joined_words_alike_in_both_backends(
    language: str, shapes: list[str]
) -> None:
    """A sign ends a word, a letter or number is of it, and some are dropped or folded."""
    latin = *range(0x80, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2C00)
    others = *range(0x590, 0x780), *range(0x900, 0x980), *range(0x3000, 0x3040)
    signs = map(chr, [*latin, *others, *range(0xFE00, 0x10000)])
    texts = [shape.format(sign) for sign in signs for shape in shapes]
    with backends.use("numpy"):
        expected = [*map(Analyzer(language).query_terms, texts)]
    assert [*map(Analyzer(language).query_terms, texts)] == expected
    assert [*Analyzer(language).query_terms_of_each(texts)] == expected


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("sign", ["'", "\u2019"])
def test_an_apostrophe_between_two_joined_words_hides_neither(sign: str) -> None:
    text = f"a-b{sign}tAT&T"
    terms = ["tat", "t", "ab", "tatt"]
    assert Analyzer().query_terms(text) == terms
    assert Analyzer().query_terms_of_each([text, "\xe9"])[0] == terms  # which is scanned


def test_a_capital_i_is_a_letter_of_its_own_in_turkish() -> None:
    analyzer = Analyzer("turkish")
    texts = ["ş tip 2", "ş TIP 2", "ş Tİ 2", "ş x.I.y-z", "ş e-mail"]
    with backends.use("numpy"):
        expected = [*map(copy(analyzer).query_terms, texts)]
    assert [*map(analyzer.query_terms, texts)] == expected
    assert [terms[-1] for terms in expected] == ["tip2", "2", "ti2", "yz", "email"]


@given(st.text("aB1-&. ,_é\u0301京ก", max_size=20))
def test_chains_are_those_of_a_plain_pattern(text: str) -> None:
    """The search for them begins with links, which are seldom."""
    chains = re.finditer(r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:[-&.][A-Za-z0-9]++)+", text)
    rules = BigramRules(cjk=True, southeast_asian=True, singles=True)
    expected = [
        links.Joined(word, *chain.span())
        for chain in chains
        if (word := links._joined(chain[0])) and not links._is_within(text, chain, rules)
    ]
    assert [*links.joined_words(text, rules)] == expected

"""Words of texts in ASCII and their terms: the same as Python's own way."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import Analyzer
from bm25rag.analysis import PAPER, scripts
from bm25rag.analysis.links import numbered_words
from bm25rag.kernels import backend as backends
from bm25rag.kernels.boundary import LONGEST_WORD, KnownWords, WordRules, WordTerms
from support.environment import INTERPRETED

ASCII = st.one_of(
    st.text(alphabet="aB1_.,+#-&' ", max_size=24),
    st.text(alphabet=".+#'a", max_size=12),
    st.text(st.characters(max_codepoint=127), max_size=40),
    st.lists(
        st.sampled_from(
            ["the", "What", "who", "cats", "don't", "3.5", "1,000", "c++", "C#", ".net", "U.S.",
             "a_b", "_", "e-mail", "x-1-2-a", "covid19", "2nd", "cd44", "fy2018", "a1234", "type2",
             "16gb", "7", "a.b-c", "1.2.3", "1..2", "v2.0", "x" * 100,
             "x" * 101, "1.5" + "0" * 98, "Running", "John's", "it's", "o's", "3.5's", "mp3's",
             "Nacoes", "irmaos", "novych", "djavo", "meklesana",
             "a's's", "'s", "x" * 98 + "'s", "x" * 99 + "'s"]
        )
    ).map(" ".join),
)  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {
    "english": {},
    "serbian": {"language": "serbian"},
    "turkish": {"language": "turkish"},
    "irish": {"language": "irish"},  # of whose words Snowball returns nothing for some
    "arabic": {"language": "arabic", "stemmer": "arabic_light"},
    "latvian": {"language": "latvian"},
    "persian": {"language": "persian"},
    "portuguese": {"language": "portuguese"},
    "slovak": {"language": "slovak"},
    "slovenian": {"language": "slovenian"},
    "ukrainian": {"language": "ukrainian"},
    "none": {"language": None},
    "capitals": {"lowercase": False, "stopwords": ["what"]},
    "identifiers": {"identifiers": True},
    "paper": {"token_pattern": PAPER},
    "lists": {"stopwords": ["3.5", "cats"], "query_stopwords": ["1.2.3", "c++"]},
}


def find_words(text: str) -> list[str] | None:
    return backends.current().find_ascii_words(text)


def plain_terms(analyzer: Analyzer, text: str) -> list[str]:
    """Return the terms of a question, each word analysed by Python, without a memory."""
    words = scripts.word_pattern(scripts.NO_PAGES).findall(analyzer.splitter.fold(text))
    if analyzer.token_pattern != "auto":
        words = analyzer.splitter.find_words(text, True)
    tokens, _ = analyzer.splitter.split_words(words, True)
    stopwords, unwanted = analyzer.stopwords, analyzer.stopwords | analyzer.query_stopwords
    others: list[str] = []
    if analyzer.splitter.joins_words:
        numbered = [one.word for one in numbered_words(analyzer.splitter.fold(text), unwanted)]
        others = analyzer.splitter.split_words(analyzer.splitter.joined_words(text) + numbered)[0]
    for dropped in (unwanted, stopwords, frozenset[str]()):
        if terms := analyzer.stems([token for token in tokens if token not in dropped]):
            return terms + analyzer.stems([token for token in others if token not in stopwords])
    return []


@given(ASCII)
def test_words_are_those_of_the_pattern(text: str) -> None:
    found = find_words(text)
    assert found is None or found == scripts.word_pattern(scripts.NO_PAGES).findall(text)
    if backends.chosen() == "compiled":
        assert found is not None


@pytest.mark.parametrize("name", SETTINGS)
@given(texts=st.lists(ASCII, max_size=4))
def test_terms_of_a_question_are_those_that_python_finds(
    backend: str, name: str, texts: list[str]
) -> None:
    """Of words that are new, and of those that are known."""
    analyzer = pickle.loads(pickle.dumps(ANALYZERS[name]))
    for text in [*texts, *texts]:
        if analyzer.splitter.fold(text).isascii():  # Turkish lower case need not be
            assert analyzer.query_terms(text) == plain_terms(analyzer, text)


ANALYZERS = {name: Analyzer(**settings) for name, settings in SETTINGS.items()}


def test_a_text_that_is_not_ascii_is_refused() -> None:
    if find_words("") is None:
        pytest.skip("this backend finds no words")
    for use in (find_words, lambda text: terms_of(text, known_words())):
        for text in ("\u00e9", "a\ud800"):
            with pytest.raises(ValueError, match="not ASCII"):
                use(text)


def known_words(words: dict[str, WordTerms] | None = None) -> KnownWords:
    """Return what remembers the terms of words, of some already."""
    known = backends.current().known_words()
    known.update(words or {})
    return known


def terms_of(
    text: str,
    known: KnownWords,
    stemmer: Callable[[], Callable[[str], str]] | None = lambda: str.upper,
    words: Sequence[str] = (),
) -> list[str] | None:
    """Return the terms of a text, or of words, of which Python's are in brackets."""

    def analyze(some: list[str]) -> dict[str, WordTerms]:
        assert len(set(some)) == len(some)
        return {word: (f"[{word}]", "!") for word in some}

    rules = WordRules(known, frozenset({"the"}), stemmer, analyze)
    if words:
        return backends.current().analyze_words(list(words), rules)
    return backends.current().analyze_text(text, rules)


def test_plain_words_are_analysed_and_remembered_and_others_left_to_python() -> None:
    if find_words("") is None:
        pytest.skip("this backend finds no words")
    long, longest = "y" * (LONGEST_WORD + 1), "z" * LONGEST_WORD
    text = f"the old cat's cat 3.5 a_b the cat cat's {long} {longest} 1,5 v1.0 gone"
    expected = [
        *("OLD", "[cat's]", "!", "CAT", "3.5", "[a_b]", "!", "CAT", "[cat's]", "!"),
        *(f"[{long}]", "!", longest.upper(), "[1,5]", "!", "[v1.0]", "!", "A", "B"),
    ]
    seen = {"gone": ("A", "B")}
    for words in ((), text.split()):
        known = known_words(seen)
        for _ in range(2):
            assert terms_of(text, known, words=words) == expected
        plain = {"old": "OLD", "cat": "CAT", "3.5": "3.5", longest: longest.upper()}
        expected_words = seen | plain | {"the": ()}
        assert len(known) == len(expected_words)
        assert {word: known.get(word) for word in expected_words} == expected_words


def test_without_a_stemmer_all_words_are_left_to_python() -> None:
    if find_words("") is None:
        pytest.skip("this backend finds no words")
    known = known_words()
    assert terms_of("the cat", known, None) == ["[the]", "!", "[cat]", "!"]
    assert len(known) == 0


def test_a_stem_that_is_nothing_is_the_word() -> None:
    assert terms_of("old cat", known_words(), lambda: lambda _: "") in (["old", "cat"], None)


def test_an_error_of_the_stemmer_leaves_what_was_right() -> None:
    """As Ctrl-C, or memory that is short: what is remembered then is complete."""
    if find_words("") is None:
        pytest.skip("this backend finds no words")

    def stem(word: str) -> str:
        if word == "bad":
            raise KeyboardInterrupt
        return word.upper()

    known = known_words()
    with pytest.raises(KeyboardInterrupt):
        terms_of("good bad new", known, lambda: stem)
    assert len(known) == 1
    assert known.get("good") == "GOOD"


@pytest.mark.skipif(INTERPRETED, reason="nothing is locked by interpreted kernels")
def test_threads_share_what_is_remembered_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.analysis.analyzer._MOST_WORDS", 7)
    analyzer = Analyzer()
    texts = [f"red boats{n} sailing 3.{n} don't w{n % 5}" for n in range(60)]
    expected = [plain_terms(analyzer, text) for text in texts]

    def ask(_: int) -> None:
        for _ in range(20):
            assert list(map(analyzer.query_terms, texts)) == expected

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(ask, number) for number in range(4)]:
            done.result()


def test_a_text_of_one_long_word_or_of_many_signs_takes_linear_time() -> None:
    size = 15_000 if INTERPRETED else 150_000
    for text in ("a" * 2 * size, ".a" * size, "+" * 2 * size, "a'" * size, "1," * size):
        assert find_words(text) in (None, scripts.word_pattern(scripts.NO_PAGES).findall(text))

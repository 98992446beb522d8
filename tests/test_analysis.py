"""Texts and words as they come: in other forms, very long, forged, or from other libraries."""

from __future__ import annotations

import itertools
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import INTERPRETED

from bm25rag import Analyzer, BM25Index

pytestmark = pytest.mark.usefixtures("backend")


def meets(analyzer: Analyzer, document: str, query: str) -> bool:
    """Whether a query finds a document, and the document's words the query."""
    index = BM25Index.from_texts([document, "something else"], analyzer=analyzer)
    back = BM25Index.from_texts([query, "something else"], analyzer=analyzer)
    found = [[hit.id for hit in index.search(query)], [hit.id for hit in back.search(document)]]
    return found == [["0"], ["0"]]


# -- one word, written in two ways -------------------------------------------------------------

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
    assert [analyzer.terms(text) for text in texts] == [[]] * 4


# -- hostile patterns and very long words ------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    ["a{99999999999}", "(" * 2000 + ")" * 2000, "(?:" * 2000 + ")" * 2000, "(", "[", "*", "(a)(b)"],
)
def test_a_pattern_that_cannot_be_used_is_a_value_error(pattern: str) -> None:
    with pytest.raises(ValueError, match="token_pattern"):
        Analyzer(token_pattern=pattern)


@pytest.mark.parametrize(
    ("language", "letters"),
    [
        ("tamil", "\u0b95\u0bbe"),
        ("tamil", "\u0bb5\u0bbf\u0b9f\u0bc1"),
        ("arabic", "\u0627\u0644"),
        ("arabic", "\u0648\u0627"),
        ("yiddish", "\u05d2\u05e2"),
        ("yiddish", "\u05e1\u05d8"),
        ("spanish", "ando"),
        ("spanish", "a"),
        ("english", "y"),
        ("hindi", "\u0939\u0940"),
    ],
)
def test_a_word_of_a_megabyte_takes_no_time_in_any_language(language: str, letters: str) -> None:
    size = 20_000 if INTERPRETED else 1_000_000
    word = letters * (size // len(letters.encode()))
    start = time.perf_counter()
    index = BM25Index.from_texts([word], analyzer=Analyzer(language))
    assert [hit.id for hit in index.search(word)] == ["0"]
    # 0.1 s or so; what it was before grew with the square of the length.
    assert time.perf_counter() - start < 20


def colliding_strings(length: int = 40) -> list[str]:
    """Strings of a and b with one CRC-32, 2 ** (length - 32) at least.

    CRC-32 is affine over bits, so what flipping each letter does to it is found one by
    one, and Gauss's elimination finds the sets of letters whose flips cancel.
    """
    base = "a" * length
    reduced: dict[int, tuple[int, int]] = {}
    cancelling = []
    for place in range(length):
        text = base[:place] + "b" + base[place + 1 :]
        effect, flips = zlib.crc32(text.encode()) ^ zlib.crc32(base.encode()), 1 << place
        while effect and (known := reduced.get(effect.bit_length())):
            effect, flips = effect ^ known[0], flips ^ known[1]
        if effect:
            reduced[effect.bit_length()] = effect, flips
        else:
            cancelling.append(flips)
    result = []
    for chosen in itertools.product([False, True], repeat=len(cancelling)):
        flips = 0
        for one in itertools.compress(cancelling, chosen):
            flips ^= one
        result.append("".join("ab"[flips >> place & 1] for place in range(length)))
    return result


def test_ids_and_terms_with_one_checksum_are_told_apart(tmp_path: Path) -> None:
    strings = colliding_strings()
    assert len(set(strings)) >= 256
    assert len({zlib.crc32(text.encode()) for text in strings}) == 1
    absent, present = strings[::4], [text for n, text in enumerate(strings) if n % 4]
    index = BM25Index.from_texts([[text, "all"] for text in present], ids=present[::-1])
    index.save(tmp_path / "index")
    for one in (index, BM25Index.open(tmp_path / "index")):
        for text, id in zip(present, present[::-1], strict=True):
            assert [hit.id for hit in one.search([text])] == [id]
            assert [document.id for document in one.get([text])] == [text]
        assert not any(one.search([text]) or text in one for text in absent)
    assert index.delete(present[:50] + absent) == 50
    assert index.ids() == present[:49:-1]


def test_long_words_of_queries_are_not_kept() -> None:
    index = BM25Index.from_texts(["red boat", "green tea"])
    index.search("red")
    index.scores("red")
    tracemalloc.start()
    try:
        for number in range(40):
            word = f"{number}" + "x" * 1_000_000
            assert index.search(word) == index.search([word]) == []
            assert index.scores([word]).tolist() == [0.0, 0.0]
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 4_000_000


# -- what other libraries and other habits bring -----------------------------------------------

MAPPING = {"a": "red boat", "b": "green tea"}


@pytest.mark.parametrize("name", ["texts", "ids", "metadata", "payloads"])
def test_a_mapping_is_no_sequence_of_anything_to_add(name: str) -> None:
    index = BM25Index()
    given: dict[str, Any] = {"texts": ["red", "green"], name: MAPPING}
    with pytest.raises(TypeError, match=rf"{name} must be .*, got dict"):
        index.add(**given)
    assert len(index) == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda index: index.search_batch(MAPPING),
        lambda index: index.search(MAPPING),
        lambda index: index.scores(MAPPING),
        lambda index: index.get(MAPPING),
        lambda index: index.delete(MAPPING),
        lambda index: index.update_metadata(MAPPING, [{}, {}]),
        lambda index: index.update_metadata(["a", "b"], {"a": {}, "b": {}}),
    ],
)
def test_a_mapping_is_no_sequence_of_ids_or_queries(call: Callable[[BM25Index], object]) -> None:
    index = BM25Index.from_texts(MAPPING.values(), ids=list(MAPPING))
    with pytest.raises(TypeError, match=r"got .*(dict|red boat)"):
        call(index)
    assert index.ids() == ["a", "b"]
    assert index.get(["a"])[0].metadata == {}


class Name(str):
    """A string of somebody's own class."""

    __slots__ = ()


@pytest.mark.parametrize("kind", [np.str_, Name])
def test_ids_of_a_subclass_of_str_come_back_as_plain_strings(
    kind: type[str], tmp_path: Path
) -> None:
    given = [kind("x"), kind("y")]
    index = BM25Index()
    written = index.add([kind("red boat"), kind("red")], ids=given, payloads=[b"1", b"2"])
    index.save(tmp_path / "index")
    for one in (index, BM25Index.open(tmp_path / "index")):
        documents = one.get(given)
        hits = [*one.search(kind("red")), *one.search_batch([kind("red")]).hits()[0]]
        ids = [
            *written,
            *one.ids(),
            *one.search_batch(["red"]).ids()[0],
            one.explain("red", kind("x")).id,
        ]
        ids += [found.id for found in [*documents, *hits]]
        assert set(ids) == {"x", "y"}
        assert {type(id) for id in ids} == {str}
        assert {type(found.text) for found in [*documents, *hits]} == {str}
        assert [type(term) for term in one.vocabulary] == [str, str]
        assert kind("x") in one
    assert index.delete([kind("x")]) == 1


def test_stop_words_may_be_any_iterable_of_words() -> None:
    words = ["red", "green"]
    for given in (
        np.array(words),
        tuple(words),
        set(words),
        iter(words),
        dict.fromkeys(words).keys(),
    ):
        analyzer = Analyzer(stopwords=given, stemmer=None)
        assert analyzer.terms("Red green blue") == ["blue"]
        assert analyzer == Analyzer(stopwords=words, stemmer=None)
        assert Analyzer.from_dict(analyzer.to_dict()) == analyzer
        assert {type(word) for word in analyzer.stopwords} == {str}


@pytest.mark.parametrize("wrong", [5, np.array([1, 2]), [b"red"], [None], b"red", 1.5])
def test_stop_words_that_are_no_words_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="stopwords"):
        Analyzer(stopwords=wrong)


def test_a_filter_that_must_be_awaited_is_refused() -> None:
    async def passes(metadata: dict[str, Any]) -> bool:
        return True

    index = BM25Index.from_texts(["red"])
    calls: list[Callable[[], object]] = [
        lambda: index.search("red", filter=passes),
        lambda: index.count(passes),
        lambda: index.get(["0"], filter=passes),
        lambda: index.ids(passes),
        lambda: index.search("red", filter=lambda metadata: passes(metadata)),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=r"filter.*await"):
            call()


def test_a_tokenizer_may_return_a_tuple_of_terms() -> None:
    split = Analyzer(tokenizer=lambda text: tuple(text.split()))
    assert split.terms("Red Fish") == ["Red", "Fish"]
    index = BM25Index.from_texts(["Red Fish", "red"], analyzer=split)
    assert [hit.id for hit in index.search("Fish")] == ["0"]


@pytest.mark.parametrize("wrong", ["Red", None, {"Red"}, ("Red", 1), ["Red", None], iter(["Red"])])
def test_a_tokenizer_that_returns_no_list_of_strings_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^tokenizer must return a list of str, got"):
        Analyzer(tokenizer=lambda text: wrong).terms("Red")

"""Texts and words as they come: in other forms, very long, forged, or from other libraries."""

from __future__ import annotations

import itertools
import json
import pickle
import re
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.analysis import AUTO_0_1, PAPER
from bm25rag.analysis.languages import LANGUAGES, load_stopwords
from support.environment import INTERPRETED

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


# -- words as people write them ----------------------------------------------------------------

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
        ("Python 3.11.4, v2.0", ["python", "3.11.4", "v2.0"]),
        ("It is 3.5. Then 4.", ["it", "is", "3.5", "then", "4"]),
        ("1,000 or 12,345,678.90 or 1,2,3", ["1000", "or", "12345678.90", "or", "1", "2", "3"]),
        (".NET Core", [".net", "net", "core"]),
        ("ASP.NET Node.js end.Start", ["asp", "net", "node", "js", "end", "start"]),
        ("well...and so.", ["well", "and", "so"]),
        ("U.S. and U.S.A, e.g. z.B. т.е.", ["us", "and", "usa", "eg", "zb", "те"]),
        ("_emphasis_ __init__ snake_case ____", ["emphasis", "init", "snake_case"]),
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
        ("l'homme d'été qu'il", ["homme", "été", "qu", "il"]),
        ("O'Brien's rock 'n' roll", ["brien", "rock", "n", "roll"]),
        ("5'10 'quoted'", ["5", "10", "quoted"]),
    ],
)
def test_an_apostrophe_leaves_no_stray_letters(
    text: str, expected: list[str], apostrophe: str
) -> None:
    assert PLAIN.terms(text.replace("'", apostrophe)) == expected


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


def test_what_is_asked_for_by_sign_is_found_and_nothing_else() -> None:
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


# -- questions ---------------------------------------------------------------------------------


def test_questions_lose_the_long_list_and_documents_the_short_one() -> None:
    analyzer = Analyzer()
    text = "What were the causes of it, and why don't they matter?"
    assert analyzer.terms(text) == ["what", "were", "caus", "whi", "dont", "matter"]
    assert analyzer.query_terms(text) == ["caus", "matter"]


def test_a_question_keeps_its_words_if_nothing_else_is_left() -> None:
    index = BM25Index.from_texts(["The Who played in Leeds.", "Who are you?", "A red boat"])
    assert [hit.id for hit in index.search("The Who")] == ["1", "0"]
    assert [hit.id for hit in index.search("who are you")] == ["1", "0"]
    assert index.search("the") == []


def test_search_scores_and_explain_ask_alike() -> None:
    index = BM25Index.from_texts(["how red boats sail", "how and why", "green tea"])
    question = "how do red boats sail"
    hit = index.search(question)[0]
    assert [one.id for one in index.search(question)] == ["0"]
    assert index.search_batch([question]).ids() == [["0"]]
    assert index.scores(question).tolist() == [hit.score, 0.0, 0.0]
    explanation = index.explain(question, "0")
    assert explanation.score == hit.score
    assert [part.term for part in explanation.terms] == ["red", "boat", "sail"]


def test_a_list_of_terms_loses_nothing() -> None:
    index = BM25Index.from_texts(["how red boats sail", "green tea"])
    assert [hit.id for hit in index.search(["how"])] == ["0"]
    assert index.search(["how", "tea"])[0].id in ("0", "1")
    assert len(index.search(["how", "tea"])) == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ["how", "red"]),
        (["red"], ["how"]),
        ("english_long", ["red"]),
        (["how", "red"], ["how", "red"]),
    ],
)
def test_the_words_that_questions_lose_may_be_chosen(given: Any, expected: list[str]) -> None:
    analyzer = Analyzer(query_stopwords=given)
    assert analyzer.query_terms("how red") == expected
    assert analyzer.terms("how red") == ["how", "red"]
    assert Analyzer.from_dict(analyzer.to_dict()) == analyzer


def test_only_english_has_words_that_questions_lose_and_not_with_stop_words_of_your_own() -> None:
    with_list = {one.name for one in LANGUAGES if Analyzer(one.name, stemmer=None).query_stopwords}
    assert with_list == {"english"}
    assert not Analyzer(stopwords=None).query_stopwords
    assert not Analyzer(stopwords=["red"]).query_stopwords


@pytest.mark.parametrize("wrong", [5, [b"red"], b"red", "klingon"])
def test_words_that_questions_lose_must_be_words(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="stopwords"):
        Analyzer(query_stopwords=wrong)


# -- accents -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("french", "élèves", "eleves"),
        ("french", "cœur", "coeur"),
        ("spanish", "canción", "cancion"),
        ("italian", "città", "citta"),
        ("english", "naïve café", "naive cafe"),
        ("english", "ﬁle", "file"),
        ("german", "café", "cafe"),
        (
            "greek",
            "βιβλιοθήκη",
            "ΒΙΒΛΙΟΘΗΚΗ",
        ),
        (
            "hindi",
            "ज़िन्दगी",
            "जिंदगी",
        ),
        ("hindi", "हिन्दी", "हिंदी"),
        ("hindi", "माँ", "मां"),
        ("hebrew", "שָׁלוֹם", "שלום"),
        ("arabic", "كَتَبَ", "كتب"),
        ("arabic", "كت\u0640\u0640اب", "كتاب"),
    ],
)
def test_forms_that_differ_by_accents_meet(language: str, one: str, other: str) -> None:
    assert Analyzer(language).terms(one) == Analyzer(language).terms(other) != []
    assert meets(Analyzer(language), one, other)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("swedish", "får", "far"),
        ("german", "schön", "schon"),
        ("spanish", "año", "ano"),
        ("turkish", "açı", "aci"),
        ("finnish", "sääri", "saari"),
        ("danish", "rød", "rod"),
        ("hungarian", "kör", "kor"),
        ("polish", "sąd", "sad"),
        ("czech", "byt", "být"),
        ("russian", "мой", "мои"),
        ("ukrainian", "їх", "іх"),
        ("vietnamese", "má", "ma"),
        ("portuguese", "pão", "pao"),
    ],
)
def test_letters_of_their_own_keep_their_accents(language: str, one: str, other: str) -> None:
    analyzer = Analyzer(language, stemmer=None, stopwords=None)
    assert analyzer.terms(one) != analyzer.terms(other)


def test_stop_words_are_folded_as_words_are() -> None:
    analyzer = Analyzer("french")
    assert "même" in load_stopwords("french")
    assert analyzer.terms("même meme MÊME") == []
    assert Analyzer("french", fold_accents=False).terms("meme") == ["mem"]


@pytest.mark.parametrize(
    "word", ["", "'", "'t", "'s", "n't", "...", "_", "++", "1,", "\u0e48", "a b"]
)
def test_any_string_may_be_a_stop_word(word: str) -> None:
    analyzer = Analyzer(stopwords=[word, "red"], query_stopwords=[word], language=None)
    assert analyzer.terms("red boat") == analyzer.query_terms("red boat") == ["boat"]
    assert Analyzer.from_dict(analyzer.to_dict()) == analyzer


def test_accents_are_folded_where_the_documentation_says_so() -> None:
    kept = {one.name for one in LANGUAGES if not Analyzer(one.name, stemmer=None).fold_accents}
    assert kept == set(UNFOLDED)
    assert not Analyzer(language=None).fold_accents
    assert Analyzer("russian", fold_accents=True).terms("café") == ["cafe"]
    with pytest.raises(TypeError, match="fold_accents must be True, False or 'auto'"):
        Analyzer(fold_accents="yes")


UNFOLDED = [
    "armenian", "bengali", "bosnian", "bulgarian", "croatian", "czech", "hungarian",
    "icelandic", "irish", "latvian", "lithuanian", "macedonian", "polish", "romanian",
    "russian", "serbian", "slovak", "slovenian", "tamil", "telugu", "ukrainian", "vietnamese",
    "yiddish",
]  # fmt: skip


# -- scripts without spaces between words ------------------------------------------------------

RUNS = {
    "thai": ("กรุงเทพเป็นเมืองหลวง", "เมือง", "ป็"),
    "lao": ("ວຽງຈັນເປັນນະຄອນ", "ນະຄອນ", "ຈັ"),
    "khmer": ("ភ្នំពេញជារាជធានី", "រាជធានី", "ជា"),
    "burmese": ("ရန်ကုန်သည်မြို့တော်", "မြို့", "ကု"),
}  # fmt: skip


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
    [
        ("猫が好き", "猫"),
        ("我的猫很好", "猫"),
        ("책을 읽다", "책"),
        ("A股市场", "A股"),
    ],
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

    index = BM25Index.from_texts(
        [
            "แมวกินปลา",
            "หมานอน",
        ],
        analyzer=Analyzer(tokenizer=words),
    )
    assert {"แมว", "ปลา"} <= set(index.vocabulary)
    assert [hit.id for hit in index.search("ปลา")] == ["0"]


def test_arabic_endings_meet() -> None:
    analyzer = Analyzer("arabic")
    assert analyzer.stemmer == "arabic_light"
    snowball = Analyzer("arabic", stemmer="arabic")
    university, universities = "جامعة", "جامعات"
    assert analyzer.terms(university) == analyzer.terms(universities)
    assert snowball.terms(university) != snowball.terms(universities)
    assert analyzer.stems(["لا", "ي"]) == ["لا", "ي"]


# -- settings ----------------------------------------------------------------------------------

OLD_SETTINGS = {
    "language": "english", "token_pattern": "auto", "normalize": "NFC", "lowercase": True,
    "stopwords": ["the"], "stemmer": "english", "cjk": True, "tokenizer": None,
}  # fmt: skip


def test_settings_of_version_0_1_mean_what_they_meant() -> None:
    analyzer = Analyzer.from_dict(OLD_SETTINGS)
    assert analyzer.token_pattern == AUTO_0_1
    text = "The C++ of John's café, how 3.5 猫が好 กรุงเทพ"
    assert analyzer.terms(text) == analyzer.query_terms(text)
    assert analyzer.terms(text) == [
        "of", "john", "café", "how", "猫が", "が好", "กรุงเทพ",
    ]  # fmt: skip
    assert analyzer.to_dict() == OLD_SETTINGS
    assert analyzer == Analyzer(token_pattern=AUTO_0_1, stopwords=["the"])


@pytest.mark.parametrize(
    "analyzer",
    [
        Analyzer(), Analyzer("thai"), Analyzer(None, cjk=False, query_stopwords=None),
        Analyzer(token_pattern=PAPER), Analyzer(token_pattern=AUTO_0_1, fold_accents=True),
        Analyzer(token_pattern=r"\w+", query_stopwords=["red"]), Analyzer(identifiers=True),
        Analyzer("french", fold_accents=False), Analyzer("ja", cjk_characters=False),
        Analyzer(southeast_asian=False), Analyzer("arabic", stemmer="arabic"),
    ],
)  # fmt: skip
def test_settings_come_back_from_json_and_from_pickle(analyzer: Analyzer) -> None:
    text = "What is the café C++ getName 猫が好 กรุง كتابات?"
    saved = json.loads(json.dumps(analyzer.to_dict()))
    for copy in (Analyzer.from_dict(saved), pickle.loads(pickle.dumps(analyzer))):
        assert copy == analyzer
        assert copy.to_dict() == saved
        assert copy.terms(text) == analyzer.terms(text)
        assert copy.query_terms(text) == analyzer.query_terms(text)
        assert repr(copy) == repr(analyzer)


@pytest.mark.parametrize("missing", ["query_stopwords", "identifiers", "fold_accents"])
def test_settings_of_which_some_are_missing_are_refused(missing: str) -> None:
    settings = Analyzer().to_dict()
    del settings[missing]
    with pytest.raises(ValueError, match="settings must have the keys"):
        Analyzer.from_dict(settings)


# -- what is odd -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u0440aypal", ["\u0440aypal"]),
        ("x漢y", ["x", "漢", "y"]),
        ("\U0001f468\u200d\U0001f4bb code \u2764️", ["code"]),
        ("\ud800red \udfff", ["red"]),
        (
            "می\u200cخواهم",
            ["می", "خواهم"],
        ),
        ("\u0301\u0301", []),
        ("\x00a\x00", ["a"]),
    ],
)
def test_odd_texts_have_the_terms_one_would_expect(text: str, expected: list[str]) -> None:
    assert PLAIN.terms(text) == expected
    assert PLAIN.query_terms(text) == expected


@pytest.mark.parametrize(
    "piece", ["'", ".", "a'", "a.", "1,", "c+", "\u0e48", "a.b", "'s", "_", "กิ"]
)
def test_signs_without_end_take_no_time(piece: str) -> None:
    size = 2_000 if INTERPRETED else 200_000
    start = time.perf_counter()
    index = BM25Index.from_texts([piece * size, "red"])
    index.search(piece * size)
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize("language", [None, *sorted({one.name for one in LANGUAGES} - {"thai"})])
def test_an_index_of_version_0_1_has_the_analyzer_that_its_program_names(
    language: str | None,
) -> None:
    given = Analyzer(language, stemmer=None)
    old = {name: value for name, value in given.to_dict().items() if name in SETTINGS_0_1}
    pattern = Analyzer(language, stemmer=None, token_pattern=AUTO_0_1)
    old["stopwords"] = sorted(pattern.stopwords)
    then = Analyzer.from_dict(old)
    assert then.token_pattern == AUTO_0_1
    assert then.satisfies(given)
    assert given.satisfies(given)
    assert not given.satisfies(then)
    assert not then.satisfies(Analyzer(language, stemmer=None, stopwords=["other"]))
    assert not then.satisfies(Analyzer(language, stemmer="porter"))


def test_a_stemmer_that_has_become_another_is_still_the_one_that_was_named() -> None:
    old = Analyzer("arabic", token_pattern=AUTO_0_1, stemmer="arabic")
    assert old.satisfies(Analyzer("arabic"))
    assert not old.satisfies(Analyzer("arabic", stemmer=None))


SETTINGS_0_1 = [
    "language", "token_pattern", "normalize", "lowercase", "stopwords", "stemmer", "cjk",
    "tokenizer",
]  # fmt: skip

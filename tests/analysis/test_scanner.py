"""The compiled scanner finds the same words and terms as Python's analysis in any texts."""

from __future__ import annotations

import json
import random
import re
import tracemalloc
import unicodedata
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import groupby, islice, pairwise, product
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index
from bm25rag.analysis import PAPER as PAPER_PATTERN
from bm25rag.analysis import scripts
from bm25rag.analysis.build_terms import CompiledBuildTerms
from bm25rag.analysis.encoder import Encoder
from bm25rag.analysis.fold_table import _ALIKE, FoldTable
from bm25rag.analysis.settings import runs_of
from bm25rag.analysis.splitter import WordSplitter
from bm25rag.common.arrays import UInt32
from bm25rag.common.strings import TermList, join_terms
from bm25rag.kernels import backend as backends
from bm25rag.kernels import fold_bits as bits
from bm25rag.kernels.scanner_interface import PAGE, STOPPED
from support.cases import first
from support.environment import INTERPRETED, collection

PAPER = Analyzer(
    language=None, token_pattern=PAPER_PATTERN, normalize=None, stopwords=None, cjk=False
)
ANALYZERS = {
    "english": Analyzer(),
    "paper": PAPER,
    "turkish": Analyzer("turkish"),
    "turkish, not normalised": Analyzer("turkish", normalize=None),
    "greek": Analyzer("greek"),
    "hindi": Analyzer("hindi"),
    "arabic": Analyzer("arabic"),
    "chinese": Analyzer("chinese"),
    "case kept": Analyzer(lowercase=False),
    "NFD": Analyzer(normalize="NFD"),
    "NFKC": Analyzer(normalize="NFKC"),
    "NFKD": Analyzer(language=None, normalize="NFKD"),
    "not normalised": Analyzer(normalize=None),
    "paper's pattern, bigrams": Analyzer(token_pattern=PAPER_PATTERN),
    "identifiers": Analyzer(identifiers=True),
    "code": Analyzer("code"),
    "stop words with hyphens": Analyzer(
        stopwords=["e-mail", "covid19", "mail", "covid", "3.11", "für"]
    ),
    "thai": Analyzer("thai"),
    "ukrainian": Analyzer("ukrainian"),
    "runs whole": Analyzer(cjk=False),
    "no single characters": Analyzer(cjk_characters=False, fold_accents=False),
    "Southeast Asian runs whole": Analyzer(southeast_asian=False),
    "clusters by the paper's pattern": Analyzer(token_pattern=PAPER_PATTERN, southeast_asian=True),
    "between blanks": Analyzer(language=None, token_pattern=r"\S+", normalize=None, cjk=False),
    "between blanks, stemmed": Analyzer(token_pattern=r"\S+"),
    "a set": Analyzer("turkish", token_pattern=r"[^\s,x-zé\]][^\s,x-zé\]]+"),
    "a set in any case": Analyzer(None, token_pattern="(?i)[a-zé_ß']{3,}", lowercase=False),
    "ASCII words": Analyzer("german", token_pattern=r"(?a)\b\w+\b", fold_accents=True),
    "letters, NFKC, characters": Analyzer(
        "french", token_pattern=r"[^\W\d_]+", normalize="NFKC", cjk_characters=True
    ),
}
analyzers = pytest.mark.parametrize("analyzer", ANALYZERS.values(), ids=ANALYZERS)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> Iterator[None]:
    if "compiled" not in backends.available():
        pytest.skip("only compiled kernels have a scanner")
    with backends.use("compiled"):
        assert backends.current().scanner is not None
        yield


def encoded(encoder: Encoder, texts: Sequence[str | TermList]) -> list[list[str]]:
    tokens, counts = encoder.encode(texts)
    assert tokens.dtype == counts.dtype == np.uint32
    assert len(counts) == len(texts)
    terms = [bytes(term or b"").decode("utf-8", "surrogatepass") for term in encoder.terms]
    ends = np.cumsum(counts)
    assert len(terms) == len(set(terms)) == len(encoder)
    assert len(tokens) == sum(counts.tolist())
    return [
        [terms[token] for token in tokens[end - count : end].tolist() if token != STOPPED]
        for count, end in zip(counts.tolist(), ends.tolist(), strict=True)
    ]


def assert_same(analyzer: Analyzer, *chunks: list[str]) -> None:
    """Compare chunks, one after another through one encoder, with the analyzer in Python.

    So are the words of each text alone, as of a document and of a question, and the terms of
    questions, together and alone.
    """
    encoder, together, alone, twin = Encoder(analyzer), *(copy(analyzer) for _ in range(3))
    for texts in chunks:
        asked = together.query_terms_of_each([*texts, "\xe9"])[:-1]  # such are always scanned
        assert asked == [alone.query_terms(text) for text in texts]
        with backends.use("numpy"):
            assert asked == [twin.query_terms(text) for text in texts]
        for text, terms in zip(texts, encoded(encoder, texts), strict=True):
            scanned = [analyzer._find_words(text, question) for question in (False, True)]
            with backends.use("numpy"):
                expected = [analyzer._find_words(text, question) for question in (False, True)]
                assert terms == analyzer.terms(text), ascii(text[:200])
            assert scanned == expected, ascii(text[:200])


@pytest.mark.parametrize("name", first(8, ANALYZERS))
def test_new_words_become_the_terms_that_python_finds(name: str) -> None:
    """Letters of many scripts, and pairs of them, as words of questions."""
    blocks = (0xA0, 0x250), (0x370, 0x390), (0x400, 0x430), (0x5D0, 0x650), (0x900, 0x960)
    blocks += (0xE00, 0xE60), (0x3000, 0x3110), (0x4DF0, 0x4E10), (0x9FF0, 0xA010), (0xD798, 0xD7B8)
    every = [chr(point) for first, last in blocks for point in range(first, last)]
    words = [*every, *(one + other for other in "aé漢かก\u0e31각" for one in every)]
    words += ["กั้", "กา", "漢字漢", "กก" * 60, "各", "ガ"]
    found = copy(ANALYZERS[name])._wanted_terms.of(words)
    with backends.use("numpy"):
        assert found == copy(ANALYZERS[name])._wanted_terms.of(words)


def test_pages_of_which_one_entry_tells_are_as_if_made_whole() -> None:
    pages = [page for alike in _ALIKE for page in alike]
    points = (np.array(pages)[:, None] * PAGE + np.arange(PAGE)).ravel()
    for rules in {analyzer.splitter.fold_rules for analyzer in ANALYZERS.values()}:
        table = FoldTable(rules)
        table.add_pages([0x4E, 0xD6])
        np.testing.assert_array_equal(table.entries[points], table._made(points))


# -- any text ----------------------------------------------------------------------------------

PIECES = [
    *"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x1f\x7f\x85\xa0\xad\ufeff",
    "the", "running", "RUNNING", "a", "I", "i", "ı", "İ", "I\u0307", "i\u0307", "ISI",
    "Σ", "ΟΔΟΣ", "ς", "ΐ", "ΐ".upper(), "ß", "ẞ", "ŉ", "ǰ", "ﬁ", "ﬀ", "K", "Å", "Ω", "DŽ",
    "é", "e\u0301", "É", "E\u0301", "\u0301", "\u0323\u0307", "\u0307\u0323", "\u0345", "\u05b0",
    "हिन्दी", "क\u094d\u200dष", "क\u094d\u200cष", "\u200d", "\u200c", "தமிழ்", "שָׁלוֹם", "عَرَبِيّ",
    "漢", "漢字", "カタカナ", "ｶﾞ", "ﾊﾟ", "か\u3099", "ー", "한국어", "\u1100\u1161\u11a8", "々",
    "ｆｕｌｌ", "ＷＩＤＥ", "ｅ\u0301", "５", "\uff9e", "℡", "㎒", "²", "½", "Ⅷ", "ⓐ", "ᴬ", "𝐀",
    "\ud800", "\udfff", "\udc00\ud800", "\U00010400", "\U00010428", "\U0001d400", "😀", "𠀀",
    "\U0002f800", "\U000e0100", "\U0010ffff", "_", "__", "x_1", "0", "42", " ", "  ", "\n", "-",
    "'", "\u2019", "\u02bc", ".", "..", ",", "+", "++", "#", "\uff0e", "\uff0b", "\uff03", "\uff07",
    "c", "C++", "c#", ".net", "3.5", "1,000", "U.S.", "don't", "John's ", "o's", "'s ", "\uff23",
    "กรุง", "เ", "\u0e48", "ที่", "ລາວ", "ខ្មែរ", "မြန်မာ", "๓", "٣", "३", "\xad", "\u2060", "\ufeff",
    "e-mail", "a-b-c", "-", "1-2", "x-1", "-\u0301", "\u2010", "x\u2011y", "\uff0d", "&", "AT&T",
    "\uff06", "\u2764\ufe0f", "\U0001f1eb\U0001f1f7", "docs.python.org", "3.11.4", "v2.0",
    "covid19", "o'brien", "a-the", "type 2", "16 GB", "ｅ-ｍａｉｌ", "1,000-mile", "wi-fi’s", "a.b",
    "\u05f3", "צ\u05f4ל", "ँ", "ज\u093c", "ae\u0301", "👩\u200d💻", "getHTTPName", "a_b",
]  # fmt: skip
RUNS = [
    r"\S+", r"\w+", r"\d+", r"(?u)\w\w+", r"(?u)\b\w+\b", r"\b\w\w+\b", r"\w{3,}", r"[^\s,]+",
    "[a-z0-9]+", "[A-Za-z][A-Za-z]+", "(?i)[a-z]{2,}", r"(?a)\w+", r"(?a)\b\w{2,}\b", r"[\w'-]+",
    r"[\]\[.]+", r"[^\W\d_]+", r"[\u4e00-\U0002ffff]+", r"[\w\-\.+#]+", "(?i)[^k\u017f\\s]+",
]  # fmt: skip
OTHERS = [
    r"\w+\b", r"\b\w+", r"\b[a-z]+\b", r"[^,]+", r"\W+", r"\s+", "[]a]+", "[[a]+", r"\w{4,}",
    r"\w*", r"\w{1,3}", r"\w+?", r"(\w+)", r"\w+|\d+", "[a-z][A-Z]+", r"(?m)\w+", r"\w", "a+", ".+",
    "auto", r"(?s:\w)+", r"\w\w+\w", r"[\w+", "",
]  # fmt: skip
pieces = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
# Without a codec, all code points come, lone surrogates included.
anything = st.text(st.characters(codec=None), max_size=12)
latin = st.text(st.characters(codec="latin-1"), max_size=12)
texts = st.lists(st.one_of(pieces, pieces, anything, latin, st.just("")), max_size=6)
# Letters, marks and digits of scripts that write marks, presentation forms, joiners, direction
# marks and stretched words, with the pieces among them, and what words end at.
MARKED = (0x591, 0x5F5), (0x600, 0x700), (0x900, 0xA00), (0xB82, 0xBFB), (0xD3E, 0xD58)
MARKED += (0xE30, 0xE5A), (0xEB1, 0xED0), (0x1000, 0x1050), (0x1780, 0x17EA), (0x1F00, 0x2000)
MARKED += (0x200A, 0x2012), (0xFB1D, 0xFB50), (0xFE70, 0xFF00), (0x300, 0x370), (0x391, 0x3CA)
marked = st.text([chr(point) for one in MARKED for point in range(*one)], min_size=1, max_size=6)
ends = st.sampled_from(
    [" ", " ", "\n", "\x1f", "\0", "\x7f", "\x85", "\xa0", "\u3002", ".", "", ""]
)
marked_texts = st.lists(
    st.lists(st.one_of(marked, marked, pieces, ends), max_size=12).map("".join), max_size=6
)


@analyzers
@given(first=texts, second=texts)
@example(first=[""], second=["", ""])
@example(first=["\x00\x01\x02\x03\x04\x05\x06\x07 red boat"], second=["red"])
@example(first=["\x00\x01\x02 red", "\x03\x04 red"], second=["\x00", "red\x01boat"])
@example(first=["漢"], second=["漢字漢字", "字"])
@example(first=["o's's a's's's x'll's"], second=["don't's"])
@example(first=["..\uff0ea-0 \u0323\u0307.1"], second=["\uff0d\u0307\u0323.net"])
@example(
    first=["é-a.b-c"], second=["\u0e01\u0e48e-mail", "か\u3099e-mail", "漢e-mail漢", "\u212a-a"]
)
def test_any_texts(analyzer: Analyzer, first: list[str], second: list[str]) -> None:
    assert_same(analyzer, first, second)


@analyzers
@given(first=marked_texts, second=marked_texts)
@example(first=["ΑΣ\nΑ ΑΣ.Α ΑΣ\x1fΑ ΑΣ\u200d.Α"], second=["ab\u200fcd ef", "\u200f", " \u200f "])
@example(first=["\u0651\u064e\n\u064e\u0651", "\u094d\u200d \u200d"], second=["\u0301 \u0301"])
def test_any_texts_of_scripts_that_write_marks(
    analyzer: Analyzer, first: list[str], second: list[str]
) -> None:
    assert_same(analyzer, first, second)


def test_many_pieces_that_python_folds_take_little_memory() -> None:
    pieces = 1 << 14
    encoder = Encoder(Analyzer())
    encoder.encode(["Σ"])
    tracemalloc.start()
    try:
        encoder.encode(["Σ " * pieces])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 600 * pieces  # a slice of an array for each would take 900 bytes


def test_python_folds_only_what_must_be_between_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """To fold whole texts took up to four times as long as all the rest."""
    folded, fold = list[str](), WordSplitter.fold

    def noted(self: WordSplitter, text: str) -> str:
        folded.append(text)
        return fold(self, text)

    monkeypatch.setattr(WordSplitter, "fold", noted)
    scanner = backends.current().scanner
    assert scanner is not None
    texts = [
        "",
        "red \u200fboat,\tsea",
        "cafe\u0301",
        "x\nΣ\x1fy é ",
        "می\u200cشود คู่ ",
        *[f"a \xad{number % 64}" for number in range(128)],
        "a",
        "\xad",
    ]
    given, scanned = Analyzer().splitter.new_text_scanner(scanner).scan(texts)
    assert bytes(given.data).decode() == "".join(texts)
    assert scanned.counts.tolist() == [0, 3, 1, 4, 3, *[2] * 128, 1, 0]
    assert folded == [
        "\n".join(["\u200fboat,", "cafe\u0301", "Σ", *(f"\xad{number}" for number in range(61))]),
        "\xad61\n\xad62\n\xad63\n\xad",
    ]


@given(first=texts, second=texts)
def test_in_the_papers_mode_the_terms_are_what_re_finds(
    first: list[str], second: list[str]
) -> None:
    encoder = Encoder(PAPER)
    for some in (first, second):
        expected = [re.findall(PAPER_PATTERN, text.lower()) for text in some]
        assert encoded(encoder, some) == expected


@given(pattern=st.sampled_from(RUNS), text=st.lists(st.one_of(pieces, anything)).map(" ".join))
def test_patterns_of_runs_are_known_by_their_class_and_least_length(
    pattern: str, text: str
) -> None:
    known = runs_of(pattern)
    assert known is not None
    one, least = known
    inside = [re.fullmatch(one, character) is not None for character in text]
    runs = groupby(zip(text, inside, strict=True), key=itemgetter(1))
    words = ["".join(character for character, _ in run) for is_run, run in runs if is_run]
    assert re.findall(pattern, text) == [word for word in words if len(word) >= least]


@pytest.mark.parametrize("pattern", OTHERS)
def test_other_patterns_are_left_to_re(pattern: str) -> None:
    assert runs_of(pattern) is None


def test_patterns_of_runs_are_scanned() -> None:
    assert [name for name, one in ANALYZERS.items() if not one.splitter.least] == [
        "clusters by the paper's pattern"
    ]


@pytest.mark.parametrize("name", first(8, ANALYZERS))
def test_each_piece_alone_and_beside_others(name: str) -> None:
    """Beside others with each analyzer, so that all together have nearly every pair."""
    assert_same(ANALYZERS[name], PIECES, ["ab" + one + "cd" for one in PIECES])
    others = [] if INTERPRETED else PIECES[list(ANALYZERS).index(name) :: 31]
    assert_same(ANALYZERS[name], [one + other for one in PIECES for other in others])


def has_many_like_it(point: int) -> bool:
    many = ("CJK UNIFIED IDEOGRAPH", "HANGUL SYLLABLE", "TANGUT IDEOGRAPH")
    return unicodedata.category(chr(point)) in {"Cn", "Co", "Cs"} or unicodedata.name(
        chr(point), ""
    ).startswith(many)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["english", "turkish", "NFD"]
    + [
        pytest.param(name, marks=pytest.mark.long)
        for name in ("paper", "NFKC", "between blanks", "a set", "ASCII words")
    ],
)
def test_every_code_point_within_a_word(name: str) -> None:
    """Of ideographs, of Hangul and of what is not assigned, each ninth will do."""
    every = (*range(0x32000), *range(0xE0000, 0xE0200))
    points = [point for point in every if point % 9 == 0 or not has_many_like_it(point)]
    for start in range(0, len(points), 1 << 15):
        words = [f"a{one}b {one}{one} Ab" for one in map(chr, points[start : start + (1 << 15)])]
        assert_same(
            ANALYZERS[name], [" ".join(words[n : n + 16]) for n in range(0, len(words), 16)]
        )


# -- width, size and number --------------------------------------------------------------------


# One test per analyzer: building the tables for its code points takes longer than using them.
@analyzers
def test_a_text_has_the_same_terms_beside_any_other_texts(analyzer: Analyzer) -> None:
    """Code points take 1, 2 or 4 bytes, as many as the widest of a chunk needs."""
    ordinary = ["The CATS of Iowa", "I IS", "na\xefve CAF\xc9", "\xdf\xb5\xff"]
    for other in ("", "\xe9", "ı", "漢", "\U0001f600", "\ud800"):
        assert_same(analyzer, ordinary, [*ordinary, other], [other, *ordinary])


@pytest.mark.further
def test_the_table_of_words_grows() -> None:
    words = [f"w{number:x}" for number in range(3_000 if INTERPRETED else 30_000)]
    chunks = [[" ".join(words[start : start + 3000])] for start in range(0, len(words), 2500)]
    chunks += [["x" * 100_000], ["y" * 40_000 + " " + "x" * 100_000], words[::-1]]
    assert_same(Analyzer(language=None), *chunks)


@pytest.mark.further
@pytest.mark.untraced
def test_a_run_of_ideographs_longer_than_the_table() -> None:
    run = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(15_000))
    more = 5_000 if INTERPRETED else 50_000
    assert_same(Analyzer(language=None), [run, run[::-1]], ["漢" * more + "字"])


def test_many_texts_among_them_many_empty_ones() -> None:
    assert_same(
        Analyzer(), [""] * 1000, [f"word{number % 50}" * (number % 2) for number in range(5000)]
    )
    assert_same(Analyzer(), [])


@pytest.mark.parametrize("name", ["english", "paper", "turkish", "NFKC"])
def test_the_chunks_of_a_build_do_not_change_the_index(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyzer = ANALYZERS[name]
    documents = [one * (1 + number % 5) for number, one in enumerate(PIECES)]
    documents += ["The CATS of Iowa é 漢字漢字 " * 80, "", "\x00\x01\x02\x03\x04\x05\x06\x07 cats"]
    with backends.use("numpy"):
        terms = [analyzer.terms(text) for text in documents]
    expected = BM25Index.from_texts(terms)
    for room in (1, 50, 1000, 1 << 20):
        monkeypatch.setattr("bm25rag.additions.CHUNK", room)
        index = BM25Index.from_texts(documents, analyzer=analyzer)
        assert index.vocabulary() == expected.vocabulary()
        assert index.to_scipy().toarray().tobytes() == expected.to_scipy().toarray().tobytes()


def test_lists_of_terms_among_texts_are_taken_as_they_are() -> None:
    index = BM25Index.from_texts(["The cats", ["The", "cats"], "ran"])
    assert index.vocabulary() == ["The", "cat", "cats", "ran"]


@pytest.mark.untraced
@pytest.mark.parametrize("analyzer", first(1, [Analyzer(language=None), Analyzer("turkish")]))
def test_words_of_any_length_at_any_place(analyzer: Analyzer) -> None:
    """Keys hold 16 bytes, and words are looked for in blocks of 4,096 bytes."""
    for letter in "aé漢" if INTERPRETED else "aIéя漢𐐀":
        words = [letter * (length - 1) + end for length in range(1, 36) for end in "xy"]
        assert_same(analyzer, [" ".join(words), *words, *words[::-1]])
        for length in (4096,) if INTERPRETED else (4079, 4080, 4095, 4096, 4097, 8192, 12_289):
            text = " " * (length % 17) + letter * length
            assert_same(analyzer, [text, "b" + text + "b", text + " " + text], [text])


@pytest.mark.untraced
@pytest.mark.parametrize("odd", first(1, ["e\u0301", "\xad", "\u0130", "\u2126", "\uff21", "𝐀"]))
def test_what_python_must_fold_is_seen_at_any_place(odd: str) -> None:
    """Characters are asked 32 bytes at once, of texts one after another."""
    texts = [before * place + odd + " x" for before in "aéя" for place in range(36)]
    short = [text[-place:] for place, text in enumerate(texts)]
    assert_same(Analyzer("german"), texts, short, ["яй" * 20, *texts[::7]])


@pytest.mark.parametrize("name", first(3, ["german", "french", "turkish", "greek", "russian"]))
def test_each_letter_of_two_bytes_within_words_of_a_question(name: str) -> None:
    """What letters are folded to is remembered one by one."""
    letters = [chr(point) for point in range(0x80, 0x800) if chr(point).isalnum()]
    words = [f"{letter}ab{letter}1" for letter in letters]
    words += [f"ab{one}{other}x" for one, other in pairwise(letters)]
    texts = [" ".join(words[first : first + 50]) for first in range(0, len(words), 50)]
    assert_same(Analyzer(name), texts[:3] if INTERPRETED else texts, texts[:2], texts[2::-1])


def test_words_that_begin_alike() -> None:
    stem = "abcdefghijklmnop"
    words = [stem[:length] + end for length in range(1, 17) for end in ("", "q", "qr", "_", "q1")]
    words += [stem + "x" * length + end for length in range(40) for end in "uvw"]
    assert_same(Analyzer(language=None), [" ".join(words), " ".join(words[::-1])], words)


def test_words_do_not_continue_in_the_next_text() -> None:
    texts = ["red", "boat", "", "é", "é", "漢", "漢字", "字", "r", "ed", "\ud800", "\x00", "a"]
    assert_same(Analyzer(), texts, texts[::-1], ["".join(texts)])


@pytest.mark.further
@pytest.mark.untraced
def test_runs_of_more_words_than_are_looked_up_at_once() -> None:
    """A run continues where the room for words was used up, inside a word or between two."""
    characters = range(5000 if INTERPRETED else 15_000)
    mixed = "".join(chr(0x4E00 + n % 977) + "éa"[n % 2] * (n % 4) for n in characters)
    assert_same(Analyzer(language=None), [mixed, "x" + mixed, mixed[1:]], [mixed * 2])


@pytest.mark.parametrize(
    "name",
    first(2, ["english", "NFKC", "not normalised", "paper's pattern, bigrams"])[
        : 1 if INTERPRETED else 4
    ],
)
def test_texts_of_many_bigrams(name: str) -> None:
    """In a chunk of 32 KiB that is mostly CJK, bigrams are sorted instead of looked up."""
    analyzer = ANALYZERS[name]
    chance = random.Random(3)
    texts = []
    for number in range(200):
        run = "".join(chr(chance.choice((0x4E00, 0x30A1, 0xAC00, 0xFF66, 0x20000)) + n % 50)
                      for n in chance.choices(range(500), k=number % 90))  # fmt: skip
        texts.append(run[:-1] + chance.choice(PIECES) + run + chance.choice(PIECES) + run[:1])
    assert sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) > 1 << 15
    more = 3000 if INTERPRETED else 12_000
    assert_same(analyzer, texts, [], ["", "漢" * more, "字", ""], ["漢字" * 6000 + " a漢", "red"])


@pytest.mark.skipif(INTERPRETED, reason="too long for interpreted kernels")
@pytest.mark.parametrize("letter", first(1, ["a", "é"]))
def test_a_word_of_ten_million_letters(letter: str) -> None:
    word = letter * 10_000_000
    tokens, counts = Encoder(Analyzer()).encode(["red", word, "boat"])
    assert counts.tolist() == [1, 1, 1]
    assert tokens.tolist() == [0, 1, 2]


def test_texts_of_stop_words_alone_are_numbered_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call for each text took three times as long: pages may have a million such headings."""
    sizes, number = [], CompiledBuildTerms.number

    def counted(self: CompiledBuildTerms, terms: Sequence[str]) -> UInt32:
        sizes.append(len(terms))
        return number(self, terms)

    monkeypatch.setattr(CompiledBuildTerms, "number", counted)
    texts = ["The", "the red boat", "this is it", "the", ""]
    assert encoded(Encoder(Analyzer()), texts) == [
        *(["the"], ["red", "boat"], ["this", "is", "it"], ["the"], [])
    ]
    assert sizes == [2, 5]


def test_tokens_of_a_callable_are_numbered_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """To join those of each text took as long as all else that is done with them."""
    sizes, number = [], CompiledBuildTerms.number

    def counted(self: CompiledBuildTerms, terms: Sequence[str]) -> UInt32:
        sizes.append(len(terms))
        return number(self, terms)

    monkeypatch.setattr(CompiledBuildTerms, "number", counted)
    encoder = Encoder(Analyzer(tokenizer=str.split))
    assert encoded(encoder, ["red fish", "", "a red boat"]) == [
        *(["red", "fish"], [], ["a", "red", "boat"])
    ]
    assert sizes == [5]


@given(st.lists(st.lists(st.text("ab\n\ud800é漢", max_size=20), max_size=5), max_size=6), st.data())
def test_tokens_of_a_callable_are_numbered_as_lists_of_terms_between_them(
    terms: list[list[str]], data: st.DataObject
) -> None:
    encoder = Encoder(Analyzer(tokenizer=lambda place: terms[int(place)]))
    given = data.draw(st.tuples(*(st.booleans() for _ in terms)))
    texts = [join_terms(terms[n]) if own else str(n) for n, own in enumerate(given)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.analysis.encoder._RETURNED", 4)
        assert encoded(encoder, texts) == terms


def test_nfc_never_changes_the_characters_that_are_not_normalised() -> None:
    """NFC changes marks, characters that compose with the one before, and those it replaces.

    Of ``MEETING`` it orders marks and composes characters, of which both must be there.
    """
    seconds = {*map(chr, [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)])}
    points = [*range(0xD800), *range(0xE000, 0x20000), *range(0x2F800, 0x2FA20)]
    composed = set()
    for point in points:
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) == 2 and parts[0][0] != "<":
            one, other = (chr(int(part, 16)) for part in parts)
            seconds.add(other)
            if unicodedata.normalize("NFC", one + other) == chr(point):
                composed.add((one, other))
    for letter in filter(scripts.is_surely_nfc, map(chr, range(0x110000))):
        assert letter not in seconds
        assert not unicodedata.combining(letter)
        assert unicodedata.normalize("NFC", letter) == letter
    for letter in filter(scripts.MEETING.search, map(chr, range(0x110000))):
        assert unicodedata.normalize("NFC", letter) == letter
    for one, other in composed:
        if not scripts.CHANGED_BY_NFC.search(other):
            assert scripts.MEETING.search(one)
            assert scripts.MEETING.search(other)


@pytest.mark.further
@pytest.mark.parametrize("language", ["hindi", "thai"])
def test_marks_side_by_side_are_ordered_and_composed(language: str) -> None:
    meeting = [*filter(scripts.MEETING.search, map(chr, range(0x3000)))]
    pairs = random.Random(1).sample([(one, other) for one in meeting for other in meeting], 2000)
    texts = [f"a{one}{other}\u0915{other}{one} {one}b{other} \u0e01{one}" for one, other in pairs]
    assert_same(Analyzer(language), texts)
    assert any(unicodedata.normalize("NFC", text) != text for text in texts)


def test_some_marks_side_by_side_are_known_to_be_in_order() -> None:
    entries = FoldTable(Analyzer("thai").splitter.fold_rules)
    entries.add_pages([0xE])
    kinds = entries.entries[0xE00:0xF00] >> np.uint64(bits.MEETING) & np.uint64(bits.ANY)
    firsts, seconds = ([*map(chr, 0xE00 + np.flatnonzero(kinds == one))] for one in (1, 2))
    assert "\u0e39" in firsts
    assert "\u0e49" in seconds
    for pair in map("".join, product(firsts, seconds)):
        assert unicodedata.normalize("NFC", pair) == pair
    marks = [*filter(scripts.MEETING.search, map(chr, range(0xE00, 0xF00)))]
    pairs = [f"\u0e01{one}{other}\u0e81" for one in marks for other in marks]
    assert_same(Analyzer("thai"), [*pairs, " ".join(pairs)])


def test_joiners_behind_any_mark_are_dropped_and_others_are_not() -> None:
    marks = [*filter(scripts.is_mark, map(chr, range(0xE0200)))]
    texts = [f"\u0915{mark}\u200d\u0915\u200c{mark}\u200c\u200d\u0915 x\u200cy" for mark in marks]
    for name in ("english", "thai", "NFKC", "not normalised", "runs whole"):
        analyzer = ANALYZERS[name]
        assert_same(analyzer, texts[:: 97 if INTERPRETED else 7 - 6 * (name == "english")])


# -- real texts --------------------------------------------------------------------------------

LANGUAGES = {
    "cmrc2018-zh": "chinese", "cranfield": "english", "scifact": "english",
    "xquad-de": "german", "xquad-en": "english", "xquad-es": "spanish",
    "xquad-ru": "russian", "xquad-zh": "chinese", "xquad-ar": "arabic",
    "xquad-th-half": "thai", "jaquad-ja-half": "japanese",
}  # fmt: skip


@pytest.mark.parametrize(("name", "language"), first(3, LANGUAGES.items()))
def test_documents_of_a_collection_at_once_and_one_by_one(name: str, language: str) -> None:
    with (collection(name) / "corpus.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in islice(file, 60)]
    documents = [f"{row.get('title', '')} {row['text']}" for row in rows]
    analyzer = Analyzer(language)
    assert_same(analyzer, documents)
    single = Encoder(analyzer)
    alone = [encoded(single, [text])[0] for text in documents[:20]]
    with backends.use("numpy"):
        assert alone == [analyzer.terms(text) for text in documents[:20]]


def test_separators_are_not_part_of_any_word() -> None:
    """The character that ends a text in a chunk must not be part of a word."""
    for separator in map(chr, range(8)):
        assert re.search(r"\w", separator) is None
        assert_same(Analyzer(), [f"red{separator}boat", f"{separator}red", f"boat{separator}"])

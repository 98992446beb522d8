"""Patterns, words and texts made to cost time or memory, or to collide."""

from __future__ import annotations

import itertools
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest

from bm25rag import Analyzer, BM25Index
from support.cases import first
from support.environment import INTERPRETED

pytestmark = pytest.mark.usefixtures("backend")


@pytest.mark.parametrize(
    "pattern",
    ["a{99999999999}", "(" * 2000 + ")" * 2000, "(?:" * 2000 + ")" * 2000, "(", "[", "*", "(a)(b)"],
)
def test_a_pattern_that_cannot_be_used_is_a_value_error(pattern: str) -> None:
    with pytest.raises(ValueError, match="token_pattern"):
        Analyzer(token_pattern=pattern)


@pytest.mark.parametrize(
    ("language", "letters"),
    first(
        3,
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
    ),
)
def test_a_word_of_a_megabyte_takes_no_time_in_any_language(language: str, letters: str) -> None:
    size = 20_000 if INTERPRETED else 1_000_000
    word = letters * (size // len(letters.encode()))
    start = time.process_time()
    index = BM25Index.from_texts([word], analyzer=Analyzer(language))
    assert [hit.id for hit in index.search(word)] == ["0"]
    # About 0.1 s; once it grew with the square of the length.
    assert time.process_time() - start < 20


def colliding_strings(length: int = 40) -> list[str]:
    """Return strings of a and b that share one CRC-32, at least 2 ** (length - 32) of them.

    CRC-32 is affine over bits, so the effect of flipping each letter can be found on its own,
    and Gaussian elimination finds the sets of letters whose flips cancel out.
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
    assert len(index.delete(present[:50] + absent)) == 50
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


@pytest.mark.parametrize(
    "piece", first(3, ["'", ".", "a'", "a.", "1,", "c+", "\u0e48", "a.b", "'s", "_", "กิ"])
)
def test_signs_without_end_take_no_time(piece: str) -> None:
    size = 2_000 if INTERPRETED else 100_000
    start = time.process_time()
    index = BM25Index.from_texts([piece * size, "red"])
    index.search(piece * size)
    assert time.process_time() - start < 20


@pytest.mark.parametrize("says_ascii", [False, True])
def test_a_class_of_texts_may_have_methods_of_its_own(says_ascii: bool) -> None:
    class Odd(str):
        __slots__ = ()

        def encode(self, *_: object) -> bytes:  # type: ignore[override]
            return b"\xff\xf0"

        def isascii(self) -> bool:
            return says_ascii

    for text in ("Wofür", "plain", "漢字 \ud800"):
        assert Analyzer().query_terms(Odd(text)) == Analyzer().query_terms(text)
        index = BM25Index.from_texts([Odd(text), "other"])
        assert index.search_batch([Odd(text), "other"]).ids() == [["0"], ["1"]]
        assert index.vocabulary() == BM25Index.from_texts([text, "other"]).vocabulary()

"""What remembers the terms of words is a ``dict`` that may forget."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag.analysis import Analyzer
from bm25rag.kernels import backend as backends
from bm25rag.kernels.memory import INTERPRETED
from bm25rag.kernels.term_lists import WordTerms

WORDS = st.text(st.sampled_from("ab\u00e9\u0439\u4e00\U0001f600\ud800\0"), max_size=5)
A, B = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
TERMS = st.one_of(WORDS, st.tuples(WORDS, WORDS), st.just(()))


@given(st.lists(st.one_of(st.just(None), st.dictionaries(WORDS, TERMS)), max_size=5))
def test_it_has_what_it_was_given_first_until_it_forgets(
    backend: str, given: list[dict[str, WordTerms] | None]
) -> None:
    known, expected = backends.current().known_words(), dict[str, WordTerms]()
    asked = {word for words in given for word in words or {}}
    for words in given:
        if words is None:
            known.clear()
            expected.clear()
        else:
            known.update(words)
            expected = words | expected
        for word in asked:
            found = known.get(word)
            if "\ud800" in word and backend != "numpy":  # it has no UTF-8
                assert found is None
            elif backend == "numpy":
                assert found is None or word in expected
            else:
                assert found == expected.get(word)


@pytest.mark.usefixtures("backend")
def test_words_that_differ_in_one_byte_are_never_mixed_up() -> None:
    known = backends.current().known_words()
    words = {"a" * size for size in range(40)}
    words |= {
        "a" * place + "b" + "a" * (size - place) for size in range(40) for place in range(size)
    }
    known.update({word: word + "!" for word in words})
    assert len(known) == len(words)
    assert {word: known.get(word) for word in words} == {word: word + "!" for word in words}
    assert not any(map(known.get, (word + "\0" for word in words)))


@pytest.mark.usefixtures("backend")
def test_words_of_any_number_and_length_are_remembered() -> None:
    known = backends.current().known_words()
    most = 2500 if INTERPRETED else 9000
    words = {f"w{number}": (f"t{number}",) * (number % 3) for number in range(most)}
    words |= {"\u0436" * size: "long" for size in range(0, 3000, 70 if INTERPRETED else 7)}
    known.update(words)
    assert len(known) == len(words)
    assert {word: known.get(word) for word in words} == words
    assert known.get("w9000") is None
    assert known.get("\u0436" * 3) is None


def test_words_that_are_chosen_to_meet_are_forgotten_and_never_mixed_up(backend: str) -> None:
    known = backends.current().known_words()
    chosen = list(islice((word for word in map(str, count()) if slot_of(word) == 77), 200))
    known.update({word: word + "!" for word in chosen})
    assert len(known) == (200 if backend == "numpy" else 64)
    assert {known.get(word) for word in chosen if known.get(word)} == {
        word + "!" for word in chosen[: len(known)]
    }
    words = [f"and{number}" for number in range(5000)]
    known.update({word: word + "!" for word in words})
    assert sum(known.get(word) is None for word in words) < 100
    assert all(known.get(word) in (None, word + "!") for word in [*chosen, *words])


def slot_of(word: str) -> int:
    """Return which of the first 1,024 slots the compiled backend looks at first: of few bytes."""
    short = word.encode()
    assert len(short) < 8
    mixed = (A ^ len(short) ^ int.from_bytes(short)) * B % (1 << 64)
    return ((mixed ^ mixed >> 32) * A % (1 << 64) >> 32) % 1024


@pytest.mark.skipif(INTERPRETED, reason="nothing is locked by interpreted kernels")
@pytest.mark.usefixtures("backend")
def test_threads_may_share_and_forget_it() -> None:
    known = backends.current().known_words()

    def use(first: int) -> None:
        for round_ in range(8):
            words = {
                f"w{first * round_ + number}": f"t{first * round_ + number}"
                for number in range(3000)
            }
            known.update(words)
            for word in words:
                assert known.get(word) in (None, f"t{word[1:]}")
            if round_ % 3 == first % 3:
                known.clear()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(use, number) for number in range(4)]:
            done.result()


def test_what_one_backend_remembers_another_does_without() -> None:
    analyzer, text = Analyzer(), "The old boats of e-mail, type 2"
    expected = analyzer.query_terms(text)
    for _ in range(2):
        for name in backends.available():
            with backends.use(name):
                assert analyzer.query_terms(text) == expected
                own = Analyzer()
                assert own.query_terms(text) == expected
            assert own.query_terms(text) == expected

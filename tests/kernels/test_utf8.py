"""Strings of every kind are written as UTF-8, and terms of every kind and length are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.kernels import backend as backends

# Python keeps one, two or four bytes a character; UTF-8 has another byte from each of these on.
EDGES = "a\x7f\x80\xff\u0100\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"


class Loud(str):
    """A string that says anything of itself."""

    def isascii(self) -> bool:
        return True

    def __len__(self) -> int:
        return 1


texts = st.text(st.sampled_from(EDGES + "\ud800\udfff") | st.characters(), max_size=80)


@given(st.lists(texts | texts.map(Loud), max_size=6))
def test_texts_are_encoded(strings: list[str]) -> None:
    scanner = backends.current().scanner
    if scanner is None:
        pytest.skip("this backend has no scanner")
    encoded = scanner.encode(strings)
    expected = [str.encode(text, "utf-8", "surrogatepass") for text in strings]
    assert bytes(encoded.data) == b"".join(expected)
    assert encoded.ends.tolist() == np.cumsum([len(one) for one in expected]).tolist()


@given(st.lists(texts | texts.map(Loud), max_size=6))
def test_terms_are_numbered_as_they_come(strings: list[str]) -> None:
    scanner = backends.current().scanner
    if scanner is None:
        pytest.skip("this backend has no scanner")
    table = scanner.new_words(2)
    for terms in (strings, strings[::-1], []):
        table, numbers = scanner.add_terms(terms, table)
        first = dict.fromkeys(map(str.__str__, strings))
        assert numbers.tolist() == [[*first].index(term) for term in map(str.__str__, terms)]


@pytest.mark.parametrize("wrong", [None, 1, b"red", ["red"]])
def test_other_things_than_strings_are_no_terms(wrong: object) -> None:
    scanner = backends.current().scanner
    if scanner is None:
        pytest.skip("this backend has no scanner")
    with pytest.raises(TypeError):
        scanner.add_terms(["red", wrong], scanner.new_words(2))  # type: ignore[list-item]


@pytest.mark.parametrize("length", [1, 63, 64, 65, 96, 97, 192, 193])
def test_terms_of_all_widths_are_found(length: int) -> None:
    terms = [letter * length for letter in EDGES + "\ud800"]
    index = BM25Index()
    index.add([[term, "common"] for term in terms], ids=[str(n) for n in range(len(terms))])
    for number, term in enumerate(terms):
        assert [hit.id for hit in index.search([term])] == [str(number)]
    assert index.search([terms[0] + "b", "\xe4" * (length + 1)]) == []

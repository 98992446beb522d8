"""Arguments as users of other libraries tend to pass them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import Analyzer, BM25Index

pytestmark = pytest.mark.usefixtures("backend")

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
    """A subclass of str."""

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
        assert [type(term) for term in one.vocabulary()] == [str, str]
        assert kind("x") in one
    assert index.delete([kind("x")]) == ["x"]


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


NO_TOKENS = ["Red", None, {"Red"}, ("Red", 1), ["Red", None], iter(["Red"])]


@pytest.mark.parametrize("wrong", NO_TOKENS)
def test_a_tokenizer_that_returns_no_list_of_strings_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^tokenizer must return a list of str, got"):
        Analyzer(tokenizer=lambda text: wrong).terms("Red")


@pytest.mark.parametrize("wrong", NO_TOKENS)
def test_what_it_returned_for_one_of_many_documents_is_named(wrong: Any) -> None:
    split = Analyzer(tokenizer=lambda text: wrong if text == "wrong" else text.split())
    got = re.escape(repr([*wrong] if isinstance(wrong, tuple) else wrong))
    index = BM25Index(split)
    with pytest.raises(TypeError, match=rf"^tokenizer must return a list of str, got {got}$"):
        index.add(["Red Fish", "", "wrong", "Fish"])
    assert len(index) == 0

"""Filters: the core's language, and callables on documents."""

from __future__ import annotations

import functools
import gc
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from conftest import ids
from langchain_bm25rag import BM25Retriever
from langchain_core.documents import Document
from pydantic import ValidationError

from bm25rag.errors import FilterError

QUERY = "cats birds"
NO_VERDICT = "^filter: expected a function that returns true or false, got one that returns a"


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({}, {"cats", "dogs", "cat", "bird"}),
        ({"lang": "de"}, {"cats"}),
        ({"lang": {"$ne": "de"}}, {"dogs", "cat", "bird"}),
        ({"year": {"$gte": 2021}}, {"dogs", "bird"}),
        ({"year": {"$exists": False}}, {"cats"}),
        ({"$or": [{"year": 2020}, {"lang": "de"}]}, {"cats", "cat"}),
        ({"$id": {"$in": ["cat", "bird"]}}, {"cat", "bird"}),
        ({"cat", "nobody"}, {"cat"}),
        (frozenset(), set()),
        (lambda document: "sat" in document.page_content, {"cat"}),
        (lambda document: document.id == "bird", {"bird"}),
        (lambda document: np.bool_(document.metadata.get("year", 0) > 2020), {"dogs", "bird"}),
        ({"$not": lambda document: "sat" in document.page_content}, {"cats", "dogs", "bird"}),
        ({"$and": [{"lang": "en"}, lambda document: document.id != "cat"]}, {"dogs", "bird"}),
        ({"$or": [{"dogs"}, {"$and": [lambda document: document.id == "cat"]}]}, {"dogs", "cat"}),
    ],
)
def test_a_filter_decides_who_may_be_found(
    retriever: BM25Retriever, filter: Any, expected: set[str]
) -> None:
    """Per call as in the constructor, and only matches are found."""
    assert set(ids(retriever.invoke(QUERY, filter=filter))) == expected
    constructed = BM25Retriever.from_index(retriever.index, filter=filter)
    assert set(ids(constructed.invoke(QUERY))) == expected


@pytest.mark.parametrize("filter", [{"lang": {"$in": ["de"]}}, {"cats"}])
def test_later_changes_of_what_was_given_as_filter_change_nothing(
    retriever: BM25Retriever, filter: Any
) -> None:
    """A dict that is later reused for another tenant changes nothing here."""
    german = BM25Retriever.from_index(retriever.index, filter=filter)
    if isinstance(filter, dict):
        filter["lang"]["$in"].append("en")
        filter.pop("lang")
    else:
        filter.add("dogs")
    assert ids(german.invoke("cats")) == ["cats"]


def test_a_filter_works_before_k(retriever: BM25Retriever) -> None:
    """Rejected documents take no place among the results; scores are those of the whole index."""
    retriever.score_key = "bm25_score"
    plain = {one.id: one.metadata["bm25_score"] for one in retriever.invoke(QUERY)}
    for filter in ({"lang": "en"}, lambda document: document.metadata.get("lang") == "en"):
        best = retriever.invoke(QUERY, k=2, filter=filter)
        assert len(best) == 2
        assert all(one.metadata["bm25_score"] == plain[one.id] for one in best)


def test_a_callable_sees_fresh_documents_at_every_search(retriever: BM25Retriever) -> None:
    """As they are stored; what it does to them stays with it."""
    seen: list[Document] = []

    def nosy(document: Document) -> bool:
        seen.append(document.model_copy(deep=True))
        document.metadata["touched"] = True
        return True

    first, second = (retriever.invoke(QUERY, filter=nosy) for _ in range(2))
    assert first == second == retriever.invoke(QUERY)
    assert seen == first * 2


def test_a_callable_is_asked_about_matches_that_pass_the_rest_until_there_are_enough(
    retriever: BM25Retriever,
) -> None:
    seen: list[str | None] = []

    def note(document: Document) -> bool:
        seen.append(document.id)
        return document.id != "cats"

    for keywords, asked in (
        ({"filter": note, "k": 1}, ["cats", "dogs", "cat"]),
        ({"filter": {"$and": [note, {"lang": "en"}]}}, ["dogs", "cat"]),
        ({"filter": {"$and": [note, {"lang": "fr"}]}}, []),
    ):
        seen.clear()
        assert len(retriever.invoke("cats", **keywords)) == min(len(asked), keywords.get("k", 4))
        assert seen[:2] == asked[:2]
        assert set(seen) <= set(asked)
    seen.clear()
    assert retriever.invoke("zebra", filter=note) == []
    assert seen == []


def test_a_callable_judges_the_documents_that_are_searched() -> None:
    """A write between judgement and search cannot bring a rejected text in."""
    retriever = BM25Retriever.from_texts(["a public cat", "a cat"], ids=["a", "b"])

    def public(document: Document) -> bool:
        retriever.add_documents([Document("a secret cat", id="a")])
        return "public" in document.page_content

    (result,) = retriever.invoke("cat", filter=public)
    assert result.page_content == "a public cat"


# --- async and generator functions ---------------------------------------------------------------


async def is_english(document: Document) -> bool:
    return document.metadata.get("lang") == "en"


async def generate(document: Document) -> Any:
    yield document


def decide(document: Document) -> Any:
    """Be a generator function, which returns something true as well."""
    yield False


class Decide:
    """A callable object with a generator for its ``__call__``."""

    def __call__(self, document: Document) -> Any:
        yield False


class Judge:
    """A callable object with an async ``__call__``, and an async method."""

    async def __call__(self, document: Document) -> bool:
        return False

    async def method(self, document: Document) -> bool:
        return False


class Later(Awaitable[bool]):
    def __await__(self) -> Any:
        yield False


NEVER_FALSE: dict[str, Callable[..., Any]] = {
    "function": is_english,
    "generator": generate,
    "partial": functools.partial(is_english),
    "object": Judge(),
    "method": Judge().method,
    "sync generator": decide,
    "partial of a sync generator": functools.partial(decide),
    "object with a sync generator": Decide(),
}
DISGUISED: dict[str, Callable[..., Any]] = {
    "lambda": lambda document: is_english(document),
    "lambda of a generator": lambda document: generate(document),
    "lambda of a sync generator": lambda document: decide(document),
    "partial of an object": functools.partial(Judge()),
    "lambda of any awaitable": lambda document: Later(),
}


@pytest.mark.parametrize("name", [*NEVER_FALSE, *DISGUISED])
@pytest.mark.parametrize(
    "wrap", [lambda f: f, lambda f: {"$not": f}, lambda f: {"$or": [set(), f]}]
)
def test_a_function_whose_result_is_always_true_is_refused(
    retriever: BM25Retriever, name: str, wrap: Callable[[Any], Any]
) -> None:
    """A coroutine or a generator is true, so every document would pass."""
    filter = wrap((NEVER_FALSE | DISGUISED)[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "coroutine was never awaited" too
        with pytest.raises(TypeError, match=NO_VERDICT):
            retriever.invoke(QUERY, filter=filter)
        gc.collect()


@pytest.mark.parametrize("name", NEVER_FALSE)
async def test_it_is_refused_everywhere(retriever: BM25Retriever, name: str) -> None:
    """In the constructor, before any document is there, and by async methods too."""
    for refused in ({"filter": NEVER_FALSE[name]}, {"filter": {"$not": NEVER_FALSE[name]}}):
        with pytest.raises(TypeError, match=NO_VERDICT):
            BM25Retriever(**refused)
        with pytest.raises(TypeError, match=NO_VERDICT):
            BM25Retriever().invoke(QUERY, **refused)
        with pytest.raises(TypeError, match=NO_VERDICT):
            await retriever.ainvoke(QUERY, **refused)


def test_a_callable_that_counts_as_false_is_asked_all_the_same(retriever: BM25Retriever) -> None:
    """As an object with a length of 0 does; it takes the document as well."""

    class Rules:
        def __len__(self) -> int:
            return 0

        def __call__(self, document: Document) -> bool:
            return document.id == "cat"

    assert ids(retriever.invoke(QUERY, filter=Rules())) == ["cat"]


# --- invalid filters ---------------------------------------------------------------


@pytest.mark.parametrize("filter", ["lang", 3, True, [{"lang": "en"}], ("cat",), b"x", {"cat", 1}])
def test_what_is_no_filter_is_a_type_error_that_names_it(
    retriever: BM25Retriever, filter: Any
) -> None:
    with pytest.raises(TypeError, match=r"^filter: "):
        retriever.invoke(QUERY, filter=filter)
    with pytest.raises(TypeError, match=r"^filter: "):
        BM25Retriever(filter=filter)


@pytest.mark.parametrize(
    ("filter", "place"),
    [
        ({"year": {"$gte": []}}, r"filter at year\.\$gte"),
        ({"year": {"$near": 1}}, r"filter at year\.\$near"),
        ({"$and": [{"a": 1}, {"$nor": []}]}, r"filter at \$and\[1\]\.\$nor"),
        ({"year": {"$eq": b"x"}}, r"filter at year"),
        ({"$not": "x"}, r"filter at \$not"),
    ],
)
def test_a_malformed_filter_points_at_the_place(
    retriever: BM25Retriever, filter: Any, place: str
) -> None:
    """The core's FilterError; in the constructor within pydantic's ValidationError."""
    with pytest.raises(FilterError, match=place):
        retriever.invoke(QUERY, filter=filter)
    with pytest.raises(ValidationError, match=place):
        BM25Retriever(filter=filter)


def test_a_filter_too_deep_is_an_error_and_no_crash(retriever: BM25Retriever) -> None:
    """Ten thousand levels, with a callable at the bottom."""
    filter: Any = lambda document: True  # noqa: E731 - it is the seed of the loop
    for _ in range(10_000):
        filter = {"$not": filter}
    with pytest.raises(FilterError):
        retriever.invoke(QUERY, filter=filter)

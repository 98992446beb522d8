"""What annotations say, which `make types` checks here: they take what the documentation does."""

from __future__ import annotations

from types import MappingProxyType
from typing import TypedDict, assert_type

from bm25rag import BM25Index, Query


class _Page(TypedDict):
    year: int


def test_metadata_may_be_any_mapping() -> None:
    pages: list[_Page] = [{"year": 2021}]
    index = BM25Index.from_texts(["A cat."], metadata=pages)
    index.add(["A dog."], metadata=[MappingProxyType({"year": 2022})])
    index.update_metadata(["0"], pages)
    assert index.ids({"year": 2021}) == ["0"]


def test_what_expands_a_query_is_one_and_what_expands_terms_are_terms() -> None:
    index = BM25Index.from_texts(["A cat."])
    assert_type(index.expand("cats"), dict[str, float])
    assert_type(index.expand({"cat": 2.0}), dict[str, float])
    assert_type(index.expand(Query("cats")), Query)
    assert index.expand(Query("cats")).text == index.expand("cats")

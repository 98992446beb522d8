"""What annotations say, which `make types` checks here: they take what the documentation does."""

from __future__ import annotations

from types import MappingProxyType
from typing import TypedDict, assert_type

import numpy as np

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


def test_a_sparse_vector_may_be_a_dict_of_indices_and_values_as_it_is_written() -> None:
    index = BM25Index.from_texts(["A cat."], vectors=[{"indices": [7, 12], "values": [0.5, 1.5]}])
    arrays = {"indices": np.array([7]), "values": np.array([2.0])}
    assert index.vectors.search({"indices": [7], "values": [2.0]})[0].score == 1.0
    assert index.vectors.search({"indices": arrays["indices"], "values": arrays["values"]})
    assert index.vectors.search({"cat": 1.0}) == index.vectors.search({3: 1.0}) == []

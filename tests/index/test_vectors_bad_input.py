"""Wrong vectors are refused with the element's name, and nothing is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

from bm25rag import BM25Index, Document
from bm25rag.errors import FilterError


class Indexed(NamedTuple):
    """A vector as frameworks have it."""

    indices: Any
    values: Any


class Methods:
    """A vector as torch has it: its parts are methods."""

    def indices(self) -> Any:
        """Return the numbers."""

    def values(self) -> Any:
        """Return the weights."""


class HalfMethods:
    """The same, but for the numbers."""

    indices = (1,)

    def values(self) -> Any:
        """Return the weights."""


class Cube:
    """A sparse array of three axes, which old SciPy does not have."""

    ndim = 3

    def tocsr(self) -> None:
        raise ValueError


UNKNOWN = "must map terms to weights, or have indices and values, got"
WEIGHT = r"must be a number from -1e\+30 to 1e\+30, got"
TERMS = "must have terms that are strings or integers, got"
TWICE = "has the term '1' twice"
# Vectors, their errors, and what the messages say after the name of the vector.
WRONG: list[tuple[Any, type[Exception], str]] = [
    *((bad, TypeError, f" {UNKNOWN}")
      for bad in (3, 1.5, True, "a", b"a", [1, 2], [("a", 1.0)], {1, 2}, np.ones(2),
                  np.ones((2, 2)), Methods(), object)),
    *(({"a": bad}, TypeError, rf"\['a'\] {WEIGHT}")
      for bad in (True, np.True_, "1", None, 1j, np.ones(1), [1.0])),
    *(({"b": 1.0, "a": bad}, ValueError, rf"\['a'\] {WEIGHT}")
      for bad in (math.nan, math.inf, -math.inf, 1.0000001e30, -1e31, np.float32(np.nan),
                  np.float16(np.inf), 10**400)),
    ({"a": 10**5000}, ValueError, r"\['a'\] .*an integer of more digits than Python writes"),
    *(({bad: 1.0}, TypeError, f" {TERMS}")
      for bad in (True, np.True_, 1.0, np.float64(1), None, (1,), b"a")),
    *(({1: 1.0, bad: 1.0}, ValueError, " must have numbers of terms >= 0, got -")
      for bad in (-1, np.int8(-3), -(10**20))),
    *(({bad: 1.0}, ValueError, " has a term of more digits than Python writes; give it as a str")
      for bad in (10**5000, -(10**5000))),
    ({"1": 1.0, 1: 2.0}, ValueError, f" {TWICE}"),
    (Indexed([1, 2, 1], [1.0, 2.0, 3.0]), ValueError, f" {TWICE}"),
    (Indexed(np.array([1, 1]), np.ones(2)), ValueError, f" {TWICE}"),
    (Indexed([1, 2], [1.0]), ValueError, " has 2 indices and 1 values"),
    (Indexed([], [1.0]), ValueError, " has 0 indices and 1 values"),
    *((Indexed(bad, [1.0]), TypeError, r"\.indices must be an iterable of terms or their numbers")
      for bad in ("a", b"a", None, 1, np.array(1), {1: 2.0})),
    *((Indexed([1], bad), TypeError, r"\.values must be an iterable of weights")
      for bad in ("a", b"a", None, 1.0, np.array(1.0), {1: 2.0})),
    (HalfMethods(), TypeError, r"\.values must be an iterable of weights, got a method"),
    (Indexed(np.ones((1, 2), int), np.ones((1, 2))), TypeError, f" {TERMS}"),
    (Indexed(np.array([1.0]), np.ones(1)), TypeError, f" {TERMS}"),
    (Indexed(np.array([-1]), np.ones(1)), ValueError, " must have numbers of terms >= 0, got -1"),
    (Indexed([1], np.array([True])), TypeError, rf"\['1'\] {WEIGHT}"),
    (Indexed([1], np.array([np.inf], np.float16)), ValueError, rf"\['1'\] {WEIGHT}"),
    (sparse.csr_array(np.ones((2, 3))), ValueError, " must have one row, got 2"),
    (sparse.csr_array((0, 3)), ValueError, " must have one row, got 0"),
    (Cube(), ValueError, " must be a SciPy array of rows, got one of 3 axes"),
    (sparse.csr_array(np.array([[0, np.nan]])), ValueError, rf"\[0\]\['1'\] {WEIGHT}"),
    (sparse.csr_array(np.array([[0, 1e31]])), ValueError, rf"\[0\]\['1'\] {WEIGHT}"),
    (sparse.csr_array(np.array([[0, 1j]])), TypeError, rf"\[0\]\['1'\] {WEIGHT}"),
    (sparse.csr_matrix(np.array([[False, True]])), TypeError, rf"\[0\]\['1'\] {WEIGHT}"),
]  # fmt: skip


@pytest.fixture
def index() -> BM25Index:
    return BM25Index.from_texts(["red", "red", "tea"], vectors=[{"a": 1.0}, {1: 2.0}, None])


def refuses(index: BM25Index, error: type[Exception], words: str, call: Callable[[], Any]) -> None:
    with pytest.raises(error, match=words) as caught:
        call()
    assert caught.type in (error, FilterError)
    assert index.ids() == ["0", "1", "2"]
    assert index.vectors.get(index.ids()) == [{"a": 1.0}, {"1": 2.0}, {}]
    assert [hit.id for hit in index.vectors.search({1: 1.0})] == ["1"]
    assert index.add(["more"]) == ["3"]


@pytest.mark.parametrize(("bad", "error", "words"), WRONG)
def test_a_wrong_vector_is_named_and_nothing_is_written(
    index: BM25Index, bad: Any, error: type[Exception], words: str, tmp_path: Path
) -> None:
    each: list[Any] = [{"a": 1.0}, None, bad]
    records = [Document(str(n), "x", vector=vector) for n, vector in enumerate(each)]
    for call in (
        lambda: index.add(["x", "y", "z"], vectors=each),
        lambda: index.add(iter(["x", "y", "z"]), vectors=iter(each)),
    ):
        with pytest.raises(error, match=r"^vectors\[2\]" + words):
            call()
    with pytest.raises(error, match=r"^documents\[2\]\.vector" + words):
        index.add_documents(records, on_duplicate="replace")
    with pytest.raises(error, match=r"^documents\[2\]\.vector" + words):
        BM25Index.build(iter(records), tmp_path / "it")
    for ask in (
        index.vectors.search,
        index.vectors.scores,
        lambda one: index.vectors.explain(one, "0"),
        lambda one: index.search_hybrid("red", one),
    ):
        with pytest.raises(error, match="^vector" + words):
            ask(bad)
    with pytest.raises(error, match=r"^vectors\[1\]" + words):
        index.vectors.search_batch([{"a": 1.0}, bad])
    refuses(index, error, r"^vectors\[0\]" + words, lambda: index.add(["x"], vectors=[bad]))


def test_a_question_must_be_a_vector(index: BM25Index) -> None:
    refuses(index, TypeError, rf"^vector {UNKNOWN} None", lambda: index.vectors.search(None))
    with pytest.raises(TypeError, match=r"^vectors\[1\] must be a vector, got None"):
        index.vectors.search_batch([{}, None])


@pytest.mark.parametrize(
    "bad", ["ab", b"ab", 3, 1.5, True, ..., Methods()], ids=lambda bad: type(bad).__name__
)
def test_vectors_that_are_no_iterable(index: BM25Index, bad: Any) -> None:
    words = "^vectors must be an iterable of vectors, got "
    with pytest.raises(TypeError, match=words):
        index.vectors.search_batch(bad)
    refuses(index, TypeError, words, lambda: index.add(["x", "y"], vectors=bad))


def test_one_vector_in_place_of_a_list_is_told_apart(index: BM25Index) -> None:
    words = "^vectors must be .* got dict; put one vector into a list"
    with pytest.raises(TypeError, match=words):
        index.vectors.search_batch({"a": 1.0})
    refuses(index, TypeError, words, lambda: index.add(["x"], vectors={"a": 1.0}))


def test_a_dense_matrix_is_no_vectors(index: BM25Index) -> None:
    for dense in (np.ones((2, 3)), np.ones((2, 3)).tolist(), np.ones((2, 3)).view(np.matrix)):
        with pytest.raises(TypeError, match=rf"^vectors\[0\] {UNKNOWN}"):
            index.vectors.search_batch(dense)
        with pytest.raises(TypeError, match=rf"^vectors\[0\] {UNKNOWN}"):
            index.add(["x", "y"], vectors=dense)
    refuses(index, TypeError, "vectors", lambda: index.add(["x"], vectors=np.ones((1, 1))))


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("form", [list, tuple, iter, "csr"], ids=str)
def test_a_vector_for_each_text(index: BM25Index, count: int, form: Any) -> None:
    each = sparse.csr_array(np.ones((count, 2))) if form == "csr" else form([{"a": 1.0}] * count)
    got = "more than 2" if count == 3 else f"only {count}"
    words = f"^vectors must have one element for each text, got {got}"
    refuses(index, ValueError, words, lambda: index.add(["x", "y"], vectors=each))


def test_vectors_for_no_texts_are_too_many(index: BM25Index) -> None:
    assert index.add([], vectors=[]) == []
    words = "got more than 0"
    refuses(index, ValueError, words, lambda: index.add([], vectors=[{}]))


def test_an_iterable_that_fails_midway_adds_nothing(index: BM25Index) -> None:
    def failing() -> Iterator[dict[str, float]]:
        yield {"a": 1.0}
        message = "the encoder went away"
        raise OSError(message)

    refuses(index, OSError, "encoder went away",
            lambda: index.add(["x", "y"], vectors=failing()))  # fmt: skip


def test_columns_that_no_matrix_has_are_refused(index: BM25Index) -> None:
    matrix = sparse.csr_array(np.ones((1, 2)))
    matrix.indices = np.array([-1, 1], np.int32)
    refuses(index, ValueError, "^vectors must have columns >= 0, got -1",
            lambda: index.add(["x"], vectors=matrix))  # fmt: skip


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"k": -1}, ValueError, r"\bk\b"), ({"k": 1.0}, TypeError, r"\bk\b"),
        ({"k": True}, TypeError, r"\bk\b"), ({"filter": {"n": {"$bad": 1}}}, FilterError, "filter"),
        ({"filter": 3}, TypeError, "filter"), ({"min_score": math.nan}, ValueError, "min_score"),
        ({"min_score": "1"}, TypeError, "min_score"), ({"threads": 0}, ValueError, "threads"),
        ({"threads": 1.5}, TypeError, "threads"),
    ],
)  # fmt: skip
def test_other_arguments_of_a_search(
    index: BM25Index, given: dict[str, Any], error: type[Exception], words: str
) -> None:
    if "threads" not in given:
        with pytest.raises(error, match=words):
            index.vectors.search({"a": 1.0}, **given)
    refuses(index, error, words, lambda: index.vectors.search_batch([{"a": 1.0}], **given))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"k": -1}, ValueError, r"\bk\b"), ({"fetch_k": -1}, ValueError, "fetch_k"),
        ({"fetch_k": 1.5}, TypeError, "fetch_k"), ({"method": "sum"}, ValueError, "method"),
        ({"weights": [1.0]}, ValueError, "weights"), ({"weights": [0, 0]}, ValueError, "weights"),
        ({"weights": [1, -1]}, ValueError, "weights"), ({"weights": "ab"}, TypeError, "weights"),
        ({"rank_constant": -1}, ValueError, "rank_constant"), ({"query": 3}, TypeError, "query"),
        ({"filter": {"$and": 3}}, FilterError, "filter"),
    ],
)  # fmt: skip
def test_other_arguments_of_a_fused_search(
    index: BM25Index, given: dict[str, Any], error: type[Exception], words: str
) -> None:
    arguments: dict[str, Any] = {"query": "red", "vector": {"a": 1.0}} | given
    refuses(index, error, words, lambda: index.search_hybrid(**arguments))


def test_ids_to_read_vectors_of(index: BM25Index) -> None:
    for bad in ("0", 0, [0.0], None):
        with pytest.raises(TypeError, match="ids"):
            index.vectors.get(bad)
    with pytest.raises(TypeError, match=r"\bid\b"):
        index.vectors.explain({"a": 1.0}, 0.0)


def test_what_is_odd_but_right_is_kept() -> None:
    each: list[Any] = [
        {"": 1.0, "\ud800": 2.0, "é": 3, "a b": 4.0, "\x00": 5.0},
        {10**30: 1.0, 2**64: 2.0, 0: 3.0, "00": 4.0},
        Indexed(np.array(["x", "y"]), np.array([1, 2], np.int8)),
        Indexed((np.uint64(2**64 - 1),), (np.float16(0.1),)),
        {np.str_("z"): np.float64(1e30), "tiny": 1e-46, "zero": -0.0, "low": -1e30},
        {},
    ]
    index = BM25Index.from_texts(["x"] * len(each), vectors=each)
    assert index.vectors.get(index.ids()) == [
        {"": 1.0, "\ud800": 2.0, "é": 3.0, "a b": 4.0, "\x00": 5.0},
        {str(10**30): 1.0, str(2**64): 2.0, "0": 3.0, "00": 4.0},
        {"x": 1.0, "y": 2.0},
        {str(2**64 - 1): float(np.float16(0.1))},
        {"z": float(np.float32(1e30)), "low": -float(np.float32(1e30))},
        {},
    ]
    assert [hit.id for hit in index.vectors.search({"\ud800": 1, "zero": 1, 2**64: 1})] == [
        "0",
        "1",
    ]


def test_what_an_index_has_can_be_added_again() -> None:
    """The largest weight is rounded up to float32, beyond 1e30."""
    index = BM25Index.from_texts(["x", "y"], vectors=[{"a": 1e30, "b": 1.0}, {"a": -1e30}])
    stored = index.vectors.get(index.ids())
    again = BM25Index.from_texts(["x", "y"], vectors=stored)
    for one in (again, index.reanalyze()):
        assert one.vectors.get(one.ids()) == stored
    assert [hit.id for hit in index.vectors.search(stored[0])] == ["0", "1"]

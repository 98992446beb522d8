"""Bounds of strips decide where vectors are looked at, and change no bit of what is found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.kernels import backend
from bm25rag.kernels.records import SegmentArrays, StripBounds
from support.environment import INTERPRETED

Vectors: TypeAlias = list[dict[str, float]]
Generator: TypeAlias = np.random.Generator

_SIZE = 160 if INTERPRETED else 500
_TERMS = 40
CONSTANTS = {
    "bm25rag.search.ranking.WINDOW": 64,
    "bm25rag.search.ranking.COARSE": 0,
    "bm25rag.search.ranking.FILTERED_FIRST": 1 << 60,
    "bm25rag.segments.doc_blocks.DOC_BLOCK": 128,
    "bm25rag.segments.strip_rows.STRIPS_FROM": 0,
    "bm25rag.segments.postings.STRIP_COST": 0,
    "bm25rag.segments.postings.STRIPS_WORTH": 0,
    "bm25rag.segments.strip_rows.LEAST_IN_STRIP": 0.0,
}


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, backend.use(backend.chosen()):
        for name, value in CONSTANTS.items():
            patch.setattr(name, value)
        yield


def one_decimal(generator: Generator, count: int) -> Any:
    return generator.integers(1, 30, count) / 10


def equal(generator: Generator, count: int) -> Any:
    return np.ones(count)


def many_sizes(generator: Generator, count: int) -> Any:
    return 10.0 ** generator.integers(-30, 30, count)


def huge(generator: Generator, count: int) -> Any:
    return generator.choice([9.9e29, 9e29, 1.0], count)


def tiny(generator: Generator, count: int) -> Any:
    return generator.choice([1.2e-38, 3e-38, 1e-37], count)


def denormal(generator: Generator, count: int) -> Any:
    return generator.choice([1e-45, 1e-40, 1.0], count)


def signed(generator: Generator, count: int) -> Any:
    return generator.normal(0, 1, count)


def any_float(generator: Generator, count: int) -> Any:
    return generator.gamma(1, 1, count) + 0.01


KINDS = [one_decimal, equal, many_sizes, huge, tiny, denormal, signed, any_float]


def draw(
    generator: Generator, weights: Callable[[Generator, int], Any], count: int, entries: int
) -> Vectors:
    """Draw vectors of topics, which come in runs; some of none."""
    vectors: Vectors = []
    for number in range(count):
        topic = number // 24 * 7 % _TERMS
        terms = (topic + generator.integers(0, 8, entries)) % _TERMS
        common = np.minimum(generator.zipf(1.4, entries), _TERMS) - 1
        chosen = np.where(generator.random(entries) < 0.5, terms, common)
        each = weights(generator, entries).astype(np.float32).tolist()
        vectors.append(dict(zip(map(str, chosen.tolist()), each, strict=True)))
        if number % 50 == 9:
            vectors[-1] = {}
    return vectors


def dot(question: dict[str, float], vector: dict[str, float]) -> float:
    total = 0.0
    for term, weight in question.items():
        if term in vector:
            total += weight * vector[term]
    return total


def expected(
    vectors: Vectors, question: dict[str, float], k: int, accepted: Collection[int]
) -> list[tuple[str, str]]:
    scored = [
        (-dot(question, vectors[number]), number)
        for number in accepted
        if not vectors[number].keys().isdisjoint(question)
    ]
    return [(str(number), (-score).hex()) for score, number in sorted(scored)[:k]]


def found(index: BM25Index, question: dict[str, float], k: int, **settings: Any) -> Any:
    return [(hit.id, hit.score.hex()) for hit in index.vectors.search(question, k, **settings)]


def bounds_of(index: BM25Index) -> list[StripBounds | None]:
    return [view.segment.postings.strips for view in index.vectors._snapshot.views]


def indexed(vectors: Vectors) -> BM25Index:
    index = BM25Index()
    metadata = [{"n": number} for number in range(len(vectors))]
    index.add([[]] * len(vectors), metadata=metadata, vectors=vectors)
    return index


def learn(index: BM25Index) -> None:
    """Have all rows made: a search makes few of them, so that it does not take much longer."""
    for _ in range(_TERMS):
        index.vectors.search({str(term): 1.0 for term in range(_TERMS)}, k=1)


@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize(("block", "cost"), [(7, 0), (128, 20), (1024, 0)])
def test_searches_agree_with_plain_sums(
    weights: Callable[[Generator, int], Any], block: int, cost: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", block)
    monkeypatch.setattr("bm25rag.segments.postings.STRIP_COST", cost)
    generator = np.random.default_rng(block)
    vectors = draw(generator, weights, _SIZE, 9)
    index = indexed(vectors)
    gone = set(range(3, _SIZE, 5))
    questions = draw(generator, one_decimal, 8, 7) + draw(generator, weights, 4, 12)
    questions += [{"1": 1.0}, {"0": 1e-30, "3": 1e30}, {"0": 1.0, "none": 2.0}, {"none": 1.0}, {}]
    filters: list[tuple[Any, set[int]]] = [
        (None, set(range(_SIZE))),
        ({"n": {"$lt": _SIZE // 3}}, set(range(_SIZE // 3))),
        ({str(n) for n in range(0, _SIZE, 3)}, set(range(0, _SIZE, 3))),
    ]
    deletions: list[set[int]] = [set(), gone]
    for deleted in deletions:
        if deleted:
            index.delete([str(number) for number in deleted])
        learn(index)
        for question in questions:
            for given_filter, accepted in filters:
                for k in (1, 10, 2 * _SIZE):
                    matches = expected(vectors, question, k, accepted - deleted)
                    assert found(index, question, k, filter=given_filter) == matches
            floor = dot(question, vectors[20])
            above = [
                match
                for match in expected(vectors, question, 10, set(range(_SIZE)) - deleted)
                if float.fromhex(match[1]) >= floor
            ]
            assert found(index, question, 10, min_score=floor) == above
            assert found(index, question, 3, offset=4) == found(index, question, 7)[4:]
        batch = index.vectors.search_batch(questions, k=10, threads=2).hits()
        assert [[(hit.id, hit.score.hex()) for hit in hits] for hits in batch] == [
            found(index, question, 10) for question in questions
        ]
    if weights not in (signed, denormal) and backend.current().name == "compiled":
        (bounds,) = bounds_of(index)
        assert bounds is not None
        assert bounds.rows


def test_rows_are_at_least_the_weights_in_strips() -> None:
    if backend.current().name == "numpy":
        pytest.skip("NumPy makes no bounds")
    vectors = draw(np.random.default_rng(3), any_float, _SIZE, 9)
    index = indexed(vectors)
    learn(index)
    (bounds,) = bounds_of(index)
    assert bounds is not None
    view = index.vectors._snapshot.views[0]
    most = view.segment.postings.bounds[1]
    for term in range(_TERMS):
        starts = view.segment.postings.find(str(term).encode())
        levels = np.zeros(bounds.cells)
        for number, vector in enumerate(vectors):
            if str(term) in vector:
                block, place = divmod(number, 128)
                strip = block * bounds.in_block + place // 32
                levels[strip] = max(levels[strip], vector[str(term)] / most * 253)
        row = bounds.rows[int(starts[0])] if levels.any() else None
        if row is not None:
            kept = bounds.levels[row * bounds.cells :][: bounds.cells]
            assert (kept >= levels).all()
            assert (kept <= levels * 255 / 253 + 1).all()
            assert ((kept == 0) == (levels == 0)).all()


def test_strips_whose_rows_say_that_they_hold_nothing_are_not_looked_at() -> None:
    if backend.current().name == "numpy":
        pytest.skip("NumPy makes no bounds")
    vectors = draw(np.random.default_rng(4), any_float, _SIZE, 9)
    index = indexed(vectors)
    learn(index)
    (bounds,) = bounds_of(index)
    assert bounds is not None
    question = {str(term): 1.0 for term in range(8)}
    right = found(index, question, 3)
    assert right == expected(vectors, question, 3, range(_SIZE))
    strip = int(right[0][0]) % 128 // 32 + int(right[0][0]) // 128 * bounds.in_block
    bounds.levels[strip :: bounds.cells] = 0
    assert found(index, question, 3)[0] != right[0]


def test_terms_without_room_for_rows_are_walked() -> None:
    vectors = draw(np.random.default_rng(6), any_float, _SIZE, 9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.kernels.records._POSTING_BYTES", 0)
        index = indexed(vectors)
        learn(index)
        (bounds,) = bounds_of(index)
        assert bounds is not None
        assert len(bounds.rows) <= 1
        question = {str(term): 1.0 for term in range(8)}
        assert found(index, question, 3) == expected(vectors, question, 3, range(_SIZE))


def test_what_is_added_deleted_and_merged_keeps_the_bounds_of_the_rest() -> None:
    generator = np.random.default_rng(5)
    vectors = draw(generator, one_decimal, _SIZE, 9)
    index = indexed(vectors)
    question = {"0": 1.0, "2": 0.5, "7": 2.0, "8": 1.0}
    learn(index)
    (before,) = bounds_of(index)
    more = draw(generator, one_decimal, 30, 9)
    index.add([[]] * 30, vectors=more)
    assert bounds_of(index)[0] is before
    vectors += more
    all_ = set(range(len(vectors)))
    assert found(index, question, 10) == expected(vectors, question, 10, all_)
    best = {int(id) for id, _ in expected(vectors, question, 5, all_)}
    index.delete(list(map(str, best)))
    assert found(index, question, 10) == expected(vectors, question, 10, all_ - best)
    index.compact()
    assert found(index, question, 10) == expected(vectors, question, 10, all_ - best)


def test_vectors_with_negative_weights_and_texts_have_no_bounds() -> None:
    index = indexed(draw(np.random.default_rng(1), signed, _SIZE, 9))
    assert bounds_of(index) == [None]
    assert index._snapshot.views[0].segment.postings.strips is None


def test_bounds_that_do_not_fit_the_postings_are_refused() -> None:
    documents, codes = np.array([0, 1], np.uint16), np.zeros(2, np.uint16)
    arrays = documents, codes, np.ones(1, np.float32)
    SegmentArrays(*arrays, 2, 65_536, None, StripBounds(2, 65_536, 2, 400, 0))
    for size, block_size, postings in ((3, 65_536, 2), (2, 128, 2), (2, 65_536, 3)):
        strips = StripBounds(size, block_size, postings, 400, 0)
        with pytest.raises(ValueError, match="strips of other postings"):
            SegmentArrays(*arrays, 2, 65_536, None, strips)


def test_without_memory_for_rows_all_postings_are_walked() -> None:
    def fail(*sizes: int) -> StripBounds:
        raise MemoryError

    vectors = draw(np.random.default_rng(7), any_float, _SIZE, 9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.segments.postings.StripBounds", fail)
        index = indexed(vectors)
        question = {str(term): 1.0 for term in range(8)}
        assert found(index, question, 3) == expected(vectors, question, 3, range(_SIZE))
        assert bounds_of(index) == [None]


def test_threads_that_make_rows_at_the_same_time_find_the_same() -> None:
    vectors = draw(np.random.default_rng(8), any_float, _SIZE, 9)
    questions = draw(np.random.default_rng(9), one_decimal, 60, 7)
    right = [expected(vectors, question, 5, range(_SIZE)) for question in questions]
    index = indexed(vectors)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(found, index, question, 5) for question in questions * 3]
        assert [one.result() for one in asked] == right * 3


positive = st.floats(2.0**-99, 2.0**99) | st.sampled_from([0.5, 1.0, 1.5])
terms = st.sampled_from("abcdefgh")


@given(
    vectors=st.lists(st.dictionaries(terms, positive, max_size=6), min_size=1, max_size=90),
    question=st.dictionaries(terms, positive, max_size=8),
    k=st.integers(1, 9),
    repeats=st.integers(1, 4),
)
def test_any_positive_vectors_are_found_as_by_plain_sums(
    vectors: Vectors, question: dict[str, float], k: int, repeats: int
) -> None:
    rounded = [{term: float(np.float32(w)) for term, w in one.items()} for one in vectors]
    index = indexed(rounded * repeats)
    given = rounded * repeats
    right = expected(given, question, k, range(len(given)))
    for _ in range(len(question) + 1):  # each makes some rows
        assert found(index, question, k) == right

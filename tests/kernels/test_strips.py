"""Bounds of strips decide where vectors are looked at, and change no bit of what is found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
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

_SIZE = 160 if INTERPRETED else 900
_TERMS = 40
CONSTANTS = {
    "bm25rag.search.ranking.WINDOW": 64,
    "bm25rag.search.ranking.STRIPS": 0,
    "bm25rag.search.ranking.FILTERED_FIRST": 1 << 60,
    "bm25rag.segments.doc_blocks.DOC_BLOCK": 128,
    "bm25rag.segments.postings.LEAST_DOCUMENTS": 0,
    "bm25rag.kernels.records._ROW": 8,
    "bm25rag.kernels.records._POSTING_BYTES": 1000,
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


@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize(("width", "step"), [(1, 1), (4, 2), (32, 8)])
def test_searches_agree_with_plain_sums(
    weights: Callable[[Generator, int], Any], width: int, step: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr("bm25rag.segments.postings.STRIP", width)
    monkeypatch.setattr("bm25rag.segments.postings.STRIP_STEP", step)
    generator = np.random.default_rng(width)
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


def test_bounds_are_at_least_the_weights_and_places_where_postings_begin() -> None:
    if backend.current().name == "numpy":
        pytest.skip("NumPy makes no bounds")
    vectors = draw(np.random.default_rng(3), any_float, _SIZE, 9)
    index = indexed(vectors)
    for _ in range(_TERMS):  # a search makes few bounds, so that it does not take much longer
        index.vectors.search({str(term): 1.0 for term in range(_TERMS)})
    (bounds,) = bounds_of(index)
    assert bounds is not None
    postings = index.vectors._snapshot.views[0].segment.postings
    assert len(bounds.rows) > 5
    for term in range(_TERMS):
        starts = postings.find(str(term).encode())
        row = bounds.rows.get(int(starts[0]))
        if row is None:
            assert starts[-1] - starts[0] < bounds.least
            continue
        own = {n: vector[str(term)] for n, vector in enumerate(vectors) if str(term) in vector}
        most = float(bounds.most[row])
        assert most == max(own.values())
        levels = np.zeros(bounds.count)
        for number, weight in own.items():
            block, place = divmod(number, 128)
            strip = block * bounds.in_block + place // bounds.width
            levels[strip] = max(levels[strip], np.ceil(weight / most * 255 - 1e-9))
        assert bounds.levels[row].tolist() == levels.tolist()


def test_what_is_added_deleted_and_merged_keeps_the_bounds_of_the_rest() -> None:
    generator = np.random.default_rng(5)
    vectors = draw(generator, one_decimal, _SIZE, 9)
    index = indexed(vectors)
    question = {"0": 1.0, "2": 0.5, "7": 2.0, "8": 1.0}
    index.vectors.search(question)
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
    SegmentArrays(*arrays, 2, 65_536, None, StripBounds(2, 65_536, 2, 32, 8))
    for size, block_size, postings in ((3, 65_536, 2), (2, 128, 2), (2, 65_536, 3)):
        strips = StripBounds(size, block_size, postings, 32, 8)
        with pytest.raises(ValueError, match="strips of other postings"):
            SegmentArrays(*arrays, 2, 65_536, None, strips)
    for width, step in ((0, 1), (3, 1), (128, 1), (32, 0), (32, 6)):
        with pytest.raises(ValueError, match="wrong widths of strips"):
            StripBounds(2, 65_536, 2, width, step)


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
    assert found(index, question, k) == expected(given, question, k, range(len(given)))

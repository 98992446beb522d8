"""Bounds of strips decide where vectors are looked at, and change no bit of what is found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.common.arrays import UInt8
from bm25rag.common.strings import text_of
from bm25rag.kernels import backend
from bm25rag.kernels.records import SegmentArrays, StripBounds
from support.cases import first
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
    with pytest.MonkeyPatch.context() as small, backend.use(backend.chosen()):
        for name, value in CONSTANTS.items():
            small.setattr(name, value)
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


KINDS = [one_decimal, many_sizes, denormal, signed]
if not INTERPRETED:  # where these took a third of the mode's time
    KINDS += [equal, huge, tiny, any_float]


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


# The size of blocks, what a strip costs, what a row needs at least, how dense one for each strip is
SETTINGS = [(128, 0, 0.25, 0.0), (1024, 0, 0.0, 0.3), (7, 0, 0.0, 1.0), (128, 20, 0.0, 0.05)]
# All weights with all settings, first each once with one of them.
CASES = [
    (weights, *SETTINGS[(number + further) % len(SETTINGS)])
    for further in range(len(SETTINGS))
    for number, weights in enumerate(KINDS)
]


@pytest.mark.parametrize(("weights", "block", "cost", "least", "dense"), first(len(KINDS), CASES))
def test_searches_agree_with_plain_sums(
    weights: Callable[[Generator, int], Any],
    block: int,
    cost: int,
    least: float,
    dense: float,
    monkeypatch: Any,
) -> None:
    """Rows are of pairs, or have a level for each strip, or there is none."""
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", block)
    monkeypatch.setattr("bm25rag.segments.postings.STRIP_COST", cost)
    monkeypatch.setattr("bm25rag.segments.strip_rows.LEAST_IN_STRIP", least)
    monkeypatch.setattr("bm25rag.segments.strip_rows.DENSE", dense)
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
    if weights is not signed:
        (bounds,) = bounds_of(index)
        assert bounds is not None
        assert len(bounds.starts)


def levels_of(row: UInt8, cells: int) -> UInt8:
    """Return the level of each strip that a row has."""
    if len(row) == cells:
        return row
    levels = np.zeros(cells, np.uint8)
    pairs = row.reshape(-1, 2)
    levels[np.cumsum(pairs[:, 0], dtype=np.int64)] = pairs[:, 1]
    return levels


@pytest.mark.parametrize("dense", [0.0, 0.03, 1.0])
def test_rows_are_at_least_the_weights_in_strips(dense: float, monkeypatch: Any) -> None:
    monkeypatch.setattr("bm25rag.segments.strip_rows.DENSE", dense)
    vectors = draw(np.random.default_rng(3), any_float, _SIZE, 9)
    postings = indexed(vectors).vectors._snapshot.views[0].segment.postings
    bounds, rows = postings.strips, postings.rows
    assert bounds is not None
    assert rows is not None
    assert postings.bounds is not None
    assert rows.terms.tolist() == list(range(_TERMS))
    kinds = set()
    for number, (start, stop) in enumerate(pairwise(rows.offsets.tolist())):
        term = text_of(postings.terms.column[number])
        levels = np.zeros(bounds.cells)
        for document, vector in enumerate(vectors):
            if term in vector:
                block, place = divmod(document, 128)
                strip = block * bounds.in_block + place // 32
                levels[strip] = max(levels[strip], vector[term] / postings.bounds[1] * 253)
        kinds.add(stop - start == bounds.cells)
        assert (stop - start == bounds.cells) == (np.count_nonzero(levels) > dense * bounds.cells)
        kept = levels_of(rows.levels[start:stop], bounds.cells)
        assert (kept >= levels).all()
        assert (kept <= levels * 255 / 253 + 1).all()
        assert ((kept == 0) == (levels == 0)).all()
    assert kinds == {0.0: {True}, 0.03: {True, False}, 1.0: {False}}[dense]


@given(
    strips=st.lists(st.integers(0, 2999), min_size=1, max_size=40, unique=True),
    seed=st.integers(0, 99),
    limit=st.integers(0, 40),
)
def test_backends_make_the_same_row(strips: list[int], seed: int, limit: int) -> None:
    """Gaps of up to 3,000 strips are divided; blocks have 1,000 strips."""
    generator = np.random.default_rng(seed)
    ordered = np.repeat(np.sort(strips), generator.integers(1, 4, len(strips)))
    offsets = generator.integers(0, 32, len(ordered))
    all_documents = np.unique(ordered * 32 + offsets)
    documents = (all_documents % 32_000).astype(np.uint16)
    starts = np.searchsorted(all_documents, np.arange(4) * 32_000)
    codes = generator.integers(0, 9, len(documents)).astype(np.uint16)
    levels = generator.integers(1, 256, 9).astype(np.uint8)
    expected = np.zeros(3000, np.uint8)
    np.maximum.at(expected, all_documents // 32, levels[codes])
    for name in backend.available():
        with backend.use(name):
            row = backend.current().strip_row(documents, codes, starts, levels, 1000, limit)
        assert (len(row) == 3000) == (len(strips) > limit)
        assert levels_of(row, 3000).tolist() == expected.tolist()
        if len(row) != 3000:
            gaps = row[::2].astype(int)
            assert len(row) <= 2 * (len(strips) + 3000 // 255)
            assert not ((gaps == 255) & (row[1::2] == 0))[-1]


def test_strips_whose_rows_say_that_they_hold_nothing_are_not_looked_at(monkeypatch: Any) -> None:
    if backend.current().name == "numpy":
        pytest.skip("NumPy looks at all documents")
    monkeypatch.setattr("bm25rag.segments.strip_rows.DENSE", 0.0)
    vectors = draw(np.random.default_rng(4), any_float, _SIZE, 9)
    index = indexed(vectors)
    (bounds,) = bounds_of(index)
    assert bounds is not None
    question = {str(term): 1.0 for term in range(8)}
    right = found(index, question, 3)
    assert right == expected(vectors, question, 3, range(_SIZE))
    strip = int(right[0][0]) % 128 // 32 + int(right[0][0]) // 128 * bounds.in_block
    bounds.levels[strip :: bounds.cells] = 0
    assert found(index, question, 3)[0] != right[0]


def test_rows_that_say_too_much_change_nothing(monkeypatch: Any) -> None:
    """Also where no document is: behind the last of a block, and of all."""
    monkeypatch.setattr("bm25rag.segments.strip_rows.DENSE", 0.0)
    vectors = draw(np.random.default_rng(4), any_float, _SIZE, 9)
    index = indexed(vectors)
    (bounds,) = bounds_of(index)
    assert bounds is not None
    bounds.levels[:] = 255
    for question in draw(np.random.default_rng(5), one_decimal, 20, 7):
        for k in (1, 10):
            assert found(index, question, k) == expected(vectors, question, k, range(_SIZE))


def test_rare_terms_have_no_rows_and_are_walked(monkeypatch: Any) -> None:
    monkeypatch.setattr("bm25rag.segments.strip_rows.LEAST_IN_STRIP", 0.25)
    vectors = draw(np.random.default_rng(6), any_float, _SIZE, 9)
    index = indexed(vectors)
    (bounds,) = bounds_of(index)
    assert bounds is not None
    assert 0 < len(bounds.starts) < _TERMS
    question = {str(term): 1.0 for term in range(_TERMS)}
    assert found(index, question, 3) == expected(vectors, question, 3, range(_SIZE))


def test_few_vectors_have_no_rows(monkeypatch: Any) -> None:
    monkeypatch.setattr("bm25rag.segments.strip_rows.STRIPS_FROM", _SIZE + 1)
    vectors = draw(np.random.default_rng(6), any_float, _SIZE, 9)
    index = indexed(vectors)
    assert bounds_of(index) == [None]
    index.add([[]] * 2, vectors=vectors[:2])
    index.compact()
    (bounds,) = bounds_of(index)
    assert bounds is not None


def test_what_is_added_deleted_and_merged_keeps_the_bounds_of_the_rest() -> None:
    generator = np.random.default_rng(5)
    vectors = draw(generator, one_decimal, _SIZE, 9)
    index = indexed(vectors)
    question = {"0": 1.0, "2": 0.5, "7": 2.0, "8": 1.0}
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
    rows = np.array([0]), np.zeros(2, np.uint8), np.array([0, 2])
    SegmentArrays(*arrays, 2, 65_536, None, StripBounds(2, 65_536, 2, *rows, 400, 0))
    for size, block_size, postings in ((3, 65_536, 2), (2, 128, 2), (2, 65_536, 3)):
        strips = StripBounds(size, block_size, postings, *rows, 400, 0)
        with pytest.raises(ValueError, match="strips of other postings"):
            SegmentArrays(*arrays, 2, 65_536, None, strips)
    for ends, what in (([0, 3], "do not ascend"), ([0], "differ in rows")):
        with pytest.raises(ValueError, match=what):
            StripBounds(2, 65_536, 2, *rows[:2], np.array(ends), 400, 0)


def test_threads_that_look_up_rows_at_the_same_time_find_the_same() -> None:
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
    dense=st.sampled_from([0.0, 0.02, 1.0]),
)
def test_any_positive_vectors_are_found_as_by_plain_sums(
    vectors: Vectors, question: dict[str, float], k: int, repeats: int, dense: float
) -> None:
    rounded = [{term: float(np.float32(w)) for term, w in one.items()} for one in vectors]
    given = rounded * repeats
    with patch("bm25rag.segments.strip_rows.DENSE", dense):
        index = indexed(given)
    assert found(index, question, k) == expected(given, question, k, range(len(given)))

"""Where few documents may be returned, they are looked at first, which changes no bit."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index
from bm25rag.kernels import backend
from bm25rag.kernels.records import Allowed
from bm25rag.scoring.variants import VariantName
from support.cases import first
from support.environment import INTERPRETED

_SIZE = 300 if INTERPRETED else 2500
NEVER = 1 << 40
FILTERS: list[Any] = [
    {"n": 7},
    {"n": {"$lt": 10}},
    {"n": {"$ne": 3}},
    {"run": {"$in": [2, 3, 8]}},
    {"n": -1},
    {"3", "500", "again 6", "unknown"},
    {str(number) for number in range(0, _SIZE, 3)},
]


def draw_index(generator: np.random.Generator, variant: VariantName) -> BM25Index:
    words = np.minimum(generator.zipf(1.3, size=(_SIZE, 12)), 300)
    texts = [[str(word) for word in row] for row in words.tolist()]
    metadata = [{"n": n % 101, "run": n * 20 // _SIZE} for n in range(_SIZE)]
    index = BM25Index(variant=variant)
    index.add(texts, metadata=metadata)
    index.add(texts[:300], ids=[f"again {n}" for n in range(300)], metadata=metadata[:300])
    return index


def draw_queries(generator: np.random.Generator) -> list[Any]:
    queries: list[Any] = [["1", "2", "299"], ["250", "1", "250"], ["1"], []]
    queries += [[str(word) for word in row] for row in generator.integers(1, 90, (6, 9))]
    weights = (
        generator.random((3, 6)) + 0.01,
        generator.normal(0, 2, (3, 6)),
        10.0 ** generator.integers(-30, 30, (3, 6)),
    )
    for row in np.concatenate(weights).tolist():
        terms = map(str, generator.integers(1, 60, 6).tolist())
        queries.append(dict(zip(terms, row, strict=False)))
    return queries


@pytest.mark.parametrize(
    ("variant", "doc_block", "window"),
    first(
        2,
        [
            ("lucene", 1024, 256),
            ("tfldp", 1 << 16, 16384),
            *[("bm25+", 1 << 16, 16384), ("bm25l", 1024, 256)][: 0 if INTERPRETED else 2],
        ],
    ),
)
def test_looking_at_few_documents_first_changes_no_bit(
    monkeypatch: pytest.MonkeyPatch, variant: VariantName, doc_block: int, window: int
) -> None:
    """With floors, ties, deleted documents, and more wanted than may be returned.

    Where sums are coarse from no posting on, terms are added by bound.
    """
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", doc_block)
    monkeypatch.setattr("bm25rag.search.ranking.WINDOW", window)
    monkeypatch.setattr("bm25rag.search.filter_masks._FEW_IDS", 10)
    generator = np.random.default_rng(doc_block)
    index, queries = draw_index(generator, variant), draw_queries(generator)
    wanted = list(product(FILTERS, ((1, None), (7, 4.0), (600, None))))

    def answers(few: int, coarse: int = NEVER) -> list[bytes]:
        monkeypatch.setattr("bm25rag.search.ranking.FILTERED_FIRST", few)
        monkeypatch.setattr("bm25rag.search.ranking.COARSE", coarse)
        found = []
        for accepted, (k, floor) in wanted:
            batch = index.search_batch(queries, k=k, min_score=floor, filter=accepted)
            one = index.search(queries[5], k=k, min_score=floor, filter=accepted)
            assert [hit.id for hit in one] == batch.ids()[5]
            assert [hit.score for hit in one] == batch.scores[5, : len(one)].tolist()
            found.append(batch.rows.tobytes() + batch.scores.tobytes())
        return found

    for _ in range(2):
        with backend.use("numpy"):
            expected = answers(NEVER)
        assert answers(NEVER) == answers(20) == answers(20, 0) == expected
        assert answers(0) == answers(0, 0) == expected
        index.delete([*map(str, range(5, _SIZE, 7)), "again 6"])


@pytest.mark.parametrize("seed", range(3 if INTERPRETED else 25))
def test_any_documents_that_may_be_returned(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Sets of any size, clustered or not, with random sizes of blocks and windows."""
    generator = np.random.default_rng(seed)
    block, window = generator.integers(65, 2000, 2).tolist()
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", block)
    monkeypatch.setattr("bm25rag.search.ranking.WINDOW", window)
    monkeypatch.setattr("bm25rag.search.filter_masks._FEW_IDS", int(generator.integers(1, 40)))
    size = int(generator.integers(1, 200 if INTERPRETED else 3000))
    words = np.minimum(generator.zipf(1.2, size=(size, 8)), 60)
    index = BM25Index.from_texts([[str(word) for word in row] for row in words.tolist()])
    queries = draw_queries(generator)
    for share in (0.001, 0.01, 0.1, 0.5, 1.0):
        first = int(generator.integers(0, size))
        span = range(first, size) if generator.random() < 0.3 else range(size)
        ids = {str(number) for number in span if generator.random() < share}
        k = int(generator.integers(1, 200))
        found = set()
        for few, coarse, name in product((0, NEVER), (0, NEVER), backend.available()):
            monkeypatch.setattr("bm25rag.search.ranking.FILTERED_FIRST", few)
            monkeypatch.setattr("bm25rag.search.ranking.COARSE", coarse)
            with backend.use(name):
                batch = index.search_batch(queries, k=k, filter=ids)
            found.add(batch.rows.tobytes() + batch.scores.tobytes())
        assert len(found) == 1


def test_documents_that_may_be_returned_are_known_by_mask_or_number() -> None:
    mask = np.array([False, True, False, True])
    numbers = np.array([1, 3], np.uint32)
    for allowed in (Allowed(mask), Allowed.of_numbers(numbers, 4)):
        assert (allowed.size, allowed.count) == (4, 2)
        assert allowed.mask.tolist() == mask.tolist()
        assert allowed.numbers.tolist() == [1, 3]
        assert allowed.bits(65).tolist() == [0b1010]
    assert Allowed(mask).bits(3).tolist() == [0b010, 0b1]

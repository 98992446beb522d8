"""Many documents compared with plain dictionaries: variants, k, filters, threads, bit for bit.

The reference of the other tests looks at every document for every query. Here its formulas are
used with an inverted file of Python dicts, which has nothing else in common with ours.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index
from bm25rag.common.arrays import Float64, Int64
from bm25rag.kernels import backend
from support.environment import INTERPRETED
from support.reference import DEFAULT_DELTA, VARIANTS, absence, frequency, idf

# `make soak` uses 200,000, which takes minutes; either way there are several document blocks.
DOCUMENTS = 200_000 if os.environ.get("BM25RAG_SOAK") == "1" else 20_000
DOC_BLOCK = DOCUMENTS // 3
SPLIT = DOCUMENTS * 3 // 5
LABELS = 100
# None of these is a default, so that two defaults cannot make results equal.
K1, B = 0.9, 0.4

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(INTERPRETED, reason="takes an hour without compiled kernels"),
]


@pytest.fixture(scope="module", autouse=True)
def _fastest() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, backend.use(backend.available()[0]):
        patch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", min(DOC_BLOCK, 1 << 16))
        yield


@pytest.fixture(scope="module")
def texts() -> list[list[str]]:
    """Documents of 1 to 60 words, with frequencies distributed as in a language."""
    generator = np.random.default_rng(2024)
    lengths = np.clip(generator.lognormal(2.4, 0.6, DOCUMENTS).astype(int), 1, 60)
    words = np.minimum(generator.zipf(1.15, lengths.sum()), 30_000).astype(str).tolist()
    ends = np.cumsum(lengths).tolist()
    return [words[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


@pytest.fixture(scope="module")
def inverted(texts: list[list[str]]) -> dict[str, list[tuple[int, int]]]:
    result: dict[str, list[tuple[int, int]]] = {}
    for number, words in enumerate(texts):
        for word, tf in Counter(words).items():
            result.setdefault(word, []).append((number, tf))
    return result


@pytest.fixture(scope="module")
def index(texts: list[list[str]]) -> BM25Index:
    index = BM25Index()
    metadata = [{"label": number % LABELS} for number in range(DOCUMENTS)]
    index.add(texts[:SPLIT], metadata=metadata[:SPLIT])
    index.add(texts[SPLIT:], metadata=metadata[SPLIT:])
    return index


def queries() -> list[list[str]]:
    """Draw queries of one to forty words, frequent and rare, some repeated, some unknown."""
    generator = np.random.default_rng(7)
    made = [
        [str(word) for word in np.minimum(generator.zipf(1.15, count), 30_000)]
        for count in (1, 2, 3, 6, 9, 40)
    ]
    return [*made, ["1"], ["29999", "1", "unknown"], ["2", "2", "1", "17"], []]


class Scorer:
    """The score by its definition, one query at a time."""

    def __init__(
        self, texts: list[list[str]], inverted: dict[str, list[tuple[int, int]]], **chosen: Any
    ) -> None:
        self.inverted, self.lengths = inverted, list(map(len, texts))
        self.average = sum(self.lengths) / len(texts)
        self.variant = chosen["variant"]
        self.delta = DEFAULT_DELTA.get(self.variant, 0.0)
        self.absent = absence(self.variant, K1, self.delta)
        if chosen["delta_on"] == "matched":
            self.absent = 0.0
        self.f: dict[tuple[int, int], np.float32] = {}

    def weight(self, tf: int, length: int) -> np.float32:
        if (tf, length) not in self.f:
            f = frequency(self.variant, tf, length, self.average, K1, B, self.delta)
            self.f[tf, length] = np.float32(f - self.absent)
        return self.f[tf, length]

    def ranking(self, query: list[str]) -> tuple[Int64, Float64]:
        sums: dict[int, float] = {}
        shift = 0.0
        for term, times in Counter(query).items():
            postings = self.inverted.get(term, [])
            if not postings:
                continue
            weight = np.float32(idf(self.variant, len(self.lengths), len(postings)))
            shift += times * float(weight * np.float32(self.absent))
            parts: dict[np.float32, float] = {}
            for number, tf in postings:
                f = self.weight(tf, self.lengths[number])
                if f not in parts:
                    parts[f] = times * float(weight * f)
                sums[number] = sums.get(number, 0.0) + parts[f]
        rows = np.array(sorted(sums), np.int64)
        scores = np.array([sums[row] + shift for row in rows.tolist()])
        order = np.argsort(-scores, kind="stable")
        return rows[order], scores[order]


@pytest.mark.parametrize("delta_on", ["all", "matched"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_k_and_filter_is_exact(
    variant: str,
    delta_on: str,
    index: BM25Index,
    texts: list[list[str]],
    inverted: dict[str, list[tuple[int, int]]],
) -> None:
    if delta_on == "matched" and variant not in DEFAULT_DELTA:
        pytest.skip("the variant has no delta")
    tuned = index.tune(variant=variant, k1=K1, b=B, delta_on=delta_on)
    scorer = Scorer(texts, inverted, variant=variant, delta_on=delta_on)
    asked = queries()
    rankings = [scorer.ranking(query) for query in asked]
    for given, keeps in (
        (None, range(LABELS)),
        ({"label": 7}, {7}),
        ({"label": {"$lt": 10}}, range(10)),
        ({"label": {"$ne": 3}}, set(range(LABELS)) - {3}),
        ({"label": -1}, set[int]()),
    ):
        passing = []
        for rows, scores in rankings:
            kept = np.isin(rows % LABELS, list(keeps))
            passing.append((rows[kept], scores[kept]))
        for k in (1, 10, 37, 1000, 5000, DOCUMENTS):
            batch = tuned.search_batch(asked, k=k, filter=given, threads=k % 2 + 1)
            for place, (rows, scores) in enumerate(passing):
                count = batch.counts[place]
                assert np.array_equal(batch.rows[place, :count], rows[:k])
                assert np.array_equal(batch.scores[place, :count], scores[:k])
        for query, (rows, scores) in zip(asked, passing, strict=True):
            if not len(rows):
                continue
            least = float(scores[len(rows) // 3])
            hits = tuned.search(query, k=50, filter=given, min_score=least)
            wanted = zip(rows.tolist(), scores.tolist(), strict=True)
            expected = [pair for pair in wanted if pair[1] >= least][:50]
            assert [(int(hit.id), hit.score) for hit in hits] == expected

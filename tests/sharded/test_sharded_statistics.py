"""The statistics of a collection are the sums of those of its shards."""

from __future__ import annotations

import pickle
import zlib
from collections import Counter
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.common.strings import text_of
from bm25rag.scoring.variants import Parameters
from bm25rag.segments.statistics import Statistics
from bm25rag.segments.view import SegmentView
from bm25rag.storage.shard_statistics import (
    LocalStatistics,
    are_alike,
    join_partitions,
    merge_counts,
)

# Two pairs of words that have the same CRC-32.
ALIKE = ["plumless", "buckeroo", "codding", "gnu"]
TERMS = [*ALIKE, "a", "b", "é", "\udc80", "x" * 300]

texts = st.lists(st.lists(st.sampled_from(TERMS), max_size=6), max_size=8)


def segments(documents: list[list[str]], deleted: int = 0) -> tuple[SegmentView, ...]:
    """Return the segments of an index of some documents, the first of them deleted."""
    index = BM25Index()
    index.add(documents[:3])
    index.add(documents[3:])
    index.delete(index.ids()[:deleted])
    return index._snapshot.views


def local(*views: SegmentView) -> LocalStatistics:
    return LocalStatistics(views, Parameters())


def shown(statistics: Statistics) -> dict[str, int]:
    column = [text_of(bytes(term or b"")) for term in statistics.terms.column]
    return dict(zip(column, statistics.frequencies.tolist(), strict=True))


def test_the_words_have_the_same_hash() -> None:
    hashes = [zlib.crc32(word.encode()) for word in ALIKE]
    assert [one == other for one, other in pairwise(hashes)] == [True, False, True]


@given(shards=st.lists(st.tuples(texts, st.integers(0, 3)), max_size=5), parts=st.integers(1, 7))
def test_frequencies_are_summed_by_term(
    shards: list[tuple[list[list[str]], int]], parts: int
) -> None:
    living = [documents[deleted:] for documents, deleted in shards]
    expected = Counter(chain.from_iterable(set(text) for text in chain.from_iterable(living)))
    views = [segments(*shard) for shard in shards]
    locals_ = [local(*own) for own in views]
    merged = [
        merge_counts([counts for one in locals_ for counts in one.partition(number, parts)])
        for number in range(parts)
    ]
    tokens = sum(len(text) for text in chain.from_iterable(living))
    found = join_partitions(sum(map(len, living)), (tokens,), merged)
    assert shown(found) == expected
    for term in TERMS:
        assert found.frequency(term.encode("utf-8", "surrogatepass")) == expected[term]
    whole = local(*chain.from_iterable(views)).merged()
    assert (whole.documents, whole.tokens) == (found.documents, found.tokens)
    assert shown(whole) == expected
    assert are_alike(whole, found)
    assert np.all(found.terms.keys[1:] >= found.terms.keys[:-1])


def test_what_tasks_pass_to_one_another_can_be_pickled() -> None:
    views = [*segments([["a", "b"], ["b"]]), *segments([["b", "c"]])]
    sent = pickle.loads(pickle.dumps(local(*views).partition(0, 1)))
    assert shown(join_partitions(3, 5, [merge_counts(sent)])) == {"a": 1, "b": 3, "c": 1}


@pytest.mark.parametrize(
    "other",
    [
        [["a", "b"], ["b"], []],  # another document
        [["a", "b"], ["b", "b"]],  # another length
        [["a", "b"], ["c"]],  # another term
        [["a", "b"], ["a"]],  # another frequency
        [["ab"], ["b", "b"]],
    ],
)
def test_other_statistics_are_told_apart(other: list[list[str]]) -> None:
    one = local(*segments([["a", "b"], ["b"]])).merged()
    assert are_alike(one, local(*segments([["b"]]), *segments([["b", "a"]])).merged())
    assert not are_alike(one, local(*segments(other)).merged())

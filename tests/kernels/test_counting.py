"""Counting and checksums: whatever the sizes are, and the same in every backend."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.columns.column import build_column
from bm25rag.columns.string_table import keys_of
from bm25rag.kernels import backend as backends
from bm25rag.kernels.scanner_interface import STOPPED

pytestmark = pytest.mark.usefixtures("backend")


@given(strings=st.lists(st.binary(max_size=20)))
def test_keys_are_the_crc_32_of_strings(strings: list[bytes]) -> None:
    assert keys_of(build_column(strings)).tolist() == [zlib.crc32(one) for one in strings]


@pytest.mark.parametrize(
    ("documents", "tf", "types"),
    [(2, 255, ("u2", "u1")), (2, 256, ("u2", "u4")), (65_537, 1, ("u4", "u1"))],
)
def test_a_run_holds_any_number_of_documents_and_any_tf(
    documents: int, tf: int, types: tuple[str, str]
) -> None:
    counts = np.ones(documents, np.uint32)
    counts[-1] = tf
    tokens = np.zeros(int(counts.sum()), np.uint32)
    run, lengths = backends.current().count(tokens, counts, 1, 7, [])
    assert (run.terms.tolist(), run.sizes.tolist(), run.first) == ([0], [documents], 7)
    assert run.documents.tolist() == list(range(documents))
    assert run.tf.tolist() == lengths.tolist() == counts.tolist()
    assert run.documents.itemsize <= np.dtype(types[0]).itemsize
    assert run.tf.itemsize <= np.dtype(types[1]).itemsize


_TOKENS = st.lists(st.lists(st.sampled_from([0, 1, 2, 5, STOPPED]), max_size=12), max_size=6)


@given(calls=st.lists(_TOKENS, min_size=1, max_size=3))
def test_a_run_holds_every_token_that_is_no_stop_word(calls: list[list[list[int]]]) -> None:
    """However much memory an earlier call has left."""
    spare: list[Any] = []
    for documents in calls:
        tokens = np.array([token for one in documents for token in one], np.uint32)
        counts = np.array([len(one) for one in documents], np.uint32)
        run, lengths = backends.current().count(tokens, counts, 6, 0, spare)
        kept = [[token for token in one if token != STOPPED] for one in documents]
        assert lengths.tolist() == [len(one) for one in kept]
        postings = zip(
            np.repeat(run.terms, run.sizes).tolist(),
            run.documents.tolist(),
            run.tf.tolist(),
            strict=True,
        )
        expected = {(t, n, one.count(t)) for n, one in enumerate(kept) for t in one}
        assert sorted(postings) == sorted(expected)
        ends = np.cumsum(run.sizes)[:-1]
        for part in np.split(run.documents, ends):
            assert part.tolist() == sorted(part.tolist())


@given(calls=_TOKENS, groups=st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_a_run_is_divided_by_groups_of_terms(calls: list[list[int]], groups: list[int]) -> None:
    hot = backends.current()
    tokens = np.array([token for one in calls for token in one], np.uint32)
    run, _ = hot.count(tokens, np.array(list(map(len, calls)), np.uint32), 6, 3, [])
    divided, edges = hot.divide(run, np.array(groups, np.uint8), 3)
    starts = np.cumsum(run.sizes) - run.sizes
    for group in range(3):
        (first, last), (start, stop) = edges[:, group : group + 2].tolist()
        own = [i for i, term in enumerate(run.terms) if groups[term] == group]
        assert divided.terms[first:last].tolist() == run.terms[own].tolist()
        assert divided.sizes[first:last].tolist() == run.sizes[own].tolist()
        places = [place for i in own for place in range(starts[i], starts[i] + run.sizes[i])]
        for name in ("documents", "tf"):
            expected = getattr(run, name)[places].tolist()
            assert getattr(divided, name)[start:stop].tolist() == expected


def test_terms_of_lists_may_be_any_strings() -> None:
    """The compiled table reads them from one string, in which a line feed divides them."""
    lists: list[Any] = [
        ["a\n", "b\0", "b", "", "\ud800", "é"],
        [],
        [""],
        ["\n"],
        ["b", "a"],
        ("a" * 16, "a" * 16 + "\0", "a" * 17),
    ]
    index = BM25Index.from_texts([*lists, "a text"])
    for number, terms in enumerate(lists):
        for term in terms:
            assert str(number) in [hit.id for hit in index.search([term])]
    assert [hit.id for hit in index.search(["a"])] == ["4"]
    assert [hit.id for hit in index.search([""], k=9)] == ["2", "0"]
    assert len(index.vocabulary()) == len({term for terms in lists for term in terms} | {"text"})

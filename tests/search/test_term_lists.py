"""A batch of texts is looked up word by word, and its lists of terms are made when asked for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from bm25rag import BM25Index, Query
from bm25rag.analysis import Analyzer
from bm25rag.kernels.term_lists import TermLists
from support.cases import first

WORDS = ["boat", "Häuser", "e-mail", "type 2", "the", "covid19", "ёлки", "日本語", "naïve", "3.5"]
# Some words of several terms, some of none; texts of stop words alone, and of nothing.
TEXTS = [
    " ".join(WORDS[(number * step) % len(WORDS)] for step in (1, 3, 7)) + f" {number % 40}"
    for number in range(1100)
]
TEXTS[::97] = ["the"] * len(TEXTS[::97])
TEXTS[5::101] = [""] * len(TEXTS[5::101])
TEXTS[7::103] = ["\ud800 e‐mail ’s boat’s-bow é"] * len(TEXTS[7::103])


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("threads", first(1, [1, 3]))
def test_a_batch_of_texts_finds_what_each_of_them_finds(threads: int) -> None:
    index = BM25Index.from_texts([*WORDS, *TEXTS[:50]])
    for texts in (TEXTS, TEXTS[:600], TEXTS[:2]):  # blocks are of 512
        result = index.search_batch(texts, 5, threads=threads)
        single = [index.search(text, 5) for text in texts]
        assert result.hits() == single
        scores = [[hit.score for hit in hits] for hits in single]
        used = zip(result.scores, result.counts, strict=True)
        assert [row[:count].tolist() for row, count in used] == scores
    assert index.search_batch(TEXTS[:600]).hits()[8][0].spans == index.search(TEXTS[8])[0].spans


@pytest.mark.usefixtures("backend")
def test_texts_among_other_queries_have_the_same_matches() -> None:
    index = BM25Index.from_texts(TEXTS[:60])
    mixed = [*TEXTS[:20], ["boat"], {"boat": 2.0}, Query("boat", must=["3.5"]), *TEXTS[20:30]]
    assert index.search_batch(mixed).hits() == [index.search(query) for query in mixed]


def test_term_lists_are_the_lists_of_a_sequence() -> None:
    parts = [
        TermLists(
            ["a", ("b", "c"), ()],
            np.array([0, 1, 2, 1], np.uint32),
            np.array([2, 1, 1], np.uint32),
            {0: ["d"]},
        ),
        [["x", "y"], []],
        TermLists(["a", "z"], np.array([1, 0, 0], np.uint32), np.array([3], np.uint32), {}),
    ]
    expected = [["a", "b", "c", "d"], [], ["b", "c"], ["x", "y"], [], ["z", "a", "a"]]
    lists = TermLists.joined(parts)
    for own in (lists, pickle.loads(pickle.dumps(lists))):
        assert [*own] == expected
        assert len(own) == 6
        assert own[-1] == expected[-1]
        assert own[1:4] == expected[1:4]
        assert own[::-2] == expected[::-2]
    assert lists.most_terms >= len({term for terms in expected for term in terms})
    with pytest.raises(IndexError):
        lists[6]


@pytest.mark.usefixtures("backend")
def test_the_terms_of_a_large_batch_are_those_of_each_text() -> None:
    analyzer, fresh = Analyzer(), Analyzer()
    assert [*analyzer.query_terms_of_each(TEXTS)] == [*map(fresh.query_terms, TEXTS)]


@pytest.mark.usefixtures("backend")
def test_a_batch_with_more_terms_than_any_table_has_room_for_is_looked_up_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("_FEWEST_TERMS", 4), ("_MOST_TERMS", 8), ("_MOST_ROOM", 16)):
        monkeypatch.setattr(f"bm25rag.search.snapshot.{name}", value)
    index = BM25Index.from_texts([*WORDS, *TEXTS[:50]])
    result = index.search_batch(TEXTS[:600], 5)
    assert result.hits() == [index.search(text, 5) for text in TEXTS[:600]]

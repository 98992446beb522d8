"""Numbers of terms that only the kernels look up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bm25rag.common.arrays import Int64
from bm25rag.kernels import backend as backends
from bm25rag.kernels.records import PostingsArrays, SegmentRows, TermArrays, TermNumbers, TermTable


class Numbers(TermNumbers):
    """What the kernels leave is an error."""

    table: TermTable | None = None  # type: ignore[assignment]

    def __missing__(self, term: str) -> int:
        raise KeyError(term)

    def count(self, term: str, places: Int64) -> int:
        raise NotImplementedError

    def idf_of(self, frequency: int) -> float:
        return 100.0 + frequency

    def remember_unknown(self, terms: Sequence[str]) -> None:
        pass


def term_table(postings: PostingsArrays, **changed: Any) -> TermTable:
    """Return a table of one segment with room for two terms, and idf 1 and 2 tabled."""
    idf = np.zeros(2, np.float32)
    starts = np.zeros((2, postings.blocks + 1), np.int64)
    free: Iterator[int] = iter(range(2))
    values: dict[str, Any] = {
        "postings": [postings],
        "terms": [TermArrays(starts, idf, np.float32(0))],
        "frequencies": np.zeros(2, np.int64),
        "idf": idf,
        "idfs": np.array([1, 2], np.float32),
        "free": free,
        "rows": [SegmentRows(np.empty(0, np.uint32), postings.size)],
    }
    return TermTable(**values | changed)


def found_by_kernels(postings: PostingsArrays, term: str) -> list[int] | None:
    """Return where the postings of a term begin; ``None`` if the kernels leave it to Python."""
    numbers = Numbers()
    numbers.table = term_table(postings)
    try:
        (number,) = backends.current().number_query([term], numbers)
    except KeyError:
        return None
    if number < 0:
        return [0] * (postings.blocks + 1)
    starts: list[int] = numbers.table.terms[0].starts[number].tolist()
    assert numbers.table.frequencies[number] == starts[-1] - starts[0]
    return starts

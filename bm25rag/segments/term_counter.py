"""From texts to the postings of one analysis: read, numbered and counted in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.analysis.encoder import Encoder, Read
from bm25rag.columns.column import Column, StringBatch
from bm25rag.common.arrays import UInt32
from bm25rag.common.strings import TEXT
from bm25rag.common.threads import Helpers
from bm25rag.kernels import backend
from bm25rag.kernels.records import Run

# Tokens and documents that are counted together: with more of them, postings of a term lie side
# by side in fewer runs, until a run no longer stays in the cache.
_COUNTED, _MOST = 1 << 20, 1 << 16
# About what a token and a term take at most until the segment is made: postings twice, and two
# tables of words, which double when they are full.
_TOKEN_BYTES, _TERM_BYTES = 8, 300


class Counted(NamedTuple):
    """Postings, and the length of each text; ``rows`` are those that tf numbers, if it does."""

    run: Run
    lengths: UInt32
    rows: UInt32 | None = None


class TermCounter:
    """Counts the terms of texts by one analysis.

    ``names`` are those of the fields, if texts have fields. ``place`` is which of several analyses
    it is, and of how many; ``None`` if there is one. ``helpers`` read and count.
    """

    def __init__(
        self,
        analyzer: Analyzer,
        helpers: Helpers,
        names: tuple[str, ...] | None,
        place: tuple[int, int] | None,
    ) -> None:
        self._encoder = Encoder(analyzer)
        self._helpers, self._names, self._place = helpers, names, place
        # How many tokens are counted together: a posting takes memory for each field meanwhile.
        self._counted = _COUNTED // len(names or (TEXT,))
        self._reading: deque[Callable[[], Read]] = deque()
        # Terms of texts, to be counted together.
        self._tokens: list[UInt32] = []
        self._counts: list[UInt32] = []
        self._counting: list[Callable[[], Counted]] = []
        self._spare: list[Any] = []
        self._done = self._total = 0

    def __len__(self) -> int:
        """How many batches are read and not yet numbered."""
        return len(self._reading)

    @property
    def texts(self) -> int:
        """How many texts have been numbered."""
        return self._done + sum(map(len, self._counts))

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes to make postings of what was numbered."""
        return _TOKEN_BYTES * self._total + _TERM_BYTES * len(self._encoder)

    def read(self, texts: Sequence[Any], stored: bool, size: int) -> None:
        """Start to read texts with so many characters."""
        self._reading.append(self._helpers.start(self._encoder.reader(texts, stored), size))

    def number_next(self) -> StringBatch:
        """Give numbers to the terms of the next batch; return its texts."""
        read = self._reading.popleft()()
        tokens, counts = self._encoder.number(read)
        self._total += len(tokens)
        self._tokens.append(tokens)
        self._counts.append(counts)
        if sum(map(len, self._tokens)) >= self._counted or sum(map(len, self._counts)) >= _MOST:
            self._count()
        return read.strings

    def _count(self) -> None:
        none = np.empty(0, np.uint32)
        tokens = np.concatenate([none, *self._tokens])
        counts = np.concatenate([none, *self._counts])
        of_terms = partial(backend.current().count, tokens, counts, len(self._encoder))
        count = partial(of_terms, self._done, self._spare)
        work = partial(_counted, count, self._names, self._place)
        self._counting.append(self._helpers.start(work, len(tokens)))
        self._done += len(counts)
        self._tokens, self._counts = [], []

    def finish(self) -> tuple[Column, list[Counted]]:
        """Return the terms, and what was counted; the counter is used up."""
        self._count()
        terms = self._encoder.terms
        del self._encoder  # its tables take several times as much as the terms
        counted = [wait() for wait in self._counting]
        del self._counting, self._spare  # or they would stay in memory
        return terms, counted


def _counted(
    count: Callable[[], tuple[Run, UInt32]],
    names: tuple[str, ...] | None,
    place: tuple[int, int] | None,
) -> Counted:
    run, lengths = count()
    if names is not None:
        from bm25rag.segments.text_fields import join_fields  # few indexes have fields

        joined, rows = join_fields(run, len(names))
        return Counted(joined, lengths, rows)
    if place is not None:
        from bm25rag.segments.text_fields import count_analysis  # or several analyses

        numbered, rows = count_analysis(run, *place)
        return Counted(numbered, lengths, rows)
    return Counted(run, lengths)

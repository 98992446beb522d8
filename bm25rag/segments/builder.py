"""From documents to a segment."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.analysis.encoder import Encoder, Read
from bm25rag.columns.column import ColumnBuilder, join, join_none, join_short
from bm25rag.columns.string_table import index_column
from bm25rag.common.arrays import UInt32
from bm25rag.common.codec import write_metadata
from bm25rag.common.gil import release_gil, releasing_gil
from bm25rag.common.strings import TEXT, FieldTexts, utf8
from bm25rag.common.threads import Helpers
from bm25rag.kernels import backend
from bm25rag.kernels.records import Run
from bm25rag.metadata.field_builder import FieldsBuilder
from bm25rag.segments.postings import Postings
from bm25rag.segments.postings_builder import TermColumn, build_postings
from bm25rag.segments.segment import Segment
from bm25rag.segments.vectors_builder import VectorsBuilder

# Characters or tokens from which another thread pays.
_WORTH_A_THREAD = 1 << 18
# Tokens and documents that are counted together: with more of them, postings of a term lie side
# by side in fewer runs, until a run no longer stays in the cache.
_COUNTED, _MOST = 1 << 20, 1 << 16
# About what a token, a document and a term take at most until the segment is made: postings
# twice, the id in several tables, and two tables of words, which double when they are full.
_TOKEN_BYTES, _DOCUMENT_BYTES, _TERM_BYTES = 8, 300, 300


_Result = TypeVar("_Result")


class Counted(NamedTuple):
    """Postings, and the length of each text; of fields, ``rows`` are those that tf numbers."""

    run: Run
    lengths: UInt32
    rows: UInt32 | None = None


class SegmentBuilder:
    """Makes a segment of documents, which are added in batches.

    Other threads, at most ``threads`` with the caller's, read texts and count terms, while the
    caller's gives numbers to the terms of texts read before. ``names`` are those of the fields, if
    texts have fields; each is then analysed like a text, and counted with the others.
    """

    def __init__(
        self, analyzer: Analyzer, threads: int, names: tuple[str, ...] | None = None
    ) -> None:
        self._encoder = Encoder(analyzer)
        self._names = names
        # How many tokens are counted together: a posting takes memory for each field meanwhile.
        self._counted = _COUNTED // len(names or (TEXT,))
        self._other_texts = {name: ColumnBuilder() for name in names or () if name != TEXT}
        self._threads = threads
        self._helpers = Helpers(threads - 1)
        self._reading: deque[Callable[[], Read]] = deque()
        # Terms of texts, to be counted together.
        self._tokens: list[UInt32] = []
        self._counts: list[UInt32] = []
        self._counting: list[Callable[[], Counted]] = []
        self._spare: list[Any] = []
        self._done = self._total = 0
        self._ids, self._texts = ColumnBuilder(), ColumnBuilder()
        self._metadata, self._payloads = ColumnBuilder(), ColumnBuilder()
        self._fields = FieldsBuilder()
        self._vectors = VectorsBuilder()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._helpers.__exit__()

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[Any],
        stored: bool,
        metadata: Sequence[dict[str, Any]] | None,
        payloads: Sequence[bytes | None] | None,
        vectors: Sequence[dict[str, float] | None] | None,
    ) -> None:
        """Add documents; texts are analysed, lists of terms are taken as they are.

        With fields, each text is a tuple of one for each field, as ``FieldTexts``.

        The metadata are as ``plain_metadata`` returns them, vectors as ``read_vector`` does.
        """
        if self._names is not None:
            self._store(texts, stored)
            texts, stored = ["" if one is None else one for one in chain(*texts)], False
        read = self._encoder.reader(texts, stored)
        size = sum(map(len, texts)) if self._threads > 1 else 0
        self._reading.append(self._start(read, size))
        release_gil()
        self._ids.extend(join_short(ids))
        self._payloads.extend(join_none(len(ids)) if payloads is None else join(payloads))
        if metadata is None:
            self._metadata.extend(join_none(len(ids)))
            self._fields.skip(len(ids))
        else:
            written = releasing_gil(map(write_metadata, metadata, ids))
            self._metadata.extend(join([one or None for one in written]))
            self._fields.add(metadata)
        if vectors is None:
            self._vectors.skip(len(ids))
        else:
            self._vectors.add(vectors)
        # If reading ran further ahead, it would fill the memory.
        if len(self._reading) >= self._threads:
            self._number_next()

    def _start(self, work: Callable[[], _Result], size: int) -> Callable[[], _Result]:
        """Start some work, in another thread if that pays; return what waits for its result."""
        if self._threads == 1 or size < _WORTH_A_THREAD:
            result = work()
            return lambda: result
        return self._helpers.submit(work)

    def _store(self, texts: Sequence[FieldTexts], stored: bool) -> None:
        """Keep the texts of fields, those that are strings."""
        builders = {**self._other_texts, TEXT: self._texts}
        for place, name in enumerate(self._names or ()):
            own = [text[place] if stored else None for text in texts]
            kept = [utf8(one) if isinstance(one, str) else None for one in own]
            builders[name].extend(join(kept))

    def _number_next(self) -> None:
        read = self._reading.popleft()()
        if self._names is None:
            self._texts.extend(read.strings)
        tokens, counts = self._encoder.number(read)
        self._total += len(tokens)
        self._tokens.append(tokens)
        self._counts.append(counts)
        if sum(map(len, self._tokens)) >= self._counted or sum(map(len, self._counts)) >= _MOST:
            self._count()

    def _count(self) -> None:
        none = np.empty(0, np.uint32)
        tokens = np.concatenate([none, *self._tokens])
        counts = np.concatenate([none, *self._counts])
        of_terms = partial(backend.current().count, tokens, counts, len(self._encoder))
        count = partial(_counted, partial(of_terms, self._done, self._spare), self._names)
        self._counting.append(self._start(count, len(tokens)))
        self._done += len(counts)
        self._tokens, self._counts = [], []

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes to make a segment of the documents that were read."""
        documents = self._done + sum(map(len, self._counts))
        strings = self._texts.nbytes + self._payloads.nbytes
        strings += sum(texts.nbytes for texts in self._other_texts.values())
        strings += 3 * self._ids.nbytes + 4 * self._metadata.nbytes
        counted = _TOKEN_BYTES * self._total + _DOCUMENT_BYTES * documents
        return strings + counted + _TERM_BYTES * len(self._encoder) + self._vectors.nbytes

    def finish(self) -> Segment:
        """Return the segment; the builder is used up."""
        while self._reading:
            self._number_next()
        self._count()
        terms = TermColumn(self._encoder.terms)
        del self._encoder  # its tables take several times as much as the terms
        counted = [wait() for wait in self._counting]
        del self._counting, self._spare  # or they would stay in memory
        build, tokens = _finish(terms, counted, self._names)
        del counted
        postings = self._start(build, sum(tokens))
        documents = (
            index_column(self._ids.finish()),
            self._texts.finish(),
            self._metadata.finish(),
            self._payloads.finish(),
        )
        fields, vectors = self._fields.finish(), self._vectors.finish()
        others = {name: texts.finish() for name, texts in self._other_texts.items()}
        return Segment(postings(), *documents, tokens, fields, vectors, others)


def _counted(count: Callable[[], tuple[Run, UInt32]], names: tuple[str, ...] | None) -> Counted:
    if names is None:
        return Counted(*count())
    from bm25rag.segments.text_fields import join_fields  # few indexes have fields

    run, lengths = count()
    joined, rows = join_fields(run, len(names))
    return Counted(joined, lengths, rows)


def _finish(
    terms: TermColumn, counted: list[Counted], names: tuple[str, ...] | None
) -> tuple[Callable[[], Postings], tuple[int, ...]]:
    """Return what makes the postings of all that was counted, and the lengths' sum by field."""
    runs = [one.run for one in counted]
    lengths = np.concatenate([np.empty(0, np.uint32), *(one.lengths for one in counted)])
    if names is None:
        return partial(build_postings, terms, runs, lengths), (int(lengths.sum(dtype=np.int64)),)
    from bm25rag.segments.text_fields import TextFields, number_rows, number_runs  # as above

    by_document = lengths.reshape(-1, len(names))
    rows = number_runs(runs, [one.rows for one in counted if one.rows is not None], len(names))
    distinct, numbers = number_rows(by_document)
    fields = TextFields(names, rows, distinct)
    tokens = tuple(by_document.sum(axis=0, dtype=np.int64).tolist())
    return partial(build_postings, terms, runs, numbers, fields), tokens if any(tokens) else (0,)

"""From documents to a segment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import Any, Self

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.columns.column import Column, ColumnBuilder, join, join_none, join_short
from bm25rag.columns.string_table import index_column
from bm25rag.common.arrays import UInt32
from bm25rag.common.codec import write_each
from bm25rag.common.gil import release_gil
from bm25rag.common.strings import TEXT, FieldTexts, utf8
from bm25rag.common.threads import Helpers
from bm25rag.metadata.field_builder import FieldsBuilder
from bm25rag.segments.postings import Postings
from bm25rag.segments.postings_builder import TermColumn, build_postings
from bm25rag.segments.segment import Segment
from bm25rag.segments.term_counter import Counted, TermCounter
from bm25rag.segments.vectors_builder import VectorsBuilder

# About what a document takes until the segment is made: its id is in several tables.
_DOCUMENT_BYTES = 300


class SegmentBuilder:
    """Makes a segment of documents, which are added in batches.

    Other threads, at most ``threads`` with the caller's, read texts and count terms, while the
    caller's gives numbers to the terms of texts read before. ``names`` are those of the fields, if
    texts have fields; each is then analysed like a text, and counted with the others.
    """

    def __init__(
        self, analyzer: Analyzer, threads: int, names: tuple[str, ...] | None = None
    ) -> None:
        each = analyzer.analyses
        places = [(n, len(each)) if analyzer.also else None for n in range(len(each))]
        self._helpers = Helpers(threads - 1)
        self._counters = [
            TermCounter(one, self._helpers, names, place)
            for one, place in zip(each, places, strict=True)
        ]
        self._names = names
        self._other_texts = {name: ColumnBuilder() for name in names or () if name != TEXT}
        self._threads = threads
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
        size = sum(map(len, texts)) if self._threads > 1 else 0
        first, *further = self._counters
        first.read(texts, stored, size)
        if further:  # lists of terms have none by them
            texts = [text if isinstance(text, str) else "" for text in texts]
        for counter in further:
            counter.read(texts, False, size)
        release_gil()
        self._ids.extend(join_short(ids))
        self._payloads.extend(join_none(len(ids)) if payloads is None else join(payloads))
        if metadata is None:
            self._metadata.extend(join_none(len(ids)))
            self._fields.skip(len(ids))
        else:
            self._metadata.extend(join([one or None for one in write_each(metadata, ids)]))
            self._fields.add(metadata)
        if vectors is None:
            self._vectors.skip(len(ids))
        else:
            self._vectors.add(vectors)
        # If reading ran further ahead, it would fill the memory.
        if len(first) >= self._threads:
            self._number_next()

    def _store(self, texts: Sequence[FieldTexts], stored: bool) -> None:
        """Keep the texts of fields, those that are strings."""
        builders = {**self._other_texts, TEXT: self._texts}
        for place, name in enumerate(self._names or ()):
            own = [text[place] if stored else None for text in texts]
            kept = [utf8(one) if isinstance(one, str) else None for one in own]
            builders[name].extend(join(kept))

    def _number_next(self) -> None:
        strings, *_ = [counter.number_next() for counter in self._counters]
        if self._names is None:
            self._texts.extend(strings)

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes to make a segment of the documents that were read."""
        strings = self._texts.nbytes + self._payloads.nbytes
        strings += sum(texts.nbytes for texts in self._other_texts.values())
        strings += 3 * self._ids.nbytes + 4 * self._metadata.nbytes + self._vectors.nbytes
        counted = sum(counter.nbytes for counter in self._counters)
        return strings + counted + _DOCUMENT_BYTES * self._counters[0].texts

    def finish(self, merged: bool = False) -> Segment:
        """Return the segment; the builder is used up.

        If it is only to be ``merged`` with others, it has nothing that searches alone need.
        """
        while len(self._counters[0]):
            self._number_next()
        counted = [counter.finish() for counter in self._counters]
        build, tokens = _finish(counted, self._names)
        del counted
        postings = self._helpers.start(partial(build, threads=self._threads), sum(tokens))
        documents = (
            index_column(self._ids.finish()),
            self._texts.finish(),
            self._metadata.finish(),
            self._payloads.finish(),
        )
        fields, vectors = self._fields.finish(), self._vectors.finish(merged)
        others = {name: texts.finish() for name, texts in self._other_texts.items()}
        return Segment(postings(), *documents, tokens, fields, vectors, others)


def _finish(
    counted: list[tuple[Column, list[Counted]]], names: tuple[str, ...] | None
) -> tuple[Callable[..., Postings], tuple[int, ...]]:
    """Return what makes the postings of all that was counted, and the lengths' sum by field."""
    if len(counted) > 1:
        return _finish_analyses(counted)
    ((column, batches),) = counted
    terms, lengths = TermColumn(column), _lengths(batches)
    runs = [one.run for one in batches]
    if names is None:
        return partial(build_postings, terms, runs, lengths), (int(lengths.sum(dtype=np.int64)),)
    from bm25rag.segments.text_fields import (  # few indexes have fields
        TextFields,
        number_rows,
        number_runs,
    )

    by_document = lengths.reshape(-1, len(names))
    rows = number_runs(runs, [one.rows for one in batches if one.rows is not None], len(names))
    distinct, numbers = number_rows(by_document)
    fields = TextFields(names, rows, distinct)
    return partial(build_postings, terms, runs, numbers, fields), _tokens(by_document)


def _finish_analyses(
    counted: list[tuple[Column, list[Counted]]],
) -> tuple[Callable[..., Postings], tuple[int, ...]]:
    """Do the same for several analyses, whose terms are put into their spaces."""
    from bm25rag.analysis.spaces import into_space  # few indexes have several
    from bm25rag.columns.merge import join_columns
    from bm25rag.segments.text_fields import TextFields, number_lengths, number_runs

    columns = [into_space(column, place) for place, (column, _) in enumerate(counted)]
    terms = TermColumn(join_columns([(column, None) for column in columns]))
    batches = [one for _, own in counted for one in own]
    firsts = accumulate(map(len, columns), initial=0)
    runs = [
        one.run._replace(terms=one.run.terms + np.uint32(first))
        for (_, own), first in zip(counted, firsts, strict=False)
        for one in own
    ]
    by_document = np.column_stack([_lengths(own) for _, own in counted])
    rows = number_runs(runs, [one.rows for one in batches if one.rows is not None], len(counted))
    distinct, (numbers, *of_analyses) = number_lengths(by_document)
    # As the fields of an index have names, analyses have numbers, but for the first.
    names = ("", *map(str, range(1, len(counted))))
    fields = TextFields(names, rows, distinct)
    build = partial(build_postings, terms, runs, numbers, fields, of_analyses)
    return build, _tokens(by_document)


def _lengths(counted: list[Counted]) -> UInt32:
    return np.concatenate([np.empty(0, np.uint32), *(one.lengths for one in counted)])


def _tokens(lengths: UInt32) -> tuple[int, ...]:
    """Return the sum of lengths by column; one 0 if all are 0."""
    tokens = tuple(lengths.sum(axis=0, dtype=np.int64).tolist())
    return tokens if any(tokens) else (0,)

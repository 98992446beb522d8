"""Segments: the immutable units an index is made of, and parts: segments as a snapshot sees them.

A segment holds the postings and the documents of one stretch of the index. What
happens to it later, deletions and new metadata, lies in the ``Part`` around it, so
that a reader's snapshot never changes under it and a write never copies postings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from bm25rag._types import Bool, Int64, UInt32, utf8_each
from bm25rag.analysis import Analyzer
from bm25rag.columns import Column, ColumnBuilder, join, join_none
from bm25rag.documents import write_metadata
from bm25rag.encoding import Encoder, Read
from bm25rag.fields import Fields, FieldsBuilder, build_fields
from bm25rag.kernels import backend
from bm25rag.kernels.boundary import Run
from bm25rag.layers import Layer, changed_in, every_death, put_on
from bm25rag.masks import MaskCache
from bm25rag.postings import Postings, TermList, build_postings
from bm25rag.tables import StringTable, index_column
from bm25rag.turns import give_way, help_thread, in_turns

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# Documents looked up in an array in the time of one binary search.
_SEARCH = 16
# Characters or tokens that repay starting a thread.
_WORTH_A_THREAD = 1 << 18

_Result = TypeVar("_Result")
Counted = tuple[Run, UInt32]


class Segment:
    """Postings and documents of one stretch of the index, ``tokens`` terms long; immutable.

    ``kept`` are the fields of the metadata; ``None``: made from it when a filter first asks.
    ``masks`` are those of filters on this segment.
    """

    def __init__(
        self,
        postings: Postings,
        ids: StringTable,
        texts: Column,
        metadata: Column,
        payloads: Column,
        tokens: int,
        kept: Fields | None = None,
    ) -> None:
        self.postings, self.ids = postings, ids
        self.texts, self.metadata, self.payloads = texts, metadata, payloads
        self.tokens, self.kept = tokens, kept
        self.masks = MaskCache()

    def __len__(self) -> int:
        return len(self.postings.lengths)

    @property
    def fields(self) -> Fields:
        """The fields of the metadata that the segment was built with."""
        if self.kept is None:
            self.kept = build_fields(self.metadata)
        return self.kept

    def id_of(self, number: int) -> str:
        """Return the id of document ``number``."""
        return self.ids.column.texts((number,))[0] or ""

    def check_all(self) -> None:
        """Check every array that comes from a file; raise ``CorruptIndexError``."""
        guard = self.postings.guard
        self.postings.check_all()
        if guard is not None and int(self.postings.lengths.sum(dtype=np.int64)) != self.tokens:
            raise guard.reject("lengths", "does not agree with the manifest")
        self.ids.check_all()
        for column in (self.texts, self.metadata, self.payloads):
            column.check_all()
        if self.kept is not None:
            self.kept.check_all()

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        columns = (self.ids.column, self.texts, self.metadata, self.payloads)
        keys = self.ids.keys.nbytes + self.ids.order.nbytes
        own = self.postings.nbytes + keys + sum(column.nbytes for column in columns)
        return own if self.kept is None else own + self.kept.nbytes


class SegmentBuilder:
    """Takes documents, some at a time, and makes a segment of them.

    Where there are threads, they read texts and count terms, while the caller's numbers
    the terms of texts read before.

    Parameters
    ----------
    analyzer
        How texts become terms.
    threads
        How many threads to use at most, the caller's too.
    """

    def __init__(self, analyzer: Analyzer, threads: int) -> None:
        self._encoder = Encoder(analyzer)
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._reading: deque[Callable[[], Read]] = deque()
        self._counting: list[Callable[[], Counted]] = []
        self._done = 0
        self._ids, self._texts = ColumnBuilder(), ColumnBuilder()
        self._metadata, self._payloads = ColumnBuilder(), ColumnBuilder()
        self._fields = FieldsBuilder()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str | Sequence[str]],
        stored: bool,
        metadata: Sequence[dict[str, Any]] | None,
        payloads: Sequence[bytes | None] | None,
    ) -> None:
        """Add documents; a text is analysed, a list of terms taken as it is.

        The metadata are as ``plain_metadata`` returns them.
        """
        read = self._encoder.reader(texts, stored)
        self._reading.append(self._start(read, sum(map(len, texts))))
        give_way()
        self._ids.extend(join(utf8_each(ids)))
        self._payloads.extend(join_none(len(ids)) if payloads is None else join(payloads))
        if metadata is None:
            self._metadata.extend(join_none(len(ids)))
            self._fields.skip(len(ids))
        else:
            written = in_turns(map(write_metadata, metadata, ids))
            self._metadata.extend(join([one or None for one in written]))
            self._fields.take(metadata)
        # Not more, lest reading run ahead and fill the memory.
        if len(self._reading) >= self._threads:
            self._take_next()

    def _start(self, work: Callable[[], _Result], size: int) -> Callable[[], _Result]:
        """Begin some work, in another thread if that pays; return what waits for its result."""
        if self._threads == 1 or size < _WORTH_A_THREAD:
            result = work()
            return lambda: result
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # see ``search.search``

            helpers = self._threads - 1
            self._pool = ThreadPoolExecutor(
                helpers, initializer=help_thread, initargs=(get_ident(),)
            )
        return self._pool.submit(copy_context().run, work).result

    def _take_next(self) -> None:
        read = self._reading.popleft()()
        self._texts.extend(read.strings)
        tokens, counts = self._encoder.number(read)
        count = partial(backend.current().count, tokens, counts, len(self._encoder), self._done)
        self._counting.append(self._start(count, len(tokens)))
        self._done += len(counts)

    def finish(self) -> Segment:
        """Return the segment; the builder is used up."""
        while self._reading:
            self._take_next()
        terms = TermList(utf8_each(self._encoder.terms))
        counted = [wait() for wait in self._counting]
        lengths = np.concatenate([np.empty(0, np.uint32), *(own for _, own in counted)])
        tokens = int(lengths.sum(dtype=np.int64))
        build = partial(build_postings, terms, [run for run, _ in counted], lengths)
        postings = self._start(build, tokens)
        documents = (
            index_column(self._ids.finish()),
            self._texts.finish(),
            self._metadata.finish(),
            self._payloads.finish(),
        )
        fields = self._fields.finish()
        return Segment(postings(), *documents, tokens, fields)


class Part:
    """A segment as a snapshot sees it: without its dead, and with metadata changed since.

    Parameters
    ----------
    segment
        The documents and postings.
    layers
        What has happened to it since, the oldest first.
    """

    def __init__(self, segment: Segment, layers: tuple[Layer, ...] = ()) -> None:
        self.segment, self.layers = segment, layers
        # Numbers of the deleted documents, ascending.
        self.dead = every_death(layers)
        self.masks = MaskCache()
        self._living: Bool | None = None
        self._changed: dict[int, bytes] | None = None
        self._gone: dict[tuple[int, int], int] = {}
        gone = int(segment.postings.length_of(self.dead).sum()) if len(self.dead) else 0
        self.tokens = segment.tokens - gone
        self.count = len(segment) - len(self.dead)
        # Bytes of its living documents, about: what merging it costs.
        self.size = segment.nbytes * self.count // max(len(segment), 1)

    def __reduce__(self) -> tuple[type[Part], tuple[object, ...]]:
        return Part, (self.segment, self.layers)

    def __deepcopy__(self, memo: object) -> Part:
        return self  # nothing in it ever changes

    @property
    def living(self) -> Bool | None:
        """Which documents live, (n,), bool; ``None`` if all do."""
        if len(self.dead) and self._living is None:
            living = np.ones(len(self.segment), np.bool_)
            living[self.dead] = False
            self._living = living
        return self._living

    @property
    def changed(self) -> dict[int, bytes]:
        """New metadata, as JSON, by document number; some of these documents may be dead."""
        if self._changed is None:
            self._changed = changed_in(self.layers)
        return self._changed

    @property
    def changes(self) -> int:
        """How many documents have new metadata, about."""
        return sum(len(layer.changed) for layer in self.layers)

    def find(self, id: bytes) -> int:
        """Return the number of the living document with this id, or -1."""
        number = self.segment.ids.find(id)
        return number if number >= 0 and self.lives(number) else -1

    def lives(self, number: int) -> bool:
        """Whether document ``number`` has not been deleted."""
        if not len(self.dead):
            return True
        place = int(np.searchsorted(self.dead, number))
        return place == len(self.dead) or int(self.dead[place]) != number

    def metadata_of(self, numbers: Sequence[int]) -> list[memoryview | bytes | None]:
        """Return the metadata of documents as JSON."""
        stored: list[memoryview | bytes | None] = [*self.segment.metadata.views(numbers)]
        for layer in self.layers:
            if layer.changed:
                pairs = zip(numbers, stored, strict=True)
                stored = [layer.changed.get(number, before) for number, before in pairs]
        return stored

    def frequency(self, starts: Int64) -> int:
        """Count the living documents among the postings of one term, by where they begin."""
        first, last = int(starts[0]), int(starts[-1])
        if first == last or not len(self.dead):
            return last - first
        gone = self._gone.get((first, last))
        if gone is None:
            gone = self._gone[first, last] = self._count_dead(starts)
        return last - first - gone

    def _count_dead(self, starts: Int64) -> int:
        documents, living = self.segment.postings.documents_of(starts), self.living
        if living is not None and len(documents) < _SEARCH * len(self.dead):
            return len(documents) - int(np.count_nonzero(living[documents]))
        places = np.searchsorted(documents, self.dead)
        places[places == len(documents)] = 0
        return int(np.count_nonzero(documents[places] == self.dead))

    def frequencies(self) -> Int64:
        """Count the living documents of every term of the segment, (V,), int64."""
        postings = self.segment.postings
        if not len(self.dead):
            return postings.frequencies()
        living = np.ones(len(self.segment), np.int64)
        living[self.dead] = 0
        starts = postings.indptr[:-1].astype(np.int64)
        return np.add.reduceat(living[postings.all_documents()], starts, dtype=np.int64)

    def ranks(self, numbers: Int64) -> Int64:
        """Return the places of documents of the segment among its living ones."""
        return numbers - np.searchsorted(self.dead, numbers) if len(self.dead) else numbers

    def number_at(self, rank: int) -> int:
        """Return the document number of the living document at ``rank``."""
        if not len(self.dead):
            return rank
        # dead[i] - i living documents lie before dead[i].
        before = self.dead.astype(np.int64) - np.arange(len(self.dead))
        return rank + int(np.searchsorted(before, rank, side="right"))

    def numbers(self) -> range | Int64:
        """Return the numbers of the living documents, ascending."""
        living = self.living
        return range(len(self.segment)) if living is None else np.flatnonzero(living)

    def without(self, numbers: Iterable[int]) -> Part:
        """Return the part after these living documents are deleted."""
        gone = Layer(np.array(sorted(set(numbers)), np.uint32), {})
        return Part(self.segment, put_on(self.layers, gone))

    def with_metadata(self, changes: dict[int, bytes]) -> Part:
        """Return the part with new metadata for some documents."""
        return Part(self.segment, put_on(self.layers, Layer(every_death(()), changes)))

"""Segments of files made into one that need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from bm25rag.columns.chunked_merge import chunk_columns, chunk_tables
from bm25rag.columns.column import offset_type
from bm25rag.columns.merge import JoinedTerms, LivingStrings
from bm25rag.columns.string_table import key_ranges
from bm25rag.common.arrays import Array, Bool, UInt32, UInt64, Unsigned
from bm25rag.common.chunks import Chunks, Spool, Spools
from bm25rag.common.threads import map_in_order
from bm25rag.kernels.records import Run
from bm25rag.metadata.chunked_merge import LivingFields, chunk_fields
from bm25rag.segments import postings_builder
from bm25rag.segments.doc_blocks import pointer_type, spans
from bm25rag.segments.postings import LivingPostings, Postings
from bm25rag.segments.postings_builder import Placed, place_postings
from bm25rag.segments.vectors_builder import Weights, own_codes, vector_arrays
from bm25rag.segments.view import SegmentView

# About how many bytes a term of a segment and a posting take while they are merged.
_TERM_BYTES, _POSTING_BYTES = 200, 16
# Documents whose lengths are read in one step, or numbers that are written.
_LENGTHS = 1 << 16
_PAIR = np.uint64(1 << 32)

Arrays = dict[str, Array | Chunks]


def merge_in_chunks(
    views: Sequence[SegmentView],
    spools: Spools,
    room: int,
    threads: int = 1,
    note: Callable[[int], object] = lambda postings: None,
) -> Arrays:
    """Return the arrays of ``merge_segments(views)``, as a file has them and in its order.

    Parameters
    ----------
    views
        Consecutive segments of files, without new metadata.
    spools
        Hold arrays until they are written.
    room
        About how many bytes to use.
    threads
        How many threads may work on postings.
    note
        Is told how many postings have been merged since the last time.

    Raises
    ------
    CorruptIndexError
        If a file is damaged; for some arrays not before their chunks are read.
    OSError
        If the disk is full.
    """
    living = [view.living for view in views]
    columns = {
        "ids": [view.segment.ids.column for view in views],
        "texts": [view.segment.texts for view in views],
        "metadata": [view.segment.metadata for view in views],
        "payloads": [view.segment.payloads for view in views],
    }
    pieces = {name: list(map(LivingStrings, each, living)) for name, each in columns.items()}
    ids = list(zip((view.segment.ids for view in views), living, strict=True))
    arrays = _PostingsMerge(views, _Codes(views), spools, room // (threads + 1)).run(threads, note)
    arrays |= chunk_columns("ids", pieces["ids"])
    documents = sum(view.count for view in views)
    arrays["lengths"] = Chunks(np.uint32, documents, _lengths(views))
    arrays["ids.keys"], arrays["ids.order"] = chunk_tables(ids, spools, room)
    offsets = accumulate((view.count for view in views), initial=0)
    fields = [view.segment.fields for view in views]
    sources = list(map(LivingFields, fields, living, offsets))
    field_arrays, field_columns = chunk_fields(sources, documents, spools)
    arrays |= field_arrays
    for name in ("texts", "metadata", "payloads"):
        arrays |= chunk_columns(name, pieces[name])
    arrays |= field_columns
    if any(view.segment.vectors is not None for view in views):
        by_vectors = [view.by_vectors for view in views]
        codes = _VectorCodes(by_vectors)
        merged = _PostingsMerge(by_vectors, codes, spools, room // (threads + 1)).run(threads, note)
        if len(merged["documents"]):
            arrays |= vector_arrays(merged, codes.bounds)
    return arrays


def _lengths(views: Sequence[SegmentView]) -> Iterator[UInt32]:
    for view in views:
        numbers = view.numbers()
        for first in range(0, len(numbers), _LENGTHS):
            some = np.asarray(numbers[first : first + _LENGTHS], np.uint32)
            yield view.segment.postings.length_of(some).astype(np.uint32)


class _Codes:
    """The impact codes of the merged postings, and how those of each segment become them.

    Attributes
    ----------
    tf, lengths
        The pair of each code, uint32.
    type
        The type of codes.
    of_segment
        The new code of each code of each segment.
    """

    def __init__(self, views: Sequence[SegmentView]) -> None:
        pairs = [_pairs(view.segment.postings) for view in views]
        living = [each[_used_codes(view)] for each, view in zip(pairs, views, strict=True)]
        distinct = np.unique(np.concatenate([np.empty(0, np.uint64), *living]))
        narrow = len(distinct) <= postings_builder.NARROW
        self.type: type[np.uint16] | type[np.uint32] = np.uint16 if narrow else np.uint32
        self.tf = (distinct // _PAIR).astype(np.uint32)
        self.lengths = (distinct % _PAIR).astype(np.uint32)
        self.of_segment: list[Unsigned] = [
            np.searchsorted(distinct, each).astype(self.type) for each in pairs
        ]

    def codes(self, run: Run) -> Unsigned:
        """Return the code of every posting of a run, which has them where others have tf."""
        return run.tf

    def arrays(self, codes: Spool) -> Arrays:
        """Return the arrays of the codes, given those of all postings."""
        return {"codes": codes.chunks(), "code_tf": self.tf, "code_length": self.lengths}


class _VectorCodes(_Codes):
    """The same for postings of vectors; see ``Weights``."""

    def __init__(self, views: Sequence[SegmentView]) -> None:
        each = [view.segment.postings.pairs()[0] for view in views]
        used = (bits[_used_codes(view)] for bits, view in zip(each, views, strict=True))
        weights = Weights(used)
        self.type, self._distinct, self.bounds = weights.type, weights.distinct, weights.bounds
        self.of_segment = list(map(weights.codes_of, each))

    def arrays(self, codes: Spool) -> Arrays:
        """Return the arrays of the codes, given those of all postings."""
        if self._distinct is not None:
            return {"codes": codes.chunks(), "code_tf": self._distinct}
        return {"codes": _numbers(len(codes)), "code_tf": codes.chunks()}


def _numbers(count: int) -> Chunks:
    """Return the numbers from 0 to before ``count``."""
    firsts = range(0, count, _LENGTHS)
    pieces = (own_codes(first, min(first + _LENGTHS, count)) for first in firsts)
    return Chunks(np.uint32, count, pieces)


def _pairs(postings: Postings) -> UInt64:
    tf, lengths = postings.pairs()
    return tf * _PAIR + lengths


def _used_codes(view: SegmentView) -> slice | Bool:
    """Return which codes postings of living documents have."""
    living, postings = view.living, view.segment.postings
    if living is None:
        return slice(None)
    used = np.zeros(len(postings.code_tf), np.bool_)
    for first, last in spans(postings.indptr):
        _, documents, codes = postings.between(first, last)
        used[codes[living[documents]]] = True
    return used


class _PostingsMerge:
    """Merges postings, those of a range of the terms' keys at a time.

    Parameters
    ----------
    views, spools
        As for ``merge_in_chunks``.
    codes
        Those of the merged postings.
    room
        How many bytes one range may take.
    """

    def __init__(
        self, views: Sequence[SegmentView], codes: _Codes, spools: Spools, room: int
    ) -> None:
        self._views, self._codes, self._spools, self._room = views, codes, spools, room
        self._offsets = list(accumulate((view.count for view in views), initial=0))
        self._terms = [view.segment.postings.terms for view in views]
        self._living = [
            None if view.living is None else LivingPostings(view.living) for view in views
        ]
        for table in self._terms:
            table.check_keys()

    def run(self, threads: int, note: Callable[[int], object]) -> Arrays:
        """Merge all, and return the arrays."""
        spool = self._spools.new
        indptr, starts, before = spool(np.int64), spool(np.int64), spool(np.int64)
        documents, codes = spool(np.uint16), spool(self._codes.type)
        frequent, edges, high = spool(np.uint32), spool(np.uint32), spool(np.uint16)
        keys, data = spool(np.uint32), spool(np.uint8)
        indptr.append(np.zeros(1))
        starts.append(np.zeros(1))
        ranges = key_ranges([table.keys for table in self._terms], self._cost, self._room)
        for part in map_in_order(self._merge, ranges, threads):
            frequent.append(part.doc_blocks.terms + np.uint32(len(keys)))
            before.append(part.doc_blocks.before.astype(np.int64) + len(high))
            edges.append(part.doc_blocks.edges)
            high.append(part.doc_blocks.high)
            indptr.append(part.indptr[1:] + len(documents))
            documents.append(part.documents)
            codes.append(part.codes)
            keys.append(part.terms.keys)
            starts.append(part.terms.column.offsets[1:].astype(np.int64) + len(data))
            data.append(part.terms.column.data)
            note(len(part.documents))
        pointers = pointer_type(len(documents))
        return {
            "indptr": indptr.chunks(pointers),
            "documents": documents.chunks(),
            **self._codes.arrays(codes),
            "doc_blocks.terms": frequent.chunks(),
            "doc_blocks.before": before.chunks(pointers),
            "doc_blocks.edges": edges.chunks(),
            "doc_blocks.high": high.chunks(),
            "terms.keys": keys.chunks(),
            "terms.offsets": starts.chunks(offset_type(len(data))),
            "terms.data": data.chunks(),
            "terms.null": np.empty(0, np.bool_),
        }

    def _cost(self, ranks: Sequence[slice]) -> int:
        cost = 0
        for view, some in zip(self._views, ranks, strict=True):
            indptr = view.segment.postings.indptr
            postings = int(indptr[some.stop]) - int(indptr[some.start])
            cost += _TERM_BYTES * (some.stop - some.start) + _POSTING_BYTES * postings
        return cost

    def _merge(self, ranks: Sequence[slice]) -> Placed:
        """Merge the postings of the terms between some ranks of each segment."""
        spans = [(some.start, some.stop) for some in ranks]
        terms = JoinedTerms(
            [table.between(*span) for table, span in zip(self._terms, spans, strict=True)]
        )
        runs = [
            self._run(segment, span, numbers)
            for segment, (span, numbers) in enumerate(zip(spans, terms.numbers, strict=True))
            if len(numbers)
        ]
        return place_postings(terms, runs, self._offsets[-1], self._codes)

    def _run(self, segment: int, span: tuple[int, int], numbers: UInt32) -> Run:
        postings, keep = self._views[segment].segment.postings.between(*span), self._living[segment]
        sizes, documents, codes = postings if keep is None else keep(*postings)
        new_codes = self._codes.of_segment[segment][codes]
        offset = self._offsets[segment]
        return Run(numbers, sizes.astype(np.uint32), documents, new_codes, offset)

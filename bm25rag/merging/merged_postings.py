"""The postings of segments that are merged, in memory or on the way to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np

from bm25rag.columns.column import offset_type
from bm25rag.columns.merge import JoinedTerms
from bm25rag.columns.string_table import key_ranges
from bm25rag.common.arrays import Array, Bool, UInt32, Unsigned, as_index
from bm25rag.common.chunks import Chunks, Spool, Spools
from bm25rag.common.threads import map_in_order
from bm25rag.kernels.records import Run
from bm25rag.segments import postings_builder
from bm25rag.segments.doc_blocks import pointer_type, spans
from bm25rag.segments.postings import LivingPostings, Postings
from bm25rag.segments.postings_builder import Placed, place_postings
from bm25rag.segments.strip_rows import offsets_of
from bm25rag.segments.vectors_builder import Weights, own_codes, vector_arrays
from bm25rag.segments.view import SegmentView

if TYPE_CHECKING:
    from bm25rag.segments.text_fields import TextFields

# About how many bytes a term of a segment and a posting take while they are merged.
_TERM_BYTES, _POSTING_BYTES = 200, 16
# Documents whose lengths are read in one step, or numbers that are written.
_LENGTHS = 1 << 16
_PAIR = np.uint64(1 << 32)

Arrays = dict[str, Array | Chunks]


class MergedPostings:
    """The postings of consecutive segments, which are merged when a method is called."""

    def __init__(self, views: Sequence[SegmentView]) -> None:
        self._views = views
        self._offsets = list(accumulate((view.count for view in views), initial=0))
        self._terms = [view.segment.postings.terms for view in views]
        self._keep = [None if one.living is None else LivingPostings(one.living) for one in views]
        for table in self._terms:
            table.check_keys()
        self._view_at = {offset: number for number, offset in enumerate(self._offsets[:-1])}
        self._text_fields: TextFields | None = None
        # The new number of each row of lengths of each segment, if texts have fields.
        self._new_lengths: list[UInt32] = []

    def _count_codes(self) -> None:
        """Find the codes of the merged postings, and how those of each segment become them."""
        pairs = [view.segment.postings.pairs() for view in self._views]
        used = [*map(_used_codes, self._views)]
        if any(view.segment.postings.text_fields is not None for view in self._views):
            pairs = self._join_fields(pairs, used)
        codes = [tf * _PAIR + lengths for tf, lengths in pairs]
        living = [each[those] for each, those in zip(codes, used, strict=True)]
        distinct = np.unique(np.concatenate([np.empty(0, np.uint64), *living]))
        self.type: Any = np.uint16 if len(distinct) <= postings_builder.NARROW else np.uint32
        self._tf = (distinct // _PAIR).astype(np.uint32)
        self._lengths = (distinct % _PAIR).astype(np.uint32)
        self._new_codes: list[Unsigned] = [
            np.searchsorted(distinct, each).astype(self.type) for each in codes
        ]

    def _join_fields(
        self, pairs: list[tuple[UInt32, UInt32]], used: Sequence[slice | Bool]
    ) -> list[tuple[UInt32, UInt32]]:
        """Give the rows in use of all segments new numbers; return the pairs of these."""
        from bm25rag.segments.text_fields import TextFields, join_used  # few indexes have fields

        each = [view.segment.postings.text_fields for view in self._views]
        fields = [one for one in each if one is not None]
        of_codes = [[tf[those]] for (tf, _), those in zip(pairs, used, strict=True)]
        counts, new_counts = join_used([one.counts for one in fields], of_codes)
        # Only of several analyses do codes have lengths that no document has.
        of_all = [
            chain(_living_lengths(view), [lengths[those]])
            for view, (_, lengths), those in zip(self._views, pairs, used, strict=True)
        ]
        lengths, new_lengths = join_used([one.lengths for one in fields], of_all)
        self._text_fields = TextFields(fields[0].names, counts, lengths)
        self._new_lengths = new_lengths
        renumbered = zip(pairs, new_counts, new_lengths, strict=True)
        return [
            (rows.take(as_index(tf)), of.take(as_index(lengths)))
            for (tf, lengths), rows, of in renumbered
        ]

    def lengths(self) -> Chunks:
        """Return the lengths of the living documents, as a file has them, once codes are known."""

        def pieces() -> Iterator[UInt32]:
            for place, view in enumerate(self._views):
                for some in _living_lengths(view):
                    yield (
                        self._new_lengths[place].take(as_index(some)) if self._new_lengths else some
                    )

        return Chunks(np.uint32, self._offsets[-1], pieces())

    def codes(self, run: Run) -> Unsigned:
        """Return the code of every posting of a run that has its segment's codes in place of tf."""
        return self._new_codes[self._view_at[run.first]].take(as_index(run.tf))

    def postings(self) -> Postings:
        """Return all, merged in memory."""
        placed = self._place_all()
        lengths = np.concatenate([np.empty(0, np.uint32), *self.lengths().pieces])
        return placed.postings(self._tf, self._lengths, lengths, text_fields=self._text_fields)

    def arrays(
        self, spools: Spools, room: int, threads: int, note: Callable[[int], object]
    ) -> Arrays:
        """Return the arrays of all, merged range by range of the terms' keys.

        The parameters are those of ``merge_in_chunks``, but ``room`` is that of one range.
        """
        self._count_codes()
        spool = spools.new
        indptr, starts, before = spool(np.int64), spool(np.int64), spool(np.int64)
        documents, codes = spool(np.uint16), spool(self.type)
        frequent, edges, high = spool(np.uint32), spool(np.uint32), spool(np.uint16)
        keys, data = spool(np.uint32), spool(np.uint8)
        indptr.append(np.zeros(1))
        starts.append(np.zeros(1))
        ranges = key_ranges([table.keys for table in self._terms], self._cost, room)
        for part in map_in_order(self._place, ranges, threads):
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
            self._keep_rows(part, len(keys) - len(part.terms))
            note(len(part.documents))
        pointers = pointer_type(len(documents))
        return {
            "indptr": indptr.chunks(pointers),
            "documents": documents.chunks(),
            **self._code_arrays(codes),
            "doc_blocks.terms": frequent.chunks(),
            "doc_blocks.before": before.chunks(pointers),
            "doc_blocks.edges": edges.chunks(),
            "doc_blocks.high": high.chunks(),
            "terms.keys": keys.chunks(),
            "terms.offsets": starts.chunks(offset_type(len(data))),
            "terms.data": data.chunks(),
            "terms.null": np.empty(0, np.bool_),
        }

    def _keep_rows(self, part: Placed, first: int) -> None:
        """Keep the rows of a range, whose first term has the number ``first``, if there are any."""

    def _code_arrays(self, codes: Spool) -> Arrays:
        arrays: Arrays = {"codes": codes.chunks(), "code_tf": self._tf}
        arrays["code_length"] = self._lengths
        return arrays if self._text_fields is None else {**arrays, **self._text_fields.arrays}

    def _cost(self, ranks: Sequence[slice]) -> int:
        cost = 0
        for view, some in zip(self._views, ranks, strict=True):
            indptr = view.segment.postings.indptr
            postings = int(indptr[some.stop]) - int(indptr[some.start])
            cost += _TERM_BYTES * (some.stop - some.start) + _POSTING_BYTES * postings
        return cost

    def _place_all(self) -> Placed:
        self._count_codes()
        return self._place([slice(0, len(table)) for table in self._terms])

    def _place(self, ranks: Sequence[slice]) -> Placed:
        """Merge the postings of the terms between some ranks of each segment."""
        pairs = zip(self._terms, ranks, strict=True)
        terms = JoinedTerms([table.between(some.start, some.stop) for table, some in pairs])
        each = zip(self._views, terms.numbers, self._keep, ranks, self._offsets, strict=False)
        runs = [
            view.segment.postings.runs(numbers, keep, some.start, offset)
            for view, numbers, keep, some, offset in each
        ]
        return place_postings(terms, list(chain(*runs)), self._offsets[-1], self)


class MergedVectors(MergedPostings):
    """The same for postings of vectors; see ``Weights``."""

    def __init__(self, views: Sequence[SegmentView]) -> None:
        super().__init__([view.by_vectors for view in views])

    def _count_codes(self) -> None:
        each = [view.segment.postings.pairs()[0] for view in self._views]
        used = map(_used_codes, self._views)
        self._weights = Weights(bits[those] for bits, those in zip(each, used, strict=True))
        self.type = self._weights.type
        self._new_codes = list(map(self._weights.codes_of, each))
        self._rows = self._weights.rows(self._offsets[-1])

    def postings(self) -> Postings:
        placed = self._place_all()  # which finds the weights
        return self._weights.postings(placed, self._offsets[-1])

    def arrays(
        self, spools: Spools, room: int, threads: int, note: Callable[[int], object]
    ) -> Arrays:
        self._row_terms, self._levels = spools.new(np.uint32), spools.new(np.uint8)
        self._row_sizes: list[int] = []
        arrays = super().arrays(spools, room, threads, note)
        if not len(arrays["documents"]):
            return {}
        rows = self._row_terms.chunks(), self._levels.chunks(), offsets_of(self._row_sizes)
        return vector_arrays(arrays, self._weights.bounds, rows if self._row_sizes else None)

    def _keep_rows(self, part: Placed, first: int) -> None:
        terms = self._rows.frequent(part.indptr)
        self._row_terms.append(terms + np.uint32(first))
        for row in self._rows.each(part, terms):
            self._levels.append(row)
            self._row_sizes.append(len(row))

    def _code_arrays(self, codes: Spool) -> Arrays:
        if self._weights.distinct is not None:
            return {"codes": codes.chunks(), "code_tf": self._weights.distinct}
        return {"codes": _numbers(len(codes)), "code_tf": codes.chunks()}


def _numbers(count: int) -> Chunks:
    """Return the numbers from 0 to before ``count``."""
    firsts = range(0, count, _LENGTHS)
    pieces = (own_codes(first, min(first + _LENGTHS, count)) for first in firsts)
    return Chunks(np.uint32, count, pieces)


def _used_codes(view: SegmentView) -> slice | Bool:
    """Return which codes the postings of living documents have."""
    living, postings = view.living, view.segment.postings
    if living is None:
        return slice(None)
    used = np.zeros(len(postings.code_tf), np.bool_)
    for first, last in spans(postings.indptr):
        _, documents, codes = postings.between(first, last)
        used[as_index(codes[living.take(as_index(documents))])] = True
    return used


def _living_lengths(view: SegmentView) -> Iterator[UInt32]:
    """Yield the lengths of the living documents, or their numbers."""
    numbers = view.numbers()
    for first in range(0, len(numbers), _LENGTHS):
        some = np.asarray(numbers[first : first + _LENGTHS], np.uint32)
        yield view.segment.postings.length_of(some).astype(np.uint32)

"""The state of an index that a search reads: its segments, their statistics and their scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, compress, islice, pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.common.arrays import Bool, Float32, Float64, Int64, as_index
from bm25rag.common.codec import decode_each
from bm25rag.common.gil import in_blocks, others_read
from bm25rag.common.lazy import lazy_property
from bm25rag.common.strings import CONTEXT, utf8, utf8_each
from bm25rag.documents import Document, Hit, Hits
from bm25rag.kernels import backend
from bm25rag.kernels.records import Allowed, Rows, SearchPlan, SegmentArrays
from bm25rag.kernels.term_lists import TermLists
from bm25rag.scoring.variants import DotProduct, Parameters
from bm25rag.search.contents import HitContents, StoredDocuments, read
from bm25rag.search.term_numbers import TermCache, TermCacheFullError
from bm25rag.segments.view import SegmentView, add_tokens

if TYPE_CHECKING:
    from bm25rag.filters import Filter
    from bm25rag.search.results import Totals
    from bm25rag.segments.statistics import Statistics

# The capacity of a snapshot's first term cache, and of its largest, which takes so many bytes.
_FEWEST_TERMS, _MOST_TERMS, _MOST_BYTES = 1 << 12, 1 << 17, 1 << 26
# So many terms of a batch have room without a look at how many of them are distinct.
_MOST_ROOM = 1 << 15

# Fewer ids than this are looked up faster one by one than all at once. So many are at a time if
# nobody waits: the more, the closer together they lie.
_FEW_IDS, _MANY_IDS = 16, 1 << 14

# What a document is read from.
_CONTENTS = ("id", "text", "metadata", "payload", "fields", CONTEXT)
# What a search returns is made of these.
_KINDS = Hit, Hits, HitContents


class Snapshot:
    """The state of an index at one moment; it never changes, so it needs no lock.

    It keeps what it computes on demand: terms and score tables. Two threads that compute
    the same at the same time get the same. Scores are computed with ``statistics`` if the segments
    are a part of a collection; otherwise these are ``None``.
    """

    # Whether there are other documents, of which nothing may be told.
    is_restricted = False

    def __init__(
        self,
        views: Sequence[SegmentView],
        parameters: Parameters,
        analyzer: Analyzer,
        statistics: Statistics | None = None,
    ) -> None:
        self.views: tuple[SegmentView, ...] = tuple(views)
        self.parameters = parameters
        self.analyzer = analyzer
        self.statistics = statistics
        self.rows = Rows([view.rows for view in self.views])
        self.count: int = self.rows.bases[-1]
        # The plans of searches without a filter; see ``ranking``.
        self.plans: dict[tuple[int, ...], Sequence[SearchPlan | None]] = {}
        tokens = add_tokens(view.tokens for view in self.views)
        # Of several analyses, those of the first.
        self.tokens: int = tokens[0] if analyzer.also else sum(tokens)
        of_all = tokens if statistics is None else statistics.tokens
        # How many documents the statistics are of.
        self.collection_size: int = self.count if statistics is None else statistics.documents
        self.matches_all: bool = all(parameters.matched_fields)
        totals: tuple[float, ...] = of_all
        if parameters.fields is not None:
            weighted = 0.0
            for count, weight in zip(of_all, parameters.field_weights, strict=False):
                weighted += weight * count
            totals = (weighted,)
        # By each analysis.
        size = self.collection_size
        self.averages: list[float] = [one / size if size else 0.0 for one in totals]
        self.average_length: float = self.averages[0]
        self._term_cache = TermCache(self.views, parameters, self.collection_size, 0, statistics)

    @property
    def is_part(self) -> bool:
        """Whether the documents are a part of a collection, whose others are elsewhere."""
        return self.collection_size != self.count

    @lazy_property
    def stored(self) -> StoredDocuments:
        """What reads the documents; of the snapshot it keeps nothing else."""
        return StoredDocuments(self.views, self.rows)

    @lazy_property
    def by_vectors(self) -> Snapshot:
        """The same documents, to be searched by their vectors."""
        return _VectorSnapshot(
            [view.by_vectors for view in self.views], DotProduct(), self.analyzer
        )

    @lazy_property
    def matching(self) -> Snapshot:
        """The same documents; words that are in fields of weight 0 alone do not match."""
        matched = self.parameters.matched_fields
        views = [view.matching(matched) for view in self.views]
        return Snapshot(views, self.parameters, self.analyzer, self.statistics)

    def tuned(self, parameters: Parameters, analyzer: Analyzer) -> Snapshot:
        """Return the same documents under other parameters, and weights of further analyses.

        It raises ``ValueError`` if other fields match, and only a whole collection would say what
        their terms weigh.
        """
        statistics = self.statistics
        if parameters.matched_fields != self.parameters.matched_fields:
            if self.is_part:
                raise ValueError(
                    "a shard alone cannot give or take a weight of 0: tune the whole index"
                )
            statistics = None  # those of the documents are the same
        return Snapshot(self.views, parameters, analyzer, statistics)

    # --- statistics and scores -------------------------------------------------

    def term_numbers(self, terms: Collection[str]) -> tuple[TermCache, list[int]]:
        """Return the cache of terms, and the numbers that terms have in it."""
        cache, number_query = self._term_cache, backend.current().number_query
        while True:  # another thread may have filled a larger one
            try:
                return cache, number_query(terms, cache)
            except TermCacheFullError:
                cache = self._larger_cache(len(set(terms)))

    def query_numbers(
        self, queries: Sequence[Collection[str]]
    ) -> tuple[TermCache, tuple[Int64, Int64]]:
        """Return the same for the terms of queries, numbered as ``Queries`` takes them."""
        cache, number_terms = self._term_cache, backend.current().number_terms
        while True:  # as above
            try:
                return cache, number_terms(queries, cache)
            except TermCacheFullError:
                if isinstance(queries, TermLists):
                    wanted = queries.most_terms
                else:
                    wanted = sum(map(len, queries))
                if wanted > _MOST_ROOM:
                    wanted = len(set(chain.from_iterable(queries)))
                cache = self._larger_cache(wanted)

    def _larger_cache(self, wanted: int) -> TermCache:
        """Return a cache with room for so many more terms; keep it unless it takes much memory."""
        cache = self._term_cache
        room = max(_FEWEST_TERMS, _MOST_BYTES // cache.bytes_per_term)
        largest = min(_MOST_TERMS, room)
        capacity = max(_FEWEST_TERMS, min(4 * cache.capacity, largest), wanted)
        cache = cache.larger(capacity, wanted)
        if capacity <= largest:
            self._term_cache = cache
        return cache

    def idf(self, terms: Sequence[str], frequencies: Int64) -> Float32:
        """Return the idf of terms, given in how many documents of the segments each occurs."""
        if self.statistics is not None:
            each = map(self.statistics.frequency, utf8_each(terms))
            frequencies = np.fromiter(each, np.int64, len(terms))
        return self.parameters.idf(self.collection_size, frequencies.astype(np.float64))

    @lazy_property
    def absent_weight(self) -> np.float32:
        """What a query term that a document lacks adds per idf."""
        return self.parameters.absent_weight

    @lazy_property
    def tables(self) -> tuple[Float32, ...]:
        """``f(tf, |d|)`` of every impact code, for each segment, float32."""
        return tuple(self._table(view) for view in self.views)

    @lazy_property
    def arrays(self) -> tuple[SegmentArrays, ...]:
        """What a search reads of each segment."""
        return tuple(map(_arrays, self.views, self.tables))

    def _table(self, view: SegmentView) -> Float32:
        postings = view.segment.postings
        tf, lengths = postings.weighted_pairs(self.parameters.field_weights)
        if not len(tf) or not any(self.averages):  # no postings, or none of living documents
            return np.zeros(len(tf), np.float32)
        average: float | Float64 = self.average_length
        if self.analyzer.also and postings.text_fields is not None:
            averages = np.ones(len(postings.text_fields.names))  # for those of deleted documents
            for analysis, own in enumerate(self.averages):
                averages[analysis] = own or 1.0
            average = averages[postings.text_fields.analyses_of(postings.pairs()[0])]
        return self.parameters.weights(tf, lengths, average)

    def frequencies(self) -> tuple[list[str], Int64]:
        """Return the terms of living documents by code point, and their document frequencies."""
        totals: dict[str, int] = {}
        for view in self.views:
            view.segment.postings.check_all()
            terms = view.segment.postings.terms.column
            counts = view.frequencies().tolist()
            for term, count in zip(terms.texts(range(len(counts))), counts, strict=True):
                totals[term or ""] = totals.get(term or "", 0) + count
        ordered = sorted(term for term, count in totals.items() if count)
        return ordered, np.fromiter(map(totals.__getitem__, ordered), np.int64, len(ordered))

    # --- documents ----------------------------------------------------------------

    def find(self, id: str) -> tuple[int, int] | None:
        """Return where a living document is, as segment index and number; ``None`` if nowhere."""
        key = utf8(id)
        for segment_index, view in enumerate(self.views):
            number = view.find(key)
            if number >= 0:
                return segment_index, number
        return None

    def existing(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that living documents have."""
        if not self.views:  # of an index that is built, and ids need not be encoded
            return set()
        if len(ids) < _FEW_IDS:
            return {id for id in ids if self.find(id) is not None}
        return {
            view.segment.id_of(number)
            for keys in in_blocks(utf8_each(ids), None if others_read() else _MANY_IDS)
            for view in self.views
            for number in view.segment.ids.find_all(keys).tolist()
            if view.lives(number)
        }

    def locate(self, row: int) -> tuple[int, int]:
        """Return where the living document at ``row`` is, as segment index and number."""
        (segment_index,), (number,) = backend.current().locate(self.rows, (row,))
        return segment_index, number

    def by_segment(self, rows: Int64) -> Iterator[tuple[SegmentView, Bool | slice, Int64]]:
        """Yield each segment with the places of its documents among ``rows``, and their numbers."""
        if len(self.views) == 1:
            yield self.views[0], slice(None), self.views[0].rows.numbers_at(rows)
            return
        owners = np.searchsorted(self.rows.bases, rows, side="right") - 1
        for owner in np.unique(owners).tolist():
            places = owners == owner
            view = self.views[owner]
            yield view, places, view.rows.numbers_at(rows[places] - self.rows.bases[owner])

    def rows_of(self, masks: Sequence[Allowed | None]) -> Int64:
        """Return the rows of the documents of masks, ascending."""
        rows = []
        for view, mask, base in zip(self.views, masks, self.rows.bases, strict=False):
            numbers = np.arange(len(view.segment)) if mask is None else np.flatnonzero(mask.mask)
            rows.append(view.rows.ranks(numbers) + base)
        return np.concatenate(rows)

    def row_of(self, id: str) -> int:
        """Return the row of a living document."""
        place = self.find(id)
        assert place is not None
        rank = self.views[place[0]].rows.ranks(np.array([place[1]]))
        return self.rows.bases[place[0]] + int(rank[0])

    def id_at(self, row: int) -> str:
        """Return the id of the living document at ``row``."""
        segment_index, number = self.locate(row)
        return self.views[segment_index].segment.id_of(number)

    def ids_at(self, rows: Int64) -> list[str]:
        """Return the ids of living documents by their rows."""
        return [id for block in in_blocks(rows.tolist()) for id in self.stored.read("id", block)]

    def document(self, segment_index: int, number: int) -> Document:
        """Return a fresh document."""
        (document,) = self.documents_at([(segment_index, number)])
        return document

    def documents_at(self, places: Sequence[tuple[int, int]]) -> list[Document]:
        """Return fresh documents by segment index and number; those of a segment read together."""
        by_segment: dict[int, list[int]] = {}
        for position, (segment_index, _) in enumerate(places):
            by_segment.setdefault(segment_index, []).append(position)
        made: dict[int, Document] = {}
        for segment_index, positions in by_segment.items():
            for block in in_blocks(positions):
                numbers = [places[position][1] for position in block]
                columns = [read(self.views[segment_index], name, numbers) for name in _CONTENTS]
                for position, id, text, metadata, payload, fields, context in zip(
                    block, *columns, strict=True
                ):
                    made[position] = Document(id, text, metadata, payload, None, fields, context)
        return [made[position] for position in range(len(places))]

    def stats(self) -> dict[str, Any]:
        """Return counts and sizes; see ``BM25Index.stats``."""
        terms, postings = self._term_counts
        sizes = [view.segment.sizes for view in self.views]
        by_kind = {kind: sum(size[kind] for size in sizes) for kind in (sizes[0] if sizes else ())}
        if sizes:
            changes = (change.nbytes for view in self.views for change in view.changes)
            by_kind["changes"] = sum(changes)
        return {
            "documents": self.count,
            "terms": terms,
            "postings": postings,
            "tokens": self.tokens,
            "average_length": self.average_length,
            "segments": len(self.views),
            "deleted": sum(len(view.deleted) for view in self.views),
            "impact_codes": sum(len(view.segment.postings.code_tf) for view in self.views),
            "bytes": sum(by_kind.values()),
            "bytes_by_kind": by_kind,
            "compaction_frees": self._freed_by_compaction(terms),
        }

    @lazy_property
    def _term_counts(self) -> tuple[int, int]:
        """How many terms living documents have, and postings.

        The terms of the largest segment are not read: those of 150,000 passages took a second.
        """
        if not self.views:
            return 0, 0
        for view in self.views:
            view.segment.postings.check_all()
        counts = [view.frequencies() for view in self.views]
        tables = [view.segment.postings.terms for view in self.views]
        largest = max(range(len(tables)), key=lambda index: len(counts[index]))
        smaller: set[bytes] = set()
        for index, table in enumerate(tables):
            if index != largest:
                living = compress(table.column, (counts[index] > 0).tolist())
                smaller.update(bytes(term or b"") for term in living)
        in_both = counts[largest][as_index(tables[largest].find_all([*smaller]))]
        more = len(smaller) - np.count_nonzero(in_both)
        terms = int(np.count_nonzero(counts[largest]) + more)
        return terms, sum(int(each.sum()) for each in counts)

    def _freed_by_compaction(self, terms: int) -> int:
        """Return about how many bytes fewer one segment would take, in which each term is once."""
        freed, of_terms, held = 0, 0, 0
        for view in self.views:
            postings, size = view.segment.postings, len(view.segment)
            arrays = (postings.terms.column, postings.terms.keys, postings.indptr)
            own = sum(array.nbytes for array in arrays)
            freed += (view.segment.nbytes - own) * (size - view.count) // size
            freed += sum(change.nbytes for change in view.changes)
            of_terms, held = of_terms + own, held + len(postings.terms.keys)
        return freed + of_terms * (held - terms) // max(held, 1)

    def documents(self, ids: Iterable[str], filter: Filter | None) -> list[Document]:
        """Return fresh copies of the documents that exist and pass, by id."""
        places = (self.find(id) for id in ids)
        found = (place for place in places if place is not None)
        return self.documents_at([place for place in found if self.passes(*place, filter)])

    def count_passing(self, filter: Filter | None) -> int:
        """Return how many documents pass."""
        if filter is None:
            return self.count
        return sum(allowed.count for allowed in self.masks(filter) if allowed is not None)

    def hits(
        self,
        rows: list[int],
        scores: list[float],
        corrections: dict[str, str] | None = None,
        terms: Collection[str] = (),
        totals: Totals | None = None,
    ) -> Hits:
        """Return fresh hits for the documents at ``rows``.

        They say what was corrected in the query, where its ``terms`` are in their texts, and how
        large their groups are.
        """
        ids = self.stored.read("id", rows)
        answer = self.stored, self.analyzer, (terms,), (totals,), rows, ids
        hits: Hits
        (hits,) = backend.current().make_hits(_KINDS, answer, ids, scores, (len(rows),))
        if corrections:
            note_corrections(hits, corrections)
        return hits

    def hits_of_each(
        self,
        rows: Int64,
        scores: list[float],
        counts: Sequence[int],
        terms: Sequence[Collection[str]],
        totals: Sequence[Totals | None],
    ) -> list[Hits]:
        """Return fresh hits of some queries, of which each has so many of the rows, in order."""
        ids = self.stored.read("id", rows.tolist())
        # What hits keep has no object for each row.
        answer = self.stored, self.analyzer, terms, totals, rows.data, None
        return backend.current().make_hits(_KINDS, answer, ids, scores, counts)

    @lazy_property
    def living(self) -> tuple[Allowed | None, ...]:
        """Which documents of each segment live, as a search takes it; ``None`` where all do."""
        return tuple([view.allowed for view in self.views])

    # --- filters --------------------------------------------------------------------

    def masks(self, filter: Filter | None) -> tuple[Allowed | None, ...]:
        """Return which documents of each segment live and pass; ``None`` where all do."""
        if filter is None:
            return self.living
        from bm25rag.search.filter_masks import masks_of  # most searches have no filter

        masks = masks_of(self.views, filter)
        if not self.is_part and not any(mask.count for mask in masks):
            from bm25rag.search.known_fields import warn_of_types  # most filters pass something

            warn_of_types(self, filter)
        return masks

    def narrowed(self, masks: Sequence[Allowed | None], filter: Filter) -> list[Allowed]:
        """Return which of the documents of masks pass, too; no cache keeps it."""
        from bm25rag.search.filter_masks import numbers_anew  # as in ``masks``

        narrowed = []
        for view, mask in zip(self.views, masks, strict=True):
            numbers = numbers_anew(view, filter)
            kept = numbers if mask is None else numbers[mask.mask.take(as_index(numbers))]
            narrowed.append(Allowed.of_numbers(kept, len(view.segment)))
        return narrowed

    def passing(self, filter: Filter | None) -> Iterator[tuple[int, int]]:
        """Yield where the living documents that pass are, in order, as by ``locate``."""
        for segment_index, numbers in enumerate(self.passing_numbers(filter)):
            for number in numbers:
                yield segment_index, number

    def ids(self, filter: Filter | None, first: int, stop: int | None) -> list[str]:
        """Return the ids of the documents that pass, in order, from the first up to a last."""
        ids: list[str] = []
        last = self.count if stop is None else min(stop, self.count)  # as ``islice`` takes it
        each = self.passing_numbers(filter, first, last)
        for view, numbers in zip(self.views, each, strict=False):
            for block in in_blocks(numbers):
                ids += cast("list[str]", view.segment.ids.column.texts(block))  # none is missing
        return ids

    def passing_numbers(
        self, filter: Filter | None, first: int = 0, stop: int | None = None
    ) -> Iterator[Sequence[int]]:
        """Yield for each segment, in order, which of its documents pass and have these ranks.

        Documents behind the last rank are not looked at.
        """
        known, asked = filter, None
        if filter is not None:
            from bm25rag.filters import split  # as in ``masks``

            known, asked = split(filter)
        for segment_index, mask in enumerate(self.masks(known)):
            numbers: Sequence[int] | Int64
            numbers = range(len(self.views[segment_index].segment))
            if mask is not None:
                numbers = np.flatnonzero(mask.mask)
            if asked is not None:
                passing = (n for n in map(int, numbers) if self.passes(segment_index, n, asked))
                numbers = list(islice(passing, stop))
            page = numbers[first:stop]
            yield page.tolist() if isinstance(page, np.ndarray) else page
            first = max(0, first - len(numbers))
            if stop is not None:
                stop = max(0, stop - len(numbers))
                if not stop:
                    return

    def passes(self, segment_index: int, number: int, filter: Filter | None) -> bool:
        """Whether one document passes."""
        if filter is None:
            return True
        view = self.views[segment_index]
        id = view.segment.id_of(number)
        if filter.ids is not None:
            return id in filter.ids
        return filter.matches(id, decode_each(view.metadata_of((number,)))[0])


class _VectorSnapshot(Snapshot):
    """A snapshot whose impact codes stand for weights."""

    def _table(self, view: SegmentView) -> Float32:
        bits, _ = view.segment.postings.pairs()
        return bits.view(np.float32)


def _arrays(view: SegmentView, weights: Float32) -> SegmentArrays:
    postings, size = view.segment.postings, len(view.segment)
    block_size, bounds = postings.doc_blocks.size, postings.bounds
    arrays = postings.documents, postings.codes, weights, size, block_size, bounds
    return SegmentArrays(*arrays, postings.strips)


def note_corrections(hits: Iterable[Hit], corrections: dict[str, str]) -> None:
    """Have hits say what was corrected in their query."""
    for hit in hits:
        hit.corrections = dict(corrections)


def by_row(values: Sequence[Float64], snapshot: Snapshot) -> Float64:
    """Put the values of the documents of every segment into rows of living documents."""
    rows = np.empty(snapshot.count)
    spans = pairwise(snapshot.rows.bases)
    for view, value, (start, stop) in zip(snapshot.views, values, spans, strict=True):
        rows[start:stop] = value if view.living is None else value[view.living]
    return rows

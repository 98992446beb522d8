"""The hot loops in NumPy: the twin of the compiled ones, with the same ids, order and bits."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from itertools import accumulate, chain, islice, repeat
from typing import Any

import numpy as np

from bm25rag.common.arrays import (
    Bool,
    Float32,
    Float64,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Unsigned,
    as_index,
    narrowed,
)
from bm25rag.common.gil import releasing_gil
from bm25rag.kernels.boundary import Backend
from bm25rag.kernels.checks import check_rising, check_search, check_terms
from bm25rag.kernels.records import (
    STRIP,
    STRIP_GAP,
    Matches,
    PostingsTarget,
    Queries,
    Rows,
    Run,
    SearchPlan,
    SegmentArrays,
    StringArrays,
    TermArrays,
    TermNumbers,
)
from bm25rag.kernels.scanner_interface import STOPPED


class NumpyBackend(Backend):
    """NumPy, which is everywhere."""

    name = "numpy"

    def _search(
        self,
        segments: Sequence[SegmentArrays],
        terms: Sequence[TermArrays],
        rows: Rows,
        queries: Queries,
        floor: float,
        plans: Sequence[SearchPlan | None],
        matches: Matches,
    ) -> None:
        check_rising("pointers", queries.pointers, len(queries.terms))
        parts, k = (segments, terms, rows), matches.rows.shape[1]
        for query in range(len(queries)):
            span = slice(queries.pointers[query], queries.pointers[query + 1])
            asked, weights = queries.terms[span].tolist(), queries.weights[span].tolist()
            best, scores = self._search_one(*parts, asked, weights, floor, plans, k)
            count = len(best)
            matches.rows[query, :count], matches.rows[query, count:] = best, -1
            matches.scores[query, :count], matches.scores[query, count:] = scores, -np.inf
            matches.counts[query] = count

    def _search_one(
        self,
        segments: Sequence[SegmentArrays],
        terms: Sequence[TermArrays],
        rows: Rows,
        query: Sequence[int],
        weights: Sequence[float],
        floor: float,
        plans: Sequence[SearchPlan | None],
        k: int,
    ) -> tuple[list[int], list[float]]:
        best, scores = np.empty(0, np.int64), np.empty(0)
        parts = zip(segments, terms, rows.segments, rows.bases, plans, strict=False)
        for segment, own, places, base, plan in parts:
            if plan is None:
                continue
            numbers, found = _search_segment(segment, own, query, weights, floor, plan)
            best = np.concatenate((best, places.ranks(numbers) + base))
            scores = np.concatenate((scores, found))
            order = np.argsort(-scores, kind="stable")[:k]  # equal ones in that of the segments
            best, scores = best[order], scores[order]
            if len(scores) == k:  # from now on, a match must beat the last one
                floor = max(floor, float(scores[-1]))
        return best.tolist(), scores.tolist()

    def crc32(self, data: bytes | memoryview, before: int = 0) -> int:
        return zlib.crc32(data, before)

    def _find_wrong(
        self, documents: UInt16, starts: Int64, block_size: int, size: int
    ) -> str | None:
        if int(documents.max()) >= block_size:
            return "block"
        whole = documents + np.repeat(
            np.arange(len(starts) - 1) * block_size, as_index(np.diff(starts))
        )
        falls = np.any(whole[1:] <= whole[:-1]) or int(whole[-1]) >= size
        return "documents" if falls else None

    def decode(self, strings: StringArrays, numbers: Sequence[int]) -> list[str] | None:
        if len(strings.file.flags) or min(numbers, default=0) < 0:
            return None
        if max(numbers, default=0) >= len(strings.offsets) - 1 or strings.data.itemsize > 1:
            return None
        # Indexing a memoryview gives Python ints, in half the time of a NumPy scalar.
        starts, data = strings.offsets.data, strings.data.data
        views = [data[starts[number] : starts[number + 1]] for number in numbers]
        return [str(one, "utf-8", "surrogatepass") for one in views]

    def _unpack(
        self, pieces: UInt64, numbers: UInt16, starts: Int64, stops: Int64
    ) -> tuple[UInt8, Int64] | None:
        spans = [numbers[start:stop] for start, stop in zip(starts, stops, strict=True)]
        wanted = as_index(np.concatenate([np.empty(0, np.uint16), *spans]))
        if len(wanted) and int(wanted.max()) >= len(pieces):
            return None
        rows = pieces.astype("<u8").view(np.uint8).reshape(-1, 8)
        lengths = np.maximum(((rows != 0) * np.arange(1, 9)).max(axis=1, initial=1), 1)[wanted]
        ends = np.concatenate(([0], np.cumsum(lengths)))
        offsets = ends[np.cumsum([0, *map(len, spans)])]
        return rows[wanted][np.arange(8) < lengths[:, None]], offsets

    def _number_terms(
        self, queries: Sequence[Collection[str]], numbers: TermNumbers
    ) -> tuple[Int64, Int64]:
        pointers = np.fromiter(accumulate(map(len, queries), initial=0), np.int64, len(queries) + 1)
        total = int(pointers[-1])
        each = map(numbers.__getitem__, chain.from_iterable(queries))
        terms = np.fromiter(islice(each, total + 1), np.int64)
        if len(terms) > total:
            raise RuntimeError("a query grew while its terms were looked up")
        return pointers, terms

    def number_query(self, query: Collection[str], numbers: TermNumbers) -> list[int]:
        return list(map(numbers.__getitem__, query))

    def _checksums(self, data: UInt8, offsets: UInt64) -> UInt32:
        bounds, strings = offsets.data, data.data
        each = map(strings.__getitem__, map(slice, bounds, bounds[1:]))
        return np.fromiter(map(zlib.crc32, releasing_gil(each)), np.uint32, len(offsets) - 1)

    def _count(
        self, tokens: UInt32, counts: UInt32, terms: int, first: int, spare: list[Any]
    ) -> tuple[Run, UInt32]:
        documents = np.repeat(np.arange(len(counts), dtype=np.uint32), as_index(counts))
        kept = tokens != STOPPED
        documents = documents[kept]
        lengths = np.bincount(as_index(documents), minlength=len(counts)).astype(np.uint32)
        keys = (tokens[kept].astype(np.uint64) << np.uint64(32)) | documents
        keys.sort()
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1]))[: keys.size])
        tf = np.diff(starts, append=keys.size).astype(np.uint32)
        keys = keys[starts]
        run_terms, sizes = np.unique((keys >> np.uint64(32)).astype(np.uint32), return_counts=True)
        narrow = narrowed(keys.astype(np.uint32), np.uint16, np.uint32)
        tf = narrowed(tf, np.uint8, np.uint16, np.uint32)
        return Run(run_terms, sizes.astype(np.uint32), narrow, tf, first), lengths

    def _divide(self, run: Run, groups: UInt8, count: int) -> tuple[Run, Int64]:
        own = groups.take(as_index(run.terms))
        order = np.argsort(own, kind="stable")
        postings = np.argsort(np.repeat(own, as_index(run.sizes)), kind="stable")
        divided = run.terms[order], run.sizes[order], run.documents[postings], run.tf[postings]
        before = np.bincount(as_index(own + 1), minlength=count + 1)
        sizes = np.bincount(as_index(own + 1), weights=run.sizes, minlength=count + 1).astype(
            np.int64
        )
        return Run(*divided, run.first), np.cumsum([before, sizes], axis=1)

    def _fill(self, run: Run, codes: Unsigned, target: PostingsTarget) -> None:
        starts = np.cumsum(run.sizes, dtype=np.int64) - run.sizes
        cursors = target.cursors.take(as_index(run.terms))
        targets = np.arange(len(codes)) + np.repeat(cursors - starts, as_index(run.sizes))
        target.cursors[as_index(run.terms)] += run.sizes
        documents = run.documents + np.int64(run.first)
        blocks = documents // target.block_size
        target.documents[targets] = documents - blocks * target.block_size
        target.codes[targets] = codes
        if len(target.targets):
            shifts = np.repeat(target.targets.take(as_index(run.terms)), as_index(run.sizes))
            counted = shifts < 0
            np.add.at(target.cells, (-1 - shifts[counted], blocks[counted]), 1)
            target.high[(targets - shifts)[~counted]] = blocks[~counted]

    def _strip_row(
        self,
        documents: UInt16,
        codes: UInt16,
        starts: Int64,
        levels: UInt8,
        in_block: int,
        limit: int,
    ) -> UInt8:
        some = slice(starts[0], starts[-1])
        cells = (len(starts) - 1) * in_block
        origins = np.repeat(np.arange(0, cells, in_block), as_index(np.diff(starts)))
        all_strips = origins + documents[some] // STRIP
        begins = np.flatnonzero(np.diff(all_strips, prepend=-1))
        strips, largest = (
            all_strips[begins],
            np.maximum.reduceat(levels.take(as_index(codes[some])), begins),
        )
        if len(strips) > limit:
            row = np.zeros(cells, np.uint8)
            row[strips] = largest
            return row
        gaps = np.diff(strips, prepend=0)
        divided = np.maximum(gaps - 1, 0) // STRIP_GAP
        ends = np.cumsum(divided + 1) - 1
        pairs = np.zeros((len(gaps) + int(divided.sum()), 2), np.uint8)
        pairs[:, 0] = STRIP_GAP
        pairs[ends, 0], pairs[ends, 1] = gaps - STRIP_GAP * divided, largest
        return pairs.reshape(-1)


def _search_segment(
    segment: SegmentArrays,
    terms: TermArrays,
    query: Sequence[int],
    weights: Sequence[float],
    floor: float,
    plan: SearchPlan,
) -> tuple[Int64, Float64]:
    """Find the best k matches of one query in one segment: their numbers and scores."""
    check_search(segment, terms, plan)
    check_terms(min(query, default=-1), max(query, default=-1), len(terms.idf))
    known, counts = distinct(query, weights)
    idf = terms.idf[known]
    scores, touched = sum_parts(segment, terms.starts[known], idf, counts)
    if plan.allowed is not None:
        touched &= plan.allowed.mask
    candidates = np.flatnonzero(touched)
    scores = scores[candidates] + shift_of(idf, terms.absent, counts)
    return _best(candidates, scores, plan.k, floor)


def sum_parts(
    segment: SegmentArrays, starts: Int64, idf: Float32, counts: Float64
) -> tuple[Float64, Bool]:
    """Score every document of a segment of n for one query.

    ``starts`` and ``idf`` are those of its terms, as ``TermArrays`` has them, in order of first
    occurrence; ``counts`` how often each occurs in the query, or its weight, (t,), float64. It
    returns the sums of the parts, without the shift, (n,), float64, and which documents contain a
    query term, (n,).
    """
    size, block_size = segment.size, segment.block_size
    scores, touched = np.zeros(size), np.zeros(size, np.bool_)
    for block, first in enumerate(range(0, size if len(starts) else 0, block_size)):
        ends = zip(starts[:, block].tolist(), starts[:, block + 1].tolist(), strict=True)
        spans = [slice(*bounds) for bounds in ends]
        matched = as_index(np.concatenate([segment.documents[span] for span in spans]))
        parts = [
            (segment.weights.take(as_index(segment.codes[span])) * weight).astype(np.float64)
            * count
            for span, weight, count in zip(spans, idf, counts, strict=True)
        ]
        # bincount adds in the order of its input: term by term, as the score is defined.
        length = min(block_size, size - first)
        scores[first : first + length] = np.bincount(matched, np.concatenate(parts), length)
        touched[first : first + length][matched] = True
    return scores, touched


def distinct(terms: Sequence[int], weights: Sequence[float]) -> tuple[Int64, Float64]:
    """Return the distinct known terms of a query in order of first occurrence, and their counts.

    With ``weights``, one for each of ``terms``, the sums of these instead.
    """
    counted: dict[int, float] = {}
    for term, weight in zip(terms, weights or repeat(1.0)):  # noqa: B905
        if term >= 0:
            counted[term] = counted.get(term, 0.0) + weight
    return np.array(list(counted), np.int64), np.array(list(counted.values()), np.float64)


def shift_of(idf: Float32, absent: np.float32, counts: Float64) -> float:
    """Return what the lower bounds of a query's terms add to every score, summed in order."""
    shift = 0.0
    for part in ((idf * absent).astype(np.float64) * counts).tolist():
        shift += part
    return shift


def _best(numbers: Int64, scores: Float64, k: int, floor: float) -> tuple[Int64, Float64]:
    if floor > -np.inf:
        kept = scores > floor
        numbers, scores = numbers[kept], scores[kept]
    if len(scores) > k:
        # On the negated scores: argpartition is many times slower where the large end is flat.
        least = -np.partition(-scores, k - 1)[k - 1]
        kept = scores >= least
        numbers, scores = numbers[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")[:k]
    return numbers[order], scores[order]

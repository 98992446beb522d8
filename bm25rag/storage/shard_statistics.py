"""The statistics of a collection, merged from those of its shards.

A term table is in the order of its terms' CRC-32, so the terms of a range of it lie side by
side in every shard: such a range is a partition. Partitions are merged one at a time, by one
process or by many, and the merged partitions one after another are the table of all terms.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bm25rag.columns.column import Column
from bm25rag.columns.merge import JoinedTerms, join_columns
from bm25rag.columns.string_table import StringTable
from bm25rag.common.arrays import Int64, UInt32, as_index, narrowed
from bm25rag.errors import CorruptIndexError
from bm25rag.scoring.variants import Parameters
from bm25rag.segments.statistics import Statistics
from bm25rag.segments.view import SegmentView, add_tokens
from bm25rag.storage.checksummed_file import FileRecord, write_arrays
from bm25rag.storage.manifest import Manifest, Shards
from bm25rag.storage.segment_files import new_path
from bm25rag.storage.state import State, parse_settings

# Terms that are merged at a time, counted once for each segment that has them.
_TERMS = 1 << 20
_HASHES = 1 << 32


class TermCounts(NamedTuple):
    """Terms in the order of a table, and in how many documents each occurs, int64."""

    terms: StringTable
    counts: Int64


class LocalStatistics:
    """The statistics of an index or a shard, by its segments.

    ``documents`` are how many it has, ``tokens`` the sum of their lengths, by field.
    """

    def __init__(self, views: Sequence[SegmentView], parameters: Parameters) -> None:
        views = [view.matching(parameters.matched_fields) for view in views]
        self.documents: int = sum(view.count for view in views)
        self.tokens: tuple[int, ...] = add_tokens(view.tokens for view in views)
        self._counts = [TermCounts(view.segment.postings.terms, _count(view)) for view in views]

    def merged(self) -> Statistics:
        """Merge those of all segments, partition by partition, which bounds the memory."""
        of = -(-sum(len(counts) for _, counts in self._counts) // _TERMS) or 1
        merged = [merge_counts(self.partition(number, of)) for number in range(of)]
        return join_partitions(self.documents, self.tokens, merged)

    def partition(self, number: int, of: int) -> list[TermCounts]:
        """Return the counts in one of some partitions, for each segment."""
        parts = []
        for terms, counts in self._counts:
            part = partition_of(terms.keys, number, of)
            parts.append(TermCounts(_slice(terms, part.start, part.stop), counts[part]))
        return parts


def partition_of(keys: UInt32, number: int, of: int) -> slice:
    """Return which of a table's keys are in one of some partitions."""
    low, high = _HASHES * number // of, _HASHES * (number + 1) // of
    return slice(bisect_left(keys.data, low), bisect_left(keys.data, high))


def _count(view: SegmentView) -> Int64:
    postings = view.segment.postings
    postings.terms.check_all()
    if len(view.deleted):
        postings.check_all()
    return view.frequencies()


def _slice(table: StringTable, first: int, last: int) -> StringTable:
    offsets = table.column.offsets[first : last + 1]
    data = table.column.data[offsets[0] : offsets[-1]] if len(offsets) else table.column.data[:0]
    column = Column(offsets - offsets[:1], data, table.column.null[:0], last - first)
    return StringTable(column, table.keys[first:last], table.order[:0])


def merge_counts(parts: Sequence[TermCounts]) -> TermCounts:
    """Sum counts by term; terms are equal if their bytes are. Those that sum to 0 are dropped."""
    joined = JoinedTerms([part.terms for part in parts])
    totals = np.zeros(len(joined), np.int64)
    for numbers, part in zip(joined.numbers, parts, strict=True):
        totals[as_index(numbers)] += part.counts
    used = np.flatnonzero(totals)
    return TermCounts(joined.table(used)[0], totals[used])


def join_partitions(
    documents: int, tokens: tuple[int, ...], merged: Sequence[TermCounts]
) -> Statistics:
    """Join all merged partitions, in order, given the totals of all shards."""
    column = join_columns([(part.terms.column, None) for part in merged])
    keys = np.concatenate([np.empty(0, np.uint32), *(part.terms.keys for part in merged)])
    counts = np.concatenate([np.empty(0, np.int64), *(part.counts for part in merged)])
    frequencies = narrowed(counts.astype(np.uint64), np.uint32, np.uint64)
    return Statistics(
        documents, tokens, StringTable(column, keys, np.empty(0, np.uint32)), frequencies
    )


def count_shards(
    folder: str,
    state: State,
    segments: tuple[int, ...],
    capacity: int,
    statistics: Statistics | None = None,
) -> Shards:
    """Return what a manifest says of shards that have so many of the segments.

    The ``statistics``, which are counted if they are not given, are written into a new file of the
    folder, and flushed to disk.
    """
    if statistics is None:
        statistics = LocalStatistics(state.views, state.parameters).merged()
    table = statistics.terms
    rest = {"terms.keys": table.keys, "frequencies": statistics.frequencies}
    arrays = table.column.arrays("terms") | rest
    shards = Shards(segments, (), capacity, statistics.tokens, FileRecord("", 0, 0))
    documents = _count_documents(state.views, shards.edges)
    file = write_arrays(new_path(folder, "statistics"), arrays)
    return shards._replace(documents=documents, statistics=file)


def _count_documents(views: Sequence[SegmentView], edges: Sequence[int]) -> tuple[int, ...]:
    """Return how many documents each shard has, given where its segments begin."""
    return tuple(sum(view.count for view in views[a:b]) for a, b in pairwise(edges))


def check_statistics(
    folder: str, manifest: Manifest, views: Sequence[SegmentView], stored: Statistics
) -> None:
    """Check that stored statistics are those of all shards; raise ``CorruptIndexError``.

    They have been read with the shards: a writer may have removed the file meanwhile.
    """
    assert manifest.shards is not None
    parameters = parse_settings(folder, manifest.settings).parameters
    merged = LocalStatistics(views, parameters).merged()
    stored.terms.check_all()
    documents = _count_documents(views, manifest.shards.edges)
    if documents != manifest.shards.documents or not are_alike(merged, stored):
        raise CorruptIndexError(
            f"{os.path.join(folder, manifest.shards.statistics.name)}: does not agree with the "
            "shards; restore the folder from a copy"
        )


def are_alike(one: Statistics, other: Statistics) -> bool:
    """Whether two statistics say the same, of which the terms of both have been checked."""
    columns = one.terms.column, other.terms.column
    return (one.documents, one.tokens) == (other.documents, other.tokens) and all(
        (
            np.array_equal(columns[0].data, columns[1].data),
            np.array_equal(columns[0].lengths(), columns[1].lengths()),
            np.array_equal(one.frequencies, other.frequencies),
        )
    )

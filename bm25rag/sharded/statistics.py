"""The statistics of a collection, merged from those of its shards.

A term table is in the order of its terms' CRC-32, so the terms of a range of it lie side by
side in every shard: such a range is a partition. Partitions are merged one at a time, by one
process or by many, and the merged partitions one after another are the table of all terms.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bm25rag.columns.column import Column
from bm25rag.columns.merge import JoinedTerms, LivingStrings, join_columns
from bm25rag.columns.string_table import StringTable
from bm25rag.common.arrays import Int64, UInt32, as_index, narrowed
from bm25rag.scoring.variants import Parameters
from bm25rag.segments.statistics import Statistics
from bm25rag.segments.view import SegmentView, add_tokens
from bm25rag.storage.checksummed_file import ArraysFile, FileRecord, write_arrays
from bm25rag.storage.segment_files import read_terms

# Terms that are merged at a time, counted once for each segment that has them.
_TERMS = 1 << 20
_HASHES = 1 << 32


class TermCounts(NamedTuple):
    """Terms in the order of a table, and in how many documents each occurs, int64."""

    terms: StringTable
    counts: Int64


class LocalStatistics:
    """The statistics of one shard, by its segments.

    ``documents`` are how many it has, ``tokens`` the sum of their lengths, by field, and ``terms``
    how many terms, counted once for each segment that has them.
    """

    def __init__(self, views: Sequence[SegmentView], parameters: Parameters) -> None:
        views = [view.matching(parameters.matched_fields) for view in views]
        self.documents: int = sum(view.count for view in views)
        self.tokens: tuple[int, ...] = add_tokens(view.tokens for view in views)
        self._counts = [TermCounts(view.segment.postings.terms, _count(view)) for view in views]
        self.terms: int = sum(len(counts) for _, counts in self._counts)

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


def partitions_for(shards: Sequence[LocalStatistics]) -> int:
    """Return into how many partitions to divide the terms, which bounds the memory."""
    return -(-sum(shard.terms for shard in shards) // _TERMS) or 1


def merge_statistics(shards: Sequence[LocalStatistics]) -> Statistics:
    """Merge the statistics of all shards, partition by partition."""
    of = partitions_for(shards)
    merged = [
        merge_counts([part for shard in shards for part in shard.partition(number, of)])
        for number in range(of)
    ]
    documents = sum(shard.documents for shard in shards)
    return join_partitions(documents, add_tokens(shard.tokens for shard in shards), merged)


def join_partitions(
    documents: int, tokens: tuple[int, ...], merged: Sequence[TermCounts]
) -> Statistics:
    """Join all merged partitions, in order, given the totals of all shards."""
    column = join_columns([LivingStrings(part.terms.column, None) for part in merged])
    keys = np.concatenate([np.empty(0, np.uint32), *(part.terms.keys for part in merged)])
    counts = np.concatenate([np.empty(0, np.int64), *(part.counts for part in merged)])
    frequencies = narrowed(counts.astype(np.uint64), np.uint32, np.uint64)
    return Statistics(
        documents, tokens, StringTable(column, keys, np.empty(0, np.uint32)), frequencies
    )


def statistics_id(statistics: Statistics) -> str:
    """Return the id of statistics, which depends on nothing else."""
    digest = hashlib.blake2b(digest_size=16)
    column = statistics.terms.column
    column.check_all()
    totals = np.array([statistics.documents, *statistics.tokens, len(column)], "<i8")
    lengths = column.lengths().astype("<i8")
    for values in (totals, lengths, column.data, statistics.frequencies.astype("<i8")):
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def write_statistics(path: str, statistics: Statistics) -> FileRecord:
    """Write statistics into a new file and flush it to disk."""
    table = statistics.terms
    rest = {"terms.keys": table.keys, "frequencies": statistics.frequencies}
    return write_arrays(path, table.column.arrays("terms") | rest)


def read_statistics(
    folder: str, record: FileRecord, mapped: bool, documents: int, tokens: tuple[int, ...]
) -> Statistics:
    """Read statistics, of which each part is checked before its first use.

    What is damaged is a ``CorruptIndexError``, a missing file a ``FileNotFoundError``.
    """
    file = ArraysFile(os.path.join(folder, record.name), record, mapped)
    terms = read_terms(file, "")
    frequencies = file.array("frequencies", "u4", "u8", count=len(terms))
    return Statistics(documents, tokens, terms, frequencies.values, frequencies.check)

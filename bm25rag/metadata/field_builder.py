"""Builds fields from metadata."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from functools import partial
from itertools import accumulate, chain, compress, islice, repeat
from typing import Any, TypeAlias

import numpy as np

from bm25rag.columns.column import Column, build_column
from bm25rag.common.arrays import Bool, Int64
from bm25rag.common.chunks import Growing
from bm25rag.common.codec import read_plain, unescape
from bm25rag.common.gil import in_blocks, releasing_gil
from bm25rag.common.strings import utf8, utf8_each
from bm25rag.errors import CorruptIndexError
from bm25rag.metadata import kinds
from bm25rag.metadata.field import DAY, StringRange, shape_of
from bm25rag.metadata.field_merge import living_source, merge_fields, unite
from bm25rag.metadata.fields import MAX_FIELDS, Assembler, Fields
from bm25rag.metadata.instants import NO_MOMENT, Moments, Texts, read_iso
from bm25rag.metadata.paths import Node

# Documents that become fields together, to bound the memory of a build.
CHUNK = 1 << 14
# Metadata that are read together: few, or the garbage collector visits them all.
_BATCH = 1 << 7


class FieldsBuilder:
    """Makes fields of metadata that come in batches."""

    def __init__(self) -> None:
        self._root = Node()
        # Documents in chunks, and in the chunk to come.
        self._chunked = self._pending = 0
        self._chunks: list[Fields] = []

    def add(self, metadata: Sequence[dict[str, Any]]) -> None:
        """Add the metadata of documents, as ``plain_metadata`` returns them."""
        for batch in in_blocks(metadata, _BATCH):
            present = np.fromiter(map(bool, batch), np.bool_, len(batch))
            documents = np.flatnonzero(present) + self._pending
            self._root.add(documents, list(filter(None, batch)), 0)
            self.skip(len(batch))

    def skip(self, count: int) -> None:
        """Add documents without metadata."""
        self._pending += count
        if self._pending >= CHUNK and self._root.count:
            self._end_chunk()

    def _end_chunk(self) -> None:
        # In the order of ``kept_paths``.
        nodes = sorted(self._root.walk(()), key=lambda pair: (-pair[1].count, repr(pair[0])))
        kept = nodes[:MAX_FIELDS]
        assembler = Assembler(self._pending, Growing)
        assembler.complete = len(kept) == len(nodes)
        for path, node in releasing_gil(kept):
            codes, ranked = _rank(node)
            documents = np.concatenate(node.documents)
            if np.any(documents[1:] < documents[:-1]):  # dicts were grouped by their keys
                order = np.argsort(documents, kind="stable")
                documents, codes = documents[order], codes[order]
            for kind, values in enumerate(ranked):
                if len(values):
                    assembler.add_values(kind, values)
            assembler.add(path, list(map(len, ranked)), len(codes), [(documents, codes)])
        self._chunks.append(assembler.fields())
        self._root = Node()
        self._chunked, self._pending = self._chunked + self._pending, 0

    def finish(self) -> Fields:
        """Return the fields; the builder is used up."""
        if self._pending or not self._chunks:
            self._end_chunk()
        chunks = self._chunks
        if len(chunks) == 1:
            return chunks[0]
        starts = accumulate((chunk.count for chunk in chunks), initial=0)
        merged = Assembler(self._chunked, Growing)
        merge_fields(list(map(living_source, chunks, repeat(None), starts)), merged)
        return merged.fields()


def build_fields(metadata: Column) -> Fields:
    """Make the fields of a column of metadata; raise ``CorruptIndexError`` if they are not ours."""
    builder = FieldsBuilder()
    values = iter(metadata if len(metadata.data) else ())  # often there are none at all
    while chunk := list(islice(values, _BATCH)):
        plain = iter(read_plain(list(filter(None, chunk))))
        try:
            builder.add([next(plain) if data else {} for data in chunk])
        except ValueError as error:
            raise CorruptIndexError(f"stored metadata cannot be read: {error}") from None
    if not len(metadata.data):
        builder.skip(len(metadata))
    return builder.finish()


def _rank(node: Node) -> tuple[Int64, list[Any]]:
    """Return the code of each value, and the sorted distinct values of each kind."""
    sorters = _SORTERS | _SORTERS_IN_LISTS if node.in_list else _SORTERS
    by_kind: dict[int, list[tuple[Int64, Any]]] = {}
    for value_type, (chunks, values) in node.by_type.items():
        positions = np.concatenate(chunks)
        for kind, members, keys in sorters[value_type](values):
            of_kind = positions if members is None else positions[members]
            if len(of_kind):
                by_kind.setdefault(kind, []).append((of_kind, keys))
    codes, start = np.empty(node.count, np.int64), 0
    ranked: list[Any] = [()] * kinds.KINDS
    for kind in sorted(by_kind):
        of_kinds, keys_of_kind = zip(*by_kind[kind], strict=True)
        ranked[kind], ranks = _distinct(kind, keys_of_kind)
        codes[np.concatenate(of_kinds)] = start + ranks
        start += len(ranked[kind])
    return codes, ranked


def _distinct(kind: int, keys: Sequence[Any]) -> tuple[Any, Int64]:
    """Return the sorted distinct keys of one kind, and the rank of each key."""
    if kind in kinds.FLAGS:
        return [None], np.zeros(1, np.int64)
    if kind in kinds.NUMBERS:
        distinct, ranks = np.unique(np.concatenate(keys), return_inverse=True)
        return distinct, ranks
    runs, ranks_in_runs = [], []
    for texts in in_blocks(list(chain.from_iterable(keys))):
        run = sorted(set(texts))  # by code point, which is the order of UTF-8 too
        rank_of = dict(zip(run, range(len(run)), strict=True))
        runs.append(run)
        ranks_in_runs.append(np.fromiter(map(rank_of.__getitem__, texts), np.int64, len(texts)))
    union, ranks_of_runs = unite(runs)
    return utf8_each(union), np.concatenate(
        [of_run[ranks] for of_run, ranks in zip(ranks_of_runs, ranks_in_runs, strict=True)]
    )


# A sorter takes values of one Python type and yields each kind among them, which of the values
# are of that kind (None: all), and their keys.
_Sorted: TypeAlias = Iterator[tuple[int, Bool | None, Any]]


def _sort_integers(values: list[int]) -> _Sorted:
    try:
        yield kinds.WHOLE, None, np.array(values, np.int64)
    except OverflowError:
        fits = np.array([-(2**63) <= value < 2**63 for value in values])
        objects = np.array(values, np.object_)
        yield kinds.WHOLE, fits, objects[fits].astype(np.int64)
        yield kinds.OTHER, ~fits, list(map(str, objects[~fits]))


def _sort_floats(values: list[float]) -> _Sorted:
    reals = np.array(values)
    # A float without a fraction is the same value as that int.
    whole = (np.floor(reals) == reals) & (reals >= -(2.0**63)) & (reals < 2.0**63)
    finite = np.isfinite(reals)
    yield kinds.WHOLE, whole, reals[whole].astype(np.int64)
    yield kinds.REAL, finite & ~whole, reals[finite & ~whole]
    # NaN and infinities equal and order with nothing, so they are not among the sorted numbers.
    yield kinds.OTHER, ~finite, list(map(json.dumps, reals[~finite].tolist()))


def _sort_bools(values: list[bool]) -> _Sorted:
    true = np.array(values)
    yield kinds.TRUE, true, values[: int(true.sum())]
    yield kinds.FALSE, ~true, values[: int((~true).sum())]


def _sort_dates(values: list[Any]) -> _Sorted:
    clocks = _read_moments(values).clocks
    if np.any(clocks % DAY):
        raise CorruptIndexError("stored metadata cannot be read: a date has a time")
    yield kinds.DATE, None, clocks


def _sort_datetimes(values: list[Any]) -> _Sorted:
    clocks, instants, aware = _read_moments(values)
    utc = aware & (clocks == instants)
    zoned = aware & ~utc
    yield kinds.NAIVE, ~aware, clocks[~aware]
    yield kinds.UTC, utc, clocks[utc]
    yield kinds.ZONED, zoned, list(compress(values, zoned.tolist()))


def _read_moments(values: list[Any]) -> Moments:
    if not all(type(value) is str for value in values):
        raise CorruptIndexError("stored metadata cannot be read: a date is not a string")
    column = build_column(map(utf8, values))
    moments = Texts(StringRange(column, 0, len(column))).read(read_iso)
    if np.any(moments.clocks == NO_MOMENT):
        raise CorruptIndexError("stored metadata cannot be read: a date is not in the calendar")
    return moments


def _sort_shapes(values: list[tuple[str, ...]]) -> _Sorted:
    shapes = {keys: shape_of(map(unescape, keys)) for keys in set(values)}
    yield kinds.SHAPE, None, [shapes[keys] for keys in values]


def _unchanged(kind: int, values: list[Any]) -> _Sorted:
    yield kind, None, values


_SORTERS: dict[type, Callable[[list[Any]], _Sorted]] = {
    type(None): partial(_unchanged, kinds.NULL),
    bool: _sort_bools,
    int: _sort_integers,
    float: _sort_floats,
    str: partial(_unchanged, kinds.STRING),
    date: _sort_dates,
    datetime: _sort_datetimes,
    list: partial(_unchanged, kinds.LIST),
    tuple: _sort_shapes,
}
_WHOLE = partial(_unchanged, kinds.OTHER)
_SORTERS_IN_LISTS = {list: _WHOLE, dict: _WHOLE}

"""From metadata to fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any, TypeAlias

import numpy as np

from bm25rag.columns.column import Column, build_column
from bm25rag.common.arrays import Bool, Int64
from bm25rag.common.gil import BLOCK, in_blocks, releasing_gil
from bm25rag.common.strings import utf8, utf8_each
from bm25rag.errors import CorruptIndexError
from bm25rag.metadata.codec import read_plain, unescape
from bm25rag.metadata.field import (
    DATE,
    DAY,
    FALSE,
    FLAGS,
    KINDS,
    LIST,
    MOMENT,
    NULL,
    NUMBERS,
    OTHER,
    REAL,
    SHAPE,
    STRING,
    TRUE,
    WHOLE,
    StringRange,
    shape_of,
)
from bm25rag.metadata.field_merge import merge_fields, unite
from bm25rag.metadata.fields import MOST_FIELDS, Assembler, Fields
from bm25rag.metadata.instants import NO_INSTANT, instants_of
from bm25rag.metadata.paths import Node

# Documents that are gathered at once, to bound the memory of a build.
AT_ONCE = 1 << 14
# Metadata that are taken at once: few, or the garbage collector looks at them all.
_SOME = 1 << 7


class FieldsBuilder:
    """Takes metadata, some at a time, and makes fields of them."""

    def __init__(self) -> None:
        self._root = Node()
        # Documents in chunks, and since.
        self._done = self._taken = 0
        self._chunks: list[Fields] = []

    def take(self, metadata: Sequence[dict[str, Any]]) -> None:
        """Take the metadata of documents as ``plain_metadata`` returns them."""
        for some in in_blocks(metadata, _SOME):
            there = np.fromiter(map(bool, some), np.bool_, len(some))
            numbers = np.flatnonzero(there) + self._taken
            self._root.take(numbers, list(filter(None, some)), 0)
            self.skip(len(some))

    def skip(self, count: int) -> None:
        """Take documents without metadata."""
        self._taken += count
        if self._taken >= AT_ONCE and self._root.count:
            self._end_chunk()

    def _end_chunk(self) -> None:
        gathered = sorted(self._root.walk(()), key=lambda found: -found[1].count)
        kept = gathered[:MOST_FIELDS]
        assembler = Assembler(self._taken, len(kept) == len(gathered))
        for path, node in releasing_gil(kept):
            codes, ranked = _rank(node)
            documents = np.concatenate(node.numbers)
            if np.any(documents[1:] < documents[:-1]):  # documents of other keys came between
                order = np.argsort(documents, kind="stable")
                documents, codes = documents[order], codes[order]
            assembler.add(path, documents, codes, ranked)
        self._chunks.append(assembler.finish())
        self._root, self._done, self._taken = Node(), self._done + self._taken, 0

    def finish(self) -> Fields:
        """Return the fields; the builder is used up."""
        if self._taken or not self._chunks:
            self._end_chunk()
        chunks = self._chunks
        if len(chunks) == 1:
            return chunks[0]
        ends = np.cumsum([0, *(chunk.count for chunk in chunks)]).tolist()
        return merge_fields(chunks, [np.arange(*span) for span in pairwise(ends)], self._done)


def build_fields(metadata: Column) -> Fields:
    """Make the fields of a column of metadata.

    Raises
    ------
    CorruptIndexError
        If it comes from a file and is not what ``encode_metadata`` writes.
    """
    builder = FieldsBuilder()
    values = iter(metadata if len(metadata.data) else ())  # there may be none at all
    while chunk := list(islice(values, _SOME)):
        plain = iter(read_plain(list(filter(None, chunk))))
        try:
            builder.take([next(plain) if data else {} for data in chunk])
        except ValueError as error:
            raise CorruptIndexError(f"stored metadata cannot be read: {error}") from None
    if not len(metadata.data):
        builder.skip(len(metadata))
    return builder.finish()


def _rank(node: Node) -> tuple[Int64, list[Any]]:
    """Return the code of each value, and the sorted distinct values of each kind."""
    sorters = _SORTERS | _SORTERS_INSIDE_LISTS if node.inside else _SORTERS
    found: dict[int, list[tuple[Int64, Any]]] = {}
    for one, (positions, values) in node.found.items():
        places = np.concatenate(positions)
        for kind, which, keys in sorters[one](values):
            own = places if which is None else places[which]
            if len(own):
                found.setdefault(kind, []).append((own, keys))
    codes, start = np.empty(node.count, np.int64), 0
    ranked: list[Any] = [()] * KINDS
    for kind in sorted(found):
        chosen, pieces = zip(*found[kind], strict=True)
        ranked[kind], own = _distinct(kind, pieces)
        codes[np.concatenate(chosen)] = start + own
        start += len(ranked[kind])
    return codes, ranked


def _distinct(kind: int, pieces: Sequence[Any]) -> tuple[Any, Int64]:
    """Return the distinct values of one kind, sorted, and the place of each value among them."""
    if kind in FLAGS:
        return [None], np.zeros(1, np.int64)
    if kind in NUMBERS:
        distinct, places = np.unique(np.concatenate(pieces), return_inverse=True)
        return distinct, places
    runs, codes = [], []
    for texts in in_blocks(list(chain.from_iterable(pieces)), BLOCK):
        run = sorted(set(texts))  # by code point, as UTF-8 orders them
        known = dict(zip(run, range(len(run)), strict=True))
        runs.append(run)
        codes.append(np.fromiter(map(known.__getitem__, texts), np.int64, len(texts)))
    ordered, new = unite(runs)
    return utf8_each(ordered), np.concatenate(
        [own[code] for own, code in zip(new, codes, strict=True)]
    )


# Each sorts values of one type: the kind, which of them are of it, and what they are to a field.
_Sorted: TypeAlias = Iterator[tuple[int, Bool | None, Any]]


def _sort_integers(values: list[int]) -> _Sorted:
    try:
        yield WHOLE, None, np.array(values, np.int64)
    except OverflowError:
        fits = np.array([-(2**63) <= value < 2**63 for value in values])
        chosen = np.array(values, np.object_)
        yield WHOLE, fits, chosen[fits].astype(np.int64)
        yield OTHER, ~fits, list(map(str, chosen[~fits]))


def _sort_floats(values: list[float]) -> _Sorted:
    reals = np.array(values)
    # What is an integer by its value is the same as that int.
    whole = (np.floor(reals) == reals) & (reals >= -(2.0**63)) & (reals < 2.0**63)
    finite = np.isfinite(reals)
    yield WHOLE, whole, reals[whole].astype(np.int64)
    yield REAL, finite & ~whole, reals[finite & ~whole]
    # What equals and orders with nothing has no place among sorted numbers.
    yield OTHER, ~finite, list(map(json.dumps, reals[~finite].tolist()))


def _sort_bools(values: list[bool]) -> _Sorted:
    true = np.array(values)
    yield TRUE, true, values[: int(true.sum())]
    yield FALSE, ~true, values[: int((~true).sum())]


def _sort_instants(kind: int, values: list[Any]) -> _Sorted:
    if not all(type(value) is str for value in values):
        raise CorruptIndexError("stored metadata cannot be read: a date is no string")
    column = build_column(map(utf8, values))
    instants = instants_of(StringRange(column, 0, len(column)))
    if np.any(instants == NO_INSTANT) or (kind == DATE and np.any(instants % DAY)):
        raise CorruptIndexError("stored metadata cannot be read: a date is none")
    yield kind, None, instants


def _sort_shapes(values: list[tuple[str, ...]]) -> _Sorted:
    shapes = {keys: shape_of(map(unescape, keys)) for keys in set(values)}
    yield SHAPE, None, [shapes[keys] for keys in values]


def _as_they_are(kind: int, values: list[Any]) -> _Sorted:
    yield kind, None, values


_SORTERS: dict[type, Callable[[list[Any]], _Sorted]] = {
    type(None): partial(_as_they_are, NULL),
    bool: _sort_bools,
    int: _sort_integers,
    float: _sort_floats,
    str: partial(_as_they_are, STRING),
    date: partial(_sort_instants, DATE),
    datetime: partial(_sort_instants, MOMENT),
    list: partial(_as_they_are, LIST),
    tuple: _sort_shapes,
}
_WHOLE = partial(_as_they_are, OTHER)
_SORTERS_INSIDE_LISTS = {list: _WHOLE, dict: _WHOLE}

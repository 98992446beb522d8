"""What some documents have at a path of their metadata, from the fields where these hold it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from bm25rag.common.arrays import Float64, Int64
from bm25rag.common.codec import decode_each
from bm25rag.filters.values import instant_of, ticks, value_at
from bm25rag.metadata import kinds
from bm25rag.metadata.field import Field
from bm25rag.metadata.instants import NO_MOMENT, instants_of
from bm25rag.segments.view import SegmentView

# Kinds of which a field holds a part, or values that are equal to others of it.
_AMBIGUOUS = (kinds.LIST, kinds.NAIVE, kinds.UTC, kinds.ZONED, kinds.SHAPE, kinds.OTHER)


class PathValues:
    """The values at a path of the metadata of a view's documents."""

    def __init__(self, view: SegmentView, path: tuple[str, ...]) -> None:
        self._view, self._path = view, path
        self._field: Field | None = None
        self._is_kept = True
        try:
            self._field = view.segment.fields.find(path)
        except KeyError:
            self._is_kept = False

    @property
    def are_coded(self) -> bool:
        """Whether two documents have equal values if and only if they have the same code."""
        return self.are_looked_up and not self._view.changed

    @property
    def are_looked_up(self) -> bool:
        """Whether so it was before metadata were changed."""
        field = self._field
        if field is None:
            return self._is_kept
        reals = field.numbers_of(kinds.REAL)
        finite = not len(reals) or np.isfinite(reals[[0, -1]]).all()
        return bool(finite) and not any(map(field.has, _AMBIGUOUS))

    @property
    def most(self) -> int | None:
        """How many codes there are at most; ``None`` if not all documents have a value."""
        field = self._field
        everywhere = field is not None and field.documents is None and not field.has(kinds.NULL)
        return len(field) if field is not None and everywhere else None

    def codes(self, numbers: Int64) -> Int64:
        """Return the code of each document's value, -1 if it has none, or none but null."""
        codes = np.full(len(numbers), -1)
        field = self._field
        if field is None:
            return codes
        if field.documents is None:
            codes[:] = field.codes[numbers]
        elif len(field.documents):
            places = field.documents.searchsorted(numbers.astype(np.uint32))
            places[places == len(field.documents)] = 0
            there = field.documents[places] == numbers
            codes[there] = field.codes[places[there]]
        codes[codes < field.starts[kinds.FALSE]] = -1
        return codes

    def value(self, code: int) -> Any:
        """Return the value of a code whose kind is known whole."""
        field = self._field
        assert field is not None
        kind = bisect_right(field.starts, code) - 1
        return field.value(kind, code - field.starts[kind])

    def distinct(self, numbers: Int64) -> tuple[Int64, list[Any]]:
        """Return the place of each document's value in a list, -1 if it has none; and the list.

        Two values of the list may be equal.
        """
        codes = self.codes(numbers)
        unread = self._unread(numbers)
        if (field := self._field) is not None:
            for kind in (kinds.LIST, kinds.SHAPE):
                span = field.codes_of(kind)
                unread[(codes >= span.start) & (codes < span.stop)] = True
        codes[unread] = -1
        distinct, places = np.unique(codes, return_inverse=True)
        places -= len(distinct) and distinct[0] == -1
        values = [self.value(code) for code in distinct.tolist() if code >= 0]
        for place, value in self._read(numbers, unread):
            if value is not None:
                places[place] = len(values)
                values.append(value)
        return places, values

    def instants(self, numbers: Int64) -> Int64:
        """Return the instants that the documents' dates name, as ``ticks``; or ``NO_MOMENT``."""
        instants = np.full(len(numbers), NO_MOMENT)
        if self._field is not None:
            codes = self.codes(numbers)
            instants[codes >= 0] = instants_of(self._field)[codes[codes >= 0]]
        for place, value in self._read(numbers, self._unread(numbers)):
            then = instant_of(value)
            instants[place] = NO_MOMENT if then is None else ticks(then)
        return instants

    def numbers(self, numbers: Int64) -> Float64:
        """Return the numbers that the documents have, float64; NaN where there is none."""
        floats = np.full(len(numbers), np.nan)
        if (field := self._field) is not None:
            codes = self.codes(numbers)
            for kind in (kinds.WHOLE, kinds.REAL, kinds.OTHER):
                span = field.codes_of(kind)
                of_kind = (codes >= span.start) & (codes < span.stop)
                if of_kind.any():
                    values = _as_floats(field, kind)
                    floats[of_kind] = values[codes[of_kind] - span.start]
        for place, value in self._read(numbers, self._unread(numbers)):
            floats[place] = _as_float(value)
        return floats

    def _unread(self, numbers: Int64) -> Any:
        """Say of which documents the metadata must be read."""
        if not self._is_kept:
            return np.ones(len(numbers), np.bool_)
        changed = self._view.changed
        if not changed:
            return np.zeros(len(numbers), np.bool_)
        return np.fromiter((number in changed for number in numbers.tolist()), np.bool_)

    def _read(self, numbers: Int64, unread: Any) -> list[tuple[int, Any]]:
        """Return the places of some documents, and their values as their metadata say."""
        places: Sequence[int] = np.flatnonzero(unread).tolist()
        if not places:
            return []
        metadata = decode_each(self._view.metadata_of(numbers[places].tolist()))
        return [(p, value_at(one, self._path)) for p, one in zip(places, metadata, strict=True)]


def _as_floats(field: Field, kind: int) -> Any:
    if kind != kinds.OTHER:
        return field.numbers_of(kind)
    return np.array([_as_float(value) for value in field.values(kind)])


def _as_float(value: Any) -> float:
    if type(value) not in (int, float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf

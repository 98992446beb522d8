"""What a reader holds: an unchanging view of all parts, with their statistics and scores."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np

from bm25rag._types import Bool, Float32, Float64, Int64, text_of, utf8
from bm25rag.analysis import Analyzer
from bm25rag.documents import Document, Hit, decode_metadata
from bm25rag.filters import Filter
from bm25rag.postings import Bounds
from bm25rag.segment import Part
from bm25rag.variants import Parameters

# Resolved terms that a snapshot remembers, and filter masks.
_MOST_TERMS = 1 << 16
_MOST_MASKS = 64
_LONGEST_TERM = 100


@dataclass(slots=True)
class Term:
    """A query term in a snapshot.

    ``bounds`` says where its postings are in each part; ``packed`` is the same as int64
    bytes, which many terms' can be joined of into an array in no time.
    """

    document_frequency: int
    idf: np.float32
    bounds: tuple[Bounds, ...]
    packed: bytes


class Snapshot:
    """The state of an index at one moment; never changes, so needs no lock.

    What it computes on demand (terms, score tables, masks) it keeps; two threads that
    compute the same at once both get it right.

    Parameters
    ----------
    parts
        The parts, in document order.
    parameters
        The variant and its parameters.
    analyzer
        How queries become terms.
    """

    def __init__(self, parts: Sequence[Part], parameters: Parameters, analyzer: Analyzer) -> None:
        self.parts = tuple(parts)
        self.parameters = parameters
        self.analyzer = analyzer
        self.bases = tuple(accumulate((part.count for part in self.parts), initial=0))
        self.count = self.bases[-1]
        self.tokens = sum(part.tokens for part in self.parts)
        self.average_length = self.tokens / self.count if self.count else 0.0
        self._terms: dict[str, Term | None] = {}
        self._tables: tuple[Float32, ...] | None = None
        self._masks: dict[str, tuple[Bool | None, ...]] = {}

    # --- statistics and scores -------------------------------------------------

    def term(self, term: str) -> Term | None:
        """Look a term up; ``None`` if no living document contains it."""
        try:
            return self._terms[term]
        except KeyError:
            found = self._resolve(utf8(term))
            if len(term) <= _LONGEST_TERM:
                if len(self._terms) >= _MOST_TERMS:
                    self._terms = {}
                self._terms[term] = found
            return found

    def _resolve(self, term: bytes) -> Term | None:
        bounds = tuple(part.segment.postings.find(term) for part in self.parts)
        frequency = sum(part.frequency(own) for part, own in zip(self.parts, bounds, strict=True))
        if not frequency:
            return None
        idf = self.parameters.idf(self.count, np.array([frequency], np.float64))
        return Term(frequency, idf[0], bounds, array("q", chain.from_iterable(bounds)).tobytes())

    @property
    def tables(self) -> tuple[Float32, ...]:
        """``f(tf, |d|)`` of every impact code, for each part, float32."""
        if self._tables is None:
            self._tables = tuple(self._table(part) for part in self.parts)
        return self._tables

    def _table(self, part: Part) -> Float32:
        tf, lengths = part.segment.postings.pairs()
        if not len(tf) or not self.tokens:  # no postings, or none that live
            return np.zeros(len(tf), np.float32)
        return self.parameters.weights(
            tf.astype(np.float64), lengths.astype(np.float64), self.average_length
        )

    def frequencies(self) -> tuple[list[str], Int64]:
        """Return all terms of living documents by code point, and their document frequencies."""
        totals: dict[bytes, int] = {}
        for part in self.parts:
            part.segment.postings.check_all()
            terms = part.segment.postings.terms.column
            for term, count in zip(terms, part.frequencies().tolist(), strict=True):
                key = bytes(term or b"")
                totals[key] = totals.get(key, 0) + count
        ordered = sorted(term for term, count in totals.items() if count)
        counts = np.array([totals[term] for term in ordered], np.int64)
        return [text_of(term) for term in ordered], counts

    # --- documents ----------------------------------------------------------------

    def find(self, id: str) -> tuple[int, int] | None:
        """Return part and number of a living document, or ``None``."""
        key = utf8(id)
        for place, part in enumerate(self.parts):
            number = part.find(key)
            if number >= 0:
                return place, number
        return None

    def locate(self, row: int) -> tuple[int, int]:
        """Return part and number of the living document at ``row``."""
        if len(self.parts) == 1:
            return 0, self.parts[0].number_at(row)
        place = bisect_right(self.bases, row) - 1
        return place, self.parts[place].number_at(row - self.bases[place])

    def ids(self) -> Iterator[str]:
        """Yield the ids of the living documents in order."""
        for part in self.parts:
            for number in part.numbers():
                yield part.segment.id_of(int(number))

    def id_at(self, row: int) -> str:
        """Return the id of the living document at ``row``."""
        place, number = self.locate(row)
        return self.parts[place].segment.id_of(number)

    def document(self, place: int, number: int) -> Document:
        """Return a fresh document."""
        return Document(*self._contents(place, number))

    def hit(self, row: int, score: float) -> Hit:
        """Return a fresh hit for the document at ``row``."""
        id, text, metadata, payload = self._contents(*self.locate(row))
        return Hit(id, score, text, metadata, payload)

    def _contents(
        self, place: int, number: int
    ) -> tuple[str, str | None, dict[str, Any], bytes | None]:
        part = self.parts[place]
        segment = part.segment
        text, payload = segment.texts.get(number), segment.payloads.get(number)
        return (
            segment.id_of(number),
            None if text is None else text_of(text),
            decode_metadata(part.metadata_of(number)),
            None if payload is None else bytes(payload),
        )

    # --- filters --------------------------------------------------------------------

    def masks(self, filter: Filter | None) -> tuple[Bool | None, ...]:
        """Return which documents of each part live and pass; ``None`` where all do."""
        if filter is None:
            return tuple(part.living for part in self.parts)
        key = filter.key if filter.ids is None else None
        masks = None if key is None else self._masks.get(key)
        if masks is None:
            masks = tuple(self._mask(part, filter) for part in self.parts)
            if key is not None:
                if len(self._masks) >= _MOST_MASKS:
                    self._masks = {}
                self._masks[key] = masks
        return masks

    def _mask(self, part: Part, filter: Filter) -> Bool:
        mask = np.zeros(len(part.segment), np.bool_)
        if filter.ids is not None:
            numbers = (part.find(utf8(id)) for id in filter.ids)
            mask[[number for number in numbers if number >= 0]] = True
            return mask
        for number in part.numbers():
            metadata = decode_metadata(part.metadata_of(int(number)))
            mask[number] = filter.matches(part.segment.id_of(int(number)), metadata)
        return mask

    def passing(self, filter: Filter | None) -> Iterator[tuple[int, int]]:
        """Yield part and number of the living documents that pass, in order."""
        if filter is None:
            for place, part in enumerate(self.parts):
                for number in part.numbers():
                    yield place, int(number)
            return
        for place, mask in enumerate(self.masks(filter)):
            if mask is not None:
                for number in np.flatnonzero(mask):
                    yield place, int(number)

    def passes(self, place: int, number: int, filter: Filter | None) -> bool:
        """Whether one document passes."""
        if filter is None:
            return True
        part = self.parts[place]
        id = part.segment.id_of(number)
        if filter.ids is not None:
            return id in filter.ids
        return filter.matches(id, decode_metadata(part.metadata_of(number)))


def by_row(values: Sequence[Float64], snapshot: Snapshot) -> Float64:
    """Put per-document values of every part into rows of living documents."""
    rows = np.empty(snapshot.count)
    spans = pairwise(snapshot.bases)
    for part, value, (start, stop) in zip(snapshot.parts, values, spans, strict=True):
        rows[start:stop] = value if part.living is None else value[part.living]
    return rows

"""Segment: the immutable unit that an index is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING

from bm25rag.columns.column import Column
from bm25rag.columns.string_table import StringTable
from bm25rag.common.lazy import lazy_property
from bm25rag.metadata.mask_cache import MaskCache
from bm25rag.segments.postings import Postings

if TYPE_CHECKING:
    from bm25rag.metadata.fields import Fields


_NONE: Mapping[str, Column] = {}


class Segment:
    """Consecutive documents and their postings; immutable.

    ``tokens`` is the sum of the documents' lengths, by field. ``stored_fields`` are the fields of
    the metadata; if they are ``None``, they are made when they are first needed. ``vectors`` are
    the postings of sparse vectors; ``None``: no document has one. ``texts`` are those of the field
    ``text``, ``other_texts`` those of other fields, if there are any. ``masks`` are those of
    filters on this segment.
    """

    def __init__(
        self,
        postings: Postings,
        ids: StringTable,
        texts: Column,
        metadata: Column,
        payloads: Column,
        tokens: tuple[int, ...],
        stored_fields: Fields | None = None,
        vectors: Postings | None = None,
        other_texts: Mapping[str, Column] = _NONE,
    ) -> None:
        self.postings = postings
        self.ids = ids
        self.texts = texts
        self.metadata = metadata
        self.payloads = payloads
        self.tokens = tokens
        self.stored_fields = stored_fields
        self.vectors = vectors
        self.other_texts = other_texts
        self.masks: MaskCache = MaskCache()
        # The last result of ``matching``, and what it was asked for.
        self._matching: tuple[tuple[bool, ...], Segment] | None = None

    def __len__(self) -> int:
        return len(self.postings.lengths)

    @property
    def fields(self) -> Fields:
        """The fields of the metadata that the segment was built with."""
        if self.stored_fields is None:
            from bm25rag.metadata.field_builder import build_fields  # for filters and writes only

            self.stored_fields = build_fields(self.metadata)
        return self.stored_fields

    @lazy_property
    def by_vectors(self) -> Segment:
        """The same documents, with the postings of their vectors in place of their texts'."""
        from bm25rag.segments.vectors_builder import no_vectors  # few indexes have vectors

        segment = copy(self)
        segment.postings = no_vectors(len(self)) if self.vectors is None else self.vectors
        segment.tokens, segment.vectors = (0,), None
        return segment

    @property
    def names(self) -> tuple[str, ...] | None:
        """The fields of the texts; ``None`` if they have none."""
        fields = self.postings.text_fields
        return None if fields is None or fields.are_analyses else fields.names

    @property
    def analyses(self) -> int:
        """How many analyses the texts have."""
        fields = self.postings.text_fields
        return 1 if fields is None or not fields.are_analyses else len(fields.names)

    def texts_of(self, name: str) -> Column:
        """Return the texts of a field."""
        return self.other_texts.get(name, self.texts)

    def texts_by_field(self, numbers: Sequence[int]) -> list[list[str | None]]:
        """Return the texts of some documents, a list for each field; ``None`` if not stored."""
        return [self.texts_of(name).texts(numbers) for name in self.names or ("text",)]

    def matching(self, matched: tuple[bool, ...]) -> Segment:
        """Return the same documents, with the postings of fields that are matched."""
        known = self._matching
        if known is None or known[0] != matched:
            from bm25rag.segments.matching import matching_postings  # few weights are 0

            segment = copy(self)
            segment.postings = matching_postings(self.postings, matched)
            self._matching = known = matched, segment
        return known[1]

    def id_of(self, number: int) -> str:
        """Return the id of document ``number``."""
        return self.ids.column.texts((number,))[0] or ""

    def check_all(self) -> None:
        """Check everything that comes from a file; raise ``CorruptIndexError``."""
        self.postings.check_all()
        if self.vectors is not None:
            self.vectors.check_all()
        self.ids.check_all()
        for column in (self.texts, self.metadata, self.payloads, *self.other_texts.values()):
            column.check_all()
        if self.stored_fields is not None:
            self.stored_fields.check_all()

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of all arrays, by what they hold."""
        fields, vectors = self.stored_fields, self.vectors
        texts = (self.texts, *self.other_texts.values())
        return {
            "postings": self.postings.nbytes,
            "ids": self.ids.column.nbytes + self.ids.keys.nbytes + self.ids.order.nbytes,
            "texts": sum(column.nbytes for column in texts),
            "metadata": self.metadata.nbytes + (0 if fields is None else fields.nbytes),
            "payloads": self.payloads.nbytes,
            "vectors": 0 if vectors is None else vectors.nbytes,
        }

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(self.sizes.values())

"""Segment: the immutable unit that an index is made of."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from bm25rag.columns.column import Column
from bm25rag.columns.string_table import StringTable
from bm25rag.common.lazy import lazy_property
from bm25rag.metadata.mask_cache import MaskCache
from bm25rag.segments.postings import Postings

if TYPE_CHECKING:
    from bm25rag.metadata.fields import Fields


class Segment:
    """Consecutive documents and their postings; immutable.

    ``tokens`` is the sum of the documents' lengths. ``stored_fields`` are the fields of the
    metadata; if they are ``None``, they are made when they are first needed. ``vectors`` are the
    postings of sparse vectors; ``None``: no document has one. ``masks`` are those of filters on
    this segment.
    """

    def __init__(
        self,
        postings: Postings,
        ids: StringTable,
        texts: Column,
        metadata: Column,
        payloads: Column,
        tokens: int,
        stored_fields: Fields | None = None,
        vectors: Postings | None = None,
    ) -> None:
        self.postings, self.ids = postings, ids
        self.texts, self.metadata, self.payloads = texts, metadata, payloads
        self.tokens, self.stored_fields, self.vectors = tokens, stored_fields, vectors
        self.masks = MaskCache()

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
        segment.tokens, segment.vectors = 0, None
        return segment

    def id_of(self, number: int) -> str:
        """Return the id of document ``number``."""
        return self.ids.column.texts((number,))[0] or ""

    def check_all(self) -> None:
        """Check everything that comes from a file; raise ``CorruptIndexError``."""
        self.postings.check_all()
        if self.vectors is not None:
            self.vectors.check_all()
        self.ids.check_all()
        for column in (self.texts, self.metadata, self.payloads):
            column.check_all()
        if self.stored_fields is not None:
            self.stored_fields.check_all()

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        columns = (self.ids.column, self.texts, self.metadata, self.payloads)
        keys = self.ids.keys.nbytes + self.ids.order.nbytes
        own = self.postings.nbytes + keys + sum(column.nbytes for column in columns)
        optional = (self.stored_fields, self.vectors)
        return own + sum(part.nbytes for part in optional if part is not None)

"""Segment: the immutable unit that an index is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bm25rag.columns.column import Column
from bm25rag.columns.string_table import StringTable
from bm25rag.metadata.mask_cache import MaskCache
from bm25rag.segments.postings import Postings

if TYPE_CHECKING:
    from bm25rag.metadata.fields import Fields


class Segment:
    """Consecutive documents and their postings; immutable.

    ``tokens`` is the sum of the documents' lengths. ``stored_fields`` are the fields of the
    metadata; if they are ``None``, they are made when they are first needed. ``masks`` are
    those of filters on this segment.
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
    ) -> None:
        self.postings, self.ids = postings, ids
        self.texts, self.metadata, self.payloads = texts, metadata, payloads
        self.tokens, self.stored_fields = tokens, stored_fields
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

    def id_of(self, number: int) -> str:
        """Return the id of document ``number``."""
        return self.ids.column.texts((number,))[0] or ""

    def check_all(self) -> None:
        """Check everything that comes from a file; raise ``CorruptIndexError``."""
        self.postings.check_all()
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
        return own if self.stored_fields is None else own + self.stored_fields.nbytes

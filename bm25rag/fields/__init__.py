"""Fields: metadata by path, so that a filter looks at values and not at documents.

For each path of a segment's metadata its distinct values are kept, sorted, and for each
document the code of its value. A condition finds the codes that pass, by bisection where
it compares, and one look-up per document gives the mask. The JSON of the metadata stays
the truth; fields are made from it.
"""

from __future__ import annotations

from bm25rag.fields.building import FieldsBuilder, build_fields
from bm25rag.fields.field import Strings
from bm25rag.fields.masking import select
from bm25rag.fields.merging import merge_fields
from bm25rag.fields.store import Fields

__all__ = ["Fields", "FieldsBuilder", "Strings", "build_fields", "merge_fields", "select"]

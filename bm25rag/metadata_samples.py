"""A few documents whose metadata stand for all, chosen by the fields: no others are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import numpy as np

from bm25rag.common.arrays import Bool, Int64, as_index
from bm25rag.common.codec import decode_each
from bm25rag.filters import FilterSpec
from bm25rag.index import BM25Index
from bm25rag.metadata import kinds
from bm25rag.metadata.field import Field
from bm25rag.metadata.fields import Fields
from bm25rag.search.filter_masks import masks_of
from bm25rag.search.finding import parse_filter
from bm25rag.segments.view import SegmentView

Showing: TypeAlias = Literal["ends", "extremes", "values"]


def sample_metadata(
    index: BM25Index, showing: Showing, key: str | None = None, filter: FilterSpec | None = None
) -> list[dict[str, Any]]:
    """Return the metadata of some documents, in document order; of all, if the fields are too many.

    ``index`` is a snapshot. With ``"ends"``, they are the first and the last document with each
    key at the top of the metadata, or with this one; with ``"extremes"`` the first with the least
    and with the greatest value of each type, with ``"values"`` one or more with each value. Values
    are not ``None``.
    """
    snapshot = index._snapshot
    views, parsed = snapshot.views, parse_filter(filter, snapshot)
    masks = [view.living for view in views]
    if parsed is not None:
        masks = [allowed.mask for allowed in masks_of(views, parsed)]
    samples: list[dict[str, Any]] = []
    try:
        for view, mask in zip(views, masks, strict=True):
            chosen = [np.empty(0, np.int64)]
            for fields, numbers, counts in _sources(view, mask):
                chosen += [numbers[some] for some in _choose(fields, counts, showing, key)]
            stored = view.metadata_of(np.unique(np.concatenate(chosen)).tolist())
            samples += decode_each(stored)
    except KeyError:  # a field was not kept, see MAX_FIELDS
        return [document.metadata for document in index.get(index.ids(parsed))]
    return samples


def _sources(view: SegmentView, mask: Bool | None) -> Iterator[tuple[Fields, Int64, Bool]]:
    """Yield fields, the numbers of their documents, and which of these they speak for."""
    counts = np.ones(len(view.segment), np.bool_) if mask is None else mask.copy()
    for changes in reversed(view.changes):
        if changes.changed:
            yield changes.fields, changes.numbers, counts[changes.numbers]
            counts[changes.numbers] = False
    yield view.segment.fields, np.arange(len(view.segment)), counts


def _choose(fields: Fields, counts: Bool, showing: Showing, key: str | None) -> Iterator[Int64]:
    """Yield documents of some fields; raise ``KeyError`` if a field is unknown."""
    if key is None and not fields.complete:
        raise KeyError(key)
    for path in [path for path in fields if len(path) == 1] if key is None else [(key,)]:
        field = fields.find(path)
        if field is not None:
            documents = np.arange(fields.count) if field.documents is None else field.documents
            of_null = field.codes_of(kinds.NULL)
            counted = counts.take(as_index(documents))
            entries = np.flatnonzero(counted & (field.codes >= of_null.stop))
            if len(entries):
                chosen = _CHOICES[showing](field, field.codes[entries].astype(np.int64))
                yield documents[entries[chosen]].astype(np.int64)


def _extremes(field: Field, codes: Int64) -> Int64:
    chosen = [_of_kind(field, codes, kinds.OTHER)]
    for kind in (kinds.FALSE, kinds.TRUE, kinds.WHOLE, kinds.REAL, kinds.STRING):
        positions = _of_kind(field, codes, kind)
        if len(positions):
            values = codes[positions]
            chosen.append(positions[[int(values.argmin()), int(values.argmax())]])
    return np.concatenate(chosen)


def _values(field: Field, codes: Int64) -> Int64:
    # A code of these kinds stands for more than one value: 1 and 1.0, all lists, dicts alike.
    several = [_of_kind(field, codes, kind) for kind in (kinds.WHOLE, kinds.LIST, kinds.SHAPE)]
    return np.concatenate([np.unique(codes, return_index=True)[1], *several])


def _of_kind(field: Field, codes: Int64, kind: int) -> Int64:
    of_kind = field.codes_of(kind)
    return np.flatnonzero((codes >= of_kind.start) & (codes < of_kind.stop))


_CHOICES = {
    "ends": lambda _, codes: np.array([0, len(codes) - 1]),
    "extremes": _extremes,
    "values": _values,
}

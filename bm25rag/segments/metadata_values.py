"""The values that some documents have at a path, from the fields where these hold them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from bm25rag.common.codec import decode_each
from bm25rag.filters.values import value_at
from bm25rag.metadata.field import KNOWN, Field
from bm25rag.segments.view import SegmentView


def values_at(view: SegmentView, numbers: Sequence[int], path: tuple[str, ...]) -> list[Any]:
    """Return the value at a path of the metadata of each document; ``None`` if there is none."""
    values: list[Any] = [None] * len(numbers)
    unread = list(range(len(numbers)))
    try:
        field = view.segment.fields.find(path)
    except KeyError:  # it was not kept
        pass
    else:
        changed = view.changed
        known = [place for place in unread if numbers[place] not in changed]
        unread = [place for place in unread if numbers[place] in changed]
        if field is not None:
            codes = _codes(field, [numbers[place] for place in known])
            for place, code in zip(known, codes, strict=True):
                if code >= 0:
                    kind = bisect_right(field.starts, code) - 1
                    if kind in KNOWN:
                        values[place] = field.value(kind, code - field.starts[kind])
                    else:  # of lists and dicts, a field holds a part
                        unread.append(place)
    if unread:
        read = decode_each(view.metadata_of([numbers[place] for place in unread]))
        for place, metadata in zip(unread, read, strict=True):
            values[place] = value_at(metadata, path)
    return values


def _codes(field: Field, numbers: Sequence[int]) -> list[int]:
    """Return the code of each document's value, -1 if it has none."""
    wanted = np.array(numbers, np.int64)
    if field.documents is None:
        return field.codes[wanted].tolist()  # type: ignore[no-any-return]
    if not len(field.documents):
        return [-1] * len(wanted)
    places = np.searchsorted(field.documents, wanted)
    places[places == len(field.documents)] = 0
    found = field.documents[places] == wanted
    return np.where(found, field.codes[places].astype(np.int64), -1).tolist()  # type: ignore[no-any-return]

"""What a model is told of the metadata: names and kinds of fields."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bm25rag.filters import FilterSpec
from bm25rag.index import BM25Index

# Documents whose metadata are looked at for the names of fields, and how many are named.
_SAMPLE, _FIELDS = 100, 30
_PLAIN_NAME = re.compile(r"(?!__)[\w.-]{1,40}")


def described_fields(index: BM25Index, within: FilterSpec | None = None) -> str:
    """Return the names and kinds of fields that a sample of the documents has that may be found."""
    snapshot = index.snapshot()
    if within is None:  # from ten places: all ids would be a list of the whole index
        starts = [len(snapshot) * tenth // 10 for tenth in range(10)]
        ids = [id for start in starts for id in snapshot.ids(k=_SAMPLE // 10, offset=start)]
    else:
        ids = snapshot.ids(within, k=_SAMPLE)
    kinds: dict[str, set[str]] = {}
    for document in snapshot.get(list(dict.fromkeys(ids))):
        for path, kind in _fields(document.metadata):
            kinds.setdefault(path, set()).add(kind)
    named = [
        f"{path} ({' or '.join(sorted(kinds[path]))})"
        for path in sorted(kinds)
        if _PLAIN_NAME.fullmatch(path)
    ]
    return ", ".join(named[:_FIELDS])


def _fields(metadata: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths of metadata, each with the kind of its value."""
    for key, value in metadata.items():
        path = f"{above}{key}"
        if isinstance(value, dict):
            yield from _fields(value, f"{path}.")
        elif value is not None and "." not in key:
            yield path, _kind(value)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    for type_, kind in ((str, "string"), (list, "list"), (dt.datetime, "datetime")):
        if isinstance(value, type_):
            return kind
    return "date" if isinstance(value, dt.date) else "number"

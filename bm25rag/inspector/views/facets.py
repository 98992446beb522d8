"""The values of metadata among the matches of a question, counted, and filters that choose them."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from bm25rag.documents import read_hits
from bm25rag.filters import escape_key
from bm25rag.index import BM25Index
from bm25rag.search.query_terms import QueryLike

# Of how many of the best matches the values are counted: 10,000 take about a tenth of a second.
MATCHES = 10_000
_FIELDS, _VALUES, _LONGEST, _DEEPEST = 30, 8, 200, 5


def facets(
    index: BM25Index, query: QueryLike, filter: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """Return the fields of the matches by how many have them, each with its most frequent values.

    A value has the ``filter`` that chooses it, beside the present one. Elements of lists count
    each, and values of other kinds (dates, ``null``) have no filter.
    """
    hits = index.search(query, MATCHES, filter)
    read_hits(hits, "metadata")
    counts: dict[str, Counter[tuple[str, bool]]] = {}
    for hit in hits:
        for key in dict.fromkeys(_values(hit.metadata, "", 0)):
            path, value, is_element = key
            counts.setdefault(path, Counter())[value, is_element] += 1
    found = [_facet(path, values, filter) for path, values in counts.items()]
    return sorted(found, key=lambda one: -one["matches"])[:_FIELDS]


def _values(metadata: Mapping[str, Any], above: str, depth: int) -> Iterator[tuple[str, str, bool]]:
    """Yield path, value as JSON and whether it is an element of a list, of all values."""
    for key, value in metadata.items():
        path = above + escape_key(key)
        if isinstance(value, dict):
            if depth < _DEEPEST:
                yield from _values(value, f"{path}.", depth + 1)
        elif isinstance(value, list):
            for element in value:
                if isinstance(element, (str, int, float)):
                    yield path, _written(element), True
        elif value is not None:
            yield path, _written(value), False


def _written(value: object) -> str:
    """Return a value as JSON; of a date, what cannot be taken for a value of JSON."""
    return f"date {value}" if isinstance(value, dt.date) else json.dumps(value)


def _facet(
    path: str, values: Counter[tuple[str, bool]], filter: dict[str, Any] | None
) -> dict[str, Any]:
    best = values.most_common(_VALUES)
    if len(values) > _VALUES and best[0][1] == 1:  # each has its own
        best = []
    shown = [_value(path, *value, count, filter) for value, count in best]
    return {
        "path": path,
        "matches": sum(values.values()),
        "distinct": len(values),
        "values": shown,
    }


def _value(
    path: str, written: str, is_element: bool, count: int, filter: dict[str, Any] | None
) -> dict[str, Any]:
    if written.startswith("date ") or max(len(written), len(path)) > _LONGEST:
        shown = written.removeprefix("date ")
        return {"value": shown[:_LONGEST], "count": count, "filter": None}
    value = json.loads(written)
    condition = {path: {"$contains": value} if is_element else value}
    return {"value": value, "count": count, "filter": _joined(filter, condition)}


def _joined(filter: dict[str, Any] | None, condition: dict[str, Any]) -> dict[str, Any]:
    """Return a filter that demands another condition, too."""
    if not filter:
        return condition
    if set(filter) & set(condition) or "$and" in filter:
        own = filter["$and"] if set(filter) == {"$and"} else [filter]
        return filter if condition in own else {"$and": [*own, condition]}
    return {**filter, **condition}

"""The values of metadata among the matches of a question, counted, and filters that choose them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from bm25rag.documents import columns
from bm25rag.filters import escape_key
from bm25rag.index import BM25Index
from bm25rag.search.query_terms import QueryLike

# Of how many of the best matches the values are counted.
MATCHES = 10_000
_FIELDS, _VALUES, _LONGEST, _DEEPEST = 30, 8, 200, 5
_SCALARS = (str, int, float)
_Path: TypeAlias = tuple[str, ...]


class _Value(NamedTuple):
    """A value of a path: True, 1 and 1.0 differ, and so do an element of a list and a value."""

    kind: type
    value: Any
    is_element: bool


def facets(
    index: BM25Index, query: QueryLike, filter: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """Return the fields of the matches by how many have them, each with its most frequent values.

    A value has the ``filter`` that chooses it, beside the present one. Elements of lists count
    each; dates and long values have no filter.
    """
    (all_metadata,) = columns(index.search(query, MATCHES, filter), "metadata")
    counts: dict[_Path, Counter[_Value]] = {}
    matches: Counter[_Path] = Counter()
    for metadata in all_metadata:
        values = dict.fromkeys(_values(metadata, ()))
        matches.update({path for path, _ in values})
        for path, value in values:
            counts.setdefault(path, Counter())[value] += 1
    shown = [_facet(path, matches[path], values, filter) for path, values in counts.items()]
    return sorted(shown, key=lambda one: -one["matches"])[:_FIELDS]


def _values(metadata: Mapping[str, Any], above: _Path) -> Iterator[tuple[_Path, _Value]]:
    """Yield the paths and values of one document."""
    for key, value in metadata.items():
        path = (*above, key)
        if isinstance(value, dict):
            if len(path) <= _DEEPEST:
                yield from _values(value, path)
        elif isinstance(value, list):
            for element in value:
                if isinstance(element, _SCALARS):
                    yield path, _Value(type(element), element, True)
        elif value is not None:
            yield path, _Value(type(value), value, False)


def _facet(
    keys: _Path, matches: int, values: Counter[_Value], filter: dict[str, Any] | None
) -> dict[str, Any]:
    path = ".".join(map(escape_key, keys))
    best = values.most_common(_VALUES)
    if len(values) > _VALUES and best[0][1] == 1:  # each has its own
        best = []
    shown = [_shown(path, value, count, filter) for value, count in best]
    return {"path": path, "matches": matches, "distinct": len(values), "values": shown}


def _shown(path: str, value: _Value, count: int, filter: dict[str, Any] | None) -> dict[str, Any]:
    kind, own, is_element = value
    written = str(own)
    if not issubclass(kind, _SCALARS) or max(len(written), len(path)) > _LONGEST:
        return {"value": written[:_LONGEST], "count": count, "filter": None}
    condition = {path: {"$contains": own} if is_element else own}
    return {"value": own, "count": count, "filter": _joined(filter, condition)}


def _joined(filter: dict[str, Any] | None, condition: dict[str, Any]) -> dict[str, Any]:
    """Return a filter that demands another condition, too."""
    if not filter:
        return condition
    if set(filter) & set(condition) or "$and" in filter:
        own = filter["$and"] if set(filter) == {"$and"} else [filter]
        return filter if condition in own else {"$and": [*own, condition]}
    return {**filter, **condition}

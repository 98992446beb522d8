"""Filters: bm25rag's own, in which a callable takes a LangChain ``Document``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.documents import Document

from bm25rag import BM25Index, Hit
from bm25rag.filters import And, CallableFilter, Not, Or, parse_filter
from bm25rag.filters import Filter as ParsedFilter
from langchain_bm25rag.documents import to_document

Filter: TypeAlias = dict[str, Any] | set[str] | frozenset[str] | Callable[[Document], object]
"""What ``filter`` takes, beside None."""


def read_filter(filter: Any) -> ParsedFilter | None:
    """Check a filter, in full, and return it parsed.

    Parameters
    ----------
    filter
        A dict in bm25rag's filter language, a set of ids, a callable on the document, or None.

    Raises
    ------
    TypeError
        If it is none of these, or holds an async or a generator function.
    FilterError
        If a dict is malformed; the message points at the place.
    """
    parsed = parse_filter(filter)
    for function in _callables(parsed):
        CallableFilter(type(function).__call__)  # refuses an object whose call is async too
    return parsed


def copy_filter(filter: Any) -> Any:
    """Return a filter that later changes of the one given do not reach; callables stay."""
    if isinstance(filter, Mapping):
        return {key: copy_filter(value) for key, value in filter.items()}
    if isinstance(filter, (list, tuple)):
        return [copy_filter(value) for value in filter]
    return set(filter) if isinstance(filter, (set, frozenset)) else filter


def search(
    index: BM25Index, query: str, k: int, filter: Filter | None, min_score: float | None
) -> list[Hit]:
    """Search the index under a filter that may hold callables on documents.

    Parameters
    ----------
    index
        The index.
    query, k, min_score
        As in ``BM25Index.search``.
    filter
        As in ``read_filter``.
    """
    parsed = read_filter(filter)
    if next(_callables(parsed), None) is None:
        return index.search(query, k, parsed, min_score)
    # The callables see the very state that is searched, whatever is written meanwhile.
    snapshot = index.snapshot()
    return snapshot.search(query, k, _on_documents(parsed, snapshot), min_score)


@dataclass(frozen=True)
class _DocumentFilter(ParsedFilter):
    """A leaf that the core evaluates: a function of the document, not of the metadata."""

    function: Callable[..., object]
    snapshot: BM25Index

    @property
    def key(self) -> None:
        """None: what the function says may change from call to call."""
        return None

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Say whether the function returns something true."""
        document = to_document(self.snapshot.get([id])[0])
        return CallableFilter(lambda _: self.function(document)).matches(id, {})


def _callables(filter: ParsedFilter | None) -> Iterator[Callable[..., object]]:
    match filter:
        case CallableFilter(function):
            yield function
        case And(parts) | Or(parts):
            for part in parts:
                yield from _callables(part)
        case Not(part):
            yield from _callables(part)


def _on_documents(filter: Any, snapshot: BM25Index) -> ParsedFilter:
    """Put functions of the document in the place of functions of the metadata."""
    match filter:
        case CallableFilter(function):
            return _DocumentFilter(function, snapshot)
        case And(parts) | Or(parts):
            return type(filter)(tuple(_on_documents(part, snapshot) for part in parts))
        case Not(part):
            return Not(_on_documents(part, snapshot))
    parsed: ParsedFilter = filter
    return parsed

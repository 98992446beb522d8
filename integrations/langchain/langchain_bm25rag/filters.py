"""bm25rag's filters, with callables that take a LangChain ``Document``."""

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
"""The values of ``filter`` except None."""


def read_filter(filter: Any) -> ParsedFilter | None:
    """Check a whole filter, and return it parsed.

    Parameters
    ----------
    filter
        A dict in bm25rag's filter language, a set of ids, a callable on the document, or None.

    Raises
    ------
    TypeError
        If it is none of these, or contains an async or a generator function.
    FilterError
        If a dict is malformed; the message says where.
    """
    parsed = parse_filter(filter)
    for function in _callables(parsed):
        CallableFilter(type(function).__call__)  # also refuses an object whose __call__ is async
    return parsed


def copy_filter(filter: Any) -> Any:
    """Return a copy that later changes of the original do not reach; callables are shared."""
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
    searched, parsed = narrow(index, filter)
    return searched.search(query, k, parsed, min_score)


def narrow(index: BM25Index, filter: Filter | None) -> tuple[BM25Index, ParsedFilter | None]:
    """Return what to search under a filter that may hold callables on documents, and its form.

    Parameters
    ----------
    index
        The index.
    filter
        As in ``read_filter``.
    """
    if filter is None:
        return index, None
    # The callables see the very state that is searched, whatever is written meanwhile.
    snapshot = index.snapshot()
    return snapshot, filter_of(snapshot, filter)


def filter_of(snapshot: BM25Index, filter: Filter | None) -> ParsedFilter | None:
    """Return a filter of an index, whose callables get the documents of that snapshot.

    Parameters
    ----------
    snapshot
        A snapshot of the index that will be searched.
    filter
        As in ``read_filter``.
    """
    parsed = None if filter is None else read_filter(filter)
    if parsed is None or next(_callables(parsed), None) is None:
        return parsed
    return _on_documents(parsed, snapshot)


@dataclass(frozen=True)
class _DocumentFilter(ParsedFilter):
    """A function of the document, where the core's own leaf takes the metadata."""

    function: Callable[..., object]
    snapshot: BM25Index

    @property
    def key(self) -> None:
        """None: the result of the function may change from call to call."""
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
    """Replace functions of the metadata by functions of the document."""
    match filter:
        case CallableFilter(function):
            return _DocumentFilter(function, snapshot)
        case And(parts) | Or(parts):
            return type(filter)(tuple(_on_documents(part, snapshot) for part in parts))
        case Not(part):
            return Not(_on_documents(part, snapshot))
    parsed: ParsedFilter = filter
    return parsed

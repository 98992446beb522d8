"""Searching and deleting under bm25rag's filters, with callables that take a ``Document``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from langchain_core.documents import Document

from bm25rag import BM25Index, Hit
from bm25rag.adapters import Asking, Question
from bm25rag.filters import Filter as ParsedFilter
from bm25rag.filters import on_documents, parse_filter
from langchain_bm25rag.documents import Ids, read_ids, to_documents

Filter: TypeAlias = dict[str, Any] | set[str] | frozenset[str] | Callable[[Document], object]
"""The values of ``filter`` except None."""


def copy_filter(filter: Any) -> Any:
    """Return a copy that later changes of the original do not reach; callables are shared."""
    if isinstance(filter, Mapping):
        return {key: copy_filter(value) for key, value in filter.items()}
    if isinstance(filter, (list, tuple)):
        return [copy_filter(value) for value in filter]
    return set(filter) if isinstance(filter, (set, frozenset)) else filter


def search(
    index: BM25Index, query: Question, k: int, filter: Filter | None, asking: Asking
) -> list[Hit]:
    """Search the index."""
    searched, parsed = narrow(index, filter)
    return asking.find(searched, query, k, parsed)


def delete(index: BM25Index, ids: Ids | None, filter: Filter | None) -> list[str]:
    """Delete documents by their ids, by a filter or by both; one of them must choose."""
    parsed = _check_choice(ids, filter_of(index, filter))  # callables see it while it is locked
    return index.delete(None if ids is None else read_ids(ids), parsed)


def choose(index: BM25Index, ids: Ids | None, filter: Filter | None) -> list[str]:
    """Return the ids of the documents that ``delete`` would delete, and unknown ones."""
    snapshot = index.snapshot()
    parsed = _check_choice(ids, filter_of(snapshot, filter))
    if ids is None:
        return snapshot.ids(parsed)
    given = read_ids(ids)
    return given if parsed is None else [document.id for document in snapshot.get(given, parsed)]


def _check_choice(ids: object, filter: ParsedFilter | None) -> ParsedFilter | None:
    if ids is None and filter is None:
        raise ValueError(
            "ids must be given, or a filter that rejects something; an empty list deletes "
            "nothing, index.ids() delete all documents"
        )
    return filter


def narrow(index: BM25Index, filter: Filter | None) -> tuple[BM25Index, ParsedFilter | None]:
    """Return what to search under a filter, and the filter parsed."""
    if filter is None:
        return index, None
    # The callables see the very state that is searched, whatever is written meanwhile.
    snapshot = index.snapshot()
    return snapshot, filter_of(snapshot, filter)


def filter_of(snapshot: BM25Index, filter: Filter | None) -> ParsedFilter | None:
    """Check and parse a filter, whose callables get the documents of a snapshot.

    The snapshot may be an index that nothing can change while the filter is used.
    """
    parsed = parse_filter(filter)  # type: ignore[arg-type]
    if parsed is None or not parsed.per_document:
        return parsed
    return on_documents(parsed, lambda id: to_documents(snapshot.get([id]))[0])

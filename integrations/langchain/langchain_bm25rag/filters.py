"""bm25rag's filters, with callables that take a LangChain ``Document``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.documents import Document

from bm25rag import BM25Index, Hit
from bm25rag.adapters import read_hits
from bm25rag.filters import And, CallableFilter, Not, Or, parse_filter
from bm25rag.filters import Filter as ParsedFilter
from langchain_bm25rag.documents import read_ids, to_document

Filter: TypeAlias = dict[str, Any] | set[str] | frozenset[str] | Callable[[Document], object]
"""The values of ``filter`` except None."""

Question: TypeAlias = str | Mapping[str, float]
"""A text, or terms and their weights."""


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
    index: BM25Index,
    query: Question,
    k: int,
    filter: Filter | None,
    min_score: float | None,
    *,
    correct: bool = False,
    expand: bool = False,
    offset: int = 0,
) -> list[Hit]:
    """Search the index under a filter that may hold callables on documents.

    Parameters
    ----------
    index
        The index.
    query, k, min_score, correct, offset
        As in ``BM25Index.search``. A blank text and a filter ask for all documents that pass.
    filter
        As in ``read_filter``.
    expand
        Whether to expand the query first, as ``BM25Index.expand`` does.

    Returns
    -------
    hits
        With texts and metadata, which are read all at once.
    """
    searched, parsed = narrow(index, filter)
    if is_filter_alone(query, parsed):
        return passing(searched, parsed, k, min_score, offset)
    if expand:
        terms = searched.correct(query, parsed).terms if correct else query
        query, correct = searched.expand(terms, filter=parsed), False
    hits = searched.search(query, k, parsed, min_score=min_score, correct=correct, offset=offset)
    read_hits(hits, "text", "metadata")
    return hits


def is_filter_alone(query: Question, filter: ParsedFilter | None) -> bool:
    """Say whether there is no question, but a filter."""
    return filter is not None and isinstance(query, str) and not query.strip()


def passing(
    index: BM25Index, filter: ParsedFilter | None, k: int, min_score: float | None, offset: int
) -> list[Hit]:
    """Return the documents that pass a filter, in document order, with a score of 0.

    Parameters
    ----------
    index
        The index.
    filter
        The filter.
    k, min_score, offset
        As in ``search``.
    """
    index.search("", k, min_score=min_score, offset=offset)  # checks them
    if min_score is not None and min_score > 0:
        return []
    found = index.get(index.ids(filter, k=k, offset=offset))
    return [Hit(one.id, 0.0, one.text, one.metadata, one.payload) for one in found]


def delete(index: BM25Index, ids: Iterable[str | float] | None, filter: Filter | None) -> list[str]:
    """Delete documents by their ids, by a filter or by both; unknown ids are ignored.

    Parameters
    ----------
    index
        The index.
    ids
        The ids; a number becomes a string. ``None`` for all documents that the filter passes.
    filter
        As in ``read_filter``; documents that it rejects stay.

    Raises
    ------
    TypeError
        If ``ids`` is not an iterable of strings and numbers.
    ValueError
        If neither is given, or the filter rejects nothing.
    """
    parsed = _check_choice(ids, filter_of(index, filter))  # callables see it while it is locked
    return index.delete(None if ids is None else read_ids(ids), parsed)


def choose(index: BM25Index, ids: Iterable[str | float] | None, filter: Filter | None) -> list[str]:
    """Return the ids of the documents that ``delete`` would delete, and unknown ones.

    Parameters
    ----------
    index, ids, filter
        As in ``delete``.

    Raises
    ------
    TypeError, ValueError
        As from ``delete``.
    """
    snapshot = index.snapshot()
    parsed = _check_choice(ids, filter_of(snapshot, filter))
    if ids is None:
        return snapshot.ids(parsed)
    given = read_ids(ids)
    return given if parsed is None else [found.id for found in snapshot.get(given, parsed)]


def _check_choice(ids: object, filter: ParsedFilter | None) -> ParsedFilter | None:
    if ids is None and filter is None:
        message = (
            "ids must be given, or a filter that rejects something; an empty list deletes "
            "nothing, and index.ids() are those of all documents"
        )
        raise ValueError(message)
    return filter


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
        A snapshot of the index that will be searched, or an index that nothing can change then.
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
            of_parts = sum(len(part.demands) for part in parts)
            own = filter.demands[: len(filter.demands) - of_parts]
            return type(filter)(tuple(_on_documents(part, snapshot) for part in parts), own)
        case Not(part):
            return Not(_on_documents(part, snapshot))
    parsed: ParsedFilter = filter
    return parsed

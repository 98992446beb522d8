"""The contents of documents that a search has found, read by their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from bm25rag.common.codec import decode_each
from bm25rag.common.strings import CONTEXT
from bm25rag.kernels import backend
from bm25rag.kernels.records import Rows
from bm25rag.segments.view import SegmentView

if TYPE_CHECKING:
    from bm25rag.analysis import Analyzer
    from bm25rag.analysis.snippets import QueryMatcher
    from bm25rag.search.results import Totals
    from bm25rag.segments.segment import Segment

# How many hits have a field read together, when one of them is asked for it.
_READ_TOGETHER = 16


class StoredDocuments:
    """The living documents of some segments, read by their rows."""

    def __init__(self, views: tuple[SegmentView, ...], rows: Rows) -> None:
        self._views, self._rows = views, rows
        ids = [view.segment.ids.column.strings for view in views]
        self._ids = [own for own in ids if own is not None]  # no id is missing
        # Whose numbers rows are.
        self._only: SegmentView | None = views[0] if len(views) == 1 and views[0].is_whole else None

    def read(self, name: str, rows: Sequence[int]) -> list[Any]:
        """Return the ids, texts, metadata, payloads or fields of the documents at some rows."""
        if self._only is not None:
            return read(self._only, name, rows)
        hot = backend.current()
        segments, numbers = hot.locate(self._rows, rows)
        if name == "id":
            ids = hot.decode_each(self._ids, segments, numbers)
            if ids is not None:
                return ids
        places: dict[int, list[int]] = {}
        for place, segment in enumerate(segments):
            places.setdefault(segment, []).append(place)
        if len(places) == 1:
            return read(self._views[segments[0]], name, numbers)
        values = [None] * len(rows)
        for segment, own in places.items():
            each = read(self._views[segment], name, [numbers[place] for place in own])
            for place, value in zip(own, each, strict=True):
                values[place] = value
        return values


# What the contents of all hits of a search have in common: the documents, what analyses questions,
# the terms of each query and its totals, and the rows of all hits; and their ids, unless they are
# of a batch, whose ids one hit would keep.
_Answer: TypeAlias = tuple[
    StoredDocuments,
    "Analyzer",
    Sequence[Collection[str]],
    "Sequence[Totals | None]",
    Sequence[int],
    list[str] | None,
]


class HitContents:
    """The contents of the hits of a query, read together when one is first asked for.

    ``Backend.make_hits`` makes it.
    """

    __slots__ = ("_answer", "_first", "_last", "_query", "_read")

    _answer: _Answer
    _query: int
    # Which of the rows of all hits are theirs.
    _first: int
    _last: int
    _read: dict[tuple[str, int], list[Any]]

    @property
    def matcher(self) -> QueryMatcher:
        """Finds the words of the query."""
        from bm25rag.analysis.snippets import QueryMatcher  # most searches do without

        _, analyzer, terms, *_ = self._answer
        return QueryMatcher(analyzer, terms[self._query])

    def read(self, name: str, position: int) -> Any:
        """Return the text, metadata, payload or fields of one document."""
        block, within = divmod(position, _READ_TOGETHER)
        values = self._read.get((name, block))
        if values is None:
            stored, _, _, _, rows, _ = self._answer
            first = self._first + block * _READ_TOGETHER
            values = stored.read(name, list(rows[first : min(first + _READ_TOGETHER, self._last)]))
            # If two threads read at the same time, both return what the first one stored.
            values = self._read.setdefault((name, block), values)
        return values[within]

    def group_size(self, position: int) -> int | None:
        """Return how many documents of one's group match."""
        _, _, _, totals, rows, _ = self._answer
        own = totals[self._query]
        return None if own is None else own.group_size(rows[self._first + position])

    def read_all(self, names: Iterable[str]) -> list[list[Any]]:
        """Return some fields of all documents; of each a list of new objects."""
        stored, _, _, _, rows, ids = self._answer
        own = list(rows[self._first : self._last])
        return [stored.read(name, own) if name != "id" or ids is None else [*ids] for name in names]


def read(view: SegmentView, name: str, numbers: Sequence[int]) -> list[Any]:
    """Return the ids, texts, metadata, payloads, fields or contexts of documents of a segment."""
    if name == "id":
        return view.segment.ids.column.texts(numbers)
    if name == "text":
        return view.segment.texts.texts(numbers)
    if name == "fields":
        return _read_fields(view.segment, numbers)
    if name == CONTEXT:
        named = CONTEXT in (view.segment.names or ())
        return view.segment.texts_of(CONTEXT).texts(numbers) if named else [None] * len(numbers)
    if name == "metadata":
        if not view.has_metadata:
            return [{} for _ in numbers]
        return decode_each(view.metadata_of(numbers))
    if name != "payload":
        raise AttributeError(f"hits have no column {name!r}")
    payloads = view.segment.payloads.views(numbers)
    return [None if data is None else bytes(data) for data in payloads]


def _read_fields(segment: Segment, numbers: Sequence[int]) -> list[dict[str, str] | None]:
    """Return the texts of the fields of some documents; ``None`` where none is stored."""
    if not segment.names:
        return [None] * len(numbers)
    names = [name for name in segment.names if name != CONTEXT]
    columns = {name: segment.texts_of(name).texts(numbers) for name in names}
    fields: list[dict[str, str] | None] = []
    for position in range(len(numbers)):
        given = ((name, texts[position]) for name, texts in columns.items())
        fields.append({name: text for name, text in given if text is not None} or None)
    return fields

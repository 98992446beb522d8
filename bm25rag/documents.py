"""What users pass in and get back: documents and hits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from bm25rag.common.checks import check_count
from bm25rag.common.strings import CONTEXT, TEXT

if TYPE_CHECKING:
    from bm25rag.common.sparse import Vector

Text: TypeAlias = str | Sequence[str] | Mapping[str, str | Sequence[str]]
"""A text, or the list of its terms; in an index with fields, one of these for each field."""

# Characters of a text, and of metadata, that a repr shows.
_SHOWN = 60


@dataclass(slots=True, repr=False)
class Document:
    """A document: one to add, or a fresh copy of a stored one, which belongs to the caller.

    Parameters
    ----------
    id
        Its id.
    text
        Its text; ``None`` if that is not stored.
    metadata
        A dict of JSON values, dates and datetimes; other values become such when stored.
    payload
        Opaque bytes that are returned as given.
    vector
        The sparse vector to store with it, see ``BM25Index.add``. A copy of a stored document
        has none: ``BM25Index.vectors.get`` reads them.
    fields
        Its texts by field, in an index with fields, of which ``text`` is one; ``None`` in others,
        and if no texts are stored. A document to add needs ``text``, ``fields`` or both.
    context
        What is searched with the text and never shown, such as a sentence by a model that says
        where the text is from; for an index with the field ``context``.
    """

    id: str
    text: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    payload: bytes | None = None
    vector: Vector | None = None
    fields: dict[str, str] | None = None
    context: str | None = None

    def __repr__(self) -> str:
        return f"Document({', '.join(_shown(self))})"


class Span(NamedTuple):
    """A word of a text that matches.

    Parameters
    ----------
    start, end
        Where it is, in code points.
    term
        The term of the query that it becomes. Pairs of characters that overlap, as in Chinese,
        are one span, whose term is all of their characters.
    """

    start: int
    end: int
    term: str


class Line(NamedTuple):
    """A line of a text with words that match.

    Parameters
    ----------
    number
        Its number in the text, from 1.
    text
        The line, without its end.
    spans
        Where in the line they are.
    """

    number: int
    text: str
    spans: list[Span]


class Snippet(NamedTuple):
    """A part of a text.

    Parameters
    ----------
    text
        The part.
    start
        Where it begins in the text, in code points.
    spans
        Where in the part the words are that match.
    """

    text: str
    start: int
    spans: list[Span]


class Matcher(Protocol):
    """Finds the words of one query in texts."""

    def spans(self, text: str) -> list[Span]:
        """Return where the words are."""

    def lines(self, text: str) -> list[Line]:
        """Return the lines in which they begin."""

    def snippet(self, text: str, width: int) -> Snippet:
        """Return the part with the most different ones."""


class _Unread:
    """Holds where the contents of a hit are read from, in slots that are no fields of the hit."""

    __slots__ = ("_contents", "_position")

    _contents: Any  # ``HitContents`` of a search, or ``_Read``
    _position: int


@dataclass(slots=True, repr=False)
class Hit(_Unread):
    """A document that matches a query; a fresh object of plain Python values.

    Text, metadata and payload are read when first asked for, as they were at the time of the
    search. ``spans``, ``lines`` and ``snippet`` say where the words of the query are in the text:
    they analyse it again, each time. A hit without a text, or that was not found by words, has no
    spans.

    Parameters
    ----------
    id
        Its id.
    score
        Its score.
    text
        Its text; ``None`` if that is not stored.
    metadata
        As given.
    payload
        As given.
    corrections
        The words that the search replaced in its query; ``None`` if it replaced none.
    fields
        Its texts by field, as given; ``None`` in an index without fields, and if none is stored.
    """

    id: str
    score: float
    text: str | None
    metadata: dict[str, Any] = field(default_factory=dict)
    payload: bytes | None = None
    corrections: dict[str, str] | None = None
    fields: dict[str, str] | None = None

    if not TYPE_CHECKING:  # otherwise type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:  # called for fields that are not set yet
            if name == "corrections":
                value = None
            elif name in ("text", "metadata", "payload", "fields"):
                value = self._contents.read(name, self._position)
            else:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            setattr(self, name, value)
            return value

    @property
    def spans(self) -> list[Span]:
        """The words of the text that match, in order; they do not overlap."""
        matcher = self._matcher
        return [] if matcher is None or self.text is None else matcher.spans(self.text)

    @property
    def lines(self) -> list[Line]:
        """The lines of the text that have words that match, in order."""
        matcher = self._matcher
        return [] if matcher is None or self.text is None else matcher.lines(self.text)

    def snippet(self, width: int = 240) -> Snippet:
        """Return the part of the text with the most different terms of the query.

        Parameters
        ----------
        width
            How many characters at most, >= 1. The part ends between words if it can. Where no
            word matches it is the beginning of the text.

        Raises
        ------
        TypeError, ValueError
            If ``width`` is no such number.
        """
        check_count("width", width, least=1)
        matcher, text = self._matcher, self.text or ""
        return Snippet(text[:width], 0, []) if matcher is None else matcher.snippet(text, width)

    def of_field(self, name: str) -> Hit:
        """Return the hit with the text of one field as its text: for ``spans`` and the like there.

        Parameters
        ----------
        name
            The field.

        Raises
        ------
        KeyError
            If the document has no such field, or its texts are not stored.
        """
        if name not in (fields := self.fields or {}):
            raise KeyError(f"the document {self.id!r} has no field {name!r}, but {[*fields]}")
        values = (self.metadata, self.payload, self.corrections, fields)
        hit = matched(self._matcher, self.id, self.score, fields[name], *values)
        hit._contents.count = lambda: self.group_size
        return hit

    @property
    def group_size(self) -> int | None:
        """How many documents of its group match, with itself and those that are not returned.

        They are counted when it is first asked for. ``None`` if the search had no ``group``, and
        for a hit that was copied or pickled.
        """
        size: int | None = None
        if (contents := getattr(self, "_contents", None)) is not None:
            size = contents.group_size(getattr(self, "_position", 0))
        return size

    @property
    def _matcher(self) -> Matcher | None:
        matcher: Matcher | None = getattr(getattr(self, "_contents", None), "matcher", None)
        return matcher  # none for a hit that no search has made

    def __reduce__(self) -> tuple[Callable[..., Hit], tuple[object, ...]]:
        values = (self.id, self.score, self.text, self.metadata, self.payload, self.corrections)
        return matched, (self._matcher, *values, self.fields)

    def __repr__(self) -> str:
        first, *rest = _shown(self)
        if self.corrections:
            rest.append(f"corrections={_shorten(repr(self.corrections))}")
        return f"Hit({', '.join([first, f'score={self.score!r}', *rest])})"


class Hits(list[Hit]):
    """The hits of a search: a list that notebooks show as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from bm25rag.common.tables import marked, table

        rows = ((hit.id, hit.score, marked(*hit.snippet()[::2]), hit.metadata) for hit in self)
        noun = "hit" if len(self) == 1 else "hits"
        columns = ("id", "score", "text", "metadata")
        return table(f"{len(self):,} {noun}", columns, rows, len(self))


class _Read:
    """The contents of a hit that has been read whole."""

    def __init__(self, matcher: Matcher | None) -> None:
        self.matcher = matcher
        self.count: Callable[[], int | None] = lambda: None

    def group_size(self, position: int) -> int | None:
        """Return how many documents of its group match."""
        return self.count()


def matched(matcher: Matcher | None, *values: Any) -> Hit:
    """Make a hit of the values of its fields, with what finds words in its text."""
    hit = Hit(*values)
    hit._contents = _Read(matcher)
    return hit


def columns(found: Sequence[Hit | Document], *fields: str) -> list[list[Any]]:
    """Return some fields of the hits of a search; of each a list of new objects.

    That takes a third of the time of one by one, and the hits do not keep them. They are those that
    a query has just returned, or the first of them; others are a ``ValueError``. Of documents, and
    of hits that hold their contents, it returns what they hold.
    """
    if not fields:
        return []
    read: list[list[Any]] | None = None
    first = 0
    while first < len(found):
        contents = getattr(found[first], "_contents", None)
        if (read_all := getattr(contents, "read_all", None)) is None:
            each = [[getattr(found[first], name)] for name in fields]
        else:
            each = read_all(fields)
            end = min(first + len(each[0]), len(found)) - 1
            last: Any = found[end]
            if last._contents is not contents or last._position != end - first:
                raise ValueError("hits must be those that a query has returned, from the first on")
        if read is None:  # they are all, mostly
            read = each
        else:
            for column, more in zip(read, each, strict=True):
                column += more
        first = len(read[0])
    if read is None:
        return [[] for _ in fields]
    if first > len(found):
        for column in read:
            del column[len(found) :]
    return read


def in_fields(
    text: str, metadata: Mapping[str, Any] | None, fields: Iterable[str]
) -> dict[str, Any]:
    """Return a text beside the other fields of a document, which its metadata hold by their names.

    So the command line and the adapters, which have texts and metadata, make fields. Those of the
    index that the metadata do not have, or that are ``None`` there, are left out.
    """
    held = {} if metadata is None else metadata
    named = {name: held[name] for name in fields if held.get(name) is not None}
    return {**named, TEXT: text}


def all_fields(document: Document) -> dict[str, Any] | None:
    """Return the fields of a document, its context among them; ``None`` if it has none."""
    if document.context is None:
        return document.fields
    return {**(document.fields or {}), CONTEXT: document.context}


def fields_beside(document: Document | Hit) -> dict[str, str]:
    """Return the fields of a document that neither its text nor its metadata show."""
    shown = {**document.metadata, TEXT: document.text}
    fields = (document.fields or {}).items()
    return {name: text for name, text in fields if shown.get(name) != text}


def spans_of(hit: Hit) -> list[dict[str, Any]]:
    """Return the spans of a hit as dicts of ``start``, ``end`` and ``term``, for metadata."""
    return [span._asdict() for span in hit.spans]


def _shown(document: Document | Hit) -> list[str]:
    """Return what a repr shows: one short line, whatever the document holds."""
    shown = [f"id={_short(document.id)}", f"text={_short(document.text)}"]
    if document.fields:
        shown.append(f"fields={_shorten(repr(document.fields))}")
    if isinstance(document, Document) and document.context is not None:
        shown.append(f"context={_short(document.context)}")
    if document.metadata:
        shown.append(f"metadata={_shorten(repr(document.metadata))}")
    if document.payload is not None:
        shown.append(f"payload={_short(document.payload)}")
    return shown


def _short(text: object) -> str:
    if not isinstance(text, str | bytes | list):  # what is of a wrong type is refused later
        return _shorten(repr(text))
    return repr(text) if len(text) <= _SHOWN else repr(text[:_SHOWN]) + "..."


def _shorten(shown: str) -> str:
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."

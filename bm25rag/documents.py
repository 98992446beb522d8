"""What users pass in and get back: documents and hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    from bm25rag.common.sparse import Vector

Text: TypeAlias = str | Sequence[str]
"""A text, or the list of its terms."""

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
    """

    id: str
    text: str | None
    metadata: dict[str, Any] = field(default_factory=dict)
    payload: bytes | None = None
    vector: Vector | None = None

    def __repr__(self) -> str:
        return f"Document({', '.join(_shown(self))})"


class Contents(Protocol):
    """The contents of the documents of some hits."""

    def read(self, name: str, position: int) -> Any:
        """Return the ``text``, ``metadata`` or ``payload`` of one: the same object every time."""

    def read_all(self, name: str) -> list[Any]:
        """Return the ``text``, ``metadata`` or ``payload`` of each; new objects."""


class _Unread:
    """Holds where the contents of a hit are read from, in slots that are no fields of the hit."""

    __slots__ = ("_contents", "_position")

    _contents: Contents
    _position: int


@dataclass(slots=True, repr=False)
class Hit(_Unread):
    """A document that matches a query; a fresh object of plain Python values.

    Text, metadata and payload are read when first asked for, as they were at the time of the
    search.

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
    """

    id: str
    score: float
    text: str | None
    metadata: dict[str, Any] = field(default_factory=dict)
    payload: bytes | None = None
    corrections: dict[str, str] | None = None

    @classmethod
    def _unread(cls, ids: Sequence[str], scores: Sequence[float], contents: Contents) -> list[Self]:
        """Make hits whose contents are in the same order."""
        hits: list[Self] = []
        new, position = cls.__new__, 0
        for id in ids:  # one loop, since a call for each takes twice as long
            hit = new(cls)
            hit.id, hit.score, hit.corrections = id, scores[position], None
            # mypy does not see the slots of the base.
            hit._contents, hit._position = contents, position  # type: ignore[misc]
            hits.append(hit)
            position += 1
        return hits

    if not TYPE_CHECKING:  # otherwise type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:  # called for fields that are not set yet
            if name not in ("text", "metadata", "payload"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = self._contents.read(name, self._position)
            setattr(self, name, value)
            return value

    def __reduce__(self) -> tuple[type[Hit], tuple[object, ...]]:
        values = (self.id, self.score, self.text, self.metadata, self.payload, self.corrections)
        return type(self), values

    def __repr__(self) -> str:
        first, *rest = _shown(self)
        if self.corrections:
            rest.append(f"corrections={_shorten(repr(self.corrections))}")
        return f"Hit({', '.join([first, f'score={self.score!r}', *rest])})"


def read_hits(hits: Sequence[Hit], *fields: str) -> None:
    """Read some fields of all hits of a search at once, in a third of the time of one by one.

    Parameters
    ----------
    hits
        All the hits that a query has just returned.
    fields
        Of ``text``, ``metadata`` and ``payload``.
    """
    for contents, found in groupby(hits, attrgetter("_contents")):
        alike = list(found)
        for field_ in fields:
            for hit, value in zip(alike, contents.read_all(field_), strict=True):
                setattr(hit, field_, value)


def _shown(document: Document | Hit) -> list[str]:
    """Return what a repr shows: one short line, whatever the document holds."""
    shown = [f"id={_short(document.id)}", f"text={_short(document.text)}"]
    if document.metadata:
        shown.append(f"metadata={_shorten(repr(document.metadata))}")
    if document.payload is not None:
        shown.append(f"payload={_short(document.payload)}")
    return shown


def _short(text: str | bytes | None) -> str:
    return repr(text) if text is None or len(text) <= _SHOWN else repr(text[:_SHOWN]) + "..."


def _shorten(shown: str) -> str:
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."

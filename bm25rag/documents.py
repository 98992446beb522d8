"""What users hand in and get back: documents, hits, and the count of what was deleted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

# Characters of a text, and of metadata, that a repr shows.
_SHOWN = 60


@dataclass(slots=True, repr=False)
class Document:
    """A document: one to be added, or a stored one, fresh, which belongs to the caller.

    Parameters
    ----------
    id
        Its id.
    text
        Its text; ``None`` if that is not stored.
    metadata
        A dict of JSON values, dates and datetimes; others become such values when stored.
    payload
        Opaque bytes that are returned as given.
    """

    id: str
    text: str | None
    metadata: dict[str, Any] = field(default_factory=dict)
    payload: bytes | None = None

    def __repr__(self) -> str:
        return f"Document({', '.join(_shown(self))})"


@dataclass(slots=True, repr=False)
class Hit:
    """A document that matches a query; a fresh object of plain Python values.

    Parameters
    ----------
    id
        Its id.
    score
        Its score, by the one definition.
    text
        Its text; ``None`` if that is not stored.
    metadata
        As given.
    payload
        As given.
    corrections
        What the search replaced in its query, if it was to correct it and did.
    """

    id: str
    score: float
    text: str | None
    metadata: dict[str, Any] = field(default_factory=dict)
    payload: bytes | None = None
    corrections: dict[str, str] | None = None

    def __repr__(self) -> str:
        first, *rest = _shown(self)
        if self.corrections:
            rest.append(f"corrections={_cut(repr(self.corrections))}")
        return f"Hit({', '.join([first, f'score={self.score!r}', *rest])})"


def _shown(found: Document | Hit) -> list[str]:
    """Return what a repr shows: one short line, whatever the document holds."""
    shown = [f"id={_short(found.id)}", f"text={_short(found.text)}"]
    if found.metadata:
        shown.append(f"metadata={_cut(repr(found.metadata))}")
    if found.payload is not None:
        shown.append(f"payload={_short(found.payload)}")
    return shown


def _short(text: str | bytes | None) -> str:
    return repr(text) if text is None or len(text) <= _SHOWN else repr(text[:_SHOWN]) + "..."


def _cut(shown: str) -> str:
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."


class Deleted(int):
    """How many documents a call deleted, and which.

    Parameters
    ----------
    ids
        Their ids, in the order asked for, each once.
    """

    ids: tuple[str, ...]

    def __new__(cls, ids: tuple[str, ...]) -> Self:
        """Make the count of some ids."""
        count = super().__new__(cls, len(ids))
        count.ids = ids
        return count

    def __getnewargs__(self) -> tuple[tuple[str, ...]]:  # type: ignore[override]
        return (self.ids,)

"""What a document carries beside its terms: id, text, metadata, payload.

Metadata travel as JSON, NaN and infinities as Python's ``json`` spells them. Dates and
datetimes, which JSON lacks, are written as ``{"$date": "2024-05-01"}`` and
``{"$datetime": "2024-05-01T12:00:00+00:00"}``, and a key of the user's that begins with
``$`` gets a second one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Self

from bm25rag._types import text_of, utf8
from bm25rag.errors import CorruptIndexError, MetadataError
from bm25rag.metadata import plain_metadata

# Made once, which is a third of the time of json.dumps; of depth there is a check of our own.
_write = json.JSONEncoder(check_circular=False, separators=(",", ":"), ensure_ascii=False).encode
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


def encode_metadata(metadata: object, document: str) -> bytes:
    """Write metadata as JSON; ``{}`` as nothing; see ``plain_metadata`` for what is raised."""
    return write_metadata(plain_metadata(metadata, document), document)


def write_metadata(plain: dict[str, Any], document: str) -> bytes:
    """Write as JSON what ``plain_metadata`` returned; raise ``MetadataError`` if that fails."""
    if not plain:
        return b""
    try:
        # Not in ASCII: two lone surrogates, escaped, would be read as one character.
        return utf8(_write(plain))
    except ValueError as error:  # an integer beyond Python's limit of 4,300 digits
        raise MetadataError(document, _key_of_integer(plain), str(error)) from None


def _key_of_integer(plain: dict[str, Any]) -> str:
    """Return the top-level key of what holds an integer that cannot be written."""
    for key, value in plain.items():
        try:
            _write(value)
        except ValueError:
            return unescape(key)
    return ""


def decode_metadata(data: memoryview | bytes | None) -> dict[str, Any]:
    """Return fresh metadata from what ``encode_metadata`` wrote.

    Raises
    ------
    CorruptIndexError
        If it was written by anything else.
    """
    if not data:
        return {}
    text = text_of(data)
    try:
        decoded = json.loads(text, object_hook=_revive if '"$' in text else None)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptIndexError(f"stored metadata cannot be read: {error}") from None
    if not isinstance(decoded, dict):
        raise CorruptIndexError(f"stored metadata is a {type(decoded).__name__}, not a dict")
    return decoded


def read_plain(data: Sequence[memoryview | bytes]) -> list[dict[str, Any]]:
    """Return many metadata at once as they are written; see ``revive`` and ``unescape``.

    Raises
    ------
    CorruptIndexError
        If they were written by anything but ``encode_metadata``.
    """
    try:
        decoded: list[dict[str, Any]] = json.loads(f"[{text_of(b','.join(data))}]")
    except (ValueError, RecursionError) as error:
        raise CorruptIndexError(f"stored metadata cannot be read: {error}") from None
    if len(decoded) != len(data) or not all(type(one) is dict for one in decoded):
        raise CorruptIndexError("stored metadata are not one dict for each document")
    return decoded


def _revive(plain: dict[str, Any]) -> Any:
    revived = revive(plain)
    if revived is plain:
        return {unescape(key): value for key, value in plain.items()}
    return revived


def revive(plain: dict[str, Any]) -> Any:
    """Return the date or datetime that a dict is written for, or the dict itself."""
    if len(plain) == 1:
        ((key, value),) = plain.items()
        if key == "$datetime":
            return datetime.fromisoformat(value)
        if key == "$date":
            return date.fromisoformat(value)
    return plain


def unescape(key: str) -> str:
    """Return a key of the user's from the one that is written."""
    return key[1:] if key.startswith("$") else key

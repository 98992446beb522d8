"""What a document carries beside its terms: id, text, metadata, payload.

Metadata travel as JSON. Dates and datetimes, which JSON lacks, are written as
``{"$date": "2024-05-01"}`` and ``{"$datetime": "2024-05-01T12:00:00+00:00"}``, and a
key of the user's that begins with ``$`` gets a second one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np

from bm25rag._types import text_of, utf8
from bm25rag.errors import CorruptIndexError, MetadataError

# Made once, which is a third of the time of json.dumps; of depth there is a check of our own.
_write = json.JSONEncoder(check_circular=False, separators=(",", ":"), ensure_ascii=False).encode
# Levels of dicts and lists in metadata.
DEEPEST = 100


@dataclass(slots=True)
class Document:
    """A stored document; a fresh object, which belongs to the caller.

    Parameters
    ----------
    id
        Its id.
    text
        Its text; ``None`` if that is not stored.
    metadata
        As given.
    payload
        As given.
    """

    id: str
    text: str | None
    metadata: dict[str, Any]
    payload: bytes | None


@dataclass(slots=True)
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
    """

    id: str
    score: float
    text: str | None
    metadata: dict[str, Any]
    payload: bytes | None


def encode_metadata(metadata: object, document: str) -> bytes:
    """Write metadata as JSON; ``{}`` as nothing; see ``plain_metadata`` for what is raised."""
    return write_metadata(plain_metadata(metadata, document), document)


def plain_metadata(metadata: object, document: str) -> dict[str, Any]:
    """Return metadata with everything in it as it is to be written.

    Parameters
    ----------
    metadata
        A dict of JSON values, dates and datetimes; ``None`` counts as ``{}``.
    document
        The document's id, for messages.

    Raises
    ------
    TypeError
        If it is neither a dict nor ``None``.
    MetadataError
        If a value cannot be returned as given; the message names document and key.
    """
    if metadata is None:
        return {}
    if type(metadata) is not dict:
        raise TypeError(
            f"metadata of document {document!r} must be a dict or None, got {metadata!r:.100}"
        )
    try:
        return _plain_dict(metadata, 0)
    except _UnstorableError as error:
        place = ".".join(error.keys[:-4:-1] if len(error.keys) > DEEPEST else error.keys[::-1])
        raise MetadataError(f"metadata of document {document!r} at {place!r}: {error}") from None


def write_metadata(plain: dict[str, Any], document: str) -> bytes:
    """Write as JSON what ``plain_metadata`` returned; raise ``MetadataError`` if that fails."""
    if not plain:
        return b""
    try:
        # Not in ASCII: two lone surrogates, escaped, would be read as one character.
        return utf8(_write(plain))
    except ValueError as error:  # an integer beyond Python's limit of 4,300 digits
        raise MetadataError(
            f"metadata of document {document!r} cannot be stored: {error}"
        ) from None


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


# Types that JSON has, and that need no look at their values.
_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


class _UnstorableError(Exception):
    """What is wrong with a value; ``keys`` lead to it from the top, the last one first."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.keys: list[str] = []


def _plain(value: object, depth: int) -> object:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    encode = _ENCODERS.get(kind)
    if encode is not None:
        return encode(value, depth)
    hint = (
        "; call .item() or .tolist() on it" if isinstance(value, (np.generic, np.ndarray)) else ""
    )
    raise _UnstorableError(
        f"a {kind.__name__}{hint}; "
        "expected str, int, float, bool, None, list, dict, date or datetime"
    )


def _plain_float(value: float, depth: int) -> float:
    if not math.isfinite(value):
        raise _UnstorableError(f"{value!r} is no JSON number; use None")
    return value


def _plain_list(value: list[object], depth: int) -> list[object]:
    _check_depth(depth)
    if _AS_THEY_ARE.issuperset(map(type, value)):
        return value
    plain = []
    for number, item in enumerate(value):
        try:
            plain.append(_plain(item, depth + 1))
        except _UnstorableError as error:
            error.keys.append(str(number))
            raise
    return plain


def _plain_dict(value: dict[object, object], depth: int) -> dict[str, Any]:
    _check_depth(depth)
    plain: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise _UnstorableError(f"the key {key!r} is a {type(key).__name__}, not a str")
        if type(item) not in _AS_THEY_ARE:
            try:
                item = _plain(item, depth + 1)
            except _UnstorableError as error:
                error.keys.append(key)
                raise
        plain["$" + key if key[:1] == "$" else key] = item
    return plain


def _check_depth(depth: int) -> None:
    if depth > DEEPEST:
        raise _UnstorableError(f"nested more than {DEEPEST} levels deep")


def _plain_datetime(value: datetime, depth: int) -> dict[str, str]:
    return {"$datetime": value.isoformat()}


def _plain_date(value: date, depth: int) -> dict[str, str]:
    return {"$date": value.isoformat()}


_ENCODERS: dict[type, Callable[[Any, int], object]] = {
    float: _plain_float,
    list: _plain_list,
    dict: _plain_dict,
    datetime: _plain_datetime,
    date: _plain_date,
}


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

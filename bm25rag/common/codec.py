"""Metadata as bytes and back.

Metadata are stored as JSON, with NaN and infinities as Python's ``json`` writes them. Dates and
datetimes, which JSON lacks, are written as ``{"$date": "2024-05-01"}`` and
``{"$datetime": "2024-05-01T12:00:00+00:00"}``, and a key of the user's that begins with
``$`` gets a second one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from bm25rag.common.gil import in_blocks
from bm25rag.common.strings import text_of, utf8
from bm25rag.errors import CorruptIndexError, MetadataError

# Made once: json.dumps takes three times as long. Depth is checked elsewhere.
_write = json.JSONEncoder(check_circular=False, separators=(",", ":"), ensure_ascii=False).encode
# Metadata that are written together: few, or the text of all would leave the processor's caches.
_BATCH = 1 << 6
# What stands between them: a string that metadata seldom have in a list.
_MARK = "\0"
_WRITTEN_MARK = f",{_write(_MARK)},".encode()


def encode_metadata(metadata: object, document: str) -> bytes:
    """Write metadata as JSON, ``{}`` as nothing; raises what ``plain_metadata`` raises."""
    from bm25rag.common.storable import plain_metadata  # a process that serves does without

    return write_metadata(plain_metadata(metadata, document), document)


def write_metadata(plain: dict[str, Any], document: str) -> bytes:
    """Write as JSON what ``plain_metadata`` returned; raise ``MetadataError`` if that fails."""
    if not plain:
        return b""
    try:
        # Not as ASCII: two lone surrogates, escaped, would be read back as one character.
        return utf8(_write(plain))
    except ValueError as error:  # an integer beyond Python's limit of 4,300 digits
        raise MetadataError(document, _key_of_integer(plain), str(error)) from None


def write_each(plain: Sequence[dict[str, Any]], documents: Sequence[str]) -> list[bytes]:
    """Write the metadata of documents as ``write_metadata`` does, but in 40 % of the time."""
    written: list[bytes] = []
    for batch, ids in zip(in_blocks(plain, _BATCH), in_blocks(documents, _BATCH), strict=True):
        together = _write_together(batch)
        written += map(write_metadata, batch, ids) if together is None else together
    return written


def _write_together(plain: Sequence[dict[str, Any]]) -> list[bytes] | None:
    """Write some metadata; return ``None`` if some cannot be written, or are like the mark."""
    parted: list[Any] = [_MARK] * (2 * len(plain) - 1)
    parted[::2] = plain
    try:
        written = utf8(_write(parted))[1:-1].split(_WRITTEN_MARK)
    except ValueError:  # of an integer, see ``write_metadata``
        return None
    return [b"" if one == b"{}" else one for one in written] if len(written) == len(plain) else None


def _key_of_integer(plain: Any) -> str:
    """Return the keys that lead to an integer that cannot be written, joined by dots."""
    items = plain.items() if isinstance(plain, dict) else enumerate(plain)
    for key, value in items:
        try:
            _write(value)
        except ValueError:
            name = unescape(str(key))
            nested = isinstance(value, (dict, list))
            return f"{name}.{_key_of_integer(value)}" if nested else name
    return ""


def decode_metadata(data: memoryview | bytes | None) -> dict[str, Any]:
    """Return fresh metadata from what ``encode_metadata`` wrote.

    It raises ``CorruptIndexError`` for anything else.
    """
    return decode_each((text_of(data) if data else None,))[0]


def decode_each(stored: Sequence[str | None]) -> list[dict[str, Any]]:
    """Return the metadata of documents; all are parsed together, in half the time."""
    if not any(stored):
        return [{} for _ in stored]
    written = [text for text in stored if text]
    decoded = _parse(",".join(written), len(written), revives=True)
    if len(written) == len(stored):
        return decoded
    each = iter(decoded)
    return [next(each) if text else {} for text in stored]


def as_stored(value: object) -> Any:
    """Return a value as it comes back from metadata; raise ``UnstorableError`` if none hold it."""
    from bm25rag.common.storable import plain_value  # as in ``encode_metadata``

    return json.loads(_write(plain_value(value)), object_hook=_revive)


def read_plain(data: Sequence[memoryview | bytes]) -> list[dict[str, Any]]:
    """Parse the metadata of many documents at once; ``revive`` and ``unescape`` are left to do.

    It raises ``CorruptIndexError`` if ``encode_metadata`` did not write them.
    """
    return _parse(text_of(b",".join(data)), len(data), revives=False)


def _parse(joined: str, count: int, revives: bool) -> list[dict[str, Any]]:
    text = f"[{joined}]"
    read = _read_reviving if revives and '"$' in text else _read
    decoded: list[dict[str, Any]]
    try:
        decoded, end = read(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptIndexError(f"stored metadata cannot be read: {error}") from None
    if end != len(text) or len(decoded) != count or {*map(type, decoded)} - {dict}:
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
    """Return the user's key from the one that is written."""
    return key[1:] if key.startswith("$") else key


# Of ``json.loads`` the half that is not its own checks.
_read = json.JSONDecoder().raw_decode
_read_reviving = json.JSONDecoder(object_hook=_revive).raw_decode

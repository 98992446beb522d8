"""Cursors: short strings that say where an answer ended, to what, and after what.

A cursor has three parts: a digest of what was asked, numbers that say where to go on, and a digest
of what came before. Nothing is kept for it anywhere.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b

_CURSOR = re.compile(r"([0-9a-f]{10})\.([0-9]{1,15}(?:-[0-9]{1,15})*)\.([0-9a-f]{10})")


def digest(*values: object) -> str:
    """Return a short digest of values."""
    data = json.dumps(values, sort_keys=True, default=repr).encode()
    return blake2b(data, digest_size=5).hexdigest()


def write_cursor(asked: str, places: tuple[int, ...], before: str) -> str:
    """Return a cursor, given the digests of what was asked and of what came before."""
    return f"{asked}.{'-'.join(map(str, places))}.{before}"


def read_cursor(cursor: object, asked: str, count: int) -> tuple[tuple[int, ...], str]:
    """Return so many places of a cursor, and the digest of what came before.

    It raises ``TypeError`` or ``ValueError`` if the cursor is none, or of another question.
    """
    if not isinstance(cursor, str):
        raise TypeError(f"cursor must be a string, got {type(cursor).__name__}")
    parts = _CURSOR.fullmatch(cursor)
    places = tuple(map(int, parts[2].split("-"))) if parts else ()
    if parts is None or len(places) != count:
        raise ValueError(f"cursor must be one that this tool has returned, got {cursor!r:.100}")
    if parts[1] != asked:
        raise ValueError(
            "cursor belongs to other arguments or another index: pass the arguments it was "
            "returned for, or leave it out to begin anew"
        )
    return places, parts[3]


def stale() -> ValueError:
    """Return the error of a cursor that commits have made useless."""
    message = (
        "cursor is stale: since it was returned, commits have changed what comes before it; "
        "leave it out to begin anew"
    )
    return ValueError(message)

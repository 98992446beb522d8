"""JSON schemas of the tools' answers: what their values are, for programs that check them."""

from __future__ import annotations

from typing import Any

from bm25rag.agents.schemas import object_schema

_STRING, _INTEGER, _NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
_FLAG, _OBJECT = {"type": "boolean"}, {"type": "object"}


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(needed: dict[str, Any], more: dict[str, Any] | None = None) -> dict[str, Any]:
    return object_schema({**needed, **(more or {})}, needed)


def _pages(name: str, item: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of what ``make_answer`` makes of parts."""
    counts = {"total": {"type": ["integer", "null"]}, "returned": _INTEGER, "truncated": _FLAG}
    return _object(
        {name: _list_of(item), **counts}, {"at_least": _INTEGER, "cursor": _STRING, **more}
    )


_PAIR = {**_list_of(_INTEGER), "minItems": 2, "maxItems": 2}
_NAMED = {"source": _STRING, "line": _INTEGER}
_SHOWN = {**_NAMED, "metadata": _OBJECT, "metadata_truncated": _FLAG}
_TEXT = {"type": ["string", "null"]}
_CUT = {"start": _INTEGER, "characters": _INTEGER}

SEARCH = _pages(
    "hits",
    _object(
        {"id": _STRING, "score": _NUMBER, "text": _TEXT},
        {**_SHOWN, **_CUT, "lines": _PAIR, "spans": _list_of(_PAIR), "group_size": _INTEGER},
    ),
    incomplete=_STRING,
)
GREP = _pages(
    "documents",
    _object(
        {
            "id": _STRING,
            "lines": _list_of(
                _object({"number": _INTEGER, "text": _STRING}, {**_CUT, "spans": _list_of(_PAIR)})
            ),
        },
        _NAMED,
    ),
)
READ = _pages(
    "documents",
    _object({"id": _STRING, "lines": _PAIR, "text": _TEXT}, {**_SHOWN, "start": _INTEGER}),
)
# The parts are terms, parts of the query, and words that do not count.
EXPLAIN = _object(
    {
        **{"id": _STRING, "score": _NUMBER, "matched": _FLAG, "shift": _NUMBER},
        **{"parts": _list_of(_OBJECT), "total": _INTEGER, "returned": _INTEGER},
        "truncated": _FLAG,
    },
    {"multiplier": _NUMBER},
)
COUNT = _object({"count": _INTEGER})
ADD, DELETE = (
    _object({what: _list_of(_STRING), "total": _INTEGER, "returned": _INTEGER})
    for what in ("added", "deleted")
)

"""What a tool answers: documents as JSON values, and as text."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bm25rag import Document, Hit
from bm25rag.documents import fields_beside


class Answer(NamedTuple):
    """The result of a call: as JSON values, and as text for clients that show nothing else."""

    content: dict[str, Any]
    text: str


def part_of(document: Document | Hit, start: int, length: int) -> dict[str, Any]:
    """Return metadata, with fields, and a part of the text, and what is missing of it."""
    text, metadata = document.text, document.metadata | fields_beside(document)
    if text is None:
        return {"text": None, "metadata": metadata}
    part: dict[str, Any] = {"text": text[start : start + length], "metadata": metadata}
    if start or len(text) > length:
        part |= {"start": start, "characters": len(text)}
    return part


def written(headings: Iterable[str], shown: Sequence[dict[str, Any]]) -> str:
    """Return what ``part_of`` has returned as text, each below a heading."""
    blocks = []
    for heading, one in zip(headings, shown, strict=True):
        lines = [heading]
        if one["metadata"]:
            lines.append(json.dumps(plain(one["metadata"]), ensure_ascii=False))
        lines.append("(text not stored)" if one["text"] is None else one["text"])
        if "start" in one:
            end = one["start"] + len(one["text"])
            lines.append(f"[characters {one['start']} to {end} of {one['characters']}]")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def plain(value: Any) -> Any:
    """Return what JSON in UTF-8 can say: no dates, NaN, infinities or lone surrogates."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return value

"""Answers within a budget: as JSON values, and as text."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from bm25rag.common.checks import check_count
from bm25rag.common.strings import CONTEXT
from bm25rag.documents import Document, Hit, fields_beside
from bm25rag.index import BM25Index

BUDGET, LEAST_BUDGET, LARGEST_BUDGET = 8_000, 1_000, 100_000
# Characters for what an answer says beside its parts: numbers, the cursor, and how to use it.
FRAME = 240
# Of ids, sources and metadata, so that none of them takes the whole budget.
_LONGEST_NAME, _LONGEST_METADATA = 120, 400
# What a name that is cut ends with.
CUT = "…"


class Answer(NamedTuple):
    """The result of a call: as JSON values, and as text for clients that show nothing else."""

    content: dict[str, Any]
    text: str


class Part(NamedTuple):
    """A part of an answer, both ways."""

    content: dict[str, Any]
    text: str

    @property
    def cost(self) -> int:
        """How many characters it takes, with what stands between it and the next."""
        return max(len(self.text) + 2, size(self.content) + 1)


def check_budget(value: object) -> int:
    """Return a budget; raise ``ValueError`` or ``TypeError`` if it is none."""
    budget = check_count("budget", value)
    if not LEAST_BUDGET <= budget <= LARGEST_BUDGET:
        raise ValueError(
            f"budget must be from {LEAST_BUDGET:,} to {LARGEST_BUDGET:,} characters, "
            f"got {budget if budget < 10**9 else 'more'}"
        )
    return budget


def make_answer(
    name: str,
    parts: Sequence[Part],
    *,
    total: int | None,
    returned: int,
    unit: str,
    each: str = "",
    truncated: bool = False,
    cursor: str | None = None,
    at_least: int = 0,
    nothing: str = "Nothing found.",
) -> Answer:
    """Put an answer together of parts, which leave the ``FRAME`` of the budget free.

    ``returned`` units are here, of a ``total`` or, if that is ``None``, of ``at_least`` so many;
    ``each`` names what is returned, if that is another unit.
    ``truncated`` says that something was left out though the units are there; ``cursor`` where to
    go on, if there is more; ``nothing`` what to say if there are no parts.
    """
    truncated = truncated or cursor is not None
    content: dict[str, Any] = {
        name: [part.content for part in parts],
        "total": total,
        "returned": returned,
        "truncated": truncated,
    }
    if total is None:
        content["at_least"] = at_least
    if cursor is not None:
        content["cursor"] = cursor
    of = f"{total:,}" if total is not None else f"at least {at_least:,}"
    here = f"{returned:,} {each} of {of}" if each else f"{returned:,} of {of}"
    lines = [part.text for part in parts] or [nothing]
    if cursor is not None:
        call = f'the same arguments and cursor="{cursor}" return more'
        lines.append(f"[{here} {unit}; {call}]")
    elif total != returned:
        lines.append(f"[{here} {unit}]")
    return Answer(plain(content), plain("\n\n".join(lines)))


def size(content: object) -> int:
    """Return how many characters values take as compact JSON."""
    return len(json.dumps(plain(content), ensure_ascii=False, separators=(",", ":")))


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


def shortened(name: str) -> str:
    """Return a name, cut if it is very long."""
    if len(name) <= _LONGEST_NAME // 6:  # as JSON, it has six characters for one at most
        return name
    cut = name[:_LONGEST_NAME]
    cut = cut[: len(cut) - max(0, size(cut) - _LONGEST_NAME)]
    return name if cut == name else f"{cut}{CUT}"


def naming(document: Document | Hit) -> dict[str, Any]:
    """Return what names a document: its id, its source, and from which line of that it is."""
    named: dict[str, Any] = {"id": shortened(document.id)}
    source, line = document.metadata.get("source"), document.metadata.get("line")
    if isinstance(source, str):
        named["source"] = shortened(source)
        if isinstance(line, int) and 0 < line < 1 << 53:
            named["line"] = line
    return named


def heading(named: dict[str, Any], *more: str) -> str:
    """Return the same as the beginning of a line."""
    notes = list(more)
    if "line" in named:
        notes.append(f"from line {named['line']} of {named['source']}")
    elif named.get("source", named["id"]) != named["id"]:
        notes.append(f"of {named['source']}")
    return f"{named['id']} ({', '.join(notes)})" if notes else str(named["id"])


def without_context(index: BM25Index, documents: Sequence[Document | Hit]) -> None:
    """Take from the metadata what the index searches and never shows."""
    if CONTEXT in (index.fields or ()):
        for one in documents:
            one.metadata.pop(CONTEXT, None)


def metadata_of(document: Document | Hit, named: dict[str, Any], room: int) -> dict[str, Any]:
    """Return metadata and fields that do not say what ``named`` says; as much as may be shown."""
    known = {*named, "offset"} if "line" in named else {*named}
    if document.metadata.get("id") != document.id:
        known.discard("id")
    shown: dict[str, Any] = {}
    left = min(_LONGEST_METADATA, room)
    for key, value in (document.metadata | fields_beside(document)).items():
        if key in known or key.startswith("__"):  # which a framework keeps for itself
            continue
        left -= len(json.dumps(plain({key: value}), ensure_ascii=False))
        if left < 0:
            return {"metadata": shown, "metadata_truncated": True}
        shown[key] = value
    return {"metadata": shown} if shown else {}


def metadata_text(shown: dict[str, Any]) -> list[str]:
    """Return the same as lines of text."""
    if "metadata" not in shown:
        return []
    text = json.dumps(plain(shown["metadata"]), ensure_ascii=False)
    return [f"{text} …" if "metadata_truncated" in shown else text]

"""Read for agents: lines of a document, or of the documents that come from one source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bm25rag.agents import answers
from bm25rag.agents.answers import Answer, Part
from bm25rag.agents.cursors import digest, read_cursor, stale, write_cursor
from bm25rag.common.checks import check_id
from bm25rag.common.lines import line_count, split_lines
from bm25rag.documents import Document
from bm25rag.errors import DocumentNotFoundError
from bm25rag.filters import And, Filter, FilterSpec, parse_filter
from bm25rag.index import BM25Index

_LINES = re.compile(r"([0-9]{1,9})(?:(-)([0-9]{1,9})?)?")
# Documents of a source that are read: 16 us each, so that one call takes two seconds at most.
_MOST_OF_SOURCE = 100_000


def read(
    index: BM25Index,
    id: str | None = None,
    source: str | None = None,
    lines: str | None = None,
    *,
    budget: int = answers.BUDGET,
    cursor: str | None = None,
    scope: str = "",
    within: FilterSpec | None = None,
    metadata: bool = True,
) -> Answer:
    """Return lines of documents; all arguments may come from a model.

    Parameters
    ----------
    id
        A document; ``lines`` are its own. Where answers have cut a long id or source, what they
        show of it is enough if no other begins so.
    source
        In place of an id: the ``source`` in the metadata of documents, such as a file; at most
        100,000 documents have it. ``lines`` are those of the file, and the documents that hold
        them are read, if they say their ``line``.
    lines
        ``"10-20"``, ``"10-"`` or ``"10"``, from 1; ``None`` for all.
    index, budget, cursor, scope, within, metadata
        As in ``search``.
    """
    room = answers.check_budget(budget) - answers.FRAME
    span = _lines(lines)
    if (id is None) == (source is None):
        raise ValueError("read needs either id or source")
    index = index.snapshot()
    if source is None:
        documents = index.get([_whole(index, "$id", check_id("id", id), within)], within)
    else:
        whole = _whole(index, "source", check_id("source", source), within)
        documents = _of_source(index, whole, span, within)
    answers.without_context(index, documents)
    if not documents:
        name = id if source is None else source
        hint = "; it was cut, and is not the beginning of one alone" if _is_cut(name) else ""
        raise DocumentNotFoundError(
            f"there is no document with the id {id!r:.200}{hint}"
            if source is None
            else f"no document with these lines has the source {source!r:.200}{hint}"
        )
    wanted = [_text_lines(document, span if source is None else None) for document in documents]
    asked = digest("read", scope, id, source, span)
    known = [digest(document.id, document.text) for document in documents]
    at = place = character = 0
    if cursor is not None:
        (at, place, character), before = read_cursor(cursor, asked, 3)
        if at >= len(documents) or digest(known[: at + 1]) != before:
            raise stale()
    parts: list[Part] = []
    returned, cut = 0, False
    while at < len(documents):
        document, described = documents[at], room // 4 if metadata else -1
        part, next_place, next_character = _part(
            document, wanted[at], place, character, room, described
        )
        returned += next_place - place
        cut = cut or bool(character or next_character)
        if part is not None:
            parts.append(part)
            room -= part.cost
        place, character = next_place, next_character
        if place < len(wanted[at][1]) or (part is None and document.text is None):
            break
        at, place, character = at + 1, 0, 0
    more = None
    if at < len(documents):
        more = write_cursor(asked, (at, place, character), digest(known[: at + 1]))
    total = sum(len(own) for _, own in wanted)
    held = sum(line_count(one.text) for one in documents if one.text is not None)
    return answers.make_answer(
        "documents",
        parts,
        total=total,
        returned=returned,
        unit="lines",
        truncated=cut,
        cursor=more,
        nothing=f"There are no such lines: the text has {held:,}.",
    )


def _part(
    document: Document,
    lines: tuple[int, Sequence[str]],
    place: int,
    character: int,
    room: int,
    described: int,
) -> tuple[Part | None, int, int]:
    """Return as many lines of a document as there is room for, and where to go on."""
    first, texts = lines
    named = answers.naming(document)
    begins = not place + character and described >= 0
    shown = answers.metadata_of(document, named, described) if begins else {}
    head = [answers.heading(named), *answers.metadata_text(shown)]
    content: dict[str, Any] = {
        **named,
        **shown,
        "lines": [first + place, first + place],
        "text": "",
    }
    left = room - Part({**content, "start": 10**9}, "\n".join(head)).cost - 20
    taken: list[str] = []
    written: list[str] = []
    start, begun = character, place
    while place < len(texts):
        text = texts[place][character:]
        prefix = f"{first + place}: "
        cost = max(len(prefix) + len(text) + 1, answers.size(text))
        if cost > left:
            if not taken and left > len(prefix) + 20:  # the line alone is too long
                text = text[: left - len(prefix) - 2]
                text = text[: max(1, len(text) - max(0, answers.size(text) - left))]
                taken, written = [text], [prefix + text]
                character += len(text)
            break
        left -= cost
        taken.append(text)
        written.append(prefix + text)
        place, character = place + 1, 0
    if not taken:
        if document.text is None and left >= 0:
            content["text"] = None
            return Part(content, "\n".join([*head, "(text not stored)"])), len(texts), 0
        return None, place, character
    content |= {"lines": [first + begun, first + begun + len(taken) - 1], "text": "\n".join(taken)}
    if start:
        content["start"] = start
    return Part(content, "\n".join([*head, *written])), place, character


def _text_lines(document: Document, span: tuple[int, int | None] | None) -> tuple[int, list[str]]:
    """Return the number of the first of the lines that are wanted, and these."""
    texts = [] if document.text is None else split_lines(document.text)
    if span is None:
        return 1, texts
    first, last = span
    return first, texts[first - 1 : last]


def _is_cut(name: object) -> bool:
    return isinstance(name, str) and name.endswith(answers.CUT)


def _whole(index: BM25Index, key: str, name: str, within: FilterSpec | None) -> str:
    """Return the name that answers have cut to this one, if it is that of one thing alone."""
    if not _is_cut(name):
        return name
    begins = _both({key: {"$startswith": name.removesuffix(answers.CUT)}}, within)
    for document in index.get(index.ids(begins, k=1)):
        whole = document.id if key == "$id" else document.metadata["source"]
        if isinstance(whole, str) and index.count(begins) == index.count(
            _both({key: {"$eq": whole}}, within)
        ):
            return whole
    return name


def _both(asked: FilterSpec, within: FilterSpec | None) -> Filter | None:
    first, own = parse_filter(asked), parse_filter(within)
    return first if own is None or first is None else And((own, first))


def _of_source(
    index: BM25Index, source: str, span: tuple[int, int | None] | None, within: FilterSpec | None
) -> list[Document]:
    """Return the documents of a source in the order of its lines, those that hold some of them."""
    both = _both({"source": {"$eq": source}}, within)
    if (count := index.count(both)) > _MOST_OF_SOURCE:
        message = f"the source {source!r:.200} has {count:,} documents, more than"
        raise ValueError(f"{message} {_MOST_OF_SOURCE:,}: give the id of one")
    documents = index.get(index.ids(both))
    told = [document.metadata.get("line") for document in documents]
    begins = sorted(line for line in told if isinstance(line, int))
    if not documents or len(begins) < len(documents):
        if span is not None and documents:
            message = f"the documents of {source!r:.200} do not say their lines: leave out lines"
            raise ValueError(message)
        return documents
    documents.sort(key=lambda document: document.metadata["line"])
    if span is None:
        return documents
    first, last = span
    ends = map(_end, documents, begins, [*begins[1:], None])
    return [
        document
        for document, begin, end in zip(documents, begins, ends, strict=True)
        if (last is None or begin <= last) and (end is None or max(begin, end) >= first)
    ]


def _end(document: Document, begin: int, following: int | None) -> int | None:
    """Return the last line that a document holds, given where it and the next one begin.

    Those are lines up to the next one, and the first of that, too, if it is long enough: long lines
    are divided. Headings may stand before the line that it begins at, and make it look longer.
    """
    own = None if document.text is None else begin + line_count(document.text) - 1
    if following is None or own is None:
        return own if following is None else following - 1
    return max(following - 1, min(following, own))


def _lines(value: object) -> tuple[int, int | None] | None:
    if value is None:
        return None
    message = f"lines must be a string such as '10-20', '10-' or '10', got {value!r:.100}"
    if not isinstance(value, str):
        raise TypeError(message)
    parts = _LINES.fullmatch(value.strip())
    if parts is None:
        raise ValueError(message)
    first = int(parts[1])
    last = int(parts[3]) if parts[3] else None if parts[2] else first
    if not first or (last is not None and last < first):
        raise ValueError(message)
    return first, last

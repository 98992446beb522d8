"""Grep for agents: lines that match, with their neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bm25rag.agents import answers
from bm25rag.agents.answers import Answer, Part
from bm25rag.agents.cursors import digest, read_cursor, stale, write_cursor
from bm25rag.agents.searching import filter_within
from bm25rag.common.checks import check_count
from bm25rag.common.lines import split_lines
from bm25rag.documents import Line
from bm25rag.filters import FilterSpec
from bm25rag.grep import Grep, GrepMatch, Place
from bm25rag.index import BM25Index

MOST_CONTEXT = 10
# Seconds that a call looks for lines; characters of a line that are shown, and spans.
_SECONDS, _LONGEST_LINE, _SHORT_LINE, _MOST_SPANS = 3.0, 400, 25, 20
# Rows before its own at which the document of a cursor is looked for: deletions move it there.
_MOVED = 10_000


def grep(
    index: BM25Index,
    pattern: str,
    filter: dict[str, Any] | None = None,
    *,
    regex: bool = False,
    ignore_case: bool = False,
    context: int = 0,
    budget: int = answers.BUDGET,
    cursor: str | None = None,
    scope: str = "",
    within: FilterSpec | None = None,
) -> Answer:
    """Return lines of stored texts that match, in document order; all may come from a model.

    Parameters
    ----------
    pattern, regex, ignore_case
        As for ``Grep``.
    context
        How many lines to show before and after each, 0 to 10.
    index, filter, budget, cursor, scope, within
        As in ``search``.
    """
    room = answers.check_budget(budget) - answers.FRAME
    around = check_count("context", context)
    if around > MOST_CONTEXT:
        raise ValueError(f"context must be at most {MOST_CONTEXT} lines")
    both = filter_within(filter, within)
    looked = Grep(index, pattern, both, regex=regex, ignore_case=ignore_case)
    asked = digest("grep", scope, pattern, regex, ignore_case, filter)
    row, after, before = 0, 0, 0
    if cursor is not None:
        (row, after, before), known = read_cursor(cursor, asked, 3)
        row = _row_of(looked, row, known)
    page = _Page(room, around)
    place, total = Place(row, after), before
    end = place
    for match in looked.matches(row, after - 1, _SECONDS):
        if isinstance(match, Place):
            end = match
        else:
            total += 1
            if not page.full and page.add(match):
                place = Place(match.row, match.start + 1)
    finished = end.row >= looked.snapshot.count
    more = None
    if page.full or not finished:
        row, after = place if page.full else end
        more = write_cursor(asked, (row, after, before + page.count), _known(looked, row))
    return answers.make_answer(
        "documents",
        list(page.parts()),
        total=total if finished else None,
        at_least=total,
        returned=page.count,
        unit="lines that match",
        truncated=page.cut,
        cursor=more,
        nothing="No line that may be found matches." if finished else "No line matches so far.",
    )


def _row_of(looked: Grep, row: int, known: str) -> int:
    """Return where the document of a cursor is now; deletions before it have moved it up."""
    rows = range(min(row, looked.snapshot.count - 1), max(-1, row - _MOVED), -1)
    for place in rows:
        # Texts are looked at only where the id is the same: they may be long.
        if known.startswith(_id_of(looked, place)) and _known(looked, place) == known:
            return place
    raise stale()


def _id_of(looked: Grep, row: int) -> str:
    return digest(looked.snapshot.id_at(row))[:5]


def _known(looked: Grep, row: int) -> str:
    """Return half a digest of the id of a document, and half a digest of its text."""
    document = looked.snapshot.document(*looked.snapshot.locate(row))
    return _id_of(looked, row) + digest(document.text)[:5]


class _Page:
    """Lines by document, as many as there is room for.

    ``count`` of them match; ``full`` says whether one was refused, ``cut`` whether one is not shown
    whole.
    """

    def __init__(self, room: int, around: int) -> None:
        self._room, self._around = room, around
        self.count, self.full, self.cut = 0, False, False
        self._row = self._shown = -1  # the last document, and the last of its lines shown
        self._texts: list[str] = []
        self._named: list[dict[str, Any]] = []
        self._lines: list[list[Part]] = []

    def add(self, match: GrepMatch) -> bool:
        """Add a line that matches; return whether there was room."""
        line, named = match.line, dict[str, Any]()
        if match.row != self._row:
            document = match.document
            named = answers.naming(document)
            self._texts, self._row, self._shown = split_lines(document.text or ""), match.row, 0
        # The first line is there in any case, if need be without its neighbours, and shorter.
        sizes = [(self._around, _LONGEST_LINE), (0, _LONGEST_LINE), (0, _SHORT_LINE)]
        for around, width in sizes if not self.count else sizes[:1]:
            parts = list(self._around_line(line, around, width))
            cost = sum(max(len(part.text), answers.size(part.content)) + 1 for part in parts)
            if named:
                cost += Part({**named, "lines": []}, answers.heading(named)).cost
            if cost <= self._room:
                self._take(named, parts, cost)
                return True
        self.full = True
        return False

    def _take(self, named: dict[str, Any], parts: list[Part], cost: int) -> None:
        if named:
            self._named.append(named)
            self._lines.append([])
        lines = self._lines[-1]
        if lines and "spans" not in lines[-1].content:  # shown already, before it was known
            first = parts[0].content["number"]
            while lines and lines[-1].content["number"] >= first:
                lines.pop()
        lines += parts
        self._room -= cost
        self.count += 1
        self._shown = max(self._shown, parts[-1].content["number"])
        self.cut = self.cut or any("characters" in part.content for part in parts)

    def _around_line(self, line: Line, around: int, width: int) -> Iterator[Part]:
        """Yield a line, with spans, and those of its neighbours that are not shown yet."""
        place, texts = line.number - 1, self._texts
        for before in range(max(min(self._shown, place), place - around), place):
            yield _written(Line(before + 1, texts[before], []), width)
        yield _written(line, width, ":")
        for after in range(place + 1, min(len(texts), place + 1 + around)):
            yield _written(Line(after + 1, texts[after], []), width)

    def parts(self) -> Iterator[Part]:
        """Yield the lines of each document."""
        for named, lines in zip(self._named, self._lines, strict=True):
            text = "\n".join([answers.heading(named), *(line.text for line in lines)])
            yield Part({**named, "lines": [line.content for line in lines]}, text)


def _written(line: Line, width: int, mark: str = "-") -> Part:
    """Return a line, or the part of a long one that has the first of its spans."""
    number, text, spans = line
    start = 0
    if len(text) > width:
        start = max(0, spans[0].start - width // 4) if spans else 0
        text = text[start : start + width]
    content: dict[str, Any] = {"number": number, "text": text}
    if mark == ":":
        content["spans"] = [
            [max(0, first - start), min(last - start, len(text))]
            for first, last, _ in spans[:_MOST_SPANS]
            if first < start + len(text) and last > start
        ]
    if len(text) < len(line.text):
        content |= {"start": start, "characters": len(line.text)}
    return Part(content, f"{number}{mark} {text}")

"""Files of queries: BEIR JSON lines, ``id<TAB>text``, or plain lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bm25rag.readers.decoding import numbered_lines
from bm25rag.readers.jsonl import is_jsonl, parse_record
from bm25rag.readers.lines import fail, name_of
from bm25rag.readers.records import id_of, text_of


class Query(NamedTuple):
    """One line of a file of queries."""

    id: str
    text: str


def _query_reader(path: Path, first: str) -> str:
    if is_jsonl(path) or first.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in first else "lines"


def _query(kind: str, path: Path, number: int, line: str) -> Query:
    if kind == "lines":
        return Query(str(number), line.strip())
    if kind == "jsonl":
        record = parse_record(line, path, number)
        if record.get("text") is None:
            fail(path, number, f"a query has a field 'text', here fields are {sorted(record)}")
        id, _ = id_of(record, path, number, None)
        id = f"{name_of(path)}#{number}" if id is None else id
        return Query(id, text_of(record, path, number, ("text",)))
    id, tab, text = line.partition("\t")
    if not tab:
        fail(path, number, "expected 'id<TAB>text', found no tab")
    return Query(id.strip(), text.strip())


def read_queries(path: Path) -> Iterator[Query]:
    """Read queries from BEIR JSON lines, from ``id<TAB>text`` or from plain lines.

    The first line that is not blank decides the format; the id of a plain line is its number. An id
    must not occur twice.
    """
    seen: dict[str, int] = {}
    kind = ""
    for number, line in numbered_lines(path):
        kind = kind or _query_reader(path, line)
        query = _query(kind, path, number, line)
        if query.id in seen:
            fail(path, number, f"query id {query.id!r} is on line {seen[query.id]} already")
        seen[query.id] = number
        yield query

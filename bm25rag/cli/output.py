"""Results as a table for people, a TREC run or JSON lines for programs."""

from __future__ import annotations

import datetime as dt
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bm25rag import BatchResult, Hit
from bm25rag.readers import Query

__all__ = [
    "WRITERS",
    "first_lines",
    "message_console",
    "printable",
    "result_console",
    "to_json",
    "write_jsonl",
    "write_tables",
    "write_trec",
]

_SNIPPET = 240
_SURROGATES = re.compile("[\ud800-\udfff]")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the group of commands, which knows the exit code."""
        raise BrokenPipeError


def result_console(stream: IO[str] | None = None) -> Console:
    """Return a console for results; texts are shown as they are, never as markup."""
    return _Console(file=stream, markup=False, emoji=False, highlight=False)


def message_console() -> Console:
    """Return a console for messages, on the standard error."""
    return _Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """Return the text without what could steer a terminal, white space collapsed."""
    kept = (
        "\ufffd" if unicodedata.category(c) in ("Cc", "Cs") else c for c in " ".join(text.split())
    )
    return "".join(kept)


def first_lines(text: str | None, length: int = _SNIPPET) -> str:
    """Return the beginning of a text on one line."""
    if text is None:
        return "(text not stored)"
    # Four times is enough: what is longer is white space.
    snippet = printable(text[: 4 * length])
    return snippet if len(snippet) <= length else snippet[: length - 1].rstrip() + "…"


# --- for people -----------------------------------------------------------------


def _hit_table(hits: Sequence[Hit]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("#", justify="right", style="dim", no_wrap=True)
    table.add_column("score", justify="right", style="green", no_wrap=True)
    table.add_column("id", style="cyan", overflow="fold", max_width=40)
    table.add_column("text", overflow="fold")
    for rank, hit in enumerate(hits, start=1):
        text = Text(first_lines(hit.text), style="dim" if hit.text is None else "")
        table.add_row(str(rank), f"{hit.score:.4f}", Text(printable(hit.id)), text)
    return table


def write_tables(stream: IO[str], queries: Sequence[Query], batch: BatchResult) -> None:
    """Print a table of hits for each query."""
    console = result_console(stream)
    for query, hits in zip(queries, batch.hits(), strict=True):
        console.print(Text(f"{printable(query.id)}: {printable(query.text)}", style="bold"))
        console.print(_hit_table(hits) if hits else "No document matches.")
        console.print()


# --- for programs ---------------------------------------------------------------


def _trec_field(kind: str, value: str) -> str:
    """Return the value; white space separates the fields, and nothing can escape it."""
    if not value or value.split() != [value]:
        message = (
            f"{kind} {value!r} is empty or has white space in it, which a TREC run cannot hold; "
            "use --format jsonl"
        )
        raise ValueError(message)
    return value


def write_trec(stream: IO[str], queries: Sequence[Query], batch: BatchResult) -> None:
    """Write ``qid Q0 docid rank score tag``; scores with all their digits."""
    for query, ids, scores in zip(queries, batch.ids(), batch.scores.tolist(), strict=True):
        query_id = _trec_field("query id", query.id)
        for rank, (id, score) in enumerate(zip(ids, scores, strict=False), start=1):
            row = f"{query_id} Q0 {_trec_field('document id', id)} {rank} {score!r} bm25rag\n"
            stream.write(row)


def _jsonable(value: object) -> str:
    if isinstance(value, dt.date):
        return value.isoformat()
    message = f"cannot write {type(value).__name__} as JSON"
    raise TypeError(message)


def to_json(value: object, indent: int | None = None) -> str:
    """Return readable JSON; dates as ISO strings, lone surrogates as escapes."""
    text = json.dumps(value, ensure_ascii=False, default=_jsonable, indent=indent)
    if _SURROGATES.search(text):
        return json.dumps(value, default=_jsonable, indent=indent)
    return text


def _json_hit(query: Query, rank: int, hit: Hit) -> dict[str, Any]:
    return {
        "query_id": query.id,
        "rank": rank,
        "id": hit.id,
        "score": hit.score,
        "text": hit.text,
        "metadata": hit.metadata,
    }


def write_jsonl(stream: IO[str], queries: Sequence[Query], batch: BatchResult) -> None:
    """Write one JSON object a hit."""
    for query, hits in zip(queries, batch.hits(), strict=True):
        for rank, hit in enumerate(hits, start=1):
            stream.write(to_json(_json_hit(query, rank, hit)) + "\n")


WRITERS: dict[str, Callable[[IO[str], Sequence[Query], BatchResult], None]] = {
    "table": write_tables,
    "trec": write_trec,
    "jsonl": write_jsonl,
}

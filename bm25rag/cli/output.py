"""Results as a table for people, or as a TREC run or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from rich.table import Table
from rich.text import Text

from bm25rag import BatchResult, Hit
from bm25rag.cli.marked_text import marked_snippet
from bm25rag.cli.terminal import result_console
from bm25rag.common.json_values import finite, iso_date
from bm25rag.common.visible import UNSAFE, one_line
from bm25rag.documents import fields_beside
from bm25rag.readers import Query

if TYPE_CHECKING:
    from bm25rag.distributed.results import RayBatch


class Answers(NamedTuple):
    """Queries and what was found; ``from_file`` is False for a query on the command line.

    Where several rankings were fused, ``found`` is the list of the hits of one query.
    ``k`` is how many hits were asked for, ``first`` the rank of the first one, ``spans`` whether
    JSON says where the words are, and ``groups`` how many groups match, in a search with groups.
    """

    queries: Sequence[Query]
    found: BatchResult | RayBatch | list[Hit]
    from_file: bool
    k: int
    first: int = 1
    spans: bool = False
    groups: Sequence[int] | None = None

    def pairs(self) -> Iterable[tuple[Query, list[Hit]]]:
        """Return each query with its hits."""
        each = [self.found] if isinstance(self.found, list) else self.found.hits()
        return zip(self.queries, each, strict=True)

    def rankings(self) -> Iterable[tuple[Query, Iterable[tuple[str, float]]]]:
        """Return each query with the ids and scores of its hits, which are not made for that."""
        if isinstance(self.found, list):
            return [(self.queries[0], [(hit.id, hit.score) for hit in self.found])]
        each = map(zip, self.found.ids(), self.found.scores.tolist())
        return zip(self.queries, each, strict=True)


# --- for people -----------------------------------------------------------------


def _hit_table(hits: Sequence[Hit], answers: Answers) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("#", justify="right", style="dim", no_wrap=True)
    table.add_column("score", justify="right", style="green", no_wrap=True)
    table.add_column("id", style="cyan", overflow="fold", max_width=40)
    sizes = [hit.group_size for hit in hits]
    if any(sizes):
        table.add_column("group", justify="right", style="dim", no_wrap=True)
    table.add_column("text", overflow="fold")
    for rank, (hit, size) in enumerate(zip(hits, sizes, strict=True), start=answers.first):
        own = [] if size is None else [str(size)]
        score, id = f"{hit.score:.4f}", Text(one_line(hit.id))
        table.add_row(str(rank), score, id, *own, marked_snippet(hit))
    return table


def write_tables(stream: IO[str], answers: Answers) -> None:
    """Print a table of hits for each query, below the query if it comes from a file."""
    console = result_console(stream)
    none = "No document matches." if answers.first == 1 else "No more documents match."
    none = none if answers.k else "No document was asked for: -k is 0."
    for query, hits in answers.pairs():
        if answers.from_file:
            console.print(Text(f"{one_line(query.id)}: {one_line(query.text)}", style="bold"))
        console.print(_hit_table(hits, answers) if hits else none)
        if answers.from_file:
            console.print()


# --- for programs ---------------------------------------------------------------


def write_trec(stream: IO[str], answers: Answers) -> None:
    """Write ``qid Q0 docid rank score tag``; scores with all their digits.

    The format has no escapes for an id that is empty or contains white space or control characters.
    """
    from bm25rag.evaluation.files import run_lines  # with all of the evaluation: few ask for a run

    for query, ranking in answers.rankings():
        try:
            for line in run_lines(query.id, ranking, "bm25rag", answers.first):
                if UNSAFE.search(line):
                    raise ValueError(f"the line {line!r} has control characters in it")
                stream.write(f"{line}\n")
        except ValueError as error:
            raise ValueError(f"{error}; use --format jsonl") from error


def to_json(value: object, indent: int | None = None) -> str:
    r"""Return readable JSON; dates are ISO strings, terminal control characters ``\u...``."""
    write = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, default=iso_date, indent=indent
    ).encode
    try:
        text = write(value)
    except ValueError:
        text = write(finite(value))
    # All of these occur within strings, where an escape means the same.
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _json_hits(hits: Sequence[Hit], answers: Answers) -> Iterator[dict[str, Any]]:
    for rank, hit in enumerate(hits, start=answers.first):
        shown = {"rank": rank, "id": hit.id, "score": hit.score, "text": hit.text}
        places = {"spans": hit.spans} if answers.spans else {}
        fields = fields_beside(hit)
        beside = {"fields": fields} if fields else {}
        group = {} if hit.group_size is None else {"group_size": hit.group_size}
        yield {**shown, "metadata": hit.metadata, **group, **beside, **places}


def write_jsonl(stream: IO[str], answers: Answers) -> None:
    """Write one JSON object per hit."""
    for query, hits in answers.pairs():
        for hit in _json_hits(hits, answers):
            stream.write(to_json({"query_id": query.id} | hit) + "\n")


def write_json(stream: IO[str], answers: Answers) -> None:
    """Write one JSON object per query, with the list of its hits."""
    for number, (query, hits) in enumerate(answers.pairs()):
        groups = {} if answers.groups is None else {"groups": int(answers.groups[number])}
        shown = [*_json_hits(hits, answers)]
        answer = {"query_id": query.id, "query": query.text, **groups, "hits": shown}
        stream.write(to_json(answer) + "\n")


WRITERS: dict[str, Callable[[IO[str], Answers], None]] = {
    "table": write_tables,
    "json": write_json,
    "jsonl": write_jsonl,
    "trec": write_trec,
}

"""``search`` and ``explain``: the commands that query an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bm25rag import BatchResult, BM25Index, Hit
from bm25rag.cli.dropped import dropped_words
from bm25rag.cli.options import (
    PATH,
    PATH_OR_DASH,
    also_option,
    decay_option,
    examples,
    filter_option,
    open_index,
    read_query,
    reading_argument,
    scoring_options,
    syntax_option,
    usage_errors,
    vector_option,
)
from bm25rag.cli.output import WRITERS, Answers
from bm25rag.cli.terminal import write_result
from bm25rag.common.visible import one_line
from bm25rag.readers import Query, read_queries

if TYPE_CHECKING:
    from bm25rag.distributed.client import RayIndex
    from bm25rag.distributed.results import RayBatch

# Queries answered at once: it limits the hits in memory, however long the file.
_BATCH = 1000


@click.command(
    "search",
    epilog=examples(
        'bm25rag search docs.bm25 "how do I install it"',
        'bm25rag search docs.bm25 install -k 3 --filter \'{"source": "guide.md"}\'',
        "bm25rag search docs.bm25 install --format jsonl | jq .id",
        """bm25rag search docs.bm25 'install -windows "step by step"' --syntax""",
        """bm25rag search docs.bm25 install --vector '{"install": 1.5, "setup": 0.8}'""",
        "bm25rag search docs.bm25 'how do I install it' --also 'setup guide^0.5'",
        "bm25rag search scifact.bm25 --queries queries.jsonl -k 100 \\",
        "    --format trec --output scifact.run",
    ),
)
@reading_argument
@click.argument("query", required=False)
@click.option(
    "--queries",
    "queries_path",
    metavar="FILE",
    type=PATH_OR_DASH,
    help="Queries as BEIR JSON lines, id<TAB>text, or one per line; - reads standard input.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(WRITERS)),
    help="json: one object per query; jsonl: one per hit; trec: 'qid Q0 docid rank score tag'."
    "  [default: table]",
)
@click.option("--spans", is_flag=True, help="In JSON, say where in each text the words are.")
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option("--output", "-o", metavar="FILE", type=PATH, help="Write to this file.")
@click.option("-k", default=10, type=click.IntRange(min=0), help="Maximum hits per query.")
@click.option(
    "--offset",
    default=0,
    show_default=False,
    type=click.IntRange(min=0),
    help="Leave out so many of the best hits: the next page.",
)
@click.option(
    "--group",
    metavar="PATH",
    help="The best hit of each group: a metadata field such as source, or $text for equal texts.",
)
@click.option("--per-group", default=1, type=click.IntRange(min=1), help="Hits of each group.")
@decay_option
@click.option("--min-score", type=float, help="Omit hits below this score.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for a file of queries.")
@also_option
@click.option(
    "--by-rank", is_flag=True, help="Fuse the rankings of QUERY and each --also, not their scores."
)
@syntax_option
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=float,
    help="How long texts are looked into for the phrases of --syntax; a warning says if this was"
    " too short.",
)
@vector_option
@filter_option
@scoring_options
def search_command(
    index_path: Path | str,
    query: str | None,
    queries_path: Path | None,
    vector: dict[str, float] | None,
    format_: str | None,
    as_json: bool,
    spans: bool,
    output: Path | None,
    **options: Any,
) -> None:
    """Search an index for one QUERY, a sparse vector or both, or for a file of queries.

    Scoring options search the same index with other parameters; the saved
    index does not change.
    """
    if vector is None:
        queries = queries_of(query, queries_path)
    elif queries_path is None:
        queries = iter([Query("1", query or "")])
    else:
        raise click.UsageError("give either --vector or --queries FILE")
    check_rankings(query, vector, options)
    write = WRITERS[format_of(format_, as_json)]
    index = open_index(index_path, options)
    # Opened on the first write, so that an error before it leaves the file unchanged.
    with click.open_file(output or "-", "w", encoding="utf-8", lazy=True) as stream:
        for block, found in each_batch(index, queries, query, vector, options):
            asked_in_file, first = queries_path is not None, options["offset"] + 1
            groups = None
            if options["group"] is not None and isinstance(found, BatchResult):
                groups = found.totals().tolist()
            write(stream, Answers(block, found, asked_in_file, options["k"], first, spans, groups))
        stream.flush()


def check_rankings(
    query: str | None, vector: dict[str, float] | None, options: Mapping[str, Any]
) -> None:
    """Raise ``UsageError`` if options are for other kinds or numbers of queries or rankings."""
    if options.get("timeout") is not None and not options["syntax"]:
        raise click.UsageError("--timeout is for phrases, which --syntax reads")
    if query is None and (options["also"] or options["by_rank"]):
        raise click.UsageError("--also and --by-rank need a QUERY")
    if options["by_rank"] and vector is not None:
        raise click.UsageError("give either --by-rank or --vector")
    several = options["by_rank"] or (vector is not None and query is not None)
    if several and options["min_score"] is not None:
        message = "--min-score is for one ranking: leave out what makes several, or --min-score"
        raise click.UsageError(message)


def each_batch(
    index: BM25Index | RayIndex,
    queries: Iterator[Query],
    query: str | None,
    vector: dict[str, float] | None,
    options: Mapping[str, Any],
) -> Iterator[tuple[list[Query], BatchResult | RayBatch | list[Hit]]]:
    """Yield queries, and what is found for them; arguments as of the commands."""
    while block := list(islice(queries, _BATCH)):
        with usage_errors():
            found = _search_for(index, [asked.text for asked in block], query, vector, options)
        yield block, found


def _search_for(
    index: BM25Index | RayIndex,
    texts: list[str],
    query: str | None,
    vector: dict[str, float] | None,
    options: Mapping[str, Any],
) -> BatchResult | RayBatch | list[Hit]:
    """Search for texts, or for a vector and, if there is one, the query."""
    k, filter_, syntax, also = (options[name] for name in ("k", "filter_", "syntax", "also"))
    timeout = options.get("timeout")
    of_page = ("offset", "group", "per_group", "decay", "deadline")
    page = {name: options[name] for name in of_page if name in options}
    if options["by_rank"]:
        each, weights = zip((query or "", 1.0), *also, strict=True)
        asked_each = [read_query(index, text, syntax, timeout=timeout) for text in each]
        return index.search_fused(asked_each, k, filter_, weights=weights, **page)
    if vector is not None and query is not None:
        asked = read_query(index, query, syntax, also, timeout)
        return index.search_hybrid(asked, vector, k, filter_, **page)
    of_batch = ("min_score", "threads", "partial")
    limits = page | {name: options[name] for name in of_batch if name in options}
    if vector is not None:
        return index.vectors.search_batch([vector], k, filter_, **limits)
    queries = [read_query(index, text, syntax, also, timeout) for text in texts]
    return index.search_batch(queries, k, filter_, **limits)


def queries_of(query: str | None, path: Path | None) -> Iterator[Query]:
    """Return the one query, or those of a file."""
    if (query is None) == (path is None):
        raise click.UsageError("give either a QUERY or --queries FILE")
    if query == "-":  # of most commands, standard input; a text of no word finds nothing
        raise click.UsageError("QUERY is a text: --queries - reads queries from standard input")
    # All of them first, so that a bad line is reported before any result.
    return iter([Query("1", query or "")] if path is None else list(read_queries(path)))


def format_of(format_: str | None, as_json: bool) -> str:
    """Return the format that --format and --json name."""
    if as_json and format_ not in (None, "json"):
        raise click.UsageError(f"give either --json or --format {format_}")
    return "json" if as_json else format_ or "table"


@click.command(
    "explain", epilog=examples('bm25rag explain docs.bm25 "how do I install it" guide.md#3')
)
@reading_argument
@click.argument("query")
@click.argument("id_", metavar="ID")
@also_option
@syntax_option
@filter_option
@decay_option
@scoring_options
def explain_command(index_path: Path | str, query: str, id_: str, **options: Any) -> None:
    """Explain the score of the document ID for QUERY, term by term.

    Words of QUERY that do not count are listed below it, each with the reason.
    """
    index = open_index(index_path, options)
    with usage_errors():
        asked = read_query(index, query, options["syntax"], options["also"])
        explanation = index.explain(asked, id_, options["filter_"], decay=options["decay"])
    write_result(str(explanation))
    text = asked if isinstance(asked, str) else asked.as_text()
    dropped = dropped_words(text, index.analyzer, explanation)
    if dropped:
        write_result("words of the query that do not count:")
        shown = {one_line(word): reason for word, reason in dropped.items()}
        width = max(map(len, shown))
        for word, reason in shown.items():
            write_result(f"  {word:{width}}  {reason}")

"""``make-queries``: queries from your own documents, before you have judgements."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from bm25rag.cli.options import PATH, examples, index_argument
from bm25rag.cli.terminal import write_message
from bm25rag.common.visible import one_line
from bm25rag.evaluation.files import write_qrels
from bm25rag.evaluation.known_items import ask_model, known_items
from bm25rag.index import BM25Index

_KEY = "BM25RAG_MODEL_KEY"


@click.command(
    "make-queries",
    epilog=examples(
        "bm25rag make-queries docs.bm25 --output made/",
        "bm25rag evaluate docs.bm25 --queries made/queries.jsonl --qrels made/qrels.tsv -m RR@10",
        "bm25rag make-queries docs.bm25 -o made/ --url http://localhost:11434/v1 --model llama3",
    ),
)
@index_argument
@click.option("--output", "-o", required=True, metavar="FOLDER", type=PATH, help="Where to write.")
@click.option("--count", default=200, type=click.IntRange(min=1))
@click.option("--seed", default=0, type=int, help="For drawing the documents.")
@click.option("--url", help="Base of an OpenAI-compatible endpoint; texts are sent there.")
@click.option("--model", help="The model to ask at --url.")
def make_queries_command(
    index_path: Path | str,
    untrusted: bool,
    output: Path,
    count: int,
    seed: int,
    url: str | None,
    model: str | None,
) -> None:
    """Make queries from documents of an index, each with the one document it asks for.

    They come from titles, headings or first sentences; or, with --url and --model, from a
    language model, with the key in the variable BM25RAG_MODEL_KEY if it needs one. Such queries
    favour documents that share their words: use them to compare settings, not systems, and
    use real queries as soon as you have some.
    """
    if (url is None) != (model is None):
        raise click.UsageError("--url and --model go together")
    index = BM25Index.open(index_path, untrusted=untrusted)
    maker = None if url is None else ask_model(url, model or "", os.environ.get(_KEY))
    made = known_items(index.get(index.ids()), count, maker, seed)
    output.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"_id": id, "text": text}) + "\n" for id, text in made.queries.items()]
    write_qrels(output / "qrels.tsv", made.qrels)
    (output / "queries.jsonl").write_text("".join(lines), encoding="utf-8")
    made_of = "query" if len(lines) == 1 else "queries"
    write_message(f"{len(lines):,} {made_of} in {one_line(output)}. Note: {made.source}.")
